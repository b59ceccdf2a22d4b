"""The server of a sweep, from the unit of the server that is deployed."""

import json
import re
import subprocess
from pathlib import Path

import jinja2
import pytest
from jinja2 import select_autoescape

from blackwell import load_policy, paths
from blackwell.bench.errors import BenchError
from blackwell.sweep import server_unit, server_words, unit_text
from blackwell.sweep.plan import Settings

PYTHON = "/opt/sglang/releases/0.5.9-1/venv/bin/python"
NASTY = ['a "quoted" word', "back\\slash", "100%", "$HOME", "", '{"version":1,"tiers":[{"steps":0}]}', "ü b", "a'b"]
ARGV = [
    *(
        PYTHON,
        "-m",
        "sglang.launch_server",
        "--model-path",
        "/models/big one",
        "--host",
        "127.0.0.1",
        "--port",
        "30000",
    ),
    *("--max-running-requests", "256", "--disable-custom-all-reduce", "--speculative-algorithm", "EAGLE3"),
    *("--speculative-draft-model-path", "/models/draft", "--speculative-num-steps", "3"),
    *("--speculative-disable-batch-threshold", "12", "--enable-metrics"),
]
DEPLOYED = Settings()


def rendered(argv, **changes):
    """templates/sglang.service.j2 as Ansible renders it, whose test `match` and filter `replace` are these."""
    environment = jinja2.Environment(undefined=jinja2.StrictUndefined, autoescape=select_autoescape(), trim_blocks=True)
    environment.tests["match"] = lambda text, pattern: bool(re.match(pattern, str(text)))
    text = (paths.ROOT / "templates" / "sglang.service.j2").read_text()
    values = {
        "_sglang_release": "0.5.9-1",
        "sglang_user": "sglang",
        "sglang_device": "cuda",
        "_sglang_server_environment_file": "/etc/sglang/sglang.env",
        "_sglang_cache_dir": "/opt/sglang/releases/0.5.9-1/cache",
        "_sglang_server_argv": argv,
        "_sglang_server_ready_program": "/etc/sglang/sglang-ready",
        "_sglang_server_ready_record": "/run/sglang/ready.json",
        "_sglang_server_loopback": True,
        "sglang_server_start_timeout": 2700,
        "sglang_server_stop_timeout": 60,
        "sglang_server_host": "127.0.0.1",
        "sglang_server_port": 30000,
        "sglang_server_memory_max": "infinity",
        "sglang_server_ready_prompt": 'say "50 %" of $5',
    }
    return environment.from_string(text).render(values | changes)


def option(argv, name):
    return argv[argv.index(name) + 1]


@pytest.mark.parametrize("word", NASTY)
def test_a_word_comes_back_as_it_was_quoted(word):
    argv = [PYTHON, "-m", "module", "--first", word, "--last"]
    assert unit_text.command(rendered(argv)) == argv
    assert unit_text.split(unit_text.joined(argv)) == argv


@pytest.mark.parametrize("line", ["a 'single' word", 'an "open word', "an $EXPANDED word", "a %i word"])
def test_another_way_of_quoting_is_refused(line):
    if line.startswith("a 'single'"):
        assert unit_text.split(line) == ["a", "'single'", "word"]
        return
    with pytest.raises(BenchError, match="the unit file has"):
        unit_text.split(line)


def test_the_baseline_has_nothing_of_speculation():
    argv = server_words.baseline(ARGV, DEPLOYED, 4711)
    assert not [word for word in argv if word.startswith("--speculative")]
    assert "/models/draft" not in argv
    assert argv[:3] == ARGV[:3]
    assert option(argv, "--port") == "4711"
    assert option(argv, "--max-running-requests") == "256"
    assert "--enable-metrics" in argv


