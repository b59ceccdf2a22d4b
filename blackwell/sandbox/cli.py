"""The command line of scripts/sandbox."""

import argparse
import json
import os
import signal
import subprocess
import sys
from dataclasses import asdict
from types import FrameType

from blackwell import paths
from blackwell.sandbox import addresses, api, commands, names
from blackwell.sandbox.errors import SandboxError
from blackwell.sandbox.recipe import SUITES

DESCRIPTION = f"""\
Disposable hosts on this machine to deploy to: systemd as PID 1, sshd, an address of their own, reachable from this
machine only. The Ansible inventory inventory/sandbox holds those that are up.

examples:
  scripts/sandbox up                    one host, sandbox1; builds the image if need be (half a minute to a minute)
  scripts/sandbox up --count 2          sandbox1 and sandbox2
  scripts/sandbox up web --suite trixie
  scripts/sandbox ssh sandbox1 -- systemctl is-system-running
  scripts/sandbox down                  removes all hosts, bridge, packet filter rules and the change to forwarding

Hosts may `reboot`. After `poweroff` they are listed as stopped until `up` starts them again with their files, or `down`
removes them. No user namespace keeps root on a host from this machine: hosts are for testing deployments, not for
locking in hostile code.

variables:
  BLACKWELL_SANDBOX_NET   the hosts' network, a private one from /24 to /29 (default {addresses.DEFAULT})
  BLACKWELL_SANDBOX_RUN   state: key, known_hosts, a directory per host (default /run/blackwell-sandbox)
  BLACKWELL_CACHE         images and hosts' files, in its directory sandbox (default: blackwell in the user's cache)
"""


def parser() -> argparse.ArgumentParser:
    """The arguments of every action."""
    top = argparse.ArgumentParser(
        prog="scripts/sandbox", description=DESCRIPTION, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    actions = top.add_subparsers(dest="action", required=True, metavar="up|down|list|ssh|build")
    suites = " or ".join(SUITES)

    up = actions.add_parser("up", help="bring hosts up; returns when they answer over SSH")
    up.add_argument("names", nargs="*", metavar="NAME", help="hosts to bring up (default: sandbox1)")
    up.add_argument("--count", type=int, metavar="N", help="bring up sandbox1 to sandboxN")
    up.add_argument("--suite", help=f"Debian suite of new hosts: {suites} (default {SUITES[0]})")

    down = actions.add_parser("down", help="remove hosts, all when none is named")
    down.add_argument("names", nargs="*", metavar="NAME")

    listing = actions.add_parser("list", help="show hosts and whether they are up")
    listing.add_argument("--json", action="store_true", help="print a JSON list instead of a table")

    ssh = actions.add_parser("ssh", help="log in to a host, or run a command there")
    ssh.add_argument("name", metavar="NAME")
    ssh.add_argument("--user", default="root", help="root (default) or operator, who may use sudo")
    ssh.add_argument("command", nargs="*", metavar="-- CMD", help="what to run; without it, a shell")

    build = actions.add_parser("build", help="build the image ahead of time")
    build.add_argument("--suite", default=SUITES[0], help=f"{suites} (default {SUITES[0]})")
    return top


def chosen_names(given: list[str], count: int | None) -> list[str]:
    """The names that ``up`` was called with, by name or by number.

    Raises SandboxError for both at once and for a number below one.
    """
    if count is None:
        return given or names.numbered(1)
    if given:
        raise SandboxError("give names or --count, not both")
    if count < 1:
        raise SandboxError(f"--count must be at least 1, not {count}")
    return names.numbered(count)


def table(hosts: tuple[api.Host, ...]) -> str:
    """The hosts in columns."""
    rows = [
        ("NAME", "ADDRESS", "SUITE", "STATE"),
        *((host.name, host.address, host.suite, host.state) for host in hosts),
    ]
    widths = [max(len(row[column]) for row in rows) for column in range(4)]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows
    )


def _bootstrap() -> None:
    if os.geteuid():
        raise SandboxError("only root can make sandbox hosts: run it with sudo")
    if subprocess.run([paths.ROOT / "scripts/bootstrap", "sandbox"], check=False).returncode:
        raise SandboxError("the packages for sandbox hosts are not installed")


def _act(arguments: argparse.Namespace) -> int:
    if arguments.action == "up":
        chosen = names.checked(chosen_names(arguments.names, arguments.count))
        _bootstrap()
        api.up(chosen, suite=arguments.suite)
    elif arguments.action == "down":
        if not api.down(arguments.names):
            commands.say("no host was there")
    elif arguments.action == "list":
        hosts = api.hosts()
        print(json.dumps([asdict(host) for host in hosts], indent=1) if arguments.json else table(hosts))
    elif arguments.action == "ssh":
        return subprocess.run(
            [*api.ssh_command(arguments.name, user=arguments.user), *arguments.command], check=False
        ).returncode
    else:
        _bootstrap()
        print(api.build(arguments.suite))
    return 0


def _interrupt(_signal: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def main(argv: list[str]) -> int:
    """Run one action; returns the exit status: 0, 1 after an error, ssh's own, 130 when interrupted."""
    arguments = parser().parse_args(argv)
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _interrupt)
    try:
        return _act(arguments)
    except SandboxError as error:
        print(f"sandbox: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("sandbox: interrupted", file=sys.stderr)
        return 130
