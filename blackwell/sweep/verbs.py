"""What the control node asks a host to do with sweeps; each verb takes and returns what JSON can hold.

Runs as root by the host's own python3, from the zip in which it came: the standard library alone.
"""

import json
import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from pathlib import Path

from blackwell.bench import arms as policy_arms
from blackwell.bench import fingerprint, gather
from blackwell.bench.errors import BenchError, LoadError

from . import (
    deployed,
    estimate,
    events,
    plan,
    prompts,
    release_check,
    runner_unit,
    runs,
    server_api,
    server_words,
    service,
    systemd,
)
from .deployed import Deployed
from .estimate import Guess
from .plan import Plan, Settings
from .runs import Begun

ASKED_TOKENS = 32
LEAST_START_SECONDS = 5.0
ON_CPU = "measured on a CPU: the figures check that everything works, and say nothing of speculation on a card"
ENOUGH_BYTES = 1 << 30
"""Free space that a sweep of some hours and its log cannot fill."""


def answer(verb: str, archive: str, arguments: Mapping) -> dict:
    """What a verb returns, or ``{"error": sentence}``; ``archive``: the zip that this program is imported from."""
    try:
        return VERBS[verb](Path(archive), **arguments)
    except BenchError as error:
        return {"error": str(error)}
    except OSError as error:
        return {"error": f"{error.filename or 'the host'}: {error.strerror}"}


def begin(archive: Path, wanted: Mapping, *, new: bool, dry_run: bool, checked: Sequence[str] = ()) -> dict:
    """Start the sweep that is asked for, or go on with the one that is not done; nothing at all on a dry run.

    ``wanted``: values of a plan without ``run``, ``steps``; arms may be left out, and ``reduced`` stands for several.
    ``checked``: the command line of the service for which the release took these settings a moment ago.
    """
    runner_unit.refuse_a_second()
    found = deployed.read()
    note = ON_CPU if server_words.value(found.argv, "--device") == "cpu" else ""
    made = _plan({**wanted, "note": note}, runs.new_name(), found.steps)
    if found.argv != tuple(checked):
        # To ask the release takes as long as it takes to import it.
        _refuse_settings(found, made)
    server = server_api.information(found.url)
    now = gather.gather(found.pid, json.dumps(server), prompts.described(made))
    guess = Guess(max(LEAST_START_SECONDS, found.start_s), _token_seconds(found))
    directory = None if new else runs.resumable(made, now)
    known = {} if directory is None else runs.points(directory)
    missing = estimate.missing(made, known)
    told = {
        "run": made.run if directory is None else directory.name,
        "resumed": directory is not None,
        "plan": made.content(),
        "done": len(known),
        "missing": len(missing),
        "servers": [list(one) for one in estimate.servers(made, missing)],
        "seconds": estimate.whole(made, missing, guess),
        "start_s": guess.start_s,
        "argv": list(found.argv),
        "warnings": _warnings(made, found, server, now),
    }
    if dry_run:
        return told
    _room()
    directory = directory or runs.ROOT / made.run
    told["offset"] = events.size(directory)
    runs.begin(directory, made, Begun(now, guess))
    deployed.write(directory, found)
    shutil.copyfile(archive, directory / runner_unit.PROGRAM)
    runner_unit.start(directory, found.argv[0])
    return told


def _plan(wanted: Mapping, run: str, steps: int) -> Plan:
    known = {one.name for one in fields(Plan)}
    if unknown := sorted(set(wanted) - known):
        raise BenchError(f"a plan has no {', '.join(unknown)}")
    values = {name: tuple(value) if isinstance(value, list) else value for name, value in wanted.items()}
    named = values.pop("arms", None)
    arms = tuple(plan.expanded(named, steps) if named else plan.default_arms(steps))
    if "settings" in values:
        values["settings"] = tuple(Settings(**one) for one in values["settings"])
    made = Plan(**(values | {"run": run, "steps": steps, "arms": arms}))
    if found := plan.problems(made):
        raise BenchError("; ".join(found))
    return made


def _refuse_settings(found: Deployed, made: Plan) -> None:
    """Raises BenchError, naming the settings, if the release does not take the command line of one of its servers."""
    held = [policy_arms.steps(arm) for arm in made.speculative]
    lines = [
        (settings.name, words)
        for settings in made.settings
        for words in (
            server_words.baseline(found.argv, settings, 1),
            *([server_words.speculative(found.argv, settings, 1, held)] if held else []),
        )
    ]
    for (name, _), refusal in zip(lines, release_check.refusals(found, [words for _, words in lines]), strict=True):
        if refusal:
            raise BenchError(f"settings {name}: the release does not take them: {refusal}; {deployed.UNCHANGED}")


