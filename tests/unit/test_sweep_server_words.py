"""Command lines of a bench's servers: what they have of the deployed one, what is theirs, and what is refused."""

import json
from dataclasses import dataclass, field

import pytest
from sweep_units import ARGV, OPTIONS, PROGRAM, SPECULATION

from blackwell import load_policy
from blackwell.bench.errors import BenchError
from blackwell.sweep import server_words

OWN = ["--host", "127.0.0.1", "--port", "30007"]
PLAIN = [*PROGRAM, *OPTIONS]


@dataclass(frozen=True)
class Settings:
    name: str = "other"
    flags: dict = field(default_factory=dict)
    environment: dict = field(default_factory=dict)


def words(flags=None, **environment):
    return server_words.baseline(ARGV, Settings("other", flags or {}, environment), 30007)


def policy_of(argv):
    return json.loads(server_words.value(argv, "--speculative-load-policy"))


def test_a_baseline_has_everything_but_speculation():
    assert words() == [*PLAIN, *OWN]


@pytest.mark.parametrize(
    "more",
    [("--speculative-attention-mode=decode",), ("--enable-multi-layer-eagle",), ("--speculative-token-map", "/map")],
)
def test_further_options_of_speculation_are_not_for_a_baseline(more):
    assert server_words.baseline([*ARGV, *more], Settings(), 30007) == [*PLAIN, *OWN]


def test_the_deployed_server_with_every_tier():
    argv = server_words.speculative(ARGV, Settings(), 30007, ["full", 2, 1, 0])
    kept = [word for word in SPECULATION if word not in ("--speculative-disable-batch-threshold", "5")]
    assert argv[:-2] == [*PLAIN, *kept, *OWN]
    assert argv[-2] == "--speculative-load-policy"
    assert [row["steps"] for row in json.loads(argv[-1])["tiers"]] == ["full", 2, 1, 0]


@pytest.mark.parametrize("given", [["--speculative-load-policy", '{"version": 1}'], ["--speculative-load-policy={}"]])
def test_the_deployed_policy_gives_way(given):
    argv = server_words.speculative([*ARGV, *given], Settings(), 30007, ["full", 0])
    assert [row["steps"] for row in policy_of(argv)["tiers"]] == ["full", 0]
    assert sum(word.startswith("--speculative-load-policy") for word in argv) == 1


@pytest.mark.parametrize(
    ("held", "full", "most"),
    [([], 3, 2), (["full", 0], 3, 2), (["full", 2, 1, 0], 3, 4), ([1], 3, 3), ([3], 3, None), (range(8), 7, 8)],
)
def test_a_policy_of_tiers_is_one_that_a_deployment_would_take(held, full, most):
    policy = server_words.every_tier(held, full, most)
    assert load_policy.problems(policy, full, most) == []
    steps = [row["steps"] for row in load_policy.resolved(policy, full)["tiers"]]
    wanted = {full, 0, *(full if number == "full" else number for number in held)}
    assert steps == sorted(wanted, reverse=True)
    # Memory for a further tier is reserved where the steps are not "full".
    assert policy["tiers"][0]["steps"] == "full"


@pytest.mark.parametrize(
    ("held", "most", "told"),
    [
        ([4], 8, "drafts 3 steps in a round and cannot be held at 4"),
        ([-1], 8, "cannot be held at -1"),
        (
            ["full", 2, 1, 0],
            3,
            "--max-running-requests is 3, too few for tiers of 3, 2, 1, 0 draft steps, which need 4",
        ),
    ],
)
def test_tiers_that_cannot_be(held, most, told):
    with pytest.raises(BenchError, match=told):
        server_words.every_tier(held, 3, most)


def test_settings_that_leave_too_few_requests_are_named():
    with pytest.raises(BenchError, match="settings other: --max-running-requests is 2, too few"):
        server_words.speculative(ARGV, Settings(flags={"--max-running-requests": "2"}), 30007, ["full", 1, 0])


@pytest.mark.parametrize(
    ("argv", "told"),
    [
        (PLAIN, "settings other: the server does not speculate, as its command line has no --speculative-num-steps"),
        ([*ARGV, "--speculative-eagle-topk", "4"], "one branch only, and the server has --speculative-eagle-topk 4"),
    ],
)
def test_a_server_whose_steps_cannot_be_held(argv, told):
    with pytest.raises(BenchError, match=told):
        server_words.speculative(argv, Settings(), 30007, ["full", 0])


