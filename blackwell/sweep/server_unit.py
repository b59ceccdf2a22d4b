"""The unit of a sweep's server, made from that of the server that is deployed: same user, limits and hardening."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from blackwell.bench.errors import BenchError

from . import unit_text
from .systemd import RUNNER, SERVICE

RUNTIME = "blackwell-bench-server"
"""Its runtime directory, which systemd makes and removes, so that that of the service is left alone."""

PROCESS = "$MAINPID"
"""Stands for the first process of the unit, and is for systemd to expand."""

LEFT_OUT = {
    "Unit": ("Description", "Documentation", "StartLimitIntervalSec", "StartLimitBurst"),
    "Service": (
        *("ExecStart", "ExecStartPre", "ExecStop", "ExecStopPost", "ExecReload", "Restart", "RestartSec"),
        *("RuntimeDirectory", "RuntimeDirectoryMode", "RuntimeDirectoryPreserve"),
    ),
}


def text(deployed: str, argv: Sequence[str], environment: Mapping[str, str | None], variables: Path, url: str) -> str:
    """The unit file; ``variables``: the environment file that is read last. ``url``: where the server will listen.

    Raises BenchError if the deployed unit does not wait for its server as this project's do.
    """

    def change(section: str, name: str, value: str) -> list[str] | None:
        if section == "Install" or name in LEFT_OUT.get(section, ()):
            return []
        return [f"ExecStartPost={_readiness(value, url)}"] if name == "ExecStartPost" else None

    removed = [name for name, value in environment.items() if value is None]
    added = {
        "Unit": [
            "Description=SGLang for a sweep of fab bench; it stands in for sglang.service",
            # Whoever starts the service gets it: the server of a sweep gives way.
            f"Conflicts={SERVICE}",
            f"After={SERVICE}",
            f"PartOf={RUNNER}",
        ],
        "Service": [
            f"EnvironmentFile={variables}",
            *([f"UnsetEnvironment={' '.join(removed)}"] if removed else []),
            f"ExecStart={unit_text.joined(argv)}",
            "Restart=no",
            f"RuntimeDirectory={RUNTIME}",
            "RuntimeDirectoryMode=0755",
        ],
    }
    return unit_text.rewritten(deployed, change, added)


def variables(environment: Mapping[str, str | None]) -> str:
    """The environment file of what differs."""
    return "".join(f"{name}={_value(value)}\n" for name, value in environment.items() if value is not None)


def _value(value: str) -> str:
    # systemd.exec(5), EnvironmentFile: what a shell takes between double quotes.
    escaped = "".join(f"\\{letter}" if letter in '\\"`$' else letter for letter in value)
    return f'"{escaped}"'


def _readiness(line: str, url: str) -> str:
    """The readiness check for another address and another record."""
    words = unit_text.split(line.replace(PROCESS, f"${PROCESS}"))
    other = {"--url": url, "--record": f"/run/{RUNTIME}/ready.json"}
    if not set(other) <= set(words):
        raise BenchError(f"the readiness check of {SERVICE} has no {' and no '.join(sorted(set(other) - set(words)))}")
    for option, value in other.items():
        words[words.index(option) + 1] = value
    return " ".join(word if word == PROCESS else unit_text.quoted(word) for word in words)
