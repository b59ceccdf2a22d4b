"""Whether the policy of a host's inventory is still valid: it was measured on one server, and is void on another."""

from collections.abc import Iterator
from pathlib import Path

from fabric import Connection

from blackwell import host_vars, remote, speculation_file, sweep_package
from blackwell.findings import OK, WARNING, Finding
from blackwell.inventory import Host, Inventory


def run_of(host: Host, known: Inventory) -> str:
    """The sweep that measured what the inventory asks for; empty if none did, or if it was changed by hand since.

    Raises HostError if the file that says so cannot be read.
    """
    # An inventory that is no file, as of ansible's `-i box,`, has no variables beside it.
    has_files = host.name in known.hosts and Path(known.source).exists()
    files = host_vars.setting(known, host.name, speculation_file.VARIABLES) if has_files else []
    if not files or files[-1].name != speculation_file.NAME:
        return ""
    written = speculation_file.read(files[-1])
    return written.origin.run if written and written.origin and not written.by_hand else ""


def findings(connection: Connection, host: Host, known: Inventory) -> Iterator[Finding]:
    """What the host says of the run that measured its policy; nothing without one.

    Raises HostError if the host cannot be asked.
    """
    run = run_of(host, known)
    if not run:
        return
    try:
        seen = remote.call_packed(
            connection, host, sweep_package.packed(), "compare", run=run, seconds=remote.ANSWER_SECONDS
        )
    except remote.RefusedError as error:
        yield Finding(OK, f"the policy was measured by run {run}; whether on this very server cannot be told: {error}")
        return
    if seen["differences"]:
        what = f"the policy is void, run {run} measured it on another server: {'; '.join(seen['differences'])}"
        yield Finding(WARNING, what, f"fab -H {host.name} tune measures again")
    else:
        yield Finding(OK, f"the policy was measured by run {run}, on what runs now")
