"""Looks at SGLang servers over SSH: ``fab -H HOST TASK``, where HOST is an inventory name or an address."""

import sys

from fabric import task
from invoke import Collection, Context

from blackwell import completion, journal, load_control, remote, status_screen
from blackwell import status as statuses
from blackwell.host_errors import HostError
from blackwell.report import task_body
from blackwell.tasks import NOT_READY, finish, opened, say, told

INVENTORY = (
    "Ansible inventory to find the host in; without it $BLACKWELL_INVENTORY, else inventory/sandbox if it has hosts"
)
WARNINGS = 5


@task(
    post=[finish],
    help={"inventory": INVENTORY, "json": "print JSON, for scripts"},
)
@told
def status(c: Context, inventory: str = "", *, json: bool = False) -> int:
    """Show on one screen whether the server is ready, what runs, and what went wrong of late.

    Exits with 0 if the server is ready, 1 if it is not, 2 if the host could not be looked at.
    """
    with opened(c, inventory) as (connection, host):
        found = remote.call(connection, host, "status", warnings=WARNINGS)
        seen = statuses.parse(host, connection.user, found)
    print(statuses.as_json(seen) if json else status_screen.render(seen))
    return 0 if seen.ready else NOT_READY


@task(
    post=[finish],
    help={
        "inventory": INVENTORY,
        "lines": f"show the last LINES lines (default {journal.DEFAULT_LINES}, or all with --since)",
        "follow": "go on with new lines until interrupted",
        "since": "show from this time on, as journalctl takes it: '2026-01-31 03:00', '-1h', yesterday",
    },
)
@told
def logs(c: Context, inventory: str = "", lines: str = "", since: str = "", *, follow: bool = False) -> None:
    """Show the journal of sglang.service.

    Exits with 0, or with 2 if it could not be read.
    """
    words = journal.command(lines, since, follow=follow)
    with opened(c, inventory) as (connection, host):
        if not statuses.unit(remote.call(connection, host, "unit")).loaded:
            raise HostError(f"{host.name}: {statuses.NO_SERVICE}")
        say(f"journal of sglang.service on {host.name} ({host.address}), inventory {host.inventory}")
        remote.stream(connection, host, words, _write)


@task(
    post=[finish],
    help={
        "inventory": INVENTORY,
        "prompt": "text that the server is to continue",
        "tokens": "most tokens to generate",
    },
)
@told
def ask(c: Context, prompt: str = "", tokens: str = "64", inventory: str = "") -> None:
    """Let the server complete a text, greedily, and show how long it took and how much of its draft it accepted.

    The request is made on the host itself. Exits with 0, or with 2 if there is no completion.
    """
    text, count = completion.wanted(prompt, tokens)
    with opened(c, inventory) as (connection, host):
        say(f"asking {host.name} ({host.address}), inventory {host.inventory}")
        seconds = completion.MOST_SECONDS
        found = remote.call(
            connection, host, "ask", seconds=seconds + remote.ANSWER_SECONDS, prompt=text, tokens=count, wait=seconds
        )
    print(completion.render(completion.parse(host, found)))


@task(
    post=[finish],
    help={
        "inventory": INVENTORY,
        "force": "draft steps whatever the load: a number of STEPS, full for all of them, or off for none",
        "release": "let what was forced go, so that the draft steps follow the load again",
        "threshold": "largest batch that still speculates; 0 speculates always",
        "policy": "FILE with a load policy in JSON (schemas/speculation-policy.schema.json)",
        "dry-run": "show what would be sent, and change nothing",
    },
)
@told
def speculation(
    c: Context,
    force: str = "",
    threshold: str = "",
    policy: str = "",
    inventory: str = "",
    *,
    release: bool = False,
    dry_run: bool = False,
) -> None:
    """Show how the draft steps of the running server follow its load, or change that until the next restart.

    Exits with 0, or with 2 if the server does not take the change.
    """
    change = load_control.wanted(force, threshold, policy, release=release)
    with opened(c, inventory) as (connection, host):
        found = remote.call(connection, host, "speculation", change={})
        before = load_control.information(host, found)
        load_control.check(host, change, before)
        after = None
        if change and not dry_run:
            found = remote.call(connection, host, "speculation", change=change)
            load_control.accepted(host, found)
            after = load_control.information(host, found, "after")
    print(load_control.render(host, before, change, after))


@task(
    post=[finish],
    positional=["run"],
    help={
        "run": "a fetched run: HOST/RUN, HOST for its newest one, or a directory",
        "compare": "another run, to show this one beside",
        "out": "directory to write into (default: report, in the directory of the run)",
        "json": "print JSON, for scripts",
    },
)
@told
def report(c: Context, run: str, compare: str = "", out: str = "", *, json: bool = False) -> None:
    """Write a page with figures and tables of a fetched run, and say what it says; needs no -H.

    Exits with 0, or with 2 if there is nothing to report.
    """
    del c
    task_body.report(run, compare, out, json_wanted=json)


def _write(piece: bytes) -> None:
    sys.stdout.buffer.write(piece)
    sys.stdout.buffer.flush()


# Named, so that the step that ends a task is not listed among them.
namespace = Collection(status, logs, ask, speculation, report)