@pytest.mark.parametrize(
    ("flags", "kept", "added"),
    [
        ({"--enable-torch-symm-mem": True}, PLAIN, ["--enable-torch-symm-mem"]),
        ({"--max-running-requests": "4"}, [*PLAIN[:-3], PLAIN[-1]], ["--max-running-requests", "4"]),
        ({"--disable-cuda-graph": False}, PLAIN[:-1], []),
        ({"--disable-cuda-graph": True}, PLAIN[:-1], ["--disable-cuda-graph"]),
        ({"--not-there": False}, PLAIN, []),
        ({"--offset": "-1"}, PLAIN, ["--offset=-1"]),
    ],
)
def test_settings_add_remove_and_set(flags, kept, added):
    assert words(flags) == [*kept, *added, *OWN]


def test_a_setting_replaces_each_form_of_an_option():
    argv = [*ARGV, "--tp-size=4", "--tp-size", "8"]
    changed = server_words.baseline(argv, Settings(flags={"--tp-size": "2"}), 30007)
    assert [one for one in server_words.options(changed) if "tp-size" in one[0]] == [["--tp-size", "2"]]


@pytest.mark.parametrize(
    "flag",
    [
        *("--host", "--port", "--model-path", "--model", "--mod", "--served-model-name", "--revision", "--config"),
        *("--speculative-num-steps", "--speculative-draft-model-path", "--speculative-load-policy", "--spec"),
        *("--enable-multi-layer-eagle", "--api-key"),
    ],
)
def test_a_setting_of_what_a_bench_sets_itself_is_refused_by_name(flag):
    for made in (server_words.baseline, lambda *given: server_words.speculative(*given, ["full", 0])):
        with pytest.raises(BenchError) as refused:
            made(ARGV, Settings(flags={flag: "1"}), 30007)
        assert str(refused.value) == f"settings other: {flag} is not a setting that a bench may change"


@pytest.mark.parametrize("flag", ["tp-size", "-tp", "--", "--tp-size=2", "--tp size", ""])
def test_what_is_no_option_is_refused_by_name(flag):
    with pytest.raises(BenchError) as refused:
        words({flag: True})
    assert str(refused.value) == f"settings other: {flag!r} is no option of a server"


def test_options_of_a_file_cannot_be_changed():
    with pytest.raises(BenchError, match="takes options from a file"):
        server_words.baseline([*ARGV, "--config", "/etc/server.yaml"], Settings(), 30007)


@pytest.mark.parametrize(("speculates", "own"), [(True, {}), (False, {"SGLANG_ENABLE_SPEC_V2": None})])
def test_the_environment(speculates, own):
    settings = Settings(environment={"NCCL_ALGO": "Ring", "NCCL_PROTO": None})
    assert server_words.environment(settings, speculates=speculates) == {
        "BLACKWELL_DEPLOYMENT": None,
        **own,
        "NCCL_ALGO": "Ring",
        "NCCL_PROTO": None,
    }


@pytest.mark.parametrize(
    ("name", "value", "told"),
    [
        ("SGLANG_ENABLE_SPEC_V2", "1", "SGLANG_ENABLE_SPEC_V2 is not a setting that a bench may change"),
        ("BLACKWELL_DEPLOYMENT", None, "BLACKWELL_DEPLOYMENT is not a setting that a bench may change"),
        ("A-B", "1", "'A-B' is no name of an environment variable"),
        ("NCCL_ALGO", "Ring\nTree", "NCCL_ALGO holds a line break, which an environment file cannot"),
    ],
)
def test_a_variable_that_cannot_be_set_is_refused_by_name(name, value, told):
    with pytest.raises(BenchError) as refused:
        server_words.environment(Settings(environment={name: value}), speculates=True)
    assert str(refused.value) == f"settings other: {told}"


@pytest.mark.parametrize(
    ("options", "url"),
    [
        (["--host", "127.0.0.1", "--port", "30000"], "http://127.0.0.1:30000"),
        (["--host=0.0.0.0", "--port=1"], "http://127.0.0.1:1"),
        (["--host", "::", "--port", "1"], "http://[::1]:1"),
        (["--host", "box.example.com", "--port", "1", "--port", "2"], "http://box.example.com:2"),
        ([], "http://127.0.0.1:30000"),
    ],
)
def test_where_a_server_is_asked(options, url):
    assert server_words.url([*ARGV[:3], *options]) == url
