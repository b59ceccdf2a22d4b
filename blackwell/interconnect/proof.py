"""What an all-reduce over the GPUs of a host proved: pure functions."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from blackwell.host_errors import HostError

SLOWER = 0.8
"""Below this share of the last bandwidth something has changed: repeats on an idle machine are within a few percent."""

DONE = "done"
STARTED = "nothing"


@dataclass(frozen=True)
class Size:
    """``bytes`` of the tensor; ``wrong``: elements whose sum was another, over all ranks; ``seconds`` of one call, by
    the slowest rank."""

    bytes: int
    wrong: int
    seconds: float


@dataclass(frozen=True)
class Proof:
    """``kind``: cuda or cpu. ``reached``: the last stage of each rank. ``failed``: the last line of each rank that
    ended with an error, by its number. ``beside``: whether the server ran. ``peers``: pairs of GPUs that may read each
    other, both ways counted. ``facts``: name and version of what took part.
    """

    kind: str
    ranks: int
    beside: bool
    reached: tuple[str, ...]
    failed: Mapping[int, str]
    peers: int
    facts: Mapping[str, str]
    sizes: tuple[Size, ...]

    @property
    def hung(self) -> bool:
        """Whether the time was up before all ranks were done, and none had failed."""
        return not self.failed and any(stage != DONE for stage in self.reached)

    @property
    def sums(self) -> bool:
        """Whether all ranks came to the end, and every sum was right."""
        return all(stage == DONE for stage in self.reached) and not any(size.wrong for size in self.sizes)


def bus_bandwidth(size: Size, ranks: int) -> float:
    """Bytes per second that each GPU's link carries in each direction.

    An all-reduce over n ranks moves 2 (n - 1) / n of the tensor over every link, whatever its algorithm (PERFORMANCE.md
    of nccl-tests).
    """
    return 2 * (ranks - 1) / ranks * size.bytes / size.seconds


def parse(host: str, kind: str, found: Mapping) -> Proof:
    """A proof by what ``on_host.interconnect`` returned; raises HostError with its problem."""
    if "problem" in found:
        raise HostError(f"{host}: {found['problem']}")
    ranks = found["ranks"]
    told = [rank["told"] for rank in ranks]
    rows = zip(*([row for row in rows if "size" in row] for rows in told), strict=False)
    return Proof(
        kind=kind,
        ranks=len(ranks),
        beside=found["active"],
        reached=tuple(rows[-1]["stage"] if rows else STARTED for rows in told),
        failed={number: _last_line(rank) for number, rank in enumerate(ranks) if rank["status"]},
        peers=sum(len(row.get("peers", ())) for rows in told for row in rows),
        facts={name: row[name] for row in told[0] for name in ("gpu", "torch", "nccl") if name in row},
        sizes=tuple(_size(row) for row in rows),
    )


def _size(ranks: Sequence[Mapping]) -> Size:
    return Size(ranks[0]["size"], sum(rank["wrong"] for rank in ranks), max(rank["seconds"] for rank in ranks))


def _last_line(rank: Mapping) -> str:
    """What a rank ended with; of a traceback the line that names the error."""
    lines = [line.strip() for line in rank["said"].splitlines() if line.strip()]
    errors = [line for line in lines if re.match(r"[\w.]*(Error|Exception)\b", line)]
    return (errors or lines or [f"it ended with {rank['status']}"])[-1]


def verdict(proof: Proof, last: Proof | None) -> list[str]:
    """What is wrong, in sentences; none if all is well. ``last``: the proof before, of the same setting."""
    return [*_unproven(proof), *(_slower(proof, last) if last and proof.sums else [])]


def _unproven(proof: Proof) -> list[str]:
    if proof.failed:
        return [f"rank {number} failed after {proof.reached[number]}: {line}" for number, line in proof.failed.items()]
    if proof.hung:
        stages = sorted({(stage, proof.reached.count(stage)) for stage in proof.reached})
        where = ", ".join(f"{count} of {proof.ranks} ranks had reached: {stage}" for stage, count in stages)
        return [f"it hung; {where}"]
    return [f"{size.wrong} sums of {size.bytes} bytes were wrong" for size in proof.sizes if size.wrong]


def _slower(proof: Proof, last: Proof) -> list[str]:
    before = {size.bytes: size.seconds for size in last.sizes}
    shares = {size.bytes: before[size.bytes] / size.seconds for size in proof.sizes if size.bytes in before}
    return [
        f"{size} bytes took {1 / share:.2f} times as long as the last time"
        for size, share in shares.items()
        if share < SLOWER
    ]


LOOK = "fab -H {name} doctor"
NO_PEERS = (
    LOOK,
    "no IOMMU, or iommu=pt, and no ACS on the bridges that the doctor names: what GPUs write to each other is lost",
    "until then NCCL_P2P_DISABLE=1 in the server's environment: through the host's memory, slower, but it works",
)
"""What to do where GPUs do not reach each other (NCCL's user guide, troubleshooting, "PCI Access Control Services")."""


def remedies(proof: Proof, wrong: Sequence[str], name: str) -> list[str]:
    """What to do about what is wrong, in order; nothing on a CPU."""
    if not wrong or proof.kind != "cuda":
        return []
    lost = proof.hung or any(size.wrong for size in proof.sizes)
    return [step.format(name=name) for step in (NO_PEERS if lost else (LOOK,))]