def _token_seconds(found: Deployed) -> float:
    """Seconds that a token of one client takes now."""
    body = {"text": "1", "sampling_params": {"max_new_tokens": ASKED_TOKENS, "temperature": 0, "ignore_eos": True}}
    # The first answer after a while is slow.
    for _ in range(2):
        began = time.monotonic()
        status, told = server_api.ask(found.url, "/generate", body)
        seconds = time.monotonic() - began
    if status != 200:
        raise LoadError(f"{found.url}: /generate answered {status}: {told}")
    return seconds / ASKED_TOKENS


def _warnings(made: Plan, found: Deployed, server: Mapping, now: fingerprint.Fingerprint) -> list[str]:
    told = [made.note] if made.note else []
    told += [f"{sentence}; a change there would not be noticed" for sentence in fingerprint.unread(now)]
    most = found.most_requests
    if most and (above := [str(level) for level in made.levels if level > most]):
        told.append(
            f"the server decodes {most} requests at once (sglang_server_max_running_requests): "
            f"level {', '.join(above)} will be marked as over-saturated"
        )
    tokens = server.get("max_total_num_tokens")
    for context in made.contexts:
        fits = tokens and [level for level in made.levels if level * (context + made.new_tokens) > tokens]
        if fits:
            told.append(
                f"the KV cache has {tokens} tokens: {fits[0]} requests of {context} + {made.new_tokens} do not fit, "
                "and wait for each other"
            )
    if not found.enabled:
        told.append(f"{systemd.SERVICE} is not enabled: after a reboot in the middle it would not be back by itself")
    return told


def _room() -> None:
    runs.ROOT.parent.mkdir(parents=True, exist_ok=True)
    free = shutil.disk_usage(runs.ROOT.parent).free
    if free < ENOUGH_BYTES:
        raise BenchError(f"{runs.ROOT} has {free >> 20} MiB free, and a sweep needs {ENOUGH_BYTES >> 20}")


def look(archive: Path, run: str, offset: int) -> dict:
    """A run and its events from a byte offset on; the newest run without a name."""
    del archive
    directory = runs.found(run)
    new, after = events.after(directory, offset)
    under_way = runner_unit.sweeping() == directory
    return {
        "run": directory.name,
        "events": new,
        "offset": after,
        "under_way": under_way,
        "ended": events.ended(directory),
        "service": systemd.state(systemd.SERVICE),
        "log": "" if under_way else _last_line(directory / runner_unit.LOG),
    }


def _last_line(file: Path) -> str:
    try:
        lines = file.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return ""
    return next((line.strip() for line in reversed(lines) if line.strip() and not line.startswith("{")), "")


def stop(archive: Path) -> dict:
    """End the sweep that is under way."""
    del archive
    directory = runner_unit.sweeping()
    if directory is None:
        raise BenchError("no sweep is under way on this host")
    runner_unit.stop()
    return {"run": directory.name, "done": service.put_back(directory, wait=True)}


def listed(archive: Path) -> dict:
    """The runs of this host, oldest first."""
    del archive
    return {"runs": [_summary(directory) for directory in runs.directories()]}


def _summary(directory: Path) -> dict:
    try:
        wanted, known = plan.read(directory), runs.points(directory)
    except BenchError as error:
        return {"run": directory.name, "problem": str(error)}
    return {
        "run": directory.name,
        "arms": list(wanted.arms),
        "levels": list(wanted.levels),
        "contexts": list(wanted.contexts),
        "done": len(known),
        "missing": len(estimate.missing(wanted, known)),
        "under_way": runner_unit.sweeping() == directory,
        "ended": events.ended(directory),
    }


def remove(archive: Path, run: str) -> dict:
    """Remove a run from this host; raises BenchError if it is under way."""
    del archive
    if not run:
        raise BenchError("name the run that is to be removed")
    directory = runs.found(run)
    if runner_unit.sweeping() == directory:
        raise BenchError(f"run {run} is under way: end it first (bench.stop)")
    shutil.rmtree(directory)
    return {"run": run}


def compare(archive: Path, run: str) -> dict:
    """In what the service differs from what a run was measured on, sentences; the workload does not count."""
    del archive
    directory = runs.found(run)
    found = deployed.read()
    measured = runs.begun(directory).fingerprint
    now = gather.gather(found.pid, gather.server_info(found.url), measured.parts.get("workload") or {})
    return {"run": directory.name, "differences": fingerprint.differences(measured, now)}


VERBS: Mapping[str, Callable[..., dict]] = {
    "begin": begin,
    "look": look,
    "stop": stop,
    "list": listed,
    "remove": remove,
    "compare": compare,
}
