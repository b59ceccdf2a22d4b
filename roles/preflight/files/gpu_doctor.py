#!/usr/bin/env python3
"""Says what about a host's NVIDIA GPUs would keep a server from working, and what to do about each.

One file and the standard library (Python 3.9), so that it runs where nothing of this project is:

    ssh HOST sudo python3 - --gpus 8 < scripts/doctor

Exits with 0 if all is well, 1 if there is a problem or a warning, 2 if the arguments are wrong or it could not look.
It changes nothing. ``gather`` holds every side effect and returns what JSON can hold; ``judge`` is made of pure
functions, so that facts that were recorded on one machine (--record) can be judged on another (--facts).
"""

from __future__ import annotations

import argparse
import json
import mmap
import os
import re
import shutil
import socket
import subprocess
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    # What a check finds: what is wrong, and what to do about it.
    Said = Iterator[tuple[str, str]]

OK, WARNING, PROBLEM = "ok", "warning", "problem"
SECONDS = 60
"""How long a command may take: without its persistence daemon a driver starts every card anew for each nvidia-smi."""

CARD_FIELDS = (
    *("index", "uuid", "name", "pci.bus_id", "compute_cap", "mig.mode.current", "mig.mode.pending", "pstate"),
    *("pcie.link.gen.current", "pcie.link.gen.max", "pcie.link.gen.gpumax", "power.limit", "power.default_limit"),
    *("ecc.mode.current", "ecc.errors.uncorrected.volatile.total", "memory.used"),
)
CLOCK_FIELDS = ("index", "clocks_event_reasons.active")
"""Asked for by themselves: a driver that is too old to know the second answers nothing else with it."""

PROCESS_FIELDS = ("gpu_uuid", "pid", "used_memory", "name")
"""Names of nvidia-smi --help-query-gpu and --help-query-compute-apps."""

SECURE_BOOT = "sys/firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c"
"""The UEFI variable: four bytes of attributes, then 1 if Secure Boot is on (UEFI specification, 3.3)."""

KEYS = ("var/lib/dkms/mok.pub", "var/lib/shim-signed/mok/MOK.der")
"""What DKMS signs the modules with that it builds, on Debian and on Ubuntu."""

FABRIC_MANAGER = (
    "usr/bin/nv-fabricmanager",
    "lib/systemd/system/nvidia-fabricmanager.service",
    "usr/lib/systemd/system/nvidia-fabricmanager.service",
)
LIBRARY_DIRECTORIES = ("usr/lib/x86_64-linux-gnu", "usr/lib64", "usr/lib", "usr/local/nvidia/lib64")
LIBRARIES = ("libcuda.so.1", "libnvidia-ml.so.1")
NCCL = "venv/lib/python3*/site-packages/nvidia/nccl/lib/libnccl.so.2"
"""Where the packages that PyTorch depends on put NCCL in a release."""

OURS = ("sglang.service", "blackwell-bench.service", "blackwell-bench-server.service")
"""Units that may hold the cards."""

SLOWED = {
    0x08: "hardware slowdown",
    0x20: "too hot, by the driver",
    0x40: "too hot, by the hardware",
    0x80: "power brake of the power supply",
}
"""Bits of clocks_event_reasons.active that are no part of working (nvmlClocksEventReasons of NVML's reference)."""

HELD_MIB = 1024
"""Memory of a card, in MiB, from which it counts as held although no process shows: a driver itself keeps some 100."""

REDIRECTING = ("ReqRedir+", "CmpltRedir+", "EgressCtrl+")
"""The controls of ACS that send what one card writes to another by the root complex, or stop it (PCIe specification,
6.12). SrcValid+ and UpstreamFwd+ alone do neither."""

P2P = {
    "CNS": ("the chipset does not support it", "put the cards below one root complex or switch, and see the firmware"),
    "GNS": ("the GPU does not support it", "use the driver for professional cards; GeForce cards cannot"),
    "TNS": ("the topology does not support it", "put the cards below one root complex or switch"),
    "NS": ("it is not supported", "see nvidia-smi topo -m and the firmware's settings of PCIe"),
    "DR": ("it is switched off by a registry key", "remove NVreg_RegistryDwords from /etc/modprobe.d, and reboot"),
    "U": ("the driver does not know", "see dmesg | grep -i nvrm"),
}
"""What nvidia-smi topo -p2p says in place of OK (its legend), and what to do about it."""


