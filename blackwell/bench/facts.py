"""What commands, files and the server say, as parts of a fingerprint: text in, values out.

A text that is not what is expected gives Unknown, with the reason.
"""

import itertools
import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from .fingerprint import Unknown

GPU_QUERY = "name,memory.total,power.limit"
"""What ``gpus`` expects of ``nvidia-smi --query-gpu``; the power limit belongs to a card as much as its memory does."""

COLOURS = re.compile(r"\x1b\[[0-9;]*m")
DRIVER = re.compile(r"^NVRM version:.*?\s(\d+\.\d+(?:\.\d+)?)(?:\s|$)", re.MULTILINE)
CUDA = re.compile(r"^CUDA (?:UMD )?version\s*:\s*(\d+\.\d+)\s*$", re.MULTILINE | re.IGNORECASE)
CARD = re.compile(r"GPU\d+")

SECRET = re.compile(r"(KEY|TOKEN|SECRET|PASSWORD)$")

OWN_PARTS = frozenset(
    {
        *("model_path", "revision", "served_model_name"),
        *("speculative_draft_model_path", "speculative_draft_model_revision"),
        *("version", "patch_tree"),
    }
)
"""What is a part of its own, or the name that clients call the model by."""

NOT_OF_SPEED = frozenset(
    {
        *("host", "port", "nccl_port", "api_key", "admin_api_key"),
        *("log_level", "log_level_http", "log_requests_format", "log_requests_target", "crash_dump_folder"),
    }
)
"""Where the server listens, what opens it, and where its log goes."""

OF_ONE_START = frozenset({"random_seed", "status", "max_total_num_tokens", "max_req_input_len", "internal_states"})
"""What a server draws or measures itself when it starts, so that no two starts agree."""

MEASURED_FOR = frozenset({"speculative_load_policy", "speculative_disable_batch_threshold"})
"""What a policy sets: one that is applied must not be void for that."""


def gpus(text: str) -> str | Unknown:
    """The cards of ``nvidia-smi --query-gpu=<GPU_QUERY> --format=csv,noheader``, equal ones counted."""
    cards = [[cell.strip() for cell in line.rsplit(",", 2)] for line in text.splitlines() if line.strip()]
    if not cards or any(len(card) != 3 for card in cards):
        return Unknown("nvidia-smi --query-gpu answered in another form")
    counted = Counter(f"{name} ({memory}, {power})" for name, memory, power in cards)
    return ", ".join(f"{count} x {card}" for card, count in counted.items())


def topology(text: str) -> dict[str, str] | Unknown:
    """How each two cards are connected by ``nvidia-smi topo -m``: ``GPU0-GPU1`` to NV18, SYS and so on."""
    rows = [row for line in text.splitlines() if (row := COLOURS.sub("", line).split())]
    columns = [name for name in rows[0] if CARD.fullmatch(name)] if rows else []
    cards = {row[0]: dict(zip(columns, row[1:], strict=False)) for row in rows[1:] if row[0] in columns}
    if not columns or list(cards) != columns or any(len(card) != len(columns) for card in cards.values()):
        return Unknown("nvidia-smi topo -m answered in another form")
    pairs = itertools.combinations(columns, 2)
    return {f"{one}-{other}": cards[one][other] for one, other in pairs}


def driver(text: str) -> str | Unknown:
    """The driver's version by ``/proc/driver/nvidia/version``."""
    found = DRIVER.search(text)
    return found[1] if found else Unknown("/proc/driver/nvidia/version names no version")


def cuda(text: str) -> str | Unknown:
    """The newest CUDA that the driver takes, by ``nvidia-smi --version``."""
    found = CUDA.search(text)
    return found[1] if found else Unknown("nvidia-smi --version names no CUDA")


def environment(data: bytes, prefix: str) -> dict[str, str]:
    """The variables of ``/proc/PID/environ`` whose names begin with ``prefix``, without what opens something."""
    pairs = (entry.partition("=") for entry in data.decode(errors="replace").split("\0"))
    return {name: value for name, _, value in pairs if name.startswith(prefix) and not SECRET.search(name)}


def libraries(maps: Iterable[str], name: str) -> list[str]:
    """Files that are a shared library of this name, ``libnccl.so`` say, by the text of ``/proc/PID/maps``, sorted.

    One that was replaced since it was loaded ends in `` (deleted)``.
    """
    # A path is the sixth field, and may have spaces.
    fields = (line.split(maxsplit=5) for text in maps for line in text.splitlines())
    paths = {parts[5] for parts in fields if len(parts) == 6}
    of_that_name = re.compile(rf"{re.escape(name)}(\.\d+)*( \(deleted\))?")
    return sorted(path for path in paths if of_that_name.fullmatch(path.rpartition("/")[2]))


def information(text: str) -> dict[str, Any] | Unknown:
    """The server's answer to ``/server_info``."""
    try:
        found = json.loads(text)
    except ValueError:
        return Unknown("/server_info is not JSON")
    return found if isinstance(found, dict) else Unknown("/server_info is no object")


def told(server: Mapping[str, Any], name: str) -> object:
    """What ``/server_info`` has under a name; Unknown if it has nothing there."""
    return server[name] if server.get(name) is not None else Unknown(f"/server_info has no {name}")


def flags(server: Mapping[str, Any]) -> dict[str, Any]:
    """What the server was started with, as far as it may matter to its speed."""
    left_out = OWN_PARTS | NOT_OF_SPEED | OF_ONE_START | MEASURED_FOR
    return {name: value for name, value in server.items() if name not in left_out}
