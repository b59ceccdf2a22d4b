"""The unit of a bench's server, made from the unit that is deployed: the same user, limits and hardening."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from blackwell.bench.errors import BenchError

from . import server_words, unit_text
from .systemd import RUNNER, SERVER, SERVICE
from .unit_text import Assignment

UNIT = Path("/run/systemd/system") / SERVER
VARIABLES = Path("/run/blackwell-bench-server.env")
RUNTIME = "blackwell-bench"
"""Name of its runtime directory, which systemd makes when it starts and removes when it stops."""

READY = Path("/run") / RUNTIME / "ready.json"
READY_SPARE_SECONDS = 10
"""So much longer systemd waits than the readiness check, which has something to say when it gives up."""

REPLACED: Mapping[str, frozenset[str]] = {
    "Unit": frozenset(
        {
            *("Description", "Documentation", "OnFailure", "OnSuccess", "OnFailureJobMode", "OnSuccessJobMode"),
            *("StartLimitIntervalSec", "StartLimitInterval", "StartLimitBurst", "StartLimitAction", "FailureAction"),
        }
    ),
    "Service": frozenset(
        {
            *("ExecStart", "ExecStartPost", "ExecReload", "RuntimeDirectory", "RuntimeDirectoryPreserve"),
            *("Restart", "RestartSec", "RestartSteps", "RestartMaxDelaySec", "RestartMode"),
            *("StartLimitInterval", "StartLimitBurst", "StartLimitAction", "FailureAction"),
        }
    ),
}
"""What the bench's server has otherwise or not at all; [Install] it has not either."""

HOOKS = ("ExecCondition", "ExecStartPre", "ExecStop", "ExecStopPost")
READINESS = ("--url", "--record", "--timeout")


def problems(deployed: Sequence[Assignment]) -> list[str]:
    """Why no unit of a bench's server can be made from this one, a clause each; empty if it can."""
    found = [f"{name}={value}" for name in HOOKS for value in unit_text.values(deployed, name)]
    posts = unit_text.values(deployed, "ExecStartPost")
    found += [f"ExecStartPost={value}" for value in posts if not _is_readiness(value)]
    told = [f"has {one}, which would run for the bench's server as well" for one in found]
    if len([value for value in posts if _is_readiness(value)]) != 1:
        told.append(
            f"has no readiness check (ExecStartPost with {', '.join(READINESS)}) that could be asked for another"
        )
    return told


def _is_readiness(value: str) -> bool:
    return set(READINESS) <= set(unit_text.tokens(value))


def text(
    deployed: Sequence[Assignment],
    argv: Sequence[str],
    environment: Mapping[str, str | None],
    *,
    seconds: float | None = None,
    with_runner: bool,
) -> str:
    """The unit file of a bench's server with the command line ``argv``.

    ``deployed``: the settings of the deployed unit, its drop-ins last. ``environment``: what differs, null for what is
    removed; the rest stands in ``variables``. ``seconds``: time to become ready, that of the deployed one without.
    ``with_runner``: whether it ends with the unit of the sweep. Raises BenchError for the first of ``problems``.
    """
    if found := problems(deployed):
        raise BenchError(f"{SERVICE} {found[0]}")
    kept = [one for one in deployed if one.section != "Install" and one.name not in REPLACED.get(one.section, ())]
    removed = sorted(name for name, wanted in environment.items() if wanted is None)
    unit = [
        ("Description", f"SGLang for a bench, in the place of {SERVICE}; it ends with the sweep"),
        # Whoever starts the service gets it, and the bench's server has ended by then.
        *(("Conflicts", SERVICE), ("After", SERVICE)),
        # Without an order between the two: when the sweep is stopped, it is told so before it misses its server.
        *([("BindsTo", RUNNER)] if with_runner else []),
        ("StartLimitIntervalSec", "0"),
    ]
    service = [
        # Over Environment= and the files before it, whatever their order.
        ("EnvironmentFile", str(VARIABLES)),
        *([("UnsetEnvironment", " ".join(removed))] if removed else []),
        ("ExecStart", unit_text.joined(argv)),
        ("ExecStartPost", _readiness(deployed, server_words.url(argv), seconds)),
        *([("TimeoutStartSec", f"{seconds + READY_SPARE_SECONDS:g}")] if seconds is not None else []),
        *(("Restart", "no"), ("RuntimeDirectory", RUNTIME)),
    ]
    added = {"Unit": unit, "Service": service}
    own = [Assignment(section, name, value) for section, pairs in added.items() for name, value in pairs]
    return unit_text.rendered([*kept, *own])


def _readiness(deployed: Sequence[Assignment], url: str, seconds: float | None) -> str:
    """The readiness check, for another address and another record; what systemd expands in it stays as it is."""
    (line,) = filter(_is_readiness, unit_text.values(deployed, "ExecStartPost"))
    words = unit_text.tokens(line)
    changed = {"--url": url, "--record": str(READY)} | ({} if seconds is None else {"--timeout": f"{seconds:g}"})
    for option, value in changed.items():
        words[words.index(option) + 1] = unit_text.quoted(value)
    return " ".join(words)


def variables(environment: Mapping[str, str | None]) -> str:
    """The environment file of a bench's server, which systemd reads after those of the deployed one."""
    return "".join(f"{name}={_value(value)}\n" for name, value in environment.items() if value is not None)


def _value(value: str) -> str:
    # What systemd.exec(5) says of double quotes in an EnvironmentFile, as templates/sglang.env.j2 writes it.
    escaped = "".join(f"\\{letter}" if letter in '\\"`$' else letter for letter in value)
    return f'"{escaped}"'
