"""Runs the verification against what a file says is asked of each host: ``run.py --intent FILE|- [PYTEST ARGUMENTS]``.

The file is what ``playbooks/intent.yml`` writes; ``-`` reads it from standard input. Exits with 0 if everything is as
asked for, 1 if something is not, 2 if it could not be looked at.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
UNUSUAL = 2


def inventory(asked: dict) -> dict:
    """An Ansible inventory of the hosts with nothing but how each is reached, for testinfra."""
    return {"verified": {"hosts": {name: host["connection"] for name, host in asked.items()}}}


def main() -> int:
    """Command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0], add_help=False)
    parser.add_argument("--intent", required=True)
    options, pytest_arguments = parser.parse_known_args()
    text = sys.stdin.read() if options.intent == "-" else Path(options.intent).read_text(encoding="utf-8")
    asked = json.loads(text)
    # Private to its owner (tempfile's mode is 0700): it holds the environment of the servers.
    with tempfile.TemporaryDirectory(prefix="verify-") as scratch:
        intent, hosts = Path(scratch) / "intent.json", Path(scratch) / "inventory.json"
        intent.write_text(text, encoding="utf-8")
        hosts.write_text(json.dumps(inventory(asked)), encoding="utf-8")
        command = [
            *(sys.executable, "-m", "pytest", f"--rootdir={ROOT}", f"--config-file={ROOT / 'pyproject.toml'}"),
            *("-p", "no:cacheprovider", f"--intent={intent}", "--hosts=ansible://verified"),
            *(f"--ansible-inventory={hosts}", *pytest_arguments, str(HERE)),
        ]
        path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
        environment = {**os.environ, "PATH": path, "ANSIBLE_CONFIG": str(ROOT / "ansible.cfg")}
        code = subprocess.run(command, env=environment, stdin=subprocess.DEVNULL, check=False).returncode
    return min(code, UNUSUAL)


if __name__ == "__main__":
    sys.exit(main())
