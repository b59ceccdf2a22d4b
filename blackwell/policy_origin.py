"""Whether the policy of a host's inventory is still valid: it was measured on one server, and is void on another."""

from collections.abc import Iterator

from fabric import Connection

from blackwell import host_vars, remote, speculation_file, sweep_package
from blackwell.findings import OK, WARNING, Finding
from blackwell.inventory import Host, Inventory


def run_of(host: Host, known: Inventory) -> str:
    """The sweep that measured what the inventory asks for; empty if none did, or if it was changed by hand since.

    Raises HostError if the file that says so cannot be read.
    """
    is_filed = host.name in known.hosts and host_vars.has_files(known)
    files = host_vars.setting(known, host.name, speculation_file.VARIABLES) if is_filed else []
    if not files or files[-1].name != speculation_file.NAME:
        return ""
    written = speculation_file.read(files[-1])
    return written.origin.run if written and written.origin and not written.by_hand else ""


def differences(connection: Connection, host: Host, run: str) -> list[str]:
    """In what the server that runs is not the one that a run of its host has measured, sentences.

    Raises RefusedError if the host has no such run or the server does not answer, HostError if it cannot be asked.
    """
    return remote.call_packed(connection, host, sweep_package.packed(), "compare", run=run)["differences"]


def findings(connection: Connection, host: Host, known: Inventory) -> Iterator[Finding]:
    """What the host says of the run that measured its policy; nothing without one.

    Raises HostError if the host cannot be asked.
    """
    run = run_of(host, known)
    if not run:
        return
    try:
        changed = differences(connection, host, run)
    except remote.RefusedError as error:
        yield Finding(OK, f"the policy was measured by run {run}; whether on this very server cannot be told: {error}")
        return
    if changed:
        what = f"the policy is void, run {run} measured it on another server: {'; '.join(changed)}"
        yield Finding(WARNING, what, f"fab -H {host.name} tune measures again")
    else:
        yield Finding(OK, f"the policy was measured by run {run}, on what runs now")
