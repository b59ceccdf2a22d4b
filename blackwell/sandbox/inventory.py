"""The sandbox as an Ansible inventory (https://docs.ansible.com/ansible/latest/dev_guide/developing_inventory.html)."""

from pathlib import Path

from blackwell.sandbox import ssh
from blackwell.sandbox.records import Record
from blackwell.sandbox.settings import Settings

GROUP = "sglang_hosts"


def host_variables(settings: Settings, record: Record) -> dict[str, str]:
    """How Ansible reaches one host."""
    return {
        "ansible_host": record.address,
        "ansible_user": "root",
        "ansible_ssh_private_key_file": str(settings.key),
        "ansible_ssh_common_args": ssh.ansible_arguments(settings),
    }


def inventory(settings: Settings, records: list[Record], wheelhouse: Path) -> dict:
    """The answer to --list: one group with these hosts, and their variables under _meta."""
    return {
        GROUP: {"hosts": [record.name for record in records], "vars": {"sglang_wheelhouse": str(wheelhouse)}},
        "_meta": {"hostvars": {record.name: host_variables(settings, record) for record in records}},
    }
