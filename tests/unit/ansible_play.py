"""A playbook of a test's own, on hosts that are this machine."""

import json
import os
import subprocess
import sys
from pathlib import Path

from blackwell import paths

LOCAL = {"ansible_connection": "local", "ansible_python_interpreter": sys.executable}
INTO_A_FILE = """
    - copy:
        dest: "{{ out }}"
        content: "{{ dict(ansible_play_hosts | zip(ansible_play_hosts | map('extract', hostvars))) | to_json }}"
        mode: "0600"
      run_once: true
"""
"""A last task of a playbook, for ``variables``."""


def play(scratch, playbook, hosts, **extra):
    """Runs it on hosts, each with its variables, and with extra variables; returns what subprocess does."""
    inventory, file = scratch / "hosts.json", scratch / "play.yml"
    inventory.write_text(json.dumps({"all": {"hosts": {name: LOCAL | host for name, host in hosts.items()}}}))
    file.write_text(playbook)
    return subprocess.run(
        [Path(sys.executable).with_name("ansible-playbook"), "-i", inventory, file, "-e", json.dumps(extra)],
        env=os.environ | {"ANSIBLE_CONFIG": str(paths.ROOT / "ansible.cfg")},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )


def variables(scratch, tasks, hosts, **extra):
    """The variables of every host after the tasks, which must succeed."""
    out = scratch / "out.json"
    done = play(scratch, tasks + INTO_A_FILE, hosts, out=str(out), **extra)
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads(out.read_text())
