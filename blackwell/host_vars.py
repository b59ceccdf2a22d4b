"""Files of variables beside an inventory, by Ansible's rule for them (its vars plugin ``host_group_vars``)."""

from collections.abc import Iterator, Mapping
from pathlib import Path

import yaml

from blackwell.host_errors import HostError
from blackwell.inventory import Inventory

EXTENSIONS = (".yml", ".yaml", ".json")
VAULT = "$ANSIBLE_VAULT"


class _Loader(yaml.SafeLoader):
    """Reads Ansible's own tags too; what they stand for is None, which no variable of interest is."""


_Loader.add_multi_constructor("!", lambda *_: None)


def has_files(inventory: Inventory) -> bool:
    """Whether an inventory was read from a file or a directory; one as ansible's `-i box,` was not."""
    source = Path(inventory.source)
    return source.is_absolute() and source.exists()


def base(inventory: Inventory) -> Path:
    """The directory in which ``host_vars`` and ``group_vars`` of an inventory lie: the inventory, or beside its file.

    Raises HostError if the inventory is none that was read from a file or a directory.
    """
    source = Path(inventory.source)
    if not has_files(inventory):
        raise HostError("there is no inventory that variables could be written beside: name one with --inventory")
    return source if source.is_dir() else source.parent


def alone(directory: Path, name: str) -> Path | None:
    """The file with all variables of a host or group, where there is one; beside a directory, Ansible reads it not."""
    candidates = [directory / f"{name}{extension}" for extension in ("", *EXTENSIONS)]
    return next((file for file in candidates if file.is_file()), None)


def files(directory: Path, name: str) -> list[Path]:
    """The files of a host or group under ``host_vars`` or ``group_vars`` in the order in which Ansible reads them.

    What is set in a later one wins.
    """
    if (directory / name).is_dir():
        return list(_below(directory / name))
    file = alone(directory, name)
    return [file] if file else []


def _below(directory: Path) -> Iterator[Path]:
    for path in sorted(directory.iterdir(), key=lambda entry: entry.name):
        if path.name.startswith(".") or path.name.endswith("~"):
            continue
        if path.is_dir() and not path.suffix:
            yield from _below(path)
        elif path.is_file() and path.suffix in ("", *EXTENSIONS):
            yield path


def variables(file: Path) -> Mapping[str, object]:
    """What a file sets; nothing that can be told of one that is encrypted as a whole.

    Raises HostError if it cannot be read or holds no variables.
    """
    try:
        return parsed(file.read_text(encoding="utf-8"))
    except (OSError, ValueError, yaml.YAMLError) as error:
        said = getattr(error, "strerror", None) or getattr(error, "problem", None) or str(error)
        raise HostError(f"{file} cannot be read: {said}") from error


def parsed(text: str) -> Mapping[str, object]:
    """The variables of a file by its text. Raises ValueError or yaml.YAMLError if there are none in it."""
    if text.startswith(VAULT):
        return {}
    loader = _Loader(text)
    try:
        found = loader.get_single_data()
    finally:
        loader.dispose()
    if found is None:
        return {}
    if isinstance(found, dict):
        return found
    raise ValueError("it holds no variables")


def setting(inventory: Inventory, host: str, names: frozenset[str]) -> list[Path]:
    """The files beside an inventory that set one of some variables for a host; those of the host win, and come last."""
    at = base(inventory)
    groups = [name for name, members in inventory.groups.items() if host in members and name != "all"]
    found = [file for group in ("all", *groups) for file in files(at / "group_vars", group)]
    return [file for file in (*found, *files(at / "host_vars", host)) if names & variables(file).keys()]
