"""Ways to a host: a jump host and a sudo user, and the sentences for the ways that fail."""

import json

import pytest
from target import SETTINGS

SSH = f"-F none -o IdentitiesOnly=yes -o StrictHostKeyChecking=yes -o UserKnownHostsFile={SETTINGS.known_hosts}"


def inventory(directory, host, **variables):
    """An inventory of one host, with the sandbox's variables."""
    (directory / "hosts.json").write_text(json.dumps({"sglang_hosts": {"hosts": {host: variables}}}), encoding="utf-8")
    return directory


def test_through_a_jump_host_as_a_sudo_user(deployed, second):
    """A whole deployment, and its verification, on a host that is reached through another one."""
    # sudo then prints a warning among the output of every command.
    second.ssh("sed -i '/second/d' /etc/hosts")
    jump = f"ssh {SSH} -i {SETTINGS.key} -W %h:%p operator@{deployed.address}"
    variables = {
        "ansible_user": "operator",
        "ansible_become": True,
        "ansible_ssh_common_args": f"{SSH} -o ProxyCommand='{jump}'",
    }
    run = second.play(**variables)
    assert run.returncode == 0, run.output
    assert "sshd" in second.ssh(
        "journalctl --boot --unit=ssh --no-pager | grep 'Accepted publickey for operator' | tail -1"
    )
    assert deployed.address in second.ssh("journalctl --boot --unit=ssh --no-pager | grep 'for operator' | tail -1")
    assert second.generates()
    again = second.play(**variables)
    assert (again.returncode, again.recap["changed"]) == (0, 0), again.output


@pytest.mark.parametrize(
    ("variables", "reason"),
    [
        ({"ansible_host": str(SETTINGS.network[200])}, "cannot be reached over SSH"),
        ({"ansible_user": "nobody"}, "Permission denied"),
        (
            {"ansible_ssh_common_args": f"-o UserKnownHostsFile=/dev/null {SSH} -o ControlPath=none"},
            "Host key verification failed",
        ),
    ],
)
def test_a_host_that_cannot_be_reached_is_named(deployed, variables, reason):
    variables = {"ansible_ssh_common_args": f"{SSH} -o ControlPath=none", **variables}
    run = deployed.play("--tags", "preflight", **variables)
    said = " ".join(run.output.split())
    assert run.returncode != 0
    assert f"{deployed.host} (" in said
    assert "cannot be reached over SSH" in said
    assert reason in said
    assert "Nothing was changed." in said


def test_no_inventory_is_refused(deployed):
    run = deployed.command("ansible-playbook", "site.yml")
    assert run.returncode != 0
    assert "There is no host in the group sglang_hosts: name an inventory with -i" in " ".join(run.output.split())


def test_a_sandbox_without_hosts_is_refused(deployed, tmp_path):
    environment = f"BLACKWELL_SANDBOX_RUN={tmp_path}"
    run = deployed.command("env", environment, "ansible-playbook", "site.yml", "-i", deployed.inventory)
    assert run.returncode != 0
    assert "no sandbox host is up: run scripts/sandbox up" in run.output


def test_a_machine_without_systemd_is_refused(deployed, tmp_path):
    """This machine itself, if it is one: containers often are."""
    local = inventory(tmp_path, "here", ansible_connection="local")
    run = deployed.command(
        ".venv/bin/ansible-playbook", "site.yml", "-i", local, "--tags", "preflight", "-e", "model_path=/m",
        "-e", "preflight_systemd=9999",
    )  # fmt: skip
    assert run.returncode != 0
    said = " ".join(run.output.split())
    assert "systemd" in said
    assert "use a host that was booted with systemd 9999 or newer" in said