@pytest.mark.parametrize("steps", [1, 2, 3, 5])
def test_the_speculative_server_has_a_tier_for_every_number_of_steps(steps):
    argv = server_words.speculative(ARGV, DEPLOYED, 4711, steps)
    policy = json.loads(option(argv, "--speculative-load-policy"))
    assert load_policy.problems(policy, steps, 8) == []
    tiers = load_policy.resolved(policy, steps)["tiers"]
    assert [tier["steps"] for tier in tiers] == list(range(steps, -1, -1))
    assert "--speculative-disable-batch-threshold" not in argv


def test_settings_change_flags():
    settings = Settings(
        "one", {"--enable-symm-mem": True, "--disable-custom-all-reduce": False, "--max-running-requests": "64"}
    )
    argv = server_words.baseline(ARGV, settings, 4711)
    assert "--enable-symm-mem" in argv
    assert "--disable-custom-all-reduce" not in argv
    assert option(argv, "--max-running-requests") == "64"
    assert argv.count("--max-running-requests") == 1


@pytest.mark.parametrize("flag", ["--port", "--model-path", "--speculative-num-steps"])
def test_settings_that_touch_what_a_sweep_sets_are_refused(flag):
    with pytest.raises(BenchError, match=f"settings odd: {flag} is not a setting that a sweep may change"):
        server_words.speculative(ARGV, Settings("odd", {flag: "1"}), 4711, 3)


def test_the_unit_is_the_deployed_one_but_for_what_a_sweep_needs(tmp_path):
    deployed = rendered(ARGV)
    argv = server_words.speculative(ARGV, DEPLOYED, 4711, 3)
    text = server_unit.text(deployed, argv, {"REMOVED": None, "KEPT": "1"}, tmp_path / "env", "http://127.0.0.1:4711")
    assert unit_text.command(text) == argv
    for kept in (
        "User=sglang",
        "ProtectSystem=strict",
        "LimitMEMLOCK=infinity",
        "EnvironmentFile=/etc/sglang/sglang.env",
    ):
        assert f"{kept}\n" in text
    for gone in ("Restart=always", "WantedBy", "StartLimit", "RuntimeDirectory=sglang\n", "/run/sglang/ready.json"):
        assert gone not in text
    assert "Conflicts=sglang.service\n" in text
    assert "UnsetEnvironment=REMOVED\n" in text
    # The one that is read last wins.
    assert text.index("EnvironmentFile=/etc/sglang/sglang.env") < text.index(f"EnvironmentFile={tmp_path / 'env'}")
    after = next(line for line in text.splitlines() if line.startswith("ExecStartPost="))
    assert "--url http://127.0.0.1:4711 " in after
    assert "--record /run/blackwell-bench-server/ready.json " in after
    assert "--pid $MAINPID " in after
    assert after.endswith('--prompt "say \\"50 %%\\" of $$5"')


def test_systemd_reads_the_unit(tmp_path):
    argv = ["/bin/true", *server_words.baseline(ARGV, DEPLOYED, 4711)[1:]]
    text = server_unit.text(rendered(ARGV), argv, {}, tmp_path / "env", "http://127.0.0.1:4711")
    unit = tmp_path / "blackwell-bench-server.service"
    unit.write_text(text.replace("/etc/sglang/sglang-ready", "/bin/true"))
    words = ["systemd-analyze", "--recursive-errors=no", "verify", unit]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr.replace("\n", "")) == (0, "")


def test_variables_are_what_a_shell_would_read(tmp_path):
    values = {"NCCL_ALGO": "Ring", "ODD": 'a "b" \\ `c` $d', "GONE": None}
    file = tmp_path / "env"
    file.write_text(server_unit.variables(values))
    done = subprocess.run(
        ["sh", "-c", f'. {file}; printf "%s|%s|%s" "$NCCL_ALGO" "$ODD" "${{GONE-unset}}"'],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == f"Ring|{values['ODD']}|unset"


def test_a_unit_without_a_readiness_check_is_refused():
    deployed = rendered(ARGV).replace("--record /run/sglang/ready.json", "")
    with pytest.raises(BenchError, match=r"the readiness check of sglang\.service has no --record"):
        server_unit.text(deployed, ARGV, {}, Path("/env"), "http://127.0.0.1:1")