@dataclass(frozen=True)
class Finding:
    """``name``: that of the check. ``level``: ok, warning or problem. ``remedy``: what to do; empty for ok."""

    name: str
    level: str
    what: str
    remedy: str = ""


@dataclass(frozen=True)
class Wanted:
    """What a host must have. ``gpus``: how many cards at least. ``driver``, ``capability``: the oldest of each.

    ``refused_nccl``: versions of NCCL that must not be used. ``warnings``: names of checks that only warn.
    ``skipped``: names of checks that are not made.
    """

    gpus: int = 1
    driver: str = "580"
    capability: str = "12.0"
    refused_nccl: tuple[str, ...] = ("2.26.2",)
    warnings: tuple[str, ...] = ("acs", "clocks", "ecc", "iommu", "link", "p2p", "power")
    skipped: tuple[str, ...] = ()


# --- Gathering: the only part that reads files and runs commands


def gather(root: Path, release: Path) -> dict[str, Any]:
    """The facts of this host: files below ``root``, commands of PATH, NCCL of the release at ``release`` below it."""
    groups = {path.parent.name: _text(path) or "" for path in sorted((root / "proc").glob("[0-9]*/cgroup"))}
    processes = _said("nvidia-smi", f"--query-compute-apps={','.join(PROCESS_FIELDS)}", "--format=csv,noheader,nounits")
    pids = re.findall(r"^[^,]*, (\d+),", (processes or {}).get("text", ""), re.MULTILINE)
    return {
        "administrator": os.geteuid() == 0,
        "container": _container(root),
        "namespace": (_text(root / "proc/self/uid_map") or "").split(),
        "limits": _text(root / "proc/1/limits") or "",
        "cmdline": (_text(root / "proc/cmdline") or "").strip(),
        "modules": [line.split()[0] for line in (_text(root / "proc/modules") or "").splitlines() if line],
        "driver": _text(root / "proc/driver/nvidia/version") or "",
        "installed": _said("modinfo", "-F", "version", "nvidia"),
        "libraries": _libraries(root),
        "nodes": sorted(path.name for path in (root / "dev").glob("nvidia*")),
        "pci": [_device(path) for path in sorted((root / "sys/bus/pci/devices").glob("*")) if _is_nvidias(path)],
        "secure_boot": _secure_boot(root),
        "keys": {f"/{key}": _said("mokutil", "--test-key", f"/{key}") for key in KEYS if (root / key).exists()},
        "fabric_manager": [f"/{path}" for path in FABRIC_MANAGER if (root / path).exists()],
        "cards": _said("nvidia-smi", f"--query-gpu={','.join(CARD_FIELDS)}", "--format=csv,noheader,nounits"),
        "clocks": _said("nvidia-smi", f"--query-gpu={','.join(CLOCK_FIELDS)}", "--format=csv,noheader,nounits"),
        "processes": processes,
        "groups": {pid: groups.get(pid, "") for pid in pids},
        "p2p": _said("nvidia-smi", "topo", "-p2p", "r"),
        "lspci": _said("lspci", "-D", "-vvv"),
        "nccl": _nccl(root, release, [pid for pid, group in groups.items() if _is_ours(group)]),
    }


def _text(path: Path) -> str | None:
    try:
        return path.read_text(errors="replace")
    except OSError:
        return None


def _said(*words: str) -> dict[str, str] | None:
    """``{"text": ...}``, ``{"error": its words}``, or None where there is no such command."""
    if not shutil.which(words[0]):
        return None
    try:
        done = subprocess.run(words, capture_output=True, text=True, errors="replace", timeout=SECONDS, check=False)
    except subprocess.TimeoutExpired:
        return {"error": f"no answer within {SECONDS} s"}
    except OSError as error:
        return {"error": str(error)}
    said = " ".join(f"{done.stdout}\n{done.stderr}".split())
    # mokutil's exit status is 1 for a key that is enrolled, which is an answer all the same.
    failed = done.returncode and words[0] != "mokutil"
    return {"error": said or f"exit status {done.returncode}"} if failed else {"text": done.stdout or done.stderr}


