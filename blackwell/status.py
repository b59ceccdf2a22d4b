"""What a look at a host says: is the server ready, and if not, why not."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass

from blackwell import load_policy, load_state
from blackwell.inventory import Host
from blackwell.load_state import LoadState

READY = "/run/sglang/ready.json"
DEPLOYMENTS = "/var/lib/sglang/deployments"
NO_SERVICE = "there is no sglang.service on the host: deploy it with ansible-playbook site.yml"


@dataclass(frozen=True)
class Deployment:
    """One deployment and the release that it runs."""

    deployment: str
    release: str


@dataclass(frozen=True)
class Unit:
    """The service as systemd sees it. ``since``: epoch seconds of the last change; ``memory``: bytes."""

    loaded: bool
    state: str
    substate: str
    result: str
    since: float | None
    restarts: int
    memory: int | None
    main_pid: int
    changed_on_disk: bool
    enabled: str


@dataclass(frozen=True)
class Server:
    """What the server answers. ``health``: HTTP status, 0 without an answer, None if not asked; ``seconds`` it took."""

    host: str | None
    port: int | None
    health: int | None = None
    complaint: str = ""
    seconds: float | None = None
    model: str | None = None
    version: str | None = None


@dataclass(frozen=True)
class Load:
    """Live numbers over all data-parallel ranks; None where the server does not report one.

    ``limit``: most requests that run at once. ``throughput``: tokens per second generated of late.
    ``acceptance_length``: tokens per verification of late, bonus token included.
    """

    running: int | None = None
    waiting: int | None = None
    limit: int | None = None
    throughput: float | None = None
    acceptance_length: float | None = None


@dataclass(frozen=True)
class Disk:
    """The filesystem of /opt/sglang, in bytes."""

    free: int
    total: int


@dataclass(frozen=True)
class Warned:
    """A warning or error of the journal; ``time`` in seconds since the epoch."""

    time: float
    text: str


@dataclass(frozen=True)
class Status:
    """All of it. ``now``: the host's clock, in seconds since the epoch; ``hidden``: what could not be
    read by ``acting``, the user that looked, who need not be the one logged in."""

    host: str
    address: str
    user: str
    acting: str
    inventory: str
    now: float
    unit: Unit
    server: Server
    load: Load
    speculation: LoadState | None
    release: str | None
    running: Deployment | None
    running_pid: int | None
    good: Deployment | None
    previous: Deployment | None
    hidden: tuple[str, ...]
    disk: Disk | None
    warnings: tuple[Warned, ...]

    @property
    def reasons(self) -> tuple[str, ...]:
        """Why the server is not ready; empty if it is."""
        return reasons(self.unit, self.server)

    @property
    def ready(self) -> bool:
        """Whether the server takes requests: the service is active and the server healthy."""
        return not self.reasons


def unit(properties: Mapping[str, str]) -> Unit:
    """The unit by the output of ``systemctl show --timestamp=unix``."""
    # systemd writes "[not set]", or the largest number of 64 bits, where it does not count.
    memory = properties.get("MemoryCurrent", "")
    since = properties.get("StateChangeTimestamp", "").removeprefix("@")
    return Unit(
        loaded=properties.get("LoadState") == "loaded",
        state=properties.get("ActiveState", "unknown"),
        substate=properties.get("SubState", "unknown"),
        result=properties.get("Result", ""),
        since=float(since) if since else None,
        restarts=int(properties.get("NRestarts") or 0),
        memory=int(memory) if memory.isdecimal() and int(memory) < 2**63 else None,
        main_pid=int(properties.get("MainPID") or 0),
        changed_on_disk=properties.get("NeedDaemonReload") == "yes",
        enabled=properties.get("UnitFileState", ""),
    )


def reasons(unit: Unit, server: Server) -> tuple[str, ...]:
    """Why a server is not ready; empty if it is."""
    if not unit.loaded:
        return (NO_SERVICE,)
    result = f", {unit.result}" if unit.result not in ("", "success") else ""
    state = () if unit.state == "active" else (f"sglang.service is {unit.state} ({unit.substate}{result})",)
    if server.health == 200 or (state and server.health is None):
        return state
    if server.health is None:
        return (*state, "the command line of the service has no --host and --port to ask at")
    said = f"answers {server.health}" if server.health else f"does not answer ({server.complaint})"
    return (*state, f"/health {said}")


def oddities(status: Status) -> dict[str, str]:
    """What is odd although the server may be ready, by a name for each."""
    differ = status.running and status.good and status.running != status.good
    release = status.running and status.release and status.running.release != status.release
    forced = status.speculation.forced if status.speculation else None
    stale = status.running and status.unit.main_pid and status.running_pid != status.unit.main_pid
    enabled = status.unit.enabled or "not enabled"
    found = {
        "deployment": ("deployment running is not the last good one", differ),
        "release": (f"/opt/sglang/current is {status.release}, the server runs another release", release),
        "record": (f"{READY} is of an earlier process", stale),
        "reload": ("sglang.service has changed on disk since systemd read it", status.unit.changed_on_disk),
        "enabled": (
            f"sglang.service is {enabled}: it does not start with the host",
            status.unit.loaded and enabled != "enabled",
        ),
        "forced": (
            f"draft steps are FORCED to {load_policy.counted(forced or 0)} whatever the load",
            forced is not None,
        ),
        "hidden": (f"{status.acting} may not read {' and '.join(status.hidden)}", status.hidden),
    }
    return {name: text for name, (text, applies) in found.items() if applies}


def remarks(status: Status) -> tuple[str, ...]:
    """What is odd although the server may be ready, and how to end what is forced."""
    release = f": fab -H {status.host} speculation --release lets them follow it again"
    return tuple(f"{text}{release if name == 'forced' else ''}" for name, text in oddities(status).items())


def _record(found: Mapping[str, str]) -> dict:
    try:
        record = json.loads(found.get("text") or "{}")
    except ValueError:
        return {}
    return record if isinstance(record, dict) else {}


def deployment(found: Mapping[str, str]) -> Deployment | None:
    """The deployment of a record as ``on_host`` read it; None if there is none in it."""
    record = _record(found)
    return Deployment(record["deployment"], record.get("release", "")) if record.get("deployment") else None


def _body(answer: Mapping | None, kind: type) -> dict | list:
    body = (answer or {}).get("body")
    return body if (answer or {}).get("status") == 200 and isinstance(body, kind) else kind()


def server(found: Mapping) -> Server:
    """The server by what it answered."""
    health, information = found.get("health"), _body(found.get("information"), dict)
    return Server(
        host=found["address"]["host"],
        port=found["address"]["port"],
        health=health and health["status"],
        complaint=str(health["body"]) if health and health["status"] != 200 else "",
        seconds=health and round(health["seconds"], 3),
        model=information.get("served_model_name"),
        version=information.get("version"),
    )


def load(information: Mapping | None, queues: Mapping | None) -> Load:
    """Live numbers by the answers of /server_info and /get_load."""
    ranks = [rank for rank in _body(information, dict).get("internal_states", ()) if isinstance(rank, dict)]
    counted = [queue for queue in _body(queues, list) if isinstance(queue, dict)]

    def all_of(rows: list[dict], name: str) -> list:
        values = [row.get(name) for row in rows]
        return [] if None in values else values

    throughputs, lengths = all_of(ranks, "last_gen_throughput"), all_of(ranks, "avg_spec_accept_length")
    limits = all_of(ranks, "effective_max_running_requests_per_dp")
    # The server counts the waiting ones among its requests.
    requests, waiting = all_of(counted, "num_reqs"), all_of(counted, "num_waiting_reqs")
    return Load(
        running=sum(requests) - sum(waiting) if requests and waiting else None,
        waiting=sum(waiting) if waiting else None,
        limit=sum(limits) if limits else None,
        throughput=sum(throughputs) if throughputs else None,
        acceptance_length=sum(lengths) / len(lengths) if lengths else None,
    )


def parse(host: Host, user: str, found: Mapping) -> Status:
    """A host's status by what ``on_host.status`` returned; ``user`` is the one logged in."""
    current = found["current"]
    files = {"running": READY, "good": DEPLOYMENTS}
    return Status(
        host=host.name,
        address=host.address,
        user=user,
        acting=found["user"],
        inventory=host.inventory,
        now=found["now"],
        unit=unit(found["unit"]),
        server=server(found),
        load=load(found.get("information"), found.get("load")),
        speculation=load_state.parse(_body(found.get("information"), dict)),
        release=current and current.rpartition("/")[2],
        running=deployment(found["running"]),
        running_pid=_record(found["running"]).get("pid"),
        good=deployment(found["good"]),
        previous=deployment(found["previous"]),
        hidden=(
            *(path for name, path in files.items() if "error" in found[name]),
            *(() if found["journal_readable"] else ("the journal",)),
        ),
        disk=Disk(found["disk"]["free"], found["disk"]["total"]) if "free" in found["disk"] else None,
        warnings=tuple(Warned(entry["time"], entry["text"]) for entry in found["journal"]),
    )


def as_json(status: Status) -> str:
    """The status for scripts: its fields, with ``ready``, ``reasons`` and ``remarks``."""
    verdict = {"ready": status.ready, "reasons": status.reasons, "remarks": remarks(status)}
    return json.dumps({"host": status.host, **verdict, **asdict(status)}, indent=1)
