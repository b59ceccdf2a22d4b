"""Why a connection failed, in one sentence that names the host and what to look at."""

import os
import socket
from pathlib import Path

from paramiko import BadHostKeyException, PKey
from paramiko.ssh_exception import ChannelException, NoValidConnectionsError, SSHException

from blackwell.ssh_settings import Settings


def files(settings: Settings) -> str:
    """The known_hosts files that are there, or the one that would be used first."""
    names = [str(file) for file in settings.known_hosts]
    return " or ".join([name for name in names if Path(name).is_file()] or names[:1]) or "known_hosts"


def unknown(label: str, settings: Settings, key: PKey) -> str:
    """The host shows a key that no file pins."""
    return (
        f"{label}: {files(settings)} pins no host key of {settings.host_key_name}; the host shows "
        f"{key.get_name()} {key.fingerprint}: compare that with the host's console, then add its key"
    )


def _changed(label: str, settings: Settings, error: BadHostKeyException) -> str:
    return (
        f"{label}: the host key of {settings.host_key_name} has changed: {files(settings)} pins "
        f"{error.expected_key.fingerprint}, the host shows {error.key.fingerprint}; "
        "it was made anew, or somebody is in between"
    )


def _locked(file: Path) -> bool:
    try:
        PKey.from_path(file)
    except TypeError:
        # What cryptography says of a key that needs a passphrase.
        return True
    except (ValueError, OSError, SSHException):
        return False
    return False


def _refused(label: str, settings: Settings) -> str:
    # paramiko tries several kinds of keys on each file, so that its error may be of a kind that the file is not.
    tried = [file for file in settings.identities if file.is_file()]
    locked = [str(file) for file in tried if _locked(file)]
    keys = ", ".join(str(file) for file in tried) or "no key file"
    agent = " and the agent's keys" if os.environ.get("SSH_AUTH_SOCK") and not settings.identities_only else ""
    hint = f"; {', '.join(locked)} has a passphrase: give it to the agent first (ssh-add)" if locked else ""
    return f"{label}: {settings.host} does not let {settings.user} in with {keys}{agent}{hint}"


def sentence(label: str, settings: Settings, error: Exception, *, keys_exchanged: bool) -> str:
    """What to say of an error. ``label`` names the host; ``keys_exchanged``: whether it got as far as logging in."""
    place = f"{settings.host} port {settings.port}"
    through = f" through {settings.proxy_command!r}" if settings.proxy_command else ""
    if isinstance(error, BadHostKeyException):
        return _changed(label, settings, error)
    if isinstance(error, ChannelException):
        return f"{label}: {place} is not reachable from its jump host: {error.text}"
    if isinstance(error, SSHException) and keys_exchanged:
        return _refused(label, settings)
    if isinstance(error, SSHException):
        return f"{label}: {place}{through} does not talk SSH, or not within {settings.timeout:g} s ({error})"
    if isinstance(error, TimeoutError):
        return f"{label}: {place} did not answer within {settings.timeout:g} s"
    return f"{label}: {place} is not reachable{through}: {_reason(error)}"


def _reason(error: Exception) -> str:
    if isinstance(error, NoValidConnectionsError):
        return _reason(next(iter(error.errors.values())))
    if isinstance(error, socket.gaierror):
        return f"the name does not resolve ({error.strerror})"
    return getattr(error, "strerror", None) or str(error) or type(error).__name__
