"""What the variables of sglang_server become: refusals with a sentence, the command line, and what is verified."""

import json

import pytest
from resolved_servers import resolve

from blackwell import inventory, paths, speculation_file
from blackwell.speculation_setting import Setting
from blackwell.speculation_text import Origin

THRESHOLD = "sglang_server_speculative_disable_batch_threshold"
POLICY = "sglang_server_speculative_load_policy"
OPTIONS = {
    "--speculative-disable-batch-threshold": {"default": 0, "type": "int"},
    "--speculative-load-policy": {"default": None, "type": "str"},
    "--disable-flashinfer-allreduce-fusion": {"default": False, "action": "store_true"},
}
STOCK = json.loads((paths.ROOT / "patches/sglang-0.5.9/manifest.json").read_text()) | {"patches": [], "options": {}}
PATCHED = STOCK | {"options": OPTIONS}
TIERS = [{"max_batch": 4, "steps": "full"}, {"steps": 0}]


def policy(*tiers, **more):
    return {POLICY: {"version": 1, "tiers": list(tiers or TIERS), **more}}


REFUSED = {
    "threshold below 0": ({THRESHOLD: -1}, f"{THRESHOLD}: -1 is below 0."),
    "threshold at the limit": (
        {THRESHOLD: 8},
        f"""{THRESHOLD}: 8 is not below sglang_server_max_running_requests (8), so speculation would never be
        switched off: lower it, or set 0 to speculate always.""",
    ),
    "both": (
        {THRESHOLD: 4} | policy(),
        f"{THRESHOLD}, {POLICY}: both say at which load the server speculates: keep one of them.",
    ),
    "no speculation": (
        policy() | {"model_draft_path": ""},
        f"""{POLICY}: there is no speculation that could follow the load, since sglang_server_speculative_algorithm is
        none: set model_draft_path, or remove the variable.""",
    ),
    "branches": (
        {THRESHOLD: 4, "sglang_server_speculative_eagle_topk": 2},
        f"""{THRESHOLD}: draft steps follow the load with one branch only, and sglang_server_speculative_eagle_topk is
        2: set it to 1.""",
    ),
    "not spec v2": (
        policy() | {"sglang_server_environment": {"SGLANG_ENABLE_SPEC_V2": False}},
        f"""{POLICY}: draft steps follow the load on the overlap path only, which SGLANG_ENABLE_SPEC_V2 of
        sglang_server_environment switches off: remove it there.""",
    ),
    "data parallel attention": (
        policy() | {"sglang_server_extra_args": ["--enable-dp-attention", "--dp-size=2"]},
        f"""{POLICY}: draft steps do not follow the load with --enable-dp-attention, which sglang_server_extra_args
        has: remove one of the two.""",
    ),
    "by hand": (
        {"sglang_server_extra_args": ["--speculative-load-policy={}"]},
        "sglang_server_extra_args: --speculative-load-policy has a variable of its own, which is checked: use that.",
    ),
    "no object": (
        {POLICY: "tiers.json"},
        f"""{POLICY}: the policy is "tiers.json", not an object with version, tiers, and where wanted margin and
        dwell.""",
    ),
    "two faults": (
        policy({"max_batch": 4, "steps": 5}, {"steps": "none"}, dwell=0),
        f"""{POLICY}: dwell is 0, not a whole number of decode rounds from 1.
        {POLICY}: steps of tier 2 is "none", not "full" or a whole number of draft steps from 0.""",
    ),
    "more steps than there are": (
        policy({"max_batch": 4, "steps": 5}, {"steps": 0}),
        f"{POLICY}: steps of tier 1 is 5, more than speculative_num_steps of the server (3).",
    ),
    "tier out of reach": (
        policy({"max_batch": 8, "steps": 3}, {"steps": 0}),
        f"""{POLICY}: max_batch of tier 1 is 8, not below max_running_requests of the server (8), so the last tier
        would never be used.""",
    ),
}
ACCEPTED = {
    "nothing": {},
    "threshold": {THRESHOLD: 4},
    "policy": policy(),
    "fusion": {"sglang_server_flashinfer_allreduce_fusion": True},
    "no draft": {"model_draft_path": ""},
}


@pytest.fixture(scope="module")
def patched(tmp_path_factory):
    refused = {name: variables for name, (variables, _) in REFUSED.items()}
    return resolve(tmp_path_factory.mktemp("patched"), ACCEPTED | refused, ACCEPTED, PATCHED)


@pytest.fixture(scope="module")
def stock(tmp_path_factory):
    return resolve(tmp_path_factory.mktemp("stock"), ACCEPTED, ACCEPTED, STOCK)


