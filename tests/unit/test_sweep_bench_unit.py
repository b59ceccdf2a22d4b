"""The unit of a bench's server: that of the deployment, but for what the place of the service asks for."""

import pytest
from sweep_units import ARGV, rendered

from blackwell.bench.errors import BenchError
from blackwell.sweep import bench_unit, unit_text

WORDS = [*ARGV[:3], "--model-path", 'a "b" 100% $c', "--host", "127.0.0.1", "--port", "30007"]
ENVIRONMENT = {"SGLANG_ENABLE_SPEC_V2": None, "NCCL_ALGO": "Ring", "BLACKWELL_DEPLOYMENT": None}


def settings(*drop_ins, **variables):
    return [one for text in (rendered(**variables), *drop_ins) for one in unit_text.assignments(text)]


def made(*drop_ins, seconds=None, with_runner=True, **variables):
    text = bench_unit.text(
        settings(*drop_ins, **variables), WORDS, ENVIRONMENT, seconds=seconds, with_runner=with_runner
    )
    return unit_text.assignments(text)


def all_of(unit, section, name):
    return [one.value for one in unit if (one.section, one.name) == (section, name)]


def last(unit, section, name):
    """What systemd goes by where a setting has one value."""
    return all_of(unit, section, name)[-1]


def test_it_runs_the_command_line_that_it_is_given():
    assert unit_text.command(made()) == WORDS


def test_what_confines_the_server_is_that_of_the_deployment():
    own = {
        *("Description", "Documentation", "StartLimitIntervalSec", "StartLimitBurst", "Conflicts", "After", "BindsTo"),
        *("ExecStart", "ExecStartPost", "EnvironmentFile", "UnsetEnvironment", "Restart", "RestartSec"),
        *("RuntimeDirectory", "WantedBy"),
    }
    before, after = ([one for one in unit if one.name not in own] for unit in (settings(), made()))
    assert after == before
    assert {"User", "MemoryMax", "ProtectSystem", "IPAddressDeny", "LimitMEMLOCK"} <= {one.name for one in after}


def test_it_gives_way_to_the_service_and_does_not_come_back_by_itself():
    unit = made()
    assert all_of(unit, "Unit", "Conflicts") == ["sglang.service"]
    assert "sglang.service" in all_of(unit, "Unit", "After")
    assert all_of(unit, "Service", "Restart") == ["no"]
    assert all_of(unit, "Service", "RestartSec") == []
    assert all_of(unit, "Unit", "StartLimitIntervalSec") == ["0"]
    assert not [one for one in unit if one.section == "Install"]
    assert last(unit, "Unit", "Description") == (
        "SGLang for a bench, in the place of sglang.service; it ends with the sweep"
    )


@pytest.mark.parametrize(("with_runner", "bound"), [(True, ["blackwell-bench.service"]), (False, [])])
def test_it_ends_with_the_unit_of_a_sweep_if_there_is_one(with_runner, bound):
    assert all_of(made(with_runner=with_runner), "Unit", "BindsTo") == bound


def test_the_readiness_check_asks_the_other_server_and_writes_elsewhere():
    (check,) = all_of(made(), "Service", "ExecStartPost")
    assert check == (
        "/etc/sglang/sglang-ready --pid $MAINPID --timeout 180 --url http://127.0.0.1:30007 "
        '--record /run/blackwell-bench/ready.json --prompt "n5 \\"n6\\" 50%% of $$HOME" --freeze-gc'
    )
    assert all_of(made(), "Service", "RuntimeDirectory") == ["blackwell-bench"]


def test_another_time_to_become_ready():
    unit = made(seconds=900)
    assert "--timeout 900 " in last(unit, "Service", "ExecStartPost")
    assert last(unit, "Service", "TimeoutStartSec") == "910"
    assert last(made(), "Service", "TimeoutStartSec") == "190"


def test_what_differs_in_the_environment_comes_last_where_it_wins():
    unit = made("[Service]\nEnvironmentFile=-/etc/more.env\nEnvironment=NCCL_ALGO=Tree\n")
    assert all_of(unit, "Service", "EnvironmentFile") == [
        "/etc/sglang/sglang.env",
        "-/etc/more.env",
        "/run/blackwell-bench-server.env",
    ]
    assert all_of(unit, "Service", "UnsetEnvironment") == ["BLACKWELL_DEPLOYMENT SGLANG_ENABLE_SPEC_V2"]
    assert bench_unit.variables(ENVIRONMENT) == 'NCCL_ALGO="Ring"\n'


def test_a_variable_is_quoted_as_the_template_quotes_one():
    assert bench_unit.variables({"A": 'x "y" \\ `z` $HOME #'}) == 'A="x \\"y\\" \\\\ \\`z\\` \\$HOME #"\n'


def test_drop_ins_are_carried():
    unit = made(
        "[Service]\nMemoryMax=64G\nRestart=on-failure\nRuntimeDirectory=more\n[Unit]\nRequires=fabric.service\n"
    )
    assert last(unit, "Service", "MemoryMax") == "64G"
    assert all_of(unit, "Unit", "Requires") == ["fabric.service"]
    assert all_of(unit, "Service", "Restart") == ["no"]
    assert all_of(unit, "Service", "RuntimeDirectory") == ["blackwell-bench"]


def test_a_drop_in_with_another_command_line_is_replaced_too():
    assert unit_text.command(made("[Service]\nExecStart=\nExecStart=/bin/other\n")) == WORDS


@pytest.mark.parametrize(
    "hook",
    [
        "ExecStartPre=/usr/bin/nvidia-smi -pl 400",
        "ExecStartPost=/usr/local/bin/announce sglang",
        "ExecStop=/usr/local/bin/drain",
        "ExecStopPost=/usr/local/bin/leave",
    ],
)
def test_a_command_that_is_not_for_a_bench_is_refused_by_name(hook):
    with pytest.raises(BenchError) as refused:
        made(f"[Service]\n{hook}\n")
    assert str(refused.value) == f"sglang.service has {hook}, which would run for the bench's server as well"


def test_one_that_was_taken_back_is_none():
    assert made("[Service]\nExecStop=/usr/local/bin/drain\nExecStop=\n")


def test_a_unit_that_does_not_wait_until_it_is_ready_is_refused():
    with pytest.raises(BenchError, match="has no readiness check"):
        made("[Service]\nExecStartPost=\n")
