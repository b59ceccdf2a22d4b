"""What every Fabric task does around its work: find its host, connect, and tell an error in one sentence."""

import functools
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from fabric import Connection
from fabric.connection import derive_shorthand
from fabric.main import program
from invoke import Context, Exit, task

from blackwell import inventory, remote, ssh_settings
from blackwell.host_errors import HostError
from blackwell.inventory import Host, Inventory

INVENTORY = (
    "Ansible inventory to find the host in; without it $BLACKWELL_INVENTORY, else inventory/sandbox if it has hosts"
)
NOT_READY = 1
NOT_SEEN = 2

_codes: list[int] = []


def told(body: Callable) -> Callable:
    """Make a task print a HostError as one sentence, and go on with the next host; its exit status comes at the end.

    The task returns an exit status or None.
    """

    @functools.wraps(body)
    def run(context: Context, *arguments: object, **options: object) -> None:
        # A completion may be cut within a character.
        sys.stdout.reconfigure(errors="backslashreplace")
        try:
            code = body(context, *arguments, **options)
            sys.stdout.flush()
        except HostError as error:
            say(str(error))
            code = NOT_SEEN
        except BrokenPipeError:
            # Whoever read the output has seen enough; nothing may be written to it at exit either.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            code = 0
        _codes.append(code or 0)

    return run


@task
def finish(context: Context) -> None:
    """End with the worst exit status of the task's hosts; runs after the task's last host."""
    del context
    code = max(_codes, default=0)
    if code:
        raise Exit(code=code)


def say(sentence: str) -> None:
    """Print a sentence about the task, apart from its output."""
    print(f"fab: {sentence}", file=sys.stderr, flush=True)


def typed(context: Context) -> str:
    """What stands after -H for this run of the task.

    Fabric's own connection has lost whether the user was typed. Raises HostError without -H.
    """
    hosts = [text.strip() for text in (program.args.hosts.value or "").split(",")]
    if not isinstance(context, Connection) or not any(hosts):
        raise HostError("name a host: fab -H HOST TASK")
    same = [text for text in hosts if derive_shorthand(text)["host"] == context.original_host]
    exact = [text for text in same if Connection(text, config=context.config) == context]
    return [*exact, *same, context.original_host][0]


def asked(context: Context, named: str) -> tuple[Host, Inventory]:
    """How the task's host is reached, and the inventory that says so; ``named`` is the --inventory option.

    Raises HostError if the host is unknown.
    """
    keys = [Path(name) for name in context.config.authentication.identities]
    for file in keys:
        remote.check_key("the SSH key that -i names before the task (an inventory is named after it)", file)
    found = inventory.available(named, os.environ)
    host = inventory.resolve(
        typed(context), found, lambda name: inventory.resolves(name) or ssh_settings.configured(name)
    )
    return (replace(host, identity=keys[0]) if keys else host), found


def connected(context: Context, host: Host) -> Connection:
    """A connection to a host, open; it is a context that closes it. Raises HostError if the host is not reachable."""
    return remote.connect(host, context.config.connect_kwargs.get("timeout"))


@contextmanager
def opened(context: Context, named: str) -> Iterator[tuple[Connection, Host]]:
    """A connection to the task's host, and how it is reached; ``named`` is the --inventory option.

    Raises HostError if the host is unknown or not reachable.
    """
    host, _ = asked(context, named)
    with connected(context, host) as connection:
        yield connection, host