@pytest.mark.parametrize("case", REFUSED)
def test_refused_with_a_sentence(patched, case):
    assert " ".join(patched[case]["problems"]) == " ".join(REFUSED[case][1].split())


@pytest.mark.parametrize("case", ACCEPTED)
def test_accepted(patched, case):
    assert patched[case]["problems"] == []


@pytest.mark.parametrize("case", ["threshold", "policy"])
def test_a_release_without_the_option_is_named(stock, case):
    name, option = {
        "threshold": (THRESHOLD, "--speculative-disable-batch-threshold"),
        "policy": (POLICY, "--speculative-load-policy"),
    }[case]
    (problem,) = stock[case]["problems"]
    assert problem.startswith(f"{name}: the patch series of SGLang 0.5.9 does not add {option} (patches/sglang-0.5.9/")


def intent(found, case):
    return found[case]["_sglang_server_intent"]


def test_without_patches_no_option_of_theirs_is_used(stock):
    assert not set(intent(stock, "nothing")["options"]) & set(OPTIONS)
    assert intent(stock, "nothing")["load_policy"] is None


@pytest.mark.parametrize(("case", "on"), [("nothing", False), ("fusion", True)])
def test_fusion_is_said_for_every_value(patched, case, on):
    said = [option for option in intent(patched, case)["options"] if option.endswith("flashinfer-allreduce-fusion")]
    assert said == [f"--{'enable' if on else 'disable'}-flashinfer-allreduce-fusion"]
    report = intent(patched, case)["report"]
    assert report["enable_flashinfer_allreduce_fusion"] is on
    assert report["disable_flashinfer_allreduce_fusion"] is not on


def test_a_policy_is_one_word_of_the_command_line(patched):
    argv = intent(patched, "policy")["argv"]
    word = argv[argv.index("--speculative-load-policy") + 1]
    assert json.loads(word) == policy()[POLICY]
    assert intent(patched, "policy")["report"]["speculative_load_policy"] == word


def test_systemd_reads_that_word_from_the_unit(patched):
    unit = patched["policy"]["_sglang_server_asked"]["unit"]
    (line,) = [line for line in unit.splitlines() if "--speculative-load-policy" in line]
    # A word in double quotes, with C's escapes and systemd's own for % and $ (systemd.service(5)).
    word = line.strip().removeprefix("--speculative-load-policy ").removesuffix(" \\")
    assert json.loads(word.removeprefix('"').removesuffix('"').replace('\\"', '"')) == policy()[POLICY]


def test_another_policy_is_another_deployment(patched):
    deployments = [intent(patched, case)["deployment"] for case in ACCEPTED]
    assert len(set(deployments)) == len(ACCEPTED)


@pytest.mark.parametrize("case", ["threshold", "policy"])
def test_what_the_running_server_must_report(patched, case):
    assert intent(patched, case)["load_policy"] == {
        "tiers": [{"max_batch": 4, "steps": 3}, {"steps": 0}],
        "margin": 2,
        "dwell": 16,
    }


@pytest.mark.parametrize("case", ["nothing", "no draft"])
def test_where_nothing_is_asked_for_nothing_is_reported(patched, case):
    assert intent(patched, case)["load_policy"] is None


def test_the_threshold_is_always_said_where_there_is_speculation(patched):
    values = {case: intent(patched, case)["report"].get("speculative_disable_batch_threshold") for case in ACCEPTED}
    assert values == {"nothing": 0, "threshold": 4, "policy": 0, "fusion": 0, "no draft": None}


GROUP_AND_HOST = {
    "policy of a group, threshold of the host": (policy(), Setting(4)),
    "threshold of a group, policy of the host": ({THRESHOLD: 5}, Setting(0, policy()[POLICY])),
}


@pytest.fixture(scope="module")
def kept(tmp_path_factory):
    """What the role makes of a host whose own file says another thing than its group."""
    root = tmp_path_factory.mktemp("kept")
    cases = {}
    for number, (name, (group, setting)) in enumerate(GROUP_AND_HOST.items()):
        at = root / str(number)
        (at / "group_vars").mkdir(parents=True)
        (at / "hosts.yml").write_text("sglang_hosts: {hosts: {box: {}}}")
        (at / "group_vars/sglang_hosts.yml").write_text(json.dumps(group))
        speculation_file.write(inventory.read(at), "box", setting, Origin("fab", "today"))
        cases[name] = dict(inventory.read(at).hosts["box"])
    return resolve(tmp_path_factory.mktemp("resolved"), cases, (), PATCHED)


@pytest.mark.parametrize("case", GROUP_AND_HOST)
def test_a_hosts_own_file_takes_the_place_of_what_its_group_says(kept, case):
    assert kept[case]["problems"] == []
