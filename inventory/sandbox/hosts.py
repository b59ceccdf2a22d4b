#!/usr/bin/env python3
"""Ansible inventory: the sandbox hosts that are up (scripts/sandbox).

When a script fails, Ansible reads its text as an INI inventory. It gives up at the first line above, whose quotes stay
open; a docstring on one line would become a host.
"""

import argparse
import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from blackwell import paths
from blackwell.sandbox import api, inventory, records, settings
from blackwell.sandbox.errors import SandboxError


def main() -> int:
    """Print what Ansible asks for; returns the exit status."""
    parser = argparse.ArgumentParser(description="Ansible inventory: the sandbox hosts that are up.")
    asked = parser.add_mutually_exclusive_group(required=True)
    asked.add_argument("--list", action="store_true", help="every group, host and variable")
    asked.add_argument("--host", metavar="NAME", help="the variables of one host")
    arguments = parser.parse_args()
    try:
        here = settings.from_environment()
        up = {host.name for host in api.hosts(settings=here) if host.state == api.UP}
    except SandboxError as error:
        print(error, file=sys.stderr)
        return 1
    if not up:
        print("no sandbox host is up: run scripts/sandbox up", file=sys.stderr)
        return 1
    wheelhouse = paths.cache() / "wheelhouse" / "sglang-0.5.9-cpu.tar"
    answer = inventory.inventory(here, [record for record in records.read(here) if record.name in up], wheelhouse)
    print(json.dumps(answer if arguments.list else answer["_meta"]["hostvars"].get(arguments.host, {}), indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
