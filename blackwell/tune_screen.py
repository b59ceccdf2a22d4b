"""What tuning found and did, in words."""

import json

from blackwell import load_control, speculation_file
from blackwell.inventory import Inventory
from blackwell.tune import Measured, Tuned


def found(host: str, measured: Measured) -> str:
    """What was measured."""
    return "\n".join([f"{host}: run {measured.run.name}", *(f"  {sentence}" for sentence in measured.explained)])


def would(host: str, known: Inventory, measured: Measured) -> str:
    """What would be written."""
    file = speculation_file.place(known, host)
    return f"  would write {file}: {json.dumps(measured.setting.variables)}"


def done(host: str, tuned: Tuned) -> str:
    """What was written, and what the server does since."""
    rows = [] if tuned.after is None else load_control.rows(tuned.before, {}, tuned.after)
    undo = f"fab -H {host} threshold --undo puts the one before back"
    return "\n".join([f"{host}:", *rows, f"  kept    in {tuned.file}; {undo}"])
