"""``fab threshold`` in words: what the inventory asks for and where, what the server does, and what was changed."""

import json
from collections.abc import Mapping
from pathlib import Path

from blackwell import (
    host_vars,
    load_control,
    load_state,
    playbooks,
    policy_drift,
    speculation_file,
    speculation_setting,
)
from blackwell.host_errors import HostError
from blackwell.inventory import Host, Inventory
from blackwell.threshold import Done


def in_inventory(host: Host, known: Inventory) -> str:
    """What the inventory asks for, and where that is said."""
    rows = [f"{host.name}:", f"  inventory  {_asked(host, known)}"]
    return "\n".join([*rows, *(f"             {line}" for line in _sources(host, known))])


def _asked(host: Host, known: Inventory) -> str:
    if host.name not in known.hosts:
        return f"none: {host.name} is in no inventory"
    variables = known.hosts[host.name]
    try:
        setting = speculation_setting.of(host.name, variables)
    except HostError as error:
        return f"cannot be told: {error}"
    steps = speculation_setting.draft_steps(variables)
    problems = speculation_setting.problems(setting, steps, speculation_setting.most_requests(variables))
    if problems:
        return f"is refused: {'; '.join(problems)}"
    return json.dumps(setting.variables) if steps is None else speculation_setting.described(setting, steps)


def _sources(host: Host, known: Inventory) -> list[str]:
    if host.name not in known.hosts:
        return []
    variables = known.hosts[host.name]
    said = [
        f"{name}: {json.dumps(variables[name])}" for name in sorted(speculation_file.VARIABLES) if variables.get(name)
    ]
    files = host_vars.setting(known, host.name, speculation_file.VARIABLES)
    if not files:
        return [f"{line} ({known.source} itself)" for line in said] or ["the role's default: no variable is set"]
    last = files[-1]
    place = f"{last} says so" if len(files) == 1 else f"{last} says so, and wins over {', '.join(map(str, files[:-1]))}"
    written = speculation_file.read(last) if last.name == speculation_file.NAME else None
    return [*said, place, *(provenance(written) if written else [])]


def provenance(written: speculation_file.Written) -> list[str]:
    """Where the setting of a file comes from, by its header."""
    origin = written.origin
    if origin is None:
        return ["it was written by hand"]
    rows = {
        "written by": f"{origin.command}, {origin.date}",
        "measured by": origin.run
        and f"run {origin.run}, for what has the fingerprint {origin.fingerprint or 'unknown'}",
        "crossover": origin.crossover,
        "since then": "it was changed by hand" if written.by_hand else "",
    }
    return [f"{name} {text}" for name, text in rows.items() if text]


def on_server(host: Host, known: Inventory, reported: Mapping) -> str:
    """What the server does now, and how that differs from what it was started with and what the inventory asks for."""
    rows = [f"  live       {load_state.summary(reported)}"]
    return "\n".join(
        [*rows, *(f"  remark     {what}: {how}" for what, how in policy_drift.differences(host, known, reported))]
    )


def changed(done: Done) -> str:
    """What was changed, or in a dry run would be."""
    host, file = done.plan.host, done.plan.file
    change = done.setting.change if done.setting else {}
    rows = [] if done.before is None else load_control.rows(done.before, change, done.after)
    if done.setting is None and rows:
        rows[-1] = "  would send  what the rest of the inventory asks for"
    if file:
        rows.append(_filed(host, file, done))
        rows.append(f"  A restart returns to what is deployed, until this has deployed it: {playbooks.deploy(host)}")
    else:
        rows.append(f"  {load_control.RESTART}")
    return "\n".join([f"{host.name}:", *rows])


def _filed(host: Host, file: Path, done: Done) -> str:
    if not done.plan.wish.dry_run and done.plan.setting is None:
        return f"  removed {file}, which was not there before; fab -H {host.name} threshold --undo writes it again"
    if not done.plan.wish.dry_run:
        return f"  kept    in {file}; fab -H {host.name} threshold --undo puts the one before back"
    if done.setting is None:
        return f"  would remove {file}"
    used = {name: value for name, value in done.setting.variables.items() if value} or done.setting.variables
    return f"  would write {file}: {json.dumps(used)}"
