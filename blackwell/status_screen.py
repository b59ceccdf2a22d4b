"""A host's status as one screen of text."""

from datetime import UTC, datetime

from blackwell import load_state
from blackwell.status import DEPLOYMENTS, READY, Deployment, Load, Server, Status, Unit, remarks

WIDTH = 160
_UNITS = ((86400, "d"), (3600, "h"), (60, "min"), (1, "s"))


def age(seconds: float) -> str:
    """A duration in its two largest units."""
    left, parts = int(seconds), []
    for size, name in _UNITS:
        if left >= size:
            parts.append(f"{left // size} {name}")
            left %= size
    return " ".join(parts[:2]) or "0 s"


def size(count: int) -> str:
    """Bytes in GiB."""
    return f"{count / 2**30:.1f} GiB"


def moment(seconds: float) -> str:
    """Seconds since the epoch as a date and time in UTC."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M:%S")


def unit_line(unit: Unit, now: float) -> str:
    """State, since when, restarts and memory."""
    since = "" if unit.since is None else f" for {age(now - unit.since)}, since {moment(unit.since)} UTC"
    memory = "not counted" if unit.memory is None else size(unit.memory)
    return f"{unit.state} ({unit.substate}){since}; {unit.restarts} restarts by systemd; memory {memory}"


def _name(found: Deployment | None, absent: str = "none") -> str:
    return f"{found.deployment} ({found.release})" if found else absent


def deployment_line(status: Status) -> str:
    """What runs, compared with the last good deployment and the one before."""
    running = _name(status.running, "unknown" if READY in status.hidden else "none")
    if DEPLOYMENTS in status.hidden:
        return f"running {running}; good and previous unknown"
    good = "the same" if status.running and status.running == status.good else _name(status.good)
    return f"running {running}; good {good}; previous {_name(status.previous)}"


def server_line(server: Server) -> str:
    """Address, health, model and version."""
    if not (server.host and server.port):
        return "no address on its command line"
    if server.health is None:
        return f"{server.host} port {server.port}, not asked"
    said = f"{server.health} in {server.seconds:.2g} s" if server.health else f"no answer ({server.complaint})"
    serves = f"; {server.model} on SGLang {server.version}" if server.model else ""
    return f"{server.host} port {server.port}, /health {said}{serves}"


def load_line(load: Load) -> str:
    """Requests, throughput and acceptance length, as far as reported."""
    most = "" if load.limit is None else f" of at most {load.limit}"
    parts = (
        f"{load.running} running{most}, {load.waiting} waiting" if load.running is not None else None,
        f"{load.throughput:.1f} tokens/s of late" if load.throughput is not None else None,
        f"acceptance length {load.acceptance_length:.2f}" if load.acceptance_length is not None else None,
    )
    return "; ".join(part for part in parts if part) or "not reported"


def render(status: Status) -> str:
    """The screen; its first line says whether the server is ready and why not."""
    place = f"{status.user}@{status.address}, inventory {status.inventory}"
    verdict = "ready" if status.ready else f"NOT READY: {'; '.join(status.reasons)}"
    lines = [f"{status.host}: {verdict}"]
    rows = {
        "host": place,
        "unit": unit_line(status.unit, status.now),
        "release": status.release or "none: /opt/sglang/current is not there",
        "deployment": deployment_line(status),
        "server": server_line(status.server),
        "load": load_line(status.load) if status.server.health == 200 else None,
        "speculation": load_state.line(status.speculation) if status.speculation else None,
        "disk": f"{size(status.disk.free)} free of {size(status.disk.total)} at /opt/sglang" if status.disk else None,
    }
    shown = rows if status.unit.loaded else {"host": place}
    lines += [f"  {name:<11} {text}" for name, text in shown.items() if text]
    lines += [f"  {'remark':<11} {text}" for text in remarks(status)]
    if status.warnings:
        lines.append(f"  last {len(status.warnings)} warnings and errors, in UTC:")
        lines += [f"    {moment(found.time)}  {first_line(found.text)}" for found in status.warnings]
    return "\n".join(lines)


def first_line(text: str) -> str:
    """What fits of a message: its first line, without control characters."""
    line = (text.strip().splitlines() or [""])[0]
    printable = "".join(character if character.isprintable() else " " for character in line)
    return printable if len(printable) <= WIDTH else printable[: WIDTH - 1] + "…"
