"""The command line and the environment of a bench's server, from those of the server that is deployed."""

import ipaddress
import json
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Protocol

from blackwell.bench.arms import FULL
from blackwell.bench.errors import BenchError

SPECULATIVE = "--speculative-"
POLICY, THRESHOLD = "--speculative-load-policy", "--speculative-disable-batch-threshold"
STEPS, BRANCHES, MOST = "--speculative-num-steps", "--speculative-eagle-topk", "--max-running-requests"
HOST, PORT, FILE = "--host", "--port", "--config"
LOOPBACK, DEFAULT_PORT = "127.0.0.1", 30000

PROGRAM = ("-m", "sglang.launch_server")
OF_SPECULATION = ("--enable-multi-layer-eagle",)
"""Options that mean something to a server that speculates only, beside those whose names say so."""

NOT_A_SETTING = (
    *(HOST, PORT, FILE, "--model-path", "--revision", "--served-model-name", "--tokenizer-path"),
    *("--api-key", "--admin-api-key", SPECULATIVE, *OF_SPECULATION),
)
"""What a bench sets itself, or what would have it measure another model."""

SPEC_V2 = "SGLANG_ENABLE_SPEC_V2"
"""Switches on the path on which a server speculates; one without a draft does not need it."""

DEPLOYMENT = "BLACKWELL_DEPLOYMENT"
OWN_VARIABLES = (SPEC_V2, DEPLOYMENT, "BLACKWELL_RELEASE")
VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


class Settings(Protocol):
    """Changes to a server, under a name: true adds a flag, false removes one, text sets its value; null removes a
    variable."""

    name: str
    flags: Mapping[str, bool | str]
    environment: Mapping[str, str | None]


def options(argv: Sequence[str]) -> list[list[str]]:
    """The options of a server's command line, each with its values; ``--flag=value`` is one word."""
    found: list[list[str]] = []
    for word in argv[1 + len(PROGRAM) :]:
        if word.startswith("--") or not found:
            found.append([word])
        else:
            found[-1].append(word)
    return found


def value(argv: Sequence[str], flag: str) -> str | None:
    """The value that an option has in the end; None if it is not there, or has none."""
    found = None
    for first, *others in options(argv):
        name, _, joined = first.partition("=")
        if name == flag:
            found = joined or next(iter(others), None)
    return found


def address(argv: Sequence[str]) -> tuple[str, int]:
    """Host and port of a server, as a client on the same host uses them."""
    host, port = value(argv, HOST) or LOOPBACK, value(argv, PORT) or ""
    return _reachable(host), int(port) if port.isdecimal() else DEFAULT_PORT


def _reachable(host: str) -> str:
    try:
        found = ipaddress.ip_address(host)
    except ValueError:
        return host
    return {4: LOOPBACK, 6: "::1"}[found.version] if found.is_unspecified else host


def url(argv: Sequence[str]) -> str:
    """Where a server is asked by a client on the same host."""
    host, port = address(argv)
    return f"http://{f'[{host}]' if ':' in host else host}:{port}"


def steps(argv: Sequence[str]) -> int:
    """Draft steps of a server whose steps can follow the load; raises BenchError, with the option, if they cannot."""
    text, branches = value(argv, STEPS) or "", value(argv, BRANCHES)
    if not text.isdecimal() or int(text) < 1:
        raise BenchError(f"the server does not speculate, as its command line has no {STEPS}: set model_draft_path")
    if branches != "1":
        raise BenchError(f"draft steps can be held with one branch only, and the server has {BRANCHES} {branches}")
    return int(text)


def most_requests(argv: Sequence[str]) -> int | None:
    """Requests that a server decodes at once; None if its command line does not say."""
    text = value(argv, MOST) or ""
    return int(text) if text.isdecimal() else None


def baseline(argv: Sequence[str], settings: Settings, port: int) -> list[str]:
    """The deployed server without speculation, on a port of loopback.

    Raises BenchError, naming it, for a setting that a bench sets itself.
    """
    without = [one for one in options(argv) if not _name(one).startswith((SPECULATIVE, *OF_SPECULATION))]
    return _changed(argv, without, settings, port)


