"""Going back to the deployment that worked before: from what to what, and whether somebody wants it."""

import sys
from collections.abc import Mapping
from dataclasses import dataclass

from blackwell import status
from blackwell.host_errors import HostError
from blackwell.inventory import Host
from blackwell.status import Deployment

DECLINED = 1


@dataclass(frozen=True)
class Way:
    """``good``: the deployment that worked last; ``previous``: the one before, which a rollback goes to.

    ``running``: the one that runs, None if none does.
    """

    running: Deployment | None
    good: Deployment
    previous: Deployment


def way(host: Host, found: Mapping) -> Way:
    """From what to what, by what ``on_host.deployments`` returned.

    Raises HostError if the records cannot be read, or there is nothing to go back to.
    """
    if "error" in found["good"] or "error" in found["previous"]:
        raise HostError(
            f"{host.name}: {found['user']} may not read {status.DEPLOYMENTS}: set ansible_become for the host"
        )
    good, previous = status.deployment(found["good"]), status.deployment(found["previous"])
    if good is None or previous is None:
        raise HostError(f"{host.name} has no second deployment that worked, so there is nothing to go back to")
    return Way(status.deployment(found["running"]), good, previous)


def render(host: Host, way: Way) -> str:
    """From what to what, in words."""
    rows = [
        f"{host.name}:",
        f"  from  {way.good.deployment} (release {way.good.release})",
        f"  to    {way.previous.deployment} (release {way.previous.release})",
    ]
    if way.running != way.good:
        runs = f"{way.running.deployment} (release {way.running.release}) runs" if way.running else "nothing runs"
        rows.append(f"  now   {runs}")
    return "\n".join(rows)


def agreed(host: Host) -> bool:
    """Ask on the terminal. Raises HostError if there is none."""
    if not sys.stdin.isatty():
        raise HostError(f"{host.name}: there is no terminal to ask on whether to roll back: --yes says so")
    print("The service restarts. Roll back? [y/N] ", end="", file=sys.stderr, flush=True)
    return sys.stdin.readline().strip().lower() in ("y", "yes")
