"""What this machine's cards are."""

import subprocess

SHARED_BY = (1, 2, 4, 8)
"""Numbers of cards that can share the models: these divide the attention heads of all of them."""


def cards() -> list[str]:
    """Name and driver of each card, as ``nvidia-smi`` shows them; empty if there is no driver."""
    query = ["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"]
    try:
        said = subprocess.run(query, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        return []
    return said.stdout.splitlines() if said.returncode == 0 else []


def used(there: list[str], tp: int) -> str:
    """Name of the first card, and how many are used if that is more than one; empty without a card."""
    if not there:
        return ""
    name = there[0].rsplit(",", 1)[0].strip()
    return name if tp == 1 else f"{tp} x {name}"


def not_shared(tp: int) -> str | None:
    """What is wrong with ``--tp`` on any machine, in a sentence; None if nothing is."""
    if tp in SHARED_BY:
        return None
    return f"--tp is {tp}, and the models can be shared by {', '.join(map(str, SHARED_BY))} cards"


def problem(tp: int, there: int) -> str | None:
    """What is wrong with ``--tp`` on a machine with ``there`` cards, in a sentence; None if nothing is."""
    if tp > there:
        return not_shared(tp) or f"--tp is {tp}, and nvidia-smi shows {there} cards"
    return not_shared(tp)
