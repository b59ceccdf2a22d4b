"""Looks at SGLang servers over SSH: ``fab -H HOST TASK``, where HOST is an inventory name or an address."""

import sys
import time
from contextlib import nullcontext

from fabric import task
from invoke import Collection, Context

from blackwell import (
    completion,
    findings,
    gpus,
    journal,
    load_control,
    playbooks,
    policy_origin,
    remote,
    status_screen,
    task_words,
    threshold_screen,
)
from blackwell import doctor as doctors
from blackwell import rollback as rollbacks
from blackwell import status as statuses
from blackwell import threshold as thresholds
from blackwell.bench_control.tasks import collection as bench
from blackwell.host_errors import HostError
from blackwell.interconnect.task import interconnect
from blackwell.report import task_body
from blackwell.tasks import INVENTORY, NOT_READY, NOT_SEEN, asked, connected, finish, opened, say, told
from blackwell.tune_tasks import collection as tune

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
        "to": "on, off or auto; the word alone, right after the task's name, is the same",
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
    to: str = "",
    release: bool = False,
    dry_run: bool = False,
) -> None:
    """[on|off|auto] Show how the draft steps of the running server follow its load, or change that until its restart.

    on drafts all steps whatever the load, off none, auto follows the load; without a word and options, it shows.
    Exits with 0, or with 2 if the server does not take the change.
    """
    change = load_control.wanted(force, threshold, policy, release=release, word=to)
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
    help={
        "to": "N, the largest batch that still speculates, 0 to speculate always; the number alone, right after the "
        "task's name, is the same",
        "inventory": INVENTORY,
        "live-only": "change the running server only, until its next restart",
        "inventory-only": "write the inventory only, for the next deployment",
        "undo": "put back what the inventory's file said before it was written last, and the server's policy with it",
        "force": "write over a file that was changed by hand; it is kept as the one before",
        "dry-run": "show what would be sent and written, and change nothing",
    },
)
@told
def threshold(
    c: Context,
    to: str = "",
    inventory: str = "",
    *,
    live_only: bool = False,
    inventory_only: bool = False,
    undo: bool = False,
    force: bool = False,
    dry_run: bool = False,
) -> None:
    """[N] Show at which load the server stops speculating and who says so, or change that now and in the inventory.

    N is live at once, without a restart, and written to host_vars/HOST/speculation.yml of the inventory, so that the
    next deployment keeps it. Exits with 0, or with 2 if it could not be shown, or was not changed.
    """
    options = {"--undo": undo, "--live-only": live_only, "--inventory-only": inventory_only}
    wish = thresholds.wanted(to, {**options, "--force": force, "--dry-run": dry_run})
    host, known = asked(c, inventory)
    if wish.looks:
        print(threshold_screen.in_inventory(host, known), flush=True)
        with connected(c, host) as connection:
            print(threshold_screen.on_server(host, known, thresholds.look(connection, host)))
        return
    plan = thresholds.plan(host, known, wish)
    with connected(c, host) if wish.live else nullcontext() as connection:
        done = thresholds.apply(connection, plan)
    print(threshold_screen.changed(done))


@task(post=[finish], help={"inventory": INVENTORY})
@told
def verify(c: Context, inventory: str = "") -> int:
    """Compare what runs with what the inventory asks for, as scripts/verify does.

    Exits with 0 if everything is as asked for, 1 if something is not, 2 if it could not be looked at.
    """
    host, known = asked(c, inventory)
    playbooks.check(host, known, "the verification")
    with connected(c, host):
        say(f"verifying {host.name} ({host.address}), inventory {host.inventory}")
    return playbooks.run(playbooks.verification(host))


@task(
    post=[finish],
    help={
        "inventory": INVENTORY,
        "dry-run": "show from what to what, and change nothing",
        "yes": "do not ask",
    },
)
@told
def rollback(c: Context, inventory: str = "", *, dry_run: bool = False, yes: bool = False) -> int:
    """Go back to the deployment that worked before the one that runs; again, and it goes forward again.

    Exits with 0 if it went back or was a dry run, 1 if the answer was no, 2 if it could not begin, and otherwise as
    ansible-playbook does.
    """
    host, known = asked(c, inventory)
    playbooks.check(host, known, "playbooks/rollback.yml")
    with connected(c, host) as connection:
        way = rollbacks.way(host, remote.call(connection, host, "deployments"))
    print(rollbacks.render(host, way), flush=True)
    if dry_run:
        return 0
    if not yes and not rollbacks.agreed(host):
        say(f"{host.name}: nothing was changed")
        return rollbacks.DECLINED
    return playbooks.run(playbooks.rollback(host))


@task(
    post=[finish],
    help={"inventory": INVENTORY, "json": "print JSON, for scripts"},
)
@told
def doctor(c: Context, inventory: str = "", *, json: bool = False) -> int:
    """Look for all that goes wrong on a host, and say what to do about it.

    Exits with 0 if all is well, 1 if there is a warning or a problem, 2 if the host could not be looked at.
    """
    try:
        host, known = asked(c, inventory)
        with connected(c, host) as connection:
            sent = time.time()
            there = remote.call(connection, host, "clock")["now"]
            clock = doctors.clock(sent, there, time.time())
            seconds, entries = doctors.ANSWER_SECONDS, doctors.JOURNAL_ENTRIES
            cards = gpus.wanted(known.hosts.get(host.name, {}))
            seen = remote.call(connection, host, "doctor", seconds=seconds, warnings=entries, gpus=cards)
            look = doctors.parse(host, known, connection.user, seen, clock)
            found = doctors.findings(look, policy_origin.findings(connection, host, known))
    except HostError as error:
        if not json:
            raise
        unseen = findings.Finding(findings.PROBLEM, str(error))
        print(findings.as_json(getattr(c, "original_host", ""), NOT_SEEN, [unseen]))
        return NOT_SEEN
    code = findings.code(found)
    print(findings.as_json(host.name, code, found) if json else findings.render(host.name, found))
    return code


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
namespace = Collection(
    status, doctor, logs, ask, speculation, threshold, verify, rollback, interconnect, bench, tune, report
)
task_words.take(("speculation", "threshold"), namespace.task_names)
