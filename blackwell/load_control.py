"""Changes how a running server's speculation follows its load."""

import json
from collections.abc import Mapping
from pathlib import Path

from blackwell import load_policy, load_state, status
from blackwell.host_errors import HostError
from blackwell.inventory import Host

FORCE, THRESHOLD, POLICY = "speculative_force_steps", load_state.FIELD, "speculative_load_policy"
OFF = "off"
WORDS = {"on": load_policy.FULL, OFF: 0, "auto": None}
"""What ``fab speculation WORD`` forces; None lets go what is forced."""
RESTART = "A restart of the service returns to the deployed policy."


def wanted(force: str, threshold: str, policy: str, *, release: bool, word: str = "") -> dict:
    """The settings to change, as typed: what is forced, and the threshold or the policy of a file; empty for none.

    ``word``: on, off or auto. Raises HostError if one cannot be, or two exclude each other.
    """
    if word and word not in WORDS:
        raise HostError(f"speculation is on, off or auto, not {word!r}")
    if word and (force or release):
        raise HostError(f"{word} and {'--force' if force else '--release'} exclude each other: both say what is forced")
    if force and release:
        raise HostError("--force and --release exclude each other: one sets the draft steps, the other lets them go")
    if threshold and policy:
        raise HostError("--threshold and --policy exclude each other: both say at which load the server speculates")
    change: dict = {}
    if threshold:
        change[THRESHOLD] = whole("--threshold", threshold, "a number of requests")
    if policy:
        change[POLICY] = _read(Path(policy))
    if force:
        words = {OFF: 0, load_policy.FULL: load_policy.FULL}
        change[FORCE] = words[force] if force in words else whole("--force", force, "a number of steps, full or off")
    if release:
        change[FORCE] = None
    if word:
        change[FORCE] = WORDS[word]
    return change


def whole(option: str, text: str, what: str) -> int:
    """The number that was typed for an option. Raises HostError if it is not ``what``."""
    if not text.isdecimal():
        raise HostError(f"{option} is {text!r}, not {what}")
    return int(text)


def _read(file: Path) -> object:
    try:
        policy = json.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise HostError(f"--policy: {file} cannot be read: {error.strerror}") from error
    except ValueError as error:
        raise HostError(f"--policy: {file} is not JSON: {error}") from error
    return policy


def information(host: Host, found: Mapping, moment: str = "before") -> dict:
    """The body of /server_info in what ``on_host.speculation`` returned, before or after a change.

    Raises HostError if the service is not there or not ready, or the server does not answer.
    """
    answer = found.get(moment)
    if answer is None:
        unit = status.unit(found["unit"])
        place = status.Server(found["address"]["host"], found["address"]["port"])
        look = f" (fab -H {host.name} status)" if unit.loaded else ""
        raise HostError(f"{host.name}: {'; '.join(status.reasons(unit, place))}{look}")
    if answer["status"] != 200 or not isinstance(answer["body"], dict):
        said = f"answers {answer['status']}" if answer["status"] else f"does not answer ({answer['body']})"
        raise HostError(f"{host.name}: /server_info {said}")
    return answer["body"]


def check_able(host: Host, reported: Mapping) -> None:
    """Raises HostError if the server has no load policies or drafts nothing, by the body of its /server_info."""
    if load_state.FIELD not in reported:
        version = reported.get("version", "unknown")
        raise HostError(f"{host.name}: the server (SGLang {version}) has no load policies: its release adds none")
    if not reported.get("speculative_algorithm"):
        raise HostError(f"{host.name}: the server does not speculate: deploy it with model_draft_path")


def check(host: Host, change: Mapping, reported: Mapping) -> None:
    """Raises HostError if the server cannot take a change, by the body of its /server_info."""
    if change:
        check_able(host, reported)
    if POLICY in change:
        steps = reported.get("speculative_num_steps") or 0
        problems = load_policy.problems(change[POLICY], steps, reported.get("max_running_requests"))
        if problems:
            raise HostError(f"{host.name}: --policy: {'; '.join(problems)}")


def accepted(host: Host, found: Mapping) -> None:
    """Raises HostError with the server's own words if it did not take a change."""
    answer = found["answer"]
    body = answer["body"] if isinstance(answer["body"], dict) else {"message": answer["body"]}
    if answer["status"] != 200 or not body.get("updated"):
        said = body.get("message") or "it gives no reason"
        raise HostError(f"{host.name}: nothing was changed, the server answered {answer['status']}: {said}")


def render(host: Host, before: Mapping, change: Mapping, after: Mapping | None) -> str:
    """State before and after a change by the bodies of /server_info; ``after`` is None if nothing was sent."""
    if not change:
        return f"{host.name}: {load_state.summary(before)}"
    return "\n".join([f"{host.name}:", *rows(before, change, after), f"  {RESTART}"])


def rows(before: Mapping, change: Mapping, after: Mapping | None) -> list[str]:
    """The lines of ``render`` on what was before a change, and what was then or would be sent."""
    sent = f"  would send  POST /set_internal_state {json.dumps({'server_args': change})}"
    then = sent if after is None else f"  after   {load_state.summary(after)}"
    return [f"  before  {load_state.summary(before)}", then]
