"""The tasks of ``fab tune``."""

from collections.abc import Mapping

from invoke import Collection, Context, task

from blackwell import playbooks, speculation_file, tune, tune_screen
from blackwell.bench_control import bodies, results
from blackwell.bench_control.tasks import RUN, Again, starting
from blackwell.host_errors import HostError
from blackwell.speculation_setting import Setting
from blackwell.tasks import INVENTORY, asked, connected, finish, say, told

ANY = Setting(policy={"version": 1, "tiers": [{"steps": 0}]})
"""Stands for the policy that is going to be measured."""


def _writable(c: Context, inventory: str) -> None:
    """Raises HostError before a host is measured for hours whose inventory would not take the policy."""
    host, known = asked(c, inventory)
    speculation_file.check(known, host.name, ANY)
    playbooks.check(host, known, "tuning")


def _then_apply(c: Context, inventory: str, again: Again, begun: Mapping) -> int:
    code = bodies.watched(again, begun["run"], begun["offset"], say)
    return code or _apply(c, inventory, begun["run"], force=False, dry_run=False)


def _apply(c: Context, inventory: str, run: str, *, force: bool, dry_run: bool) -> int:
    host, known = asked(c, inventory)
    playbooks.check(host, known, "tuning")
    try:
        found = tune.measured(host.name, results.here(host.name, run))
        print(tune_screen.found(host.name, found), flush=True)
        with connected(c, host) as connection:
            tune.check_valid(connection, host, found)
            if dry_run:
                tune.check(connection, host, known, found.setting, force=force)
                print(tune_screen.would(host.name, known, found), flush=True)
                return 0
            done = tune.apply(connection, host, known, found, force=force)
    except tune.RefusedError as error:
        say(str(error))
        return tune.REFUSED
    print(tune_screen.done(host.name, done), flush=True)
    if done.after is not None:
        return 0
    say(f"{host.name}: {done.why}; deploying it: {playbooks.deploy(host)}")
    code = playbooks.run(playbooks.deployment(host))
    if code:
        raise HostError(
            f"{host.name}: the deployment failed; {done.file} has the new policy, and fab -H {host.name} threshold "
            "--undo puts the one before back"
        )
    return 0


run = starting(
    "run",
    """Measure the host as bench does, write the policy that follows into the inventory and have the server take it.

    The policy is measured against the better arm at every level first. Where it falls under the margin at one, it is
    refused, with the level named, and inventory and server stay as they are. A server that cannot take a policy while
    it runs is deployed anew. Exits with 0, with 1 if the sweep ended early or the policy was refused, or with 2 if it
    could not begin or was not applied.
    """,
    _then_apply,
    first=_writable,
    default=True,
)


@task(
    name="apply",
    post=[finish],
    help={
        "inventory": INVENTORY,
        "run": RUN,
        "force": "write over a file that was changed by hand; it is kept as the one before",
        "dry-run": "show what would be written, and change nothing",
    },
)
@told
def apply(c: Context, inventory: str = "", run: str = "", *, force: bool = False, dry_run: bool = False) -> int:
    """Do what tune does after measuring, with a run that has come home.

    Exits as tune does.
    """
    return _apply(c, inventory, run, force=force, dry_run=dry_run)


collection = Collection("tune", run, apply)
