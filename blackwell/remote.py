"""Connections to hosts whose keys are pinned, and what runs over them."""

import base64
import json
import logging
import shlex
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from fabric import Config, Connection
from paramiko import HostKeys, MissingHostKeyPolicy, PKey, SSHClient
from paramiko.config import SSHConfig
from paramiko.ssh_exception import SSHException

from blackwell import on_host, ssh_failures, ssh_settings
from blackwell.host_errors import HostError
from blackwell.inventory import Host
from blackwell.ssh_settings import Settings

ANSWER_SECONDS = 60.0
KEEPALIVE_SECONDS = 15
NOT_FOUND = 127

# Program and arguments come over stdin: no length limit applies, and the list of processes does not show them.
_BOOTSTRAP = (
    "import json, sys; sent = json.load(sys.stdin); space = {'__name__': 'on_host'}; "
    "exec(compile(sent['program'], 'on_host', 'exec'), space); "
    "print(json.dumps(space[sent['function']](**sent['arguments'])))"
)

_BOOTSTRAP_PACKED = (
    "import base64, json, sys, tempfile; sent = json.load(sys.stdin); "
    "file = tempfile.NamedTemporaryFile(suffix='.zip'); file.write(base64.b64decode(sent['archive'])); file.flush(); "
    "sys.path.insert(0, file.name); sys.dont_write_bytecode = True; from blackwell.sweep import verbs; "
    "print(json.dumps(verbs.answer(sent['verb'], file.name, sent['arguments'])))"
)


class RefusedError(HostError):
    """The host was reached and answered that it will not do what it was asked."""


class _Refuse(MissingHostKeyPolicy):
    """Refuses hosts whose key is in no known_hosts file."""

    def __init__(self, label: str, settings: Settings) -> None:
        self.label, self.settings = label, settings

    def missing_host_key(self, client: SSHClient, hostname: str, key: PKey) -> None:
        """Refuse; paramiko calls this, with its own idea of the name."""
        del client, hostname
        raise HostError(ssh_failures.unknown(self.label, self.settings, key))


def pinned(settings: Settings) -> dict[str, PKey]:
    """The keys that the known_hosts files pin for the host, by type; the first file that has a type decides.

    Raises OSError if a file cannot be read. That a file is not there is no error.
    """
    found: dict[str, PKey] = {}
    for file in settings.known_hosts:
        with suppress(FileNotFoundError):
            found = {**(HostKeys(str(file)).lookup(settings.host_key_name) or {}), **found}
    return found


def unopened(label: str, settings: Settings, gateway: Connection | str | None = None) -> Connection:
    """A connection by these settings and nothing else; ``label`` names the host in errors.

    Raises HostError if a known_hosts file cannot be read.
    """
    connection = Connection(
        settings.host,
        user=settings.user,
        port=settings.port,
        gateway=gateway or False,
        config=Config(ssh_config=SSHConfig()),
        connect_timeout=round(settings.timeout),
        connect_kwargs={
            "key_filename": [str(file) for file in settings.identities if file.is_file()],
            "allow_agent": not settings.identities_only,
            "look_for_keys": False,
            "banner_timeout": settings.timeout,
            "auth_timeout": settings.timeout,
        },
    )
    try:
        keys = pinned(settings)
    except (OSError, ValueError) as error:
        raise HostError(f"{label}: {ssh_failures.files(settings)} cannot be read: {error}") from error
    # Under the name that paramiko looks for, which knows no aliases.
    name = replace(settings, host_key_alias=None).host_key_name
    for kind, key in keys.items():
        connection.client.get_host_keys().add(name, kind, key)
    connection.client.set_missing_host_key_policy(_Refuse(label, settings))
    return connection


def _open(label: str, settings: Settings, gateway: Connection | str | None) -> Connection:
    connection = unopened(label, settings, gateway)
    try:
        connection.open()
    except (SSHException, OSError, EOFError) as error:
        transport = connection.client.get_transport()
        exchanged = transport is not None and transport.initial_kex_done
        connection.client.close()
        raise HostError(ssh_failures.sentence(label, settings, error, keys_exchanged=exchanged)) from error
    except HostError:
        connection.client.close()
        raise
    connection.transport.set_keepalive(KEEPALIVE_SECONDS)
    return connection


def connect(host: Host, timeout: float | None = None) -> Connection:
    """Open a connection, through its jump hosts if it has any. Close it, or use it as a context.

    ``timeout``: seconds for each host to answer, instead of what the SSH configuration says.
    Raises HostError if the key file is not there, a host does not answer, its key is unknown or changed, or it lets
    nobody in.
    """
    if host.identity:
        check_key(f"{host.name}: the SSH key to log in with", host.identity)
    # paramiko writes tracebacks to its log, and Python shows a log that nobody handles.
    logging.getLogger("paramiko").addHandler(logging.NullHandler())
    settings = _timed(ssh_settings.effective(host.name, ssh_settings.arguments(host)), timeout)
    gateway: Connection | str | None = settings.proxy_command
    for hop in settings.jumps:
        words = ssh_settings.hop_arguments(hop, host.ssh_args)
        label = f"{host.name}, jump host {words[-1]}"
        gateway = _open(label, _timed(ssh_settings.effective(label, words), timeout), gateway)
    return _open(host.name, settings, gateway)


