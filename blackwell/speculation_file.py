"""The file of an inventory that says how one host's speculation follows its load: ``host_vars/<host>/speculation.yml``.

The one before is kept beside it in a hidden file, which Ansible does not read; it is empty where there was none.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import yaml

from blackwell import host_vars, inventory, speculation_setting, speculation_text
from blackwell.bench import durable
from blackwell.bench.errors import BenchError
from blackwell.host_errors import HostError
from blackwell.inventory import Inventory
from blackwell.speculation_setting import Setting
from blackwell.speculation_text import Origin

NAME, BEFORE = "speculation.yml", ".speculation.yml.before"
VARIABLES = frozenset(Setting().variables)


@dataclass(frozen=True)
class Written:
    """A file as it is. ``origin``: None where it does not say; ``by_hand``: somebody else wrote or changed it."""

    setting: Setting
    origin: Origin | None
    by_hand: bool


def place(known: Inventory, host: str) -> Path:
    """The file of a host, which need not be there.

    Raises HostError if the host is not in the inventory, or the inventory was read from nowhere.
    """
    if not known.hosts:
        raise HostError(f"{host} is in no inventory that it could be written to: name one with --inventory")
    at = host_vars.base(known)
    if host not in known.hosts:
        raise HostError(f"{host} is not in {known.source}, so that no variables of it can be written there")
    if "/" in host or host.startswith("."):
        raise HostError(f"{host} in {known.source} is no name that a directory of host_vars could have")
    return at / "host_vars" / host / NAME


def read(file: Path) -> Written | None:
    """What a file says; None if it is not there. Raises HostError if it cannot be read or says what cannot be."""
    text = _text(file)
    return None if text is None else _parsed(file, text)


def _parsed(file: Path, text: str) -> Written:
    try:
        found = host_vars.parsed(text)
    except (ValueError, yaml.YAMLError) as error:
        raise HostError(f"{file} cannot be read: {getattr(error, 'problem', None) or error}") from error
    setting = speculation_setting.of(str(file), found)
    return Written(setting, speculation_text.origin(text), speculation_text.by_hand(text))


def before(known: Inventory, host: str) -> Written | None:
    """What the file said before it was written last; None if it was not there.

    Raises HostError if it was never written.
    """
    file = _before(place(known, host))
    text = _text(file)
    if text is None:
        raise HostError(f"{host}: fab has not written {file.with_name(NAME)}, so that there is none before to put back")
    return _parsed(file, text) if text else None


def check(known: Inventory, host: str, setting: Setting, *, force: bool = False) -> Path:
    """The file of a host, after looking for all that keeps a setting from being written or from applying.

    ``force``: a file that somebody has changed by hand may be written over. Raises HostError, naming the file.
    """
    file = place(known, host)
    text = _text(file)
    if text is not None and speculation_text.by_hand(text) and not force:
        raise HostError(
            f"{file} was written or changed by hand: --force writes over it, and keeps it as the one before"
        )
    _check_alone(file)
    _check_others(file, setting.variables)
    return file


def _check_alone(file: Path) -> None:
    if file.is_symlink():
        raise HostError(f"{file} is a link to a file that others may share: change that one by hand")
    directory = file.parent
    alone = host_vars.alone(directory.parent, directory.name)
    if alone == directory:
        raise HostError(f"{directory} is a file: make it a directory, with the file as {directory}/main.yml")
    if alone and (not directory.is_dir() or VARIABLES & host_vars.variables(alone).keys()):
        raise HostError(
            f"{alone} is not read by Ansible where there is a directory {directory}, which {NAME} needs: "
            f"move it to {directory}/main.yml"
        )


def _check_others(file: Path, ours: Mapping[str, object]) -> None:
    files = host_vars.files(file.parent.parent, file.parent.name)
    for other in files:
        values = {} if other == file else host_vars.variables(other)
        for name in sorted(ours.keys() & values.keys()):
            if values[name] != ours[name]:
                wins = (
                    f"it is read after {NAME} and wins" if _after(other, file) else f"{NAME} is read after it and wins"
                )
                raise HostError(
                    f"{other} sets {name} to {values[name]!r} for the same host, and {wins}: remove it there"
                )


def _after(other: Path, file: Path) -> bool:
    directory = file.parent
    # By names, directory by directory, as Ansible reads them.
    return other.relative_to(directory).parts > file.relative_to(directory).parts


def write(known: Inventory, host: str, setting: Setting, origin: Origin, *, force: bool = False) -> Path:
    """Write a host's file, whole or not at all; returns it. What it says already is left, but for a newer measurement.

    Raises HostError as ``check`` does, if it cannot be written, and if Ansible does not read it so.
    """
    with written(known, host, setting, origin, force=force) as file:
        return file


@contextmanager
def written(known: Inventory, host: str, setting: Setting, origin: Origin, *, force: bool = False) -> Iterator[Path]:
    """``write`` for as long as what is done with it goes well: after an error, all is as it was."""
    file = check(known, host, setting, force=force)
    text = _text(file)
    same = text is not None and not speculation_text.by_hand(text) and _parsed(file, text).setting == setting
    if same and not origin.run:
        _confirm(known, host, file, setting.variables)
        yield file
        return
    kept = _text(_before(file)) if same else text
    with _replaced(file, speculation_text.render(host, setting, origin), kept or ""):
        _confirm(known, host, file, setting.variables)
        yield file


def undo(known: Inventory, host: str) -> Written | None:
    """Let a host's file and the one before change places; returns what it says now, None if it is gone.

    Done twice, all is as it was. Raises HostError as ``before`` and ``write`` do.
    """
    with undone(known, host) as found:
        return found


@contextmanager
def undone(known: Inventory, host: str) -> Iterator[Written | None]:
    """``undo`` for as long as what is done with it goes well: after an error, all is as it was."""
    file, found = place(known, host), before(known, host)
    text = _text(_before(file)) or None
    ours = {name: value for name, value in host_vars.parsed(text or "").items() if name in VARIABLES}
    _check_alone(file)
    _check_others(file, ours)
    with _replaced(file, text, _text(file) or ""):
        _confirm(known, host, file, ours)
        yield found


def _confirm(known: Inventory, host: str, file: Path, ours: Mapping[str, object]) -> None:
    """Ansible's own word for what it reads now; raises HostError if that is not what the file says."""
    found = inventory.read(Path(known.source)).hosts.get(host, {})
    told = [f"{name} as {found.get(name)!r}" for name in sorted(ours) if found.get(name) != ours[name]]
    if told:
        raise HostError(f"{file} was put back as it was: for {host}, Ansible reads {' and '.join(told)} all the same")


def _before(file: Path) -> Path:
    return file.with_name(BEFORE)


def _text(file: Path) -> str | None:
    try:
        return file.read_text(encoding="utf-8")
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise HostError(f"{file} cannot be read: {getattr(error, 'strerror', None) or error}") from error


@contextmanager
def _replaced(file: Path, text: str | None, kept: str) -> Iterator[None]:
    """``kept`` becomes the one before; None removes the file. After an error all is as it was, directories too."""
    contents = {path: _text(path) for path in (_before(file), file)}
    made = [directory for directory in (file.parent, file.parent.parent) if not directory.exists()]
    try:
        _put(_before(file), kept)
        _put(file, text)
        yield
    except BaseException:
        for path, content in contents.items():
            if _text(path) != content:
                _put(path, content)
        for directory in made:
            with suppress(OSError):
                directory.rmdir()
        raise


def _put(file: Path, text: str | None) -> None:
    try:
        if text is None:
            file.unlink(missing_ok=True)
            return
        file.parent.mkdir(parents=True, exist_ok=True)
        durable.replace(file, text.encode())
    except BenchError as error:
        raise HostError(str(error)) from error
    except OSError as error:
        raise HostError(f"{file} cannot be written: {error.strerror}") from error
