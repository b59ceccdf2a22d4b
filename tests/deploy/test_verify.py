"""scripts/verify says whether what runs is what was asked for, and says what is not."""

import pytest


@pytest.fixture
def undone(deployed):
    """Puts the host back into the state that the inventory asks for."""
    yield deployed
    run = deployed.play("--tags", "sglang,model,serve")
    assert run.returncode == 0, run.output


def test_a_deployed_host_is_as_asked_for(deployed):
    assert deployed.play("--tags", "sglang,model,serve").returncode == 0
    run = deployed.verify()
    assert run.returncode == 0, run.output
    assert "sglang_device is not cuda: this host has no GPU to look at" in run.output
    assert "sglang_device is not cuda: this host has no driver to look at" in run.output


def test_the_playbook_says_the_same(deployed):
    run = deployed.play(playbook="playbooks/verify.yml")
    assert (run.returncode, run.recap["changed"]) == (0, 0), run.output
    assert "passed" in run.output


def test_other_settings_are_noticed(deployed):
    run = deployed.verify("-e", "sglang_server_max_running_requests=7")
    assert run.returncode == 1, run.output
    for failed in ("test_the_process_runs_with_the_flags", "test_reports_the_settings_of_the_inventory"):
        assert f"FAILED tests/verify/test_s{'ervice' if 'flags' in failed else 'erver'}.py::{failed}" in run.output


def test_another_switch_of_the_environment_is_noticed(deployed):
    run = deployed.verify("-e", "sglang_server_threads=2", "-k", "environment")
    assert run.returncode == 1, run.output
    assert "::test_the_process_has_the_environment" in run.output
    assert "the process has another OMP_NUM_THREADS in its environment: deploy with site.yml" in run.output


def test_a_setting_that_nobody_asked_for_is_noticed(undone):
    setting = f"mkdir {DROP_IN} && printf '[Service]\nEnvironment=NCCL_ALGO=hidden-value\n' >{DROP_IN}/t.conf"
    undone.ssh(f"{setting} && systemctl daemon-reload && systemctl restart sglang")
    run = undone.verify("-k", "environment")
    undone.ssh(f"rm -r {DROP_IN} && systemctl daemon-reload && systemctl restart sglang")
    assert run.returncode == 1, run.output
    assert "the process has NCCL_ALGO in its environment, which nobody asks for" in run.output
    assert "hidden-value" not in run.output


def test_a_profile_leaves_what_the_inventory_says(deployed):
    run = deployed.play("--tags", "serve", sglang_server_profile="llama_like")
    assert (run.returncode, run.recap["changed"]) == (0, 0), run.output


def test_a_stopped_service_is_noticed_and_its_journal_shown(undone):
    undone.ssh("systemctl stop sglang")
    run = undone.verify("-k", "running or healthy")
    assert run.returncode == 1, run.output
    assert "journal of sglang.service" in run.output
    assert "Stopped sglang.service" in run.output


SERVER_ARGS = "/opt/sglang/current/src/sglang/srt/server_args.py"
DROP_IN = "/run/systemd/system/sglang.service.d"
DAMAGES = {
    "test_owner_and_mode": ("chmod 644 /etc/sglang/sglang.env", "chmod 600 /etc/sglang/sglang.env"),
    "test_enabled": ("systemctl disable sglang", "systemctl enable sglang"),
    "test_every_setting_is_a_field_of_it": (
        f"sed -i.kept 's/speculative_eagle_topk: Optional/speculative_eagle_topX: Optional/' {SERVER_ARGS}",
        f"mv {SERVER_ARGS}.kept {SERVER_ARGS}",
    ),
    "test_every_file_is_that_of_the_package_and_the_patch_series": (
        "touch /opt/sglang/current/src/sglang/srt/aside.py",
        "rm /opt/sglang/current/src/sglang/srt/aside.py",
    ),
    "test_properties": (
        f"mkdir {DROP_IN} && printf '[Service]\\nPrivateTmp=no\\n' >{DROP_IN}/t.conf && systemctl daemon-reload",
        f"rm -r {DROP_IN} && systemctl daemon-reload",
    ),
    "test_the_service_cannot_change_its_own_code": (
        "chmod o+w /opt/sglang/current/src/sglang/version.py",
        "chmod o-w /opt/sglang/current/src/sglang/version.py",
    ),
}


@pytest.mark.parametrize("failed", DAMAGES)
def test_damage_is_noticed(deployed, failed):
    damage, repair = DAMAGES[failed]
    deployed.ssh(damage)
    run = deployed.verify("-k", failed)
    deployed.ssh(repair)
    assert run.returncode == 1, run.output
    assert f"::{failed}" in run.output


def test_an_inventory_that_is_not_there(deployed):
    run = deployed.command("scripts/verify", "-i", "/no/inventory")
    assert run.returncode == 2
    assert "/no/inventory" in run.output
