"""One completion: what was asked, what came back, and what it says of speculation."""

from collections.abc import Mapping
from dataclasses import dataclass

from blackwell import status
from blackwell.host_errors import HostError
from blackwell.inventory import Host

MOST_SECONDS = 600.0


@dataclass(frozen=True)
class Completion:
    """``seconds``: from request to answer, on the host. ``acceptance_length`` is None where nothing was drafted."""

    text: str
    seconds: float
    prompt_tokens: int
    tokens: int
    acceptance_length: float | None
    verifications: int | None
    ended: str


def wanted(prompt: str, tokens: str) -> tuple[str, int]:
    """Prompt and number of tokens as typed, checked.

    Raises HostError if there is no prompt or no number.
    """
    if not prompt:
        raise HostError("--prompt is missing: it is the text that the server is to continue")
    if not (tokens.isdecimal() and int(tokens)):
        raise HostError(f"--tokens is {tokens!r}, not a number of tokens")
    return prompt, int(tokens)


def parse(host: Host, found: Mapping) -> Completion:
    """The completion by what ``on_host.ask`` returned.

    Raises HostError if the service is not there or not ready, and with the server's own words if it refused.
    """
    unit = status.unit(found["unit"])
    answer = found.get("answer")
    if answer is None:
        place = status.Server(found["address"]["host"], found["address"]["port"])
        problem = "; ".join(status.reasons(unit, place))
        look = f" (fab -H {host.name} status)" if unit.loaded else ""
        raise HostError(f"{host.name}: {problem}{look}")
    body = answer["body"]
    if answer["status"] != 200 or not isinstance(body, dict) or "meta_info" not in body:
        raise HostError(f"{host.name}: {refusal(answer)}")
    meta = body["meta_info"]
    return Completion(
        text=body["text"],
        seconds=answer["seconds"],
        prompt_tokens=meta["prompt_tokens"],
        tokens=meta["completion_tokens"],
        acceptance_length=meta.get("spec_accept_length"),
        verifications=meta.get("spec_verify_ct"),
        ended=(meta.get("finish_reason") or {}).get("type", "unknown"),
    )


def refusal(answer: Mapping) -> str:
    """The sentence for an answer that is no completion."""
    body = answer["body"]
    said = body.get("error", body) if isinstance(body, dict) else body
    words = said.get("message", said) if isinstance(said, dict) else said
    if not answer["status"]:
        return f"the server gave no answer after {answer['seconds']:.1f} s: {words}"
    return f"the server answered {answer['status']}: {words or 'without a reason'}"


def render(completion: Completion) -> str:
    """The text, and a line of numbers under it."""
    rate = f" ({completion.tokens / completion.seconds:.1f} tokens/s)" if completion.seconds > 0 else ""
    accepted = (
        "nothing was drafted"
        if completion.acceptance_length is None
        else f"acceptance length {completion.acceptance_length:.2f} over {completion.verifications} verifications"
    )
    return (
        f"{completion.text}\n\n{completion.tokens} tokens in {completion.seconds:.2f} s{rate} "
        f"after a prompt of {completion.prompt_tokens}; {accepted}; ended by {completion.ended}"
    )