def _container(root: Path) -> str:
    """The kind of container that this is; empty if it is none (systemd's Container Interface; Docker's own mark)."""
    told = re.search(r"(?:^|\0)container=(\w+)", _text(root / "proc/1/environ") or "")
    mark = "docker" if (root / ".dockerenv").exists() else ""
    return (_text(root / "run/systemd/container") or "").strip() or (told.group(1) if told else mark)


def _is_nvidias(device: Path) -> bool:
    return (_text(device / "vendor") or "").strip() == "0x10de"


def _device(device: Path) -> dict[str, Any]:
    """A device of PCI: its class, its link now and at most, how the IOMMU treats it, and the bridges above it."""
    names = ("class", "current_link_width", "max_link_width")
    *above, _ = [part for part in device.resolve().parts if re.fullmatch(r"[0-9a-f]{4,}:[0-9a-f]{2}:.*", part)]
    return {
        "address": device.name,
        **{name: (_text(device / name) or "").strip() for name in names},
        "iommu": (_text(device / "iommu_group/type") or "").strip(),
        "bridges": above,
    }


def _libraries(root: Path) -> dict[str, str]:
    """The version of each library of the driver, by the name of the file that a program would load."""
    places = {name: [root / directory / name for directory in LIBRARY_DIRECTORIES] for name in LIBRARIES}
    files = {name: [place.resolve().name for place in found if place.exists()] for name, found in places.items()}
    return {name: found[0].partition(".so.")[2] for name, found in files.items() if found}


def _secure_boot(root: Path) -> bool | None:
    try:
        return (root / SECURE_BOOT).read_bytes()[4:5] == b"\1"
    except OSError:
        return None


def _nccl(root: Path, release: Path, pids: Iterable[str]) -> list[dict[str, Any]]:
    """The NCCL that the processes have loaded, and the one that the release would load."""
    maps = "\n".join(_text(root / "proc" / pid / "maps") or "" for pid in pids)
    loaded = {line.split(maxsplit=5)[5] for line in maps.splitlines() if re.search(r"/libnccl\.so", line)}
    # As the kernel has them in maps: without links, of which the path of the current release is one.
    files = (root / release.relative_to("/")).resolve().glob(NCCL)
    there = {f"/{path.relative_to(root.resolve())}" for path in files}
    paths = sorted(loaded | there)
    return [{"path": path, "loaded": path in loaded, "version": _nccl_version(root, path)} for path in paths]


def _nccl_version(root: Path, path: str) -> str:
    """What the library writes into its log as its version; empty where that cannot be read."""
    try:
        with (root / path.lstrip("/")).open("rb") as file:
            content = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    except (OSError, ValueError):
        return ""
    with content:
        found = re.search(rb"NCCL version (\d+\.\d+\.\d+)", content)
        return found.group(1).decode() if found else ""


# --- What the facts say


@dataclass(frozen=True)
class Card:
    """A card as nvidia-smi tells it, a field of CARD_FIELDS each; memory in MiB, power in W, "[N/A]" where unknown."""

    fields: Mapping[str, str]

    def __getitem__(self, field: str) -> str:
        """A field as nvidia-smi writes it."""
        return self.fields[field]

    @property
    def address(self) -> str:
        """Its place on the PCI bus, as the kernel writes it."""
        domain, _, rest = self["pci.bus_id"].lower().partition(":")
        return f"{int(domain, 16):04x}:{rest}"

    def number(self, field: str) -> float | None:
        """A field as a number; None where the card does not have it."""
        try:
            return float(self[field])
        except ValueError:
            return None


@dataclass(frozen=True)
class Seen:
    """Facts, and what was read from them. ``gpus``: the cards on the PCI bus. ``loaded``: the driver's version."""

    facts: Mapping[str, Any]
    cards: tuple[Card, ...]
    gpus: tuple[Mapping[str, Any], ...]
    loaded: str

    @property
    def several(self) -> bool:
        """Whether there are cards that could talk to each other."""
        return len(self.gpus) > 1

    @property
    def contained(self) -> bool:
        """Whether the driver and the kernel belong to another machine, of which this is a container."""
        return bool(self.facts["container"])

    def there(self, remedy: str) -> str:
        """A remedy that concerns the kernel, where that is not this machine's."""
        return f"on the host of the container: {remedy}" if self.contained else remedy