def speculative(argv: Sequence[str], settings: Settings, port: int, held: Iterable[int | str]) -> list[str]:
    """The deployed server with a tier for each number of draft steps in ``held``, so that it can be forced to each.

    Raises BenchError as ``baseline`` does, and if the server cannot have these tiers.
    """
    without = [one for one in options(argv) if _name(one) not in (POLICY, THRESHOLD)]
    words = _changed(argv, without, settings, port)
    try:
        tiers = every_tier(held, steps(words), most_requests(words))
    except BenchError as error:
        raise BenchError(f"settings {settings.name}: {error}") from error
    return [*words, POLICY, json.dumps(tiers, separators=(",", ":"))]


def every_tier(held: Iterable[int | str], full: int, most: int | None) -> dict:
    """A policy with a tier for each number of draft steps in ``held``, for all of them, ``full``, and for none.

    The bounds are as low as they can be: they do not matter to a server that is forced. ``most``: requests that it
    decodes at once. Raises BenchError for more steps than there are, and if it decodes too few for so many tiers.
    """
    numbers = sorted({full, 0, *(full if number == FULL else int(number) for number in held)}, reverse=True)
    if numbers[0] > full or numbers[-1] < 0:
        wrong = numbers[0] if numbers[0] > full else numbers[-1]
        raise BenchError(f"the server drafts {full} steps in a round and cannot be held at {wrong}")
    if most is not None and most < len(numbers):
        named = ", ".join(map(str, numbers))
        raise BenchError(f"{MOST} is {most}, too few for tiers of {named} draft steps, which need {len(numbers)}")
    rows: list[dict] = [{"max_batch": bound, "steps": number} for bound, number in enumerate(numbers, start=1)]
    rows[0]["steps"] = FULL
    del rows[-1]["max_batch"]
    return {"version": 1, "tiers": rows}


def environment(settings: Settings, *, speculates: bool) -> dict[str, str | None]:
    """What differs from the environment of the deployed server; null removes a variable.

    Raises BenchError, naming it, for a variable that a bench sets itself, or that none can be.
    """
    for name, wanted in settings.environment.items():
        if name in OWN_VARIABLES:
            raise BenchError(f"settings {settings.name}: {name} is not a setting that a bench may change")
        if not VARIABLE.fullmatch(name):
            raise BenchError(f"settings {settings.name}: {name!r} is no name of an environment variable")
        if wanted is not None and re.search(r"[\0\n\r]", wanted):
            raise BenchError(f"settings {settings.name}: {name} holds a line break, which an environment file cannot")
    # What the readiness check writes down is not the deployment.
    return {DEPLOYMENT: None, **({} if speculates else {SPEC_V2: None}), **settings.environment}


def _changed(argv: Sequence[str], kept: Collection[list[str]], settings: Settings, port: int) -> list[str]:
    if any(_name(one) == FILE for one in kept):
        raise BenchError(f"the server takes options from a file ({FILE}), which a bench cannot change: deploy them")
    _refuse(settings)
    changed = [one for one in kept if _name(one) not in (HOST, PORT, *settings.flags)]
    for flag, wanted in settings.flags.items():
        if wanted is not False:
            # A value that looks like an option would be taken for one.
            changed.append([flag] if wanted is True else [f"{flag}={wanted}"] if wanted[:1] == "-" else [flag, wanted])
    words = [word for one in [*changed, [HOST, LOOPBACK], [PORT, str(port)]] for word in one]
    return [*argv[: 1 + len(PROGRAM)], *words]


def _refuse(settings: Settings) -> None:
    for flag in settings.flags:
        if not re.fullmatch(r"--[A-Za-z0-9][A-Za-z0-9-]*", flag):
            raise BenchError(f"settings {settings.name}: {flag!r} is no option of a server")
        # The server's parser takes the beginning of an option for the whole.
        if flag.startswith(SPECULATIVE) or any(own.startswith(flag) for own in NOT_A_SETTING):
            raise BenchError(f"settings {settings.name}: {flag} is not a setting that a bench may change")


def _name(option: Sequence[str]) -> str:
    return option[0].partition("=")[0]
