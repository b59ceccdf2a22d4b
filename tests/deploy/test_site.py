"""site.yml on one host, from bare to deployed: refusals, dry runs, interruption and repair, second run."""

import io
import tarfile

import pytest

from blackwell import paths

BUILDING = "test -e /opt/sglang/releases/*/venv/bin/pip && ! test -e /opt/sglang/releases/*/release.json"


def refusal(run) -> str:
    """The reasons of a preflight that refused, as one line without the line breaks of YAML."""
    assert run.returncode != 0, run.output
    assert "is refused, nothing was changed" in run.output, run.output
    return " ".join(run.output.split())


def test_a_dry_run_on_a_bare_host_changes_nothing(fresh):
    before = fresh.fingerprint()
    run = fresh.play("--check", "--diff")
    assert run.returncode == 0, run.output
    assert "+ExecStart=/opt/sglang/releases/0.5.9-" in run.output
    assert fresh.fingerprint() == before


def test_the_verification_of_a_bare_host_says_what_is_missing(fresh):
    run = fresh.verify("-k", "healthy")
    assert run.returncode == 1, run.output
    assert f"{fresh.host} has no sglang.service: deploy to it with site.yml first" in run.output
    assert "Traceback" not in run.output


def test_every_reason_is_given_at_once_and_nothing_changes(fresh):
    before = fresh.fingerprint()
    said = refusal(
        fresh.play(
            sglang_server_max_runing_requests=9,
            sglagn_version="0.5.9",
            sglang_server_port=22,
            sglang_server_tp_size="two",
            sglang_server_mem_fraction_static=2.0,
            sglang_server_host="0.0.0.0",
            sglang_server_extra_args=["--api-key", "s"],
            sglang_python="/opt/no/python",
            preflight_systems=["debian 13"],
            preflight_memory_mb=10**7,
            preflight_disk_mb=10**9,
            preflight_systemd=999,
            sglang_wheelhouse="/no/such.tar",
        )
    )
    for reason in (
        "sglang_server_max_runing_requests is not a variable",
        "did you mean sglang_server_max_running_requests?",
        "sglagn_version is not a variable of any role; did you mean sglang_version?",
        "port 22 is taken by sshd",
        "argument 'sglang_server_tp_size' is of type str and we were unable to convert to int",
        "sglang_server_mem_fraction_static: 2.0 is not at least 0 and below 1",
        "sglang_server_host: 0.0.0.0 is not loopback",
        "sglang_server_extra_args: SGLang logs its arguments",
        "sglang_python: /opt/no/python on the host is missing",
        "The operating system is debian 12, supported are debian 13",
        "preflight_memory_mb asks for 10000000",
        "preflight_disk_mb asks for 1000000000",
        "is older than 999",
        "sglang_wheelhouse: /no/such.tar is not on the control machine",
    ):
        assert reason in said, reason
    assert "13 to mend" in said
    assert fresh.fingerprint() == before


@pytest.mark.parametrize(
    ("variables", "reason"),
    [
        ({"sglang_version": "0.5.8"}, "sglang_version: there is no patch series for 0.5.8"),
        ({"sglang_device": "cuda", "model_fixture": ""}, "sglang_device: there is no lock of the dependencies"),
        (
            {"model_fixture": "", "model_path": "/no/model", "model_draft_path": ""},
            "no config.json on the host in /no/model",
        ),
        ({"sglang_server_environment": {"A B": "x"}}, "not a name of an environment variable: A B"),
        ({"sglang_server_environment": {"A": "x\ny"}}, "a value holds a line break"),
        ({"sglang_server_nccl": {"P2P_LEVEL": "SYS"}}, "sglang_server_nccl: not a variable of NCCL: P2P_LEVEL"),
        ({"_preflight_ansible_oldest": "99.1"}, "is older than 99.1"),
        ({"ansible_user": "operator"}, "set ansible_become: true in the inventory"),
    ],
)
def test_refused_with_a_sentence(fresh, variables, reason):
    assert reason in refusal(fresh.play("--tags", "preflight", **variables))


def test_the_stand_ins_are_refused_where_a_gpu_is(fresh):
    devices = "/sys/bus/pci/devices"
    fresh.ssh(
        f"mount -t tmpfs none {devices} && mkdir {devices}/gpu && echo 0x10de >{devices}/gpu/vendor "
        f"&& echo 0x030000 >{devices}/gpu/class"
    )
    said = refusal(fresh.play("--tags", "preflight"))
    fresh.ssh(f"umount {devices}")
    assert "the host has an NVIDIA GPU, and the stand-ins of `cpu` would shadow the real kernels" in said


def tampered(source, target, word):
    """A copy of a tar in which one bit of the file whose name holds a word differs."""
    with tarfile.open(source) as archive, tarfile.open(target, "w") as copy:
        for member in archive:
            content = archive.extractfile(member)
            if word in member.name:
                data = bytearray(content.read())
                data[len(data) // 2] ^= 1
                content = io.BytesIO(data)
            copy.addfile(member, content)
    return target


def test_a_wheelhouse_that_was_tampered_with_is_not_installed(fresh, tmp_path):
    wheelhouse = paths.cache() / "wheelhouse" / "sglang-0.5.9-cpu.tar"
    run = fresh.play("--tags", "sglang", sglang_wheelhouse=str(tampered(wheelhouse, tmp_path / "w.tar", "/click-")))
    assert run.returncode != 0
    assert "click-" in run.output
    assert "FAILED" in run.output
    assert fresh.ssh("test ! -e /opt/sglang/current && echo absent") == "absent"


def test_killed_in_the_middle_of_the_build_and_rebooted_the_next_run_repairs_it(fresh, tmp_path):
    with fresh.playing(tmp_path / "killed.log"):
        fresh.until(BUILDING, 120)
    fresh.ssh("systemctl reboot", check=False)
    fresh.until("test $(cut -d. -f1 /proc/uptime) -ge 0 && systemctl is-system-running", 60)
    assert fresh.ssh("ls /opt/sglang/releases/*/release.json 2>/dev/null", check=False) == ""
    run = fresh.play()
    assert run.returncode == 0, run.output
    assert fresh.ready["release"].startswith("0.5.9-")
    assert fresh.generates()
    assert fresh.ssh("ls /opt/sglang") == "current\nreleases"


def test_the_second_run_changes_nothing(deployed):
    run = deployed.play()
    assert run.returncode == 0, run.output
    assert run.recap["changed"] == 0, run.output


def test_a_dry_run_on_a_deployed_host_changes_nothing(deployed):
    before = deployed.fingerprint()
    run = deployed.play("--check", "--diff")
    assert (run.returncode, run.recap["changed"]) == (0, 0), run.output
    assert deployed.fingerprint() == before


def test_a_dry_run_shows_what_would_change_and_changes_nothing(deployed):
    before = deployed.fingerprint()
    run = deployed.play("--check", "--diff", sglang_server_max_running_requests=7)
    assert run.returncode == 0, run.output
    assert "+    --max-running-requests 7" in run.output
    assert "-    --max-running-requests 8" in run.output
    assert deployed.fingerprint() == before
