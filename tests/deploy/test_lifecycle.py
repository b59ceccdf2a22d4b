"""The server after its first deployment: a bad change, a killed run, a reboot, a rollback, secrets, old releases."""

import json

import pytest

BROKEN = {"sglang_server_context_length": 123456}
"""A valid command line and an impossible configuration: the model is made for 4096 tokens."""
# With everything that a shell, systemd or YAML could take for its own.
VALUE = """s3cr3t-"quoted"-'and'-$HOME-`date`-back\\slash-100%"""


@pytest.fixture(scope="module")
def base(deployed):
    """The host, deployed as the inventory says."""
    run = deployed.play("--tags", "sglang,model,serve")
    assert run.returncode == 0, run.output
    return deployed


def test_a_command_line_that_the_release_refuses_touches_nothing(base):
    before, ready = base.fingerprint(), base.ready
    run = base.play(sglang_server_attention_backend="nonsense")
    assert run.returncode != 0
    assert "argument --attention-backend: invalid choice: 'nonsense'" in " ".join(run.output.split()).replace("''", "'")
    assert (base.fingerprint(), base.ready) == (before, ready)


def test_a_model_that_the_service_may_not_read_is_named_and_the_server_goes_on(base):
    ready = base.ready
    base.ssh("chmod 600 /var/lib/sglang/models/counting/eagle3/model.safetensors")
    run = base.play("--tags", "serve")
    base.ssh("chmod 644 /var/lib/sglang/models/counting/eagle3/model.safetensors")
    assert run.returncode != 0
    assert "may not read /var/lib/sglang/models/counting/eagle3/model.safetensors" in " ".join(run.output.split())
    assert base.ready == ready


def test_a_deployment_that_does_not_become_ready_is_taken_back(base):
    before = base.ready
    run = base.play(**BROKEN)
    assert run.returncode != 0
    said = " ".join(run.output.split())
    assert "did not become ready" in said
    assert f"Deployment {before['deployment']} ({before['release']}), which worked, is back and generates." in said
    # The reason, from the journal of the one that failed.
    assert "123456" in said.split("The journal of the one that failed ends:")[-1]
    assert base.ready["deployment"] == before["deployment"]
    assert base.generates()
    assert base.ssh("readlink /opt/sglang/current").endswith(before["release"])


def test_after_that_a_run_with_the_good_configuration_changes_nothing(base):
    run = base.play("--tags", "sglang,model,serve")
    assert (run.returncode, run.recap["changed"]) == (0, 0), run.output


def test_killed_while_a_bad_deployment_starts_the_next_run_repairs_it(base, tmp_path):
    with base.playing(tmp_path / "killed.log", **BROKEN):
        base.until("test $(systemctl show sglang -p ActiveState --value) = activating", 120)
    run = base.play("--tags", "sglang,model,serve")
    assert run.returncode == 0, run.output
    assert base.generates()


def test_the_service_is_back_after_a_reboot(base):
    before = base.ready
    base.ssh("systemctl reboot", check=False)
    base.until("test $(systemctl show sglang -p ActiveState --value) = active", 120)
    assert base.ready["deployment"] == before["deployment"]
    assert base.generates()


def test_systemd_starts_a_server_that_was_killed(base):
    killed = base.ready["pid"]
    soon = "/run/systemd/system/sglang.service.d"
    base.ssh(f"mkdir -p {soon} && printf '[Service]\\nRestartSec=1\\n' >{soon}/soon.conf && systemctl daemon-reload")
    base.ssh(f"kill -9 {killed}")
    base.until(f"grep -q . /run/sglang/ready.json && ! grep -q '\"pid\": {killed},' /run/sglang/ready.json", 120)
    base.ssh(f"rm -r {soon} && systemctl daemon-reload")
    assert base.generates()


def test_a_secret_reaches_the_process_and_nothing_else(base):
    run = base.play("--diff", "-vv", sglang_server_environment={"UPSTREAM_TOKEN": VALUE})
    assert run.returncode == 0, run.output
    assert "s3cr3t" not in run.output
    pid = base.ready["pid"]
    assert f"UPSTREAM_TOKEN={VALUE}" in base.ssh(f"tr '\\0' '\\n' </proc/{pid}/environ")
    assert base.ssh("cat /proc/[0-9]*/cmdline | tr '\\0' ' ' | grep -c s3cr3t- || :") == "1"  # The grep itself.
    assert base.ssh("journalctl --boot | grep -c s3cr3t || :") == "0"
    assert base.ssh("grep -rlI s3cr3t /etc /run/sglang /opt/sglang/current/cache /var/lib/sglang /tmp -s "
                    "| xargs -r stat -c '%a %U %n' | grep -v '^600 root' || :") == ""  # fmt: skip


def test_rolled_back_and_forward_again(base):
    first = base.ready["deployment"]
    assert base.play("--tags", "sglang,model,serve", sglang_server_max_running_requests=7).returncode == 0
    second = base.ready["deployment"]
    assert base.request("/server_info")["body"]["max_running_requests"] == 7
    assert base.play(playbook="playbooks/rollback.yml").returncode == 0
    assert base.ready["deployment"] == first
    assert base.request("/server_info")["body"]["max_running_requests"] == 8
    assert base.play(playbook="playbooks/rollback.yml").returncode == 0
    assert base.ready["deployment"] == second


def test_a_rollback_that_has_nowhere_to_go_is_refused(base):
    base.ssh("mv /var/lib/sglang/deployments/previous /var/lib/sglang/deployments/aside")
    run = base.play(playbook="playbooks/rollback.yml")
    base.ssh("mv /var/lib/sglang/deployments/aside /var/lib/sglang/deployments/previous")
    assert run.returncode != 0
    assert "there is nothing to go back to" in " ".join(run.output.split())


def test_three_releases_are_kept_and_none_that_is_needed_goes(base):
    current = base.ready["release"]
    base.ssh(f"touch -d 2001-01-01 /opt/sglang/releases/{current}/release.json")
    for day, name in enumerate(["0.5.1-a", "0.5.2-b", "0.5.3-c", "0.5.4-d"], start=1):
        base.ssh(f"mkdir -p /opt/sglang/releases/{name}/src && cd /opt/sglang/releases/{name} && "
                 f"echo {{}} >release.json && touch -d 2002-01-0{day} release.json")  # fmt: skip
    base.ssh("mkdir -p /opt/sglang/releases/0.5.9-interrupted/venv")
    run = base.play("--tags", "sglang,model,serve")
    assert run.returncode == 0, run.output
    assert set(base.ssh("ls /opt/sglang/releases").split()) == {"0.5.2-b", "0.5.3-c", "0.5.4-d", current}
    base.ssh("rm -r /opt/sglang/releases/0.5.[234]-*")


def test_another_wheelhouse_under_the_same_name_is_refused(base):
    record = base.record("/opt/sglang/current/release.json")
    record["build"]["lock"] = "0" * 64
    path = "/opt/sglang/current/release.json"
    base.ssh(f"cp {path} /tmp/kept && echo '{json.dumps(record)}' >{path}")
    run = base.play("--tags", "preflight")
    base.ssh(f"mv /tmp/kept {path}")
    assert run.returncode != 0
    assert "was built from other inputs (lock differs)" in " ".join(run.output.split())