def check_key(what: str, file: Path) -> None:
    """Raises HostError if a file cannot be a private key; ``what`` says what it is to be."""
    try:
        with file.open("rb") as opened:
            start = opened.read(10)
    except OSError as error:
        raise HostError(f"{what}, {file}, cannot be read: {error.strerror}") from error
    if start != b"-----BEGIN":
        raise HostError(f"{what}, {file}, is not a private key")


def _timed(settings: Settings, timeout: float | None) -> Settings:
    return replace(settings, timeout=timeout) if timeout else settings


def elevated(host: Host, user: str, words: list[str]) -> str:
    """The command line that runs words as the user that the inventory asks for; ``user`` is the one logged in."""
    sudo = ["sudo", "-n", "-u", host.become_user, "--"] if host.become and user != host.become_user else []
    return shlex.join([*sudo, *words])


def _complaint(host: Host, user: str, program: str, stderr: str) -> str:
    lines = stderr.strip().splitlines() or ["it said nothing"]
    refused = [line.removeprefix("sudo:").strip() for line in lines if line.startswith("sudo:")]
    if refused:
        return f"{host.name}: {user} cannot become {host.become_user} with sudo, without a password: {refused[0]}"
    return f"{host.name}: {program} failed on the host: {lines[-1].strip()}"


def call(
    connection: Connection, host: Host, function: str, *, seconds: float = ANSWER_SECONDS, **arguments: object
) -> dict:
    """Run a function of ``on_host`` on the host with its own python3; returns what it returns.

    ``seconds`` is the longest silence. Raises HostError if it fails or does not answer.
    """
    program = Path(on_host.__file__).read_text(encoding="utf-8")
    sent = {"program": program, "function": function, "arguments": arguments}
    return _answer(connection, host, _BOOTSTRAP, sent, seconds)


def call_packed(
    connection: Connection,
    host: Host,
    archive: bytes,
    verb: str,
    *,
    seconds: float = ANSWER_SECONDS,
    **arguments: object,
) -> dict:
    """Run a verb of ``blackwell.sweep.verbs`` from a zip on the host with its own python3; returns what it returns.

    The zip is gone from the host afterwards. Raises HostError as ``call`` does, and RefusedError with the sentence of a
    verb that refuses.
    """
    sent = {"archive": base64.b64encode(archive).decode(), "verb": verb, "arguments": arguments}
    found = _answer(connection, host, _BOOTSTRAP_PACKED, sent, seconds)
    if "error" in found:
        raise RefusedError(f"{host.name}: {found['error']}")
    return found


def _answer(connection: Connection, host: Host, bootstrap: str, sent: dict, seconds: float) -> dict:
    command = elevated(host, connection.user, ["python3", "-I", "-c", bootstrap])
    try:
        stdin, stdout, stderr = connection.client.exec_command(command, timeout=seconds)
        # A command that ends early, such as a refused sudo, does not take its input.
        with suppress(OSError):
            stdin.write(json.dumps(sent))
            stdin.channel.shutdown_write()
        answer, complaint = stdout.read(), stderr.read().decode(errors="replace")
        code = stdout.channel.recv_exit_status()
    except TimeoutError as error:
        raise HostError(f"{host.name}: no answer within {seconds:g} s") from error
    except (SSHException, OSError, EOFError) as error:
        raise HostError(f"{host.name}: the connection broke: {error}") from error
    if code == NOT_FOUND:
        raise HostError(f"{host.name}: {command.split()[0]} is not on the host")
    if code:
        raise HostError(_complaint(host, connection.user, "python3", complaint))
    return json.loads(answer)


def stream(connection: Connection, host: Host, words: list[str], write: Callable[[bytes], object]) -> None:
    """Run a command and hand its output on as it comes, until it ends.

    Raises HostError if the command fails or the connection breaks.
    """
    try:
        stdin, stdout, stderr = connection.client.exec_command(elevated(host, connection.user, words))
        stdin.channel.shutdown_write()
        while piece := stdout.channel.recv(65536):
            write(piece)
        complaint, code = stderr.read().decode(errors="replace"), stdout.channel.recv_exit_status()
    except (SSHException, EOFError) as error:
        raise HostError(f"{host.name}: the connection broke: {error}") from error
    # No exit status: the connection ended before the command did.
    if code < 0:
        raise HostError(f"{host.name}: the connection broke")
    if code:
        raise HostError(_complaint(host, connection.user, words[0], complaint))
