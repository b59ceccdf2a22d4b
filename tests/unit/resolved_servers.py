"""What the role sglang_server makes of the variables of hosts, of which none is contacted."""

from collections.abc import Collection, Mapping
from pathlib import Path

import ansible_play
import yaml

from blackwell import paths

SANDBOX = yaml.safe_load((paths.ROOT / "inventory/sandbox/group_vars/all.yml").read_text(encoding="utf-8"))
PLAYBOOK = """
- hosts: all
  gather_facts: false
  tasks:
    - import_role: {name: sglang, tasks_from: intent}
    - import_role: {name: model, tasks_from: intent}
    - set_fact:
        problems: "{{ _sglang_server_checks | rejectattr('ok') | map(attribute='problem') | map('trim') }}"
    - import_role: {name: sglang_server, tasks_from: intent}
      when: accepted and not problems
"""


def resolve(
    scratch: Path,
    cases: Mapping[str, Mapping],
    accepted: Collection[str],
    manifest: Mapping,
    base: Mapping = SANDBOX,
) -> dict[str, dict]:
    """The facts of a host for the variables of each case, over those of ``base``.

    ``problems`` of them are the refusals; without any, and where the case is to be accepted, the intent is there too.
    ``scratch``: a directory for files; ``manifest``: of the patch series.
    """
    # The play has the problems computed outside of the role.
    own = {"role_path": str(paths.ROOT / "roles/sglang_server")}
    hosts = {
        name.replace(" ", "_"): {**base, **own, **case, "accepted": name in accepted} for name, case in cases.items()
    }
    found = ansible_play.variables(scratch, PLAYBOOK, hosts, _sglang_manifest=manifest)
    return {name: found[name.replace(" ", "_")] for name in cases}