def read(facts: Mapping[str, Any]) -> Seen:
    """What ``gather`` returned, with the cards and versions taken from it."""
    version = re.search(r"^NVRM version:.*?\s(\d+\.\d+(?:\.\d+)*)\s", facts["driver"], re.MULTILINE)
    gpus = tuple(device for device in facts["pci"] if device["class"].startswith("0x03"))
    rows = [[cell.strip() for cell in line.split(",")] for line in _lines(facts["cards"])]
    cards = tuple(
        Card({field: row[place] for place, field in enumerate(CARD_FIELDS)})
        for row in rows
        if len(row) == len(CARD_FIELDS)
    )
    return Seen(facts, cards, gpus, version.group(1) if version else "")


def _lines(said: Mapping[str, str] | None) -> list[str]:
    return [line for line in (said or {}).get("text", "").splitlines() if line.strip()]


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", version))


def _is_ours(group: str) -> bool:
    return any(f"/{unit}/" in f"{line}/" for line in group.splitlines() for unit in OURS)


def _names(words: Sequence[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"


def _each(cards: Iterable[Card], say: Callable[[Card], str]) -> dict[str, list[Card]]:
    """Cards by what is to be said of them, without those of which there is nothing to say."""
    found: dict[str, list[Card]] = {}
    for card in cards:
        if said := say(card):
            found.setdefault(said, []).append(card)
    return found


def _of(cards: Sequence[Card]) -> str:
    return f"GPU {_names([card['index'] for card in cards])}"


# --- Judging: each check is a pure function


def _driver(seen: Seen, wanted: Wanted) -> Said:
    facts, oldest = seen.facts, wanted.driver
    if not seen.loaded:
        what = f"{len(seen.gpus)} NVIDIA GPUs are on the PCI bus, and no NVIDIA driver is loaded"
        yield what, seen.there(f"install the driver with open kernel modules (nvidia-open), {oldest} or newer")
        return
    if _numbers(seen.loaded) < _numbers(oldest):
        yield (
            f"the loaded driver is {seen.loaded}, older than {oldest}",
            seen.there(f"install nvidia-open, {oldest} or newer, and reboot"),
        )
    if "Open Kernel Module" not in facts["driver"] and _numbers(wanted.capability) >= (10, 0):
        yield (
            "the loaded driver has the proprietary kernel modules, which do not drive Blackwell",
            seen.there("install nvidia-open in its place, and reboot"),
        )
    module = [] if seen.contained else [("the kernel module on disk", "".join(_lines(facts["installed"])))]
    installed = [*facts["libraries"].items(), *module]
    others = [f"{name} is {version}" for name, version in installed if version and version != seen.loaded]
    if others:
        remedy = "reboot, and keep the driver's packages from unattended upgrades"
        there = f"install the driver's libraries of exactly {seen.loaded} in the container, without its kernel modules"
        yield f"driver {seen.loaded} is loaded, but {_names(others)}", there if seen.contained else remedy
    elif not facts["cards"]:
        yield "nvidia-smi is not installed", f"install the driver's utilities of version {seen.loaded}"
    elif error := facts["cards"].get("error"):
        yield f"nvidia-smi does not show the GPUs: {error}", seen.there("see dmesg | grep -i nvrm")
    elif len(seen.cards) != len(_lines(facts["cards"])):
        yield "nvidia-smi answered in another form", "see nvidia-smi --help-query-gpu for the fields of this driver"


def _count(seen: Seen, wanted: Wanted) -> Said:
    answering = {card.address for card in seen.cards}
    silent = [gpu["address"] for gpu in seen.gpus if gpu["address"] not in answering]
    asked = f"{wanted.gpus} are wanted"
    if answering and silent:
        what = f"{len(answering)} GPUs answer, {asked}, and {_names(silent)} on the PCI bus does not"
        remedy = "see dmesg | grep -i nvrm for its Xid, and power-cycle the machine"
        passed = "pass /dev/nvidia* of every card to the container, and see dmesg | grep -i nvrm"
        yield from [(what, seen.there(passed if seen.contained else remedy))] if len(answering) < wanted.gpus else []
    elif max(len(seen.gpus), len(answering)) < wanted.gpus:
        yield (
            f"{max(len(seen.gpus), len(answering))} GPUs are on the PCI bus, {asked}",
            "seat the cards and their power, see the firmware (Above 4G Decoding, bifurcation), or ask for fewer",
        )


def _capability(seen: Seen, wanted: Wanted) -> Said:
    oldest = wanted.capability

    def say(card: Card) -> str:
        return f"{card['name']}, compute capability {card['compute_cap']}" if older(card) else ""

    def older(card: Card) -> bool:
        return card.number("compute_cap") is not None and _numbers(card["compute_cap"]) < _numbers(oldest)

    for said, cards in _each(seen.cards, say).items():
        yield f"{_of(cards)} is of {said}, below {oldest}", f"use cards of capability {oldest} or above"


def _mig(seen: Seen, _: Wanted) -> Said:
    def say(card: Card) -> str:
        return "on" if "Enabled" in (card["mig.mode.current"], card["mig.mode.pending"]) else ""

    for cards in _each(seen.cards, say).values():
        indices = ",".join(card["index"] for card in cards)
        yield f"MIG is on for {_of(cards)}", seen.there(f"nvidia-smi -i {indices} -mig 0, and reset or reboot")


def _nouveau(seen: Seen, _: Wanted) -> Said:
    if "nouveau" in seen.facts["modules"]:
        what = "the kernel module nouveau is loaded, which keeps the cards from the NVIDIA driver"
        remedy = "write 'blacklist nouveau' into /etc/modprobe.d/nouveau.conf, run update-initramfs -u, and reboot"
        yield what, seen.there(remedy)


def _secure_boot_check(seen: Seen, _: Wanted) -> Said:
    """A module that is loaded has a signature that the kernel takes; what is to be built yet needs a key."""
    if seen.contained or seen.loaded or not seen.facts["secure_boot"]:
        return
    states = {key: " ".join(_lines(said)) for key, said in seen.facts["keys"].items()}
    if any("already enrolled" in said for said in states.values()):
        return
    key = next(iter(states), f"/{KEYS[0]}")
    # Without mokutil nobody knows what is enrolled, and dkms makes the key.
    first = "" if any(seen.facts["keys"].values()) else "apt-get install dkms mokutil, "
    how = f"{first}mokutil --import {key}, reboot, and choose Enroll MOK at the console; or switch Secure Boot off"
    what = "is not known to be enrolled" if states else "is not there yet"
    yield f"Secure Boot is on, and the key {key}, with which DKMS signs the driver's modules, {what}", how


def _fabric_manager(seen: Seen, _: Wanted) -> Said:
    switches = [device for device in seen.facts["pci"] if device["class"].startswith("0x0680")]
    if seen.facts["fabric_manager"] and not switches:
        what = f"the fabric manager is installed ({seen.facts['fabric_manager'][0]}), and there is no NVSwitch"
        yield what, "apt-get purge 'nvidia-fabricmanager*'"


def _iommu(seen: Seen, _: Wanted) -> Said:
    translated = sorted({gpu["iommu"] for gpu in seen.gpus} - {"", "identity"})
    if not translated or not seen.several:
        return
    words = [word for word in seen.facts["cmdline"].split() if "iommu" in word]
    what = f"the IOMMU translates what the GPUs send (type {_names(translated)}"
    given = f"kernel command line: {' '.join(words) or 'nothing of it'}"
    remedy = "start the kernel with iommu=pt, or switch the IOMMU off in the firmware: collectives can hang otherwise"
    yield f"{what}; {given})", seen.there(remedy)


def _controls(text: str) -> dict[str, str]:
    """ACSCtl of each device of ``lspci -D -vvv`` that has one."""
    blocks = re.split(r"\n(?=[0-9a-f]{4,}:[0-9a-f]{2}:)", text)
    found = [(block.split(maxsplit=1)[0], re.search(r"ACSCtl:\s*(.*)", block)) for block in blocks if block.strip()]
    return {address: control.group(1) for address, control in found if control}


def _acs(seen: Seen, _: Wanted) -> Said:
    said = seen.facts["lspci"]
    if not seen.several or _acs_hidden(seen):
        return
    if not said or "error" in said:
        why = said["error"] if said else "lspci is not installed"
        yield f"ACS of the PCI bridges could not be read: {why}", "apt-get install pciutils"
        return
    if not seen.facts["administrator"]:
        yield "ACS of the PCI bridges is shown to root only", "run this as root"
        return
    bridges = {bridge for gpu in seen.gpus for bridge in gpu["bridges"]}
    controls = {address: words for address, words in _controls(said["text"]).items() if address in bridges}
    redirecting = [address for address, words in sorted(controls.items()) if set(words.split()) & set(REDIRECTING)]
    if redirecting:
        what = f"ACS of the bridges above the GPUs redirects what they send each other: {_names(redirecting)}"
        command = "; ".join(f"setpci -s {address} ECAP_ACS+6.w=0000" for address in redirecting)
        yield what, f"switch ACS off in the firmware, or until the next boot: {command}"


def _acs_hidden(seen: Seen) -> bool:
    return seen.contained and not _controls((seen.facts["lspci"] or {}).get("text", ""))


def _p2p(seen: Seen, _: Wanted) -> Said:
    said = seen.facts["p2p"]
    if not seen.several or not seen.cards or not said:
        return
    if "error" in said:
        yield f"nvidia-smi topo -p2p r: {said['error']}", "see dmesg | grep -i nvrm"
    rows = [line.split() for line in _lines(said) if re.match(r"\s*GPU\d+\s+[A-Z]+\s", f"{line} ")]
    for code, (words, remedy) in P2P.items():
        pairs = [f"{row[0][3:]}-{place}" for row in rows for place, cell in enumerate(row[1:]) if cell == code]
        if pairs:
            shown = ", ".join(pairs[:4]) + (f" and {len(pairs) - 4} more" if len(pairs) > 4 else "")
            yield f"GPUs cannot read each other's memory ({shown}): {words} ({code})", remedy


def _link(seen: Seen, _: Wanted) -> Said:
    """The width is one at every load; a generation falls while a card idles, so that only what it could be counts."""
    by_address = {card.address: f"GPU {card['index']}" for card in seen.cards}
    remedy = "seat the card, and see riser, slot and the firmware's settings of that slot"
    for gpu in seen.gpus:
        now, most = gpu["current_link_width"], gpu["max_link_width"]
        if now.isdecimal() and most.isdecimal() and 0 < int(now) < int(most):
            name = by_address.get(gpu["address"], gpu["address"])
            yield f"{name} has a PCIe link of {now} lanes, the card can do {most}", remedy

    def say(card: Card) -> str:
        now, most, could = (card.number(f"pcie.link.gen.{word}") for word in ("current", "max", "gpumax"))
        reached = now if card["pstate"] == "P0" else most
        if reached is None or could is None or reached >= could:
            return ""
        return f"has a PCIe link of generation {reached:.0f}, the card can do {could:.0f}"

    yield from ((f"{_of(cards)} {said}", remedy) for said, cards in _each(seen.cards, say).items())


def _memlock(seen: Seen, _: Wanted) -> Said:
    """The service asks for no limit, which systemd can give everywhere but in a container with users of its own."""
    limit = re.search(r"^Max locked memory\s+\S+\s+(\S+)", seen.facts["limits"], re.MULTILINE)
    own = seen.facts["namespace"] not in ([], ["0", "0", "4294967295"])
    if seen.contained and own and limit and limit.group(1) != "unlimited":
        what = f"at most {limit.group(1)} bytes of memory can be locked in the container"
        yield what, seen.there("set lxc.prlimit.memlock = unlimited in the configuration of the container")


def _nodes(seen: Seen, _: Wanted) -> Said:
    if not seen.contained or not seen.loaded:
        return
    nodes = seen.facts["nodes"]
    # Any of the host's cards may have been passed on; how many, only nvidia-smi tells, once it is there.
    cards = [f"nvidia{number}" for number in range(max(len(seen.cards), 1))]
    enough = sum(re.fullmatch(r"nvidia\d+", name) is not None for name in nodes) >= len(cards)
    asked = ["nvidiactl", "nvidia-uvm", *([] if enough else cards)]
    missing = [f"/dev/{name}" for name in asked if name not in nodes]
    if missing:
        what = f"the container lacks {_names(missing)}"
        yield what, seen.there("pass them on, and have nvidia-modprobe -u -c=0 make them at boot")


def _power(seen: Seen, _: Wanted) -> Said:
    def say(card: Card) -> str:
        now, usual = card.number("power.limit"), card.number("power.default_limit")
        return f"{now:.0f} W, its default is {usual:.0f} W" if now is not None and usual and now < usual else ""

    for said, cards in _each(seen.cards, say).items():
        indices, usual = ",".join(card["index"] for card in cards), cards[0].number("power.default_limit")
        remedy = f"nvidia-smi -i {indices} -pl {usual:.0f}, and look for what lowered it"
        yield f"the power of {_of(cards)} is capped at {said}", seen.there(remedy)


def _clocks(seen: Seen, _: Wanted) -> Said:
    rows = [line.split(",") for line in _lines(seen.facts.get("clocks"))]
    reasons = {row[0].strip(): row[1].strip() for row in rows if len(row) == len(CLOCK_FIELDS)}

    def say(card: Card) -> str:
        told = reasons.get(card["index"], "")
        bits = int(told, 16) if told.startswith("0x") else 0
        return ", ".join(words for bit, words in SLOWED.items() if bits & bit)

    for said, cards in _each(seen.cards, say).items():
        yield f"{_of(cards)} runs at lower clocks: {said}", "see nvidia-smi -q -d PERFORMANCE,TEMPERATURE, and the fans"


def _ecc(seen: Seen, _: Wanted) -> Said:
    for cards in _each(seen.cards, lambda card: "off" if card["ecc.mode.current"] == "Disabled" else "").values():
        indices = ",".join(card["index"] for card in cards)
        yield f"ECC is off for {_of(cards)}", seen.there(f"nvidia-smi -i {indices} -e 1, and reboot")


def _memory_errors(seen: Seen, _: Wanted) -> Said:
    def say(card: Card) -> str:
        errors = card.number("ecc.errors.uncorrected.volatile.total")
        return f"{errors:.0f} uncorrected memory errors" if errors else ""

    for said, cards in _each(seen.cards, say).items():
        what = f"{_of(cards)} has had {said} since the driver was loaded"
        yield what, "see nvidia-smi -q -d ECC,ROW_REMAPPER; reset the card, and replace it if they come back"


def _processes(seen: Seen, _: Wanted) -> Said:
    rows = [[cell.strip() for cell in line.split(",", 3)] for line in _lines(seen.facts["processes"])]
    rows = [row for row in rows if len(row) == len(PROCESS_FIELDS)]
    index = {card["uuid"]: card["index"] for card in seen.cards}
    for uuid, pid, memory, name in rows:
        if not _is_ours(seen.facts["groups"].get(pid, "")):
            held = f"{memory} MiB of GPU {index.get(uuid, uuid)}"
            yield f"process {pid} ({name}) holds {held}, and is not of the service", f"see ps -fp {pid}, and stop it"
    shown = {uuid for uuid, *_ in rows}
    for card in seen.cards:
        used = card.number("memory.used")
        if card["uuid"] not in shown and used is not None and used >= HELD_MIB:
            what = f"{used:.0f} MiB of GPU {card['index']} are held, and no process shows that holds them"
            remedy = f"see fuser -v /dev/nvidia{card['index']}, in every container; if it shows none, reset the card"
            yield what, seen.there(remedy)


def _nccl_check(seen: Seen, wanted: Wanted) -> Said:
    for library in seen.facts["nccl"]:
        if library["version"] in wanted.refused_nccl:
            how = "loaded" if library["loaded"] else "what the release would load"
            what = f"NCCL {library['version']} is {how} ({library['path']}), which crashes on these cards"
            yield what, "build the release with another version of nvidia-nccl"


CHECKS: dict[str, Callable[[Seen, Wanted], Said]] = {
    "driver": _driver,
    "count": _count,
    "capability": _capability,
    "mig": _mig,
    "nouveau": _nouveau,
    "secure_boot": _secure_boot_check,
    "fabric_manager": _fabric_manager,
    "iommu": _iommu,
    "acs": _acs,
    "p2p": _p2p,
    "link": _link,
    "memlock": _memlock,
    "nodes": _nodes,
    "power": _power,
    "clocks": _clocks,
    "ecc": _ecc,
    "memory_errors": _memory_errors,
    "processes": _processes,
    "nccl": _nccl_check,
}


def judge(facts: Mapping[str, Any], wanted: Wanted) -> list[Finding]:
    """What is wrong, problems first, and what is well. A host without a GPU gets that one sentence."""
    seen = read(facts)
    if not seen.gpus and not seen.cards and not seen.loaded:
        what = f"there is no NVIDIA GPU on the PCI bus, {wanted.gpus} {'is' if wanted.gpus == 1 else 'are'} wanted"
        return [Finding("count", PROBLEM, what, "use a host with GPUs, or pass them to this one")]
    levels = {name: WARNING if name in wanted.warnings else PROBLEM for name in CHECKS}
    found = [
        Finding(name, levels[name], what, remedy)
        for name, check in CHECKS.items()
        if name not in wanted.skipped
        for what, remedy in check(seen, wanted)
    ]
    wrong = sorted(found, key=lambda finding: finding.level != PROBLEM)
    return [*wrong, *(Finding(name, OK, what) for name, what in _well(seen))]


def _well(seen: Seen) -> Iterator[tuple[str, str]]:
    for name, cards in _each(seen.cards, lambda card: card["name"]).items():
        yield "count", f"{len(cards)} x {name}, driver {seen.loaded}"
    if seen.several and _acs_hidden(seen):
        yield "acs", "ACS is not shown in a container: run this on its host"
    for library in seen.facts["nccl"]:
        if library["version"]:
            yield "nccl", f"NCCL {library['version']} {'is loaded' if library['loaded'] else 'is of the release'}"


# --- Saying


def render(name: str, found: Sequence[Finding]) -> str:
    """The findings as a screen; its first line is the verdict."""
    counts = [(level, sum(finding.level == level for finding in found)) for level in (PROBLEM, WARNING)]
    told = [f"{count} {level}{'s' if count > 1 else ''}" for level, count in counts if count]
    lines = [f"{name}: {', '.join(told) or 'all is well'}"]
    for finding in found:
        lines.append(f"  {finding.level:<8} {finding.what}")
        lines += [f"  {'':<8} -> {finding.remedy}"] if finding.remedy else []
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> int:
    """Looks, judges and prints; returns the exit status."""
    asked = _arguments(arguments)
    if asked.facts:
        try:
            facts = json.loads(asked.facts.read_text())
        except (OSError, ValueError) as error:
            print(f"doctor: {asked.facts}: {error}", file=sys.stderr)
            return 2
    else:
        facts = gather(asked.root, asked.release)
    if asked.record:
        print(json.dumps(facts, indent=1))
        return 0
    words = [_words(option) for option in (asked.refuse_nccl, asked.warn, asked.skip)]
    wanted = Wanted(asked.gpus, asked.driver, asked.capability, *words)
    found = judge(facts, wanted)
    code = int(any(finding.level != OK for finding in found))
    name = socket.gethostname()
    told = {"host": name, "exit": code, "findings": [asdict(finding) for finding in found]}
    print(json.dumps(told, indent=1) if asked.json else render(name, found))
    return code


def _words(text: str) -> tuple[str, ...]:
    return tuple(word for word in text.split(",") if word)


def _arguments(arguments: Sequence[str] | None) -> argparse.Namespace:
    usual = Wanted()
    parser = argparse.ArgumentParser(prog="doctor", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--gpus", type=int, default=usual.gpus, help="how many there must be (%(default)s)")
    parser.add_argument("--driver", default=usual.driver, help="the oldest driver (%(default)s)")
    parser.add_argument("--capability", default=usual.capability, help="the oldest compute capability (%(default)s)")
    parser.add_argument("--refuse-nccl", default=",".join(usual.refused_nccl), help="versions of NCCL (%(default)s)")
    parser.add_argument("--warn", default=",".join(usual.warnings), help="checks that only warn (%(default)s)")
    parser.add_argument("--skip", default="", help="checks that are not made")
    parser.add_argument("--release", type=Path, default=Path("/opt/sglang/current"), help="for its NCCL (%(default)s)")
    parser.add_argument("--root", type=Path, default=Path("/"), help="look at files below this directory")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--record", action="store_true", help="print the facts as JSON, and judge nothing")
    parser.add_argument("--facts", type=Path, help="judge what --record printed, in place of this machine")
    asked = parser.parse_args(arguments)
    for option in ("warn", "skip"):
        if strange := sorted(set(_words(getattr(asked, option))) - set(CHECKS)):
            parser.error(f"--{option}: there is no check {_names(strange)}; there are {_names(list(CHECKS))}")
    return asked


if __name__ == "__main__":
    sys.exit(main())
