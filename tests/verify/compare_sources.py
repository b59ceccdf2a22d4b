"""Runs on the host with the unit's own interpreter: compares the files of the package that it imports.

Argument: JSON with ``files`` (SHA-256 of each file that the patch series touches, null where it removes one) and
``generated`` (files that no comparison knows). Every other file is compared with the RECORD of the stock wheel.
"""

import base64
import csv
import hashlib
import json
import sys
from importlib.machinery import PathFinder
from pathlib import Path


def stock(root: Path) -> dict:
    """SHA-256 in hexadecimal of each file of the package by the wheel's RECORD; paths are relative to ``root``."""
    (record,) = root.glob("sglang-*.dist-info/RECORD")
    with record.open(encoding="utf-8", newline="") as file:
        rows = [row for row in csv.reader(file) if row[0].startswith("sglang/")]
    return {name: base64.urlsafe_b64decode(entry.partition("=")[2] + "=").hex() for name, entry, _ in rows}


asked = json.loads(sys.argv[1])
root = Path(PathFinder.find_spec("sglang").origin).parent.parent
expected = {name: digest for name, digest in {**stock(root), **asked["files"]}.items() if digest}
found = {
    str(path.relative_to(root)): path
    for path in (root / "sglang").rglob("*")
    if not path.is_dir() and "__pycache__" not in path.parts
}
common = expected.keys() & found.keys() - set(asked["generated"])
edited = [name for name in common if hashlib.sha256(found[name].read_bytes()).hexdigest() != expected[name]]
stray = found.keys() - expected.keys() - set(asked["generated"])
missing = expected.keys() - found.keys()
print(json.dumps({"edited": sorted(edited), "stray": sorted(stray), "missing": sorted(missing)}))
