"""``fab interconnect``: one all-reduce on a host, kept here and compared with the last one."""

import time
from collections.abc import Mapping
from pathlib import Path

from fabric import Connection
from fabric import task as fabric_task
from invoke import Context

from blackwell import remote
from blackwell.host_errors import HostError
from blackwell.inventory import Host
from blackwell.tasks import INVENTORY, finish, opened, say, told

from . import history, proof, screen

WRONG = 1
SIZES = (32 * 2**10, 2**20, 32 * 2**20, 256 * 2**20)
"""Bytes of a tensor: what a decoding step sums, and what shows the bandwidth."""

SECONDS = 120
ANSWER_SECONDS = 60
"""What may pass beyond the time of the ranks, until the host answers."""


@fabric_task(
    name="interconnect",
    post=[finish],
    help={
        "inventory": INVENTORY,
        "device": "cuda, or cpu for processes that sum on the CPU, as a trial on a host without GPUs",
        "ranks": "how many take part (default: every GPU of the host, 2 on the CPU)",
        "seconds": f"after so many seconds it has hung (default {SECONDS})",
        "beside": "also while the server runs; its requests slow both",
        "json": "print JSON, for scripts",
    },
)
@told
def interconnect(
    c: Context,
    inventory: str = "",
    device: str = "cuda",
    ranks: str = "",
    seconds: str = str(SECONDS),
    *,
    beside: bool = False,
    json: bool = False,
) -> int:
    """Sum tensors over all GPUs of a host with its release and settings, under a time limit, and say how fast that is.

    It is kept in results/HOST/interconnect.jsonl and compared with the last time. Exits with 0 if every sum is right
    and no size takes much longer than then, 1 if one does, is wrong, or it hangs, 2 if it could not be run.
    """
    asked = wanted(device, ranks, seconds)
    with opened(c, inventory) as (connection, host):
        say(f"summing on {host.name} ({host.address}), inventory {host.inventory}; this takes {SECONDS // 4} s or so")
        made = proof.parse(host.name, device, _run(connection, host, asked, beside=beside))
    last = history.last(host.name, made)
    kept = history.keep(host.name, time.time(), made)
    wrong = proof.verdict(made, last[1] if last else None)
    todo = proof.remedies(made, wrong, host.name)
    print((screen.as_json if json else screen.render)(host.name, made, last, wrong, todo))
    say(f"kept in {_short(kept)}")
    return WRONG if wrong else 0


def wanted(device: str, ranks: str, seconds: str) -> dict:
    """The arguments of ``ranks.run`` by what was typed, without its program; raises HostError, naming the option."""
    if device not in screen.DEVICES:
        raise HostError(f"--device: {device!r} is neither of {' and '.join(screen.DEVICES)}")
    count = _whole("--ranks", ranks, 2) if ranks else {"cuda": 0, "cpu": 2}[device]
    return {"total": count, "kind": device, "sizes": list(SIZES), "seconds": _whole("--seconds", seconds, 1)}


def _whole(option: str, typed: str, least: int) -> int:
    if not (typed.isascii() and typed.isdecimal() and int(typed) >= least):
        raise HostError(f"{option}: {typed!r} is no whole number from {least}")
    return int(typed)


def _run(connection: Connection, host: Host, asked: Mapping, *, beside: bool) -> dict:
    program, ranks = (_text(name) for name in ("rank.py", "ranks.py"))
    silence = asked["seconds"] + ANSWER_SECONDS
    arguments = {**asked, "program": program}
    return remote.call(
        connection, host, "interconnect", seconds=silence, ranks=ranks, arguments=arguments, beside=beside
    )


def _text(name: str) -> str:
    return (Path(__file__).parent / name).read_text(encoding="utf-8")


def _short(file: Path) -> Path:
    return file.relative_to(Path.cwd()) if file.is_relative_to(Path.cwd()) else file
