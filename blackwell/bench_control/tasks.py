"""The tasks of ``fab bench``."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

from fabric import Connection
from invoke import Collection, Context, Task, task

from blackwell import remote, sweep_package
from blackwell.bench_control import bodies, options, results, screen
from blackwell.inventory import Host
from blackwell.sweep.plan import CONTEXTS, LEVELS, MARGIN, PROMPTS, Plan
from blackwell.tasks import INVENTORY, asked, connected, finish, opened, say, told

HELP = {
    "inventory": INVENTORY,
    "arms": "what is compared, such as baseline,full,plain; all by default. reduced stands for every number of steps "
    "below all of them",
    "levels": f"clients at once, such as 1,10,100 (default {','.join(map(str, LEVELS))})",
    "contexts": f"tokens of a prompt, such as 1024,65536 (default {','.join(map(str, CONTEXTS))})",
    "repeats": f"points of an arm at a level (default {Plan.repeats})",
    "window": f"shortest time in seconds that a point is measured (default {Plan.window_s:g})",
    "new-tokens": f"tokens of an answer (default {Plan.new_tokens})",
    "prompts": f"{', '.join(PROMPTS)} (default {Plan.prompts})",
    "settings": "FILE in YAML with server settings to compare, each with a server of its own; see docs/bench.md",
    "margin": f"what of the better arm the policy has to reach at every level (default {MARGIN:g})",
    "new": "begin another run, where one that is not done would go on",
    "dry-run": "show the plan and how long it may take; change nothing",
    "stop-service": "agree that sglang.service is stopped meanwhile, instead of being asked",
}
RUN = "name of the run (default: the newest)"


Again = bodies.Opened
"""Opens a connection to the task's host, each time that it is called."""


def _again(c: Context, inventory: str) -> Again:
    host, _ = asked(c, inventory)

    @contextmanager
    def again() -> Iterator[tuple[Connection, Host]]:
        with connected(c, host) as connection:
            yield connection, host

    return again


def nothing(c: Context, inventory: str) -> None:
    """Has nothing to look at before a sweep."""
    del c, inventory


def starting(
    name: str,
    doc: str,
    then: Callable[[Context, str, Again, Mapping], int],
    *,
    first: Callable[[Context, str], None] = nothing,
    default: bool = False,
) -> Task:
    """A task that starts a sweep, after ``first``, and goes on with ``then``; both get the task's context and
    inventory.
    """

    def body(
        c: Context,
        inventory: str = "",
        arms: str = "",
        levels: str = "",
        contexts: str = "",
        repeats: str = "",
        window: str = "",
        new_tokens: str = "",
        prompts: str = "",
        settings: str = "",
        margin: str = "",
        *,
        new: bool = False,
        dry_run: bool = False,
        stop_service: bool = False,
    ) -> int:
        typed = {
            "arms": arms,
            "levels": levels,
            "contexts": contexts,
            "repeats": repeats,
            "window": window,
            "new-tokens": new_tokens,
            "prompts": prompts,
            "settings": settings,
            "margin": margin,
        }
        wanted = options.wanted(typed)
        first(c, inventory)
        again = _again(c, inventory)
        begun = bodies.begin(again, wanted, bodies.How(new=new, dry_run=dry_run, agreed=stop_service), say)
        return 0 if begun is None else then(c, inventory, again, begun)

    body.__doc__ = doc
    return task(name=name, default=default, post=[finish], help=HELP)(told(body))


start = starting(
    "start",
    """Start a sweep on the host, and leave it to itself; bench.follow shows it.

    Exits with 0, or with 2 if it cannot be started.
    """,
    lambda *_: 0,
)

run = starting(
    "run",
    """Measure the host with and without speculation at rising load, and find where speculation stops to pay.

    The sweep runs on the host by itself, in place of sglang.service, which is back after it: a connection that breaks
    and Ctrl-C end only what is shown here. Run again with the same options, it goes on with what is missing.
    Exits with 0 if all is measured, 1 if the sweep ended early, 2 if it cannot be started.
    """,
    lambda _c, _inventory, again, begun: bodies.watched(again, begun["run"], begun["offset"], say),
    default=True,
)


@task(name="follow", post=[finish], help={"inventory": INVENTORY, "run": RUN})
@told
def follow(c: Context, inventory: str = "", run: str = "") -> int:
    """Show a sweep from its beginning to its end, and bring it home.

    Exits as bench does.
    """
    return bodies.watched(_again(c, inventory), run, 0, say)


@task(name="fetch", post=[finish], help={"inventory": INVENTORY, "run": RUN})
@told
def fetch(c: Context, inventory: str = "", run: str = "") -> None:
    """Bring a run home as far as it is, to results/HOST/RUN.

    Exits with 0, or with 2 if there is none.
    """
    with opened(c, inventory) as (connection, host):
        found = remote.call_packed(connection, host, sweep_package.packed(), "look", run=run, offset=0)
        home = results.fetch(connection, host, found["run"])
    print(home)


@task(name="stop", post=[finish], help={"inventory": INVENTORY})
@told
def stop(c: Context, inventory: str = "") -> None:
    """End the sweep that is under way, and wait until sglang.service is back; what is measured is kept.

    Exits with 0, or with 2 if none is under way.
    """
    with opened(c, inventory) as (connection, host):
        say(f"ending the sweep on {host.name}, and starting sglang.service")
        seconds = bodies.STOP_SECONDS
        found = remote.call_packed(connection, host, sweep_package.packed(), "stop", seconds=seconds)
    print(f"{host.name}: run {found['run']} was ended; {found['done']}")


@task(name="list", post=[finish], help={"inventory": INVENTORY})
@told
def listed(c: Context, inventory: str = "") -> None:
    """List the runs that are on the host.

    Exits with 0, or with 2 if it cannot be reached.
    """
    with opened(c, inventory) as (connection, host):
        found = remote.call_packed(connection, host, sweep_package.packed(), "list")
    print(screen.runs(host.name, found["runs"]))


@task(name="remove", post=[finish], help={"inventory": INVENTORY, "run": "name of the run"})
@told
def remove(c: Context, run: str, inventory: str = "") -> None:
    """Remove a run from the host; what has come home of it stays.

    Exits with 0, or with 2 if there is none of that name, or it is under way.
    """
    with opened(c, inventory) as (connection, host):
        found = remote.call_packed(connection, host, sweep_package.packed(), "remove", run=run)
    print(f"{host.name}: run {found['run']} was removed")


collection = Collection("bench", run, start, follow, fetch, stop, listed, remove)
