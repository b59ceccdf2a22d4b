"""What the engine asks of a server beside the load itself."""

import http.client
import json
import time
import urllib.error
import urllib.request
from collections.abc import Mapping

from blackwell.bench.errors import LoadError

ANSWER_SECONDS = 60
IDLE_SECONDS = 30
POLL_SECONDS = 0.1
STATE = "speculative_load_state"


def ask(url: str, path: str, body: object = None) -> tuple[int, object]:
    """Status and decoded body of an answer; raises LoadError if there is none."""
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(f"{url}{path}", data=data, headers={"Content-Type": "application/json"})
    try:
        with urllib.request.urlopen(request, timeout=ANSWER_SECONDS) as answer:
            return answer.status, _decoded(answer.read())
    except urllib.error.HTTPError as error:
        return error.code, _decoded(error.read())
    except (OSError, http.client.HTTPException) as error:
        raise LoadError(f"{url}: {path} was not answered: {getattr(error, 'reason', None) or error}") from error


def _decoded(data: bytes) -> object:
    try:
        return json.loads(data)
    except ValueError:
        return data.decode(errors="replace").strip()


def information(url: str) -> dict:
    """What the server says of itself; raises LoadError if it says nothing."""
    status, found = ask(url, "/server_info")
    if status != http.client.OK or not isinstance(found, dict):
        raise LoadError(f"{url}: /server_info answered {status}")
    return found


def load_state(found: Mapping) -> Mapping:
    """How speculation follows the load, by the body of /server_info; raises LoadError if the server does not say."""
    for rank in found.get("internal_states") or ():
        if isinstance(rank, dict) and STATE in rank:
            return rank[STATE]
    raise LoadError("the server does not say how its speculation follows the load: its release has no load policies")


def change(url: str, values: Mapping[str, object]) -> None:
    """Change live settings; raises LoadError, with the server's words, if it does not take or keep them."""
    status, answer = ask(url, "/set_internal_state", {"server_args": dict(values)})
    if status != http.client.OK or not (isinstance(answer, dict) and answer.get("updated")):
        said = answer.get("message") if isinstance(answer, dict) else answer
        raise LoadError(f"{url}: {json.dumps(dict(values))} was answered with {status}: {said or 'without a reason'}")
    wanted = values.get("speculative_force_steps")
    state = load_state(information(url))
    if (state["forced_steps"] is None) != (wanted is None):
        raise LoadError(f"{url}: {json.dumps(dict(values))} is not in force: forced_steps is {state['forced_steps']}")


def flush(url: str) -> None:
    """Empty the cache of prefixes; raises LoadError if the server still has requests after IDLE_SECONDS.

    It refuses while a request runs, and one that was aborted may still do so for a moment.
    """
    until = time.monotonic() + IDLE_SECONDS
    while True:
        status, answer = ask(url, "/flush_cache", {})
        if status == http.client.OK:
            return
        if time.monotonic() > until:
            raise LoadError(f"{url}: /flush_cache answered {status}: {answer}")
        time.sleep(POLL_SECONDS)
