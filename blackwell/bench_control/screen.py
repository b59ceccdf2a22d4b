"""A sweep in words: its plan, its progress, its outcome."""

from collections.abc import Mapping, Sequence

MINUTE, HOUR = 60, 3600


def duration(seconds: float) -> str:
    """Seconds in words."""
    if seconds < 2 * MINUTE:
        return f"{seconds:.0f} s"
    if seconds < 2 * HOUR:
        return f"{seconds / MINUTE:.0f} min"
    return f"{seconds // HOUR:.0f} h {seconds % HOUR / MINUTE:.0f} min"


def plan(host: str, begun: Mapping) -> str:
    """What a sweep is going to do, by the answer of ``begin``."""
    made = begun["plan"]
    numbers, contexts = (", ".join(map(str, made[name])) for name in ("levels", "contexts"))
    settings = ", ".join(one["name"] for one in made["settings"])
    lines = [
        f"{host}: run {begun['run']}{', which goes on' if begun['resumed'] else ''}",
        f"  arms      {', '.join(made['arms'])}",
        f"  levels    {numbers} clients at once, {made['repeats']} repeats, windows of {made['window_s']:g} s or more",
        f"  contexts  {contexts} tokens ({made['prompts']}); answers of {made['new_tokens']}",
        f"  settings  {settings}",
        f"  servers   {_servers(begun)}",
        f"  points    {begun['missing']} to measure, {begun['done']} are there",
        f"  time      about {duration(begun['seconds'])}, by what a token and a start take now",
        *(f"  note      {sentence}" for sentence in begun["warnings"]),
    ]
    return "\n".join(lines)


def _servers(begun: Mapping) -> str:
    if not begun["servers"]:
        return "none has to be started"
    names = [f"{'with' if speculates else 'without'} speculation ({name})" for name, speculates in begun["servers"]]
    return f"{'; '.join(names)}; {duration(begun['start_s'])} to start each, one at a time, in place of sglang.service"


def event(found: Mapping) -> str:
    """An event of a sweep in one line."""
    words = {
        "prompts": lambda: f"preparing prompts: {found['prompts']}",
        "starting": lambda: f"starting the server {_speculating(found)}, settings {found['settings']}",
        "started": lambda: f"the server {_speculating(found)} is ready after {duration(found['start_s'])}",
        "warm": lambda: (
            f"warm      {found['arm']} at {found['c']}: {found['tok_s']:.1f} tok/s in pass {found['passes']}"
        ),
        "point": lambda: _point(found),
        "died": lambda: f"the server ended at {found['point']}: {found['reason']}",
        "policy": lambda: "\n".join(found["explained"]),
        "no policy": lambda: (
            f"no policy for {found['context']} tokens, settings {found['settings']}: {found['reason']}"
        ),
        "proof": lambda: f"proof at {found['context']} tokens, settings {found['settings']}: {found['verdict']}",
        "check": lambda: _check(found),
        "measured": lambda: f"all {found['done']} points are measured",
        "end": lambda: f"the sweep ended: {found['status']}{': ' + found['reason'] if found['reason'] else ''}",
    }
    made = words.get(found["event"], lambda: found["event"])
    return f"{counted(found)}{made()}"


def _speculating(found: Mapping) -> str:
    return "with speculation" if found["speculates"] else "without speculation"


def _point(found: Mapping) -> str:
    accepted = "" if found["acceptance"] is None else f", {found['acceptance']:.2f} tokens a round"
    marked = f" MARKED: {found['marked']}" if found["marked"] else ""
    speed = f"{found['tok_s']:.1f} tok/s, batch {found['running_batch']:g}{accepted}{marked}"
    where = f"{found['arm']} at {found['c']}, {found['context']} tokens, repeat {found['repeat']}"
    return f"{where}: {speed}; {duration(found['left_s'])} left"


def _check(found: Mapping) -> str:
    what = f"check     {found['arm']} at {found['c']} by sglang.bench_serving"
    if found.get("problem"):
        return f"{what}: {found['problem']}"
    ratio = "" if found["ratio"] is None else f", ours is {found['ratio']:.2f} of that"
    return f"{what}: {found['bench_serving_tok_s']:.1f} tok/s over its whole run{ratio}"


def counted(found: Mapping) -> str:
    """How far a sweep is, by an event that says so; empty if it does not."""
    if "done" not in found or "all" not in found:
        return ""
    return f"[{found['done']:>{len(str(found['all']))}}/{found['all']}] "


def runs(host: str, found: Sequence[Mapping]) -> str:
    """The runs of a host, oldest first, a line each."""
    if not found:
        return f"{host}: no runs"
    return "\n".join([f"{host}:", *(f"  {_run(one)}" for one in found)])


def _run(found: Mapping) -> str:
    if "problem" in found:
        return f"{found['run']}  {found['problem']}"
    ended = found["ended"] or {}
    state = "under way" if found["under_way"] else ended.get("status", "cut off")
    reason = f": {ended['reason']}" if ended.get("reason") and not found["under_way"] else ""
    of = found["done"] + found["missing"]
    return (
        f"{found['run']}  {state}, {found['done']} of {of} points{reason}; arms {', '.join(found['arms'])}; "
        f"levels {', '.join(map(str, found['levels']))}; contexts {', '.join(map(str, found['contexts']))}"
    )
