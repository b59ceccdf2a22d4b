"""Judges what was seen of a host: what refuses it, what is missing, what must be restarted."""

from __future__ import annotations

import re
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

SUFFIX = re.compile(r"\d[\d.+~-]*")
"""What of a kernel's release is numbers; the rest is its flavour, such as amd64 or generic."""


def matches(version: str, asked: Mapping[str, Any]) -> bool:
    """Whether a driver's version is what is asked for: an exact one, or else any of the branch."""
    return version == asked["version"] if asked["version"] else version.startswith(f"{asked['branch']}.")


def newer(release: str, than: str) -> bool:
    """Whether a kernel's release is newer than another of the same flavour."""
    if SUFFIX.sub("", release, count=1) != SUFFIX.sub("", than, count=1):
        return False

    def numbers(text: str) -> list[int]:
        return [int(number) for number in re.findall(r"\d+", text)]

    return numbers(release) > numbers(than)


def nvidia_driver_settled(seen: Mapping[str, Any], asked: Mapping[str, Any]) -> bool:
    """Whether the packages that are asked for are installed, in the version that is asked for, with the pin."""
    wanted = all(matches(seen["driver"].get(name, ""), asked) for name in asked["packages"])
    parts = all(matches(version, asked) for version in seen["driver"].values())
    return wanted and parts and asked["pin"] in seen["installed"]


def nvidia_driver_stale(seen: Mapping[str, Any]) -> bool:
    """Whether the module that is loaded is not the installed one, or not the open one."""
    return bool(seen["driver"]) and (set(seen["driver"].values()) != {seen["loaded"]} or not seen["open"])


def _sources(seen: Mapping[str, Any], asked: Mapping[str, Any]) -> list[tuple[bool, str]]:
    """Where apt takes the driver from."""
    folder, archive, sources = asked["folder"], asked["archive"], seen["sources"]
    by_keyring = f"cuda-{folder}-{seen['machine']}.list"

    def files(which: Callable[[Mapping[str, str]], bool]) -> str:
        return ", ".join(sorted({source["file"] for source in sources if which(source)}))

    others = files(lambda source: f"/compute/cuda/repos/{folder}/" not in source["line"]) if folder else ""
    trusted = files(lambda source: "trusted=yes" in source["line"])
    doubled = files(
        lambda source: (
            asked["source"] == "nvidia"
            and f"/compute/cuda/repos/{folder}/" in source["line"]
            and PurePosixPath(source["file"]).name != by_keyring
        )
    )
    strangers = {
        name: found[0]
        for name in sorted(seen["driver"])
        if (found := seen["archives"].get(name, [])) and not any(one.startswith(archive) for one in found)
    }
    named = ", ".join(f"{name} from {found}" for name, found in strangers.items())
    update = "remove it, then run apt-get update."
    return [
        (not others, f"{others} names a repository of NVIDIA's for another distribution than {folder}: {update}"),
        (not trusted, f"{trusted} says trusted=yes, so that packages are not verified: {update}"),
        (
            not doubled,
            f"{doubled} names NVIDIA's repository a second time, as cuda-keyring writes {by_keyring} itself: {update}",
        ),
        (
            not strangers,
            (
                f"Driver packages come from other archives than {archive}: {named}: "
                f"remove them with apt-get purge {' '.join(strangers)}"
            ),
        ),
    ]


def _metal(seen: Mapping[str, Any], *, settled: bool) -> list[tuple[bool, str]]:
    """What a host with a kernel of its own must have. A driver that is in place is not built again."""
    kernel = seen["kernel"]
    ahead = [release for release in seen["header_releases"] if newer(release, kernel)]
    return [
        (
            settled or seen["headers"],
            (
                "The headers of the running kernel are missing, and the module is built with them: "
                f"run apt-get install linux-headers-{kernel}"
            ),
        ),
        (
            settled or not ahead,
            (
                f"The headers of {', '.join(ahead)} are newer than the running kernel {kernel}: "
                "reboot into the newer kernel first, or remove its headers."
            ),
        ),
    ]


def _container(seen: Mapping[str, Any], asked: Mapping[str, Any]) -> list[tuple[bool, str]]:
    """What the driver of a container's host must be."""
    loaded = seen["loaded"]
    return [
        (
            bool(loaded),
            (
                f"This is a container ({seen['container']}) whose host has no NVIDIA driver loaded, as there is no "
                "/proc/driver/nvidia/version: install the driver on that host first."
            ),
        ),
        (
            not loaded or seen["open"],
            (
                "The host of this container has the closed kernel module loaded, which does not drive Blackwell: "
                "install nvidia-open on that host, and reboot it."
            ),
        ),
        (
            asked["exact"] in {"", loaded},
            (
                f"nvidia_driver_version: {asked['exact']} is asked for, and the host of this container has "
                f"{loaded or 'nothing'} loaded, which its userspace must equal: remove the variable."
            ),
        ),
    ]


def _source_files(asked: Mapping[str, Any]) -> list[tuple[bool, str]]:
    """What each source needs on the control machine."""
    source, given = asked["source"], asked["given"]
    needs = {"mirror": ("mirror", "mirror_key"), "package": ("package_file",)}.get(source, ())
    empty = [f"nvidia_driver_{name}" for name in needs if not given[name]]
    gone = [f"nvidia_driver_{name}: {given[name]}" for name in needs if given[name] and name in asked["missing"]]
    return [
        (not empty, f"nvidia_driver_source: {source} needs {' and '.join(empty)}, which is not set."),
        (not gone, f"{' and '.join(gone)} is not on the control machine: correct the path."),
    ]


def nvidia_driver_checks(seen: Mapping[str, Any], asked: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Every check of a host: ``ok``, and as ``problem`` what to say with its remedy when it is not."""
    branch, oldest, exact = int(asked["branch"]), int(asked["oldest"]), asked["exact"]
    settled = nvidia_driver_settled(seen, asked)
    remedy = "update the driver of the host of this container" if seen["container"] else f"ask for {oldest} or newer"
    checks = [
        (
            bool(asked["folder"]),
            f"The driver is installed on {', '.join(asked['systems'])}, not on {seen['os']}: install one of these.",
        ),
        (
            seen["machine"] == "x86_64",
            f"The driver is installed on x86_64, not on {seen['machine']}: use another host.",
        ),
        (
            branch >= oldest,
            f"nvidia_driver_branch: {branch} is older than {oldest}, which CUDA 13 needs: {remedy}.",
        ),
        (
            not exact or bool(seen["container"]) or exact.startswith(f"{branch}."),
            f"nvidia_driver_version: {exact} is not of nvidia_driver_branch {branch}: set both, or only the branch.",
        ),
        (
            not seen["unpackaged"],
            (
                f"No package owns {', '.join(seen['unpackaged'])}, so a .run file installed the driver or it is "
                "mounted, and packages would mix with it: run nvidia-uninstall, or set nvidia_driver_manage: false."
            ),
        ),
        *_source_files(asked),
        *_sources(seen, asked),
        *(_container(seen, asked) if seen["container"] else _metal(seen, settled=settled)),
    ]
    return [{"ok": bool(ok), "problem": problem} for ok, problem in checks]


class FilterModule:
    """Registers the filters with Ansible."""

    def filters(self) -> dict[str, Any]:
        """Filter name to function."""
        return {
            "nvidia_driver_checks": nvidia_driver_checks,
            "nvidia_driver_settled": nvidia_driver_settled,
            "nvidia_driver_stale": nvidia_driver_stale,
        }
