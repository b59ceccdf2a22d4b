"""The server answers, and reports the settings that are asked for."""

import pytest
from differences import load_differences, tree_difference

pytestmark = pytest.mark.service


@pytest.fixture(scope="module")
def generation(ask, intent):
    """One greedy generation, long enough for several rounds of speculation."""
    sampling = {"temperature": 0, "max_new_tokens": 64}
    return ask("/generate", {"text": intent["server"]["prompt"], "sampling_params": sampling})


@pytest.fixture(scope="module")
def report(ask):
    return ask("/server_info")["body"]


def test_healthy(ask):
    assert ask("/health")["status"] == 200


def test_generates(generation):
    assert generation["status"] == 200
    assert generation["body"]["meta_info"]["completion_tokens"] > 0
    assert generation["body"]["text"].strip()


def test_speculation_is_accepted(generation, intent):
    if not intent["server"]["speculates"]:
        pytest.skip("sglang_server_speculative_algorithm is none: nothing is drafted")
    found, policy = generation["body"]["meta_info"], intent["server"]["load_policy"]
    if policy and policy["tiers"][0]["steps"] == 0:
        # One request alone is in the first tier, and a policy may find that speculation never pays.
        assert not found.get("spec_verify_ct")
    else:
        assert found["spec_accept_length"] > 1


def test_answers_the_openai_api_under_the_models_name(ask, intent):
    answer = ask(
        "/v1/completions",
        {"model": intent["server"]["model_name"], "prompt": intent["server"]["prompt"], "max_tokens": 8},
    )
    assert answer["status"] == 200
    assert answer["body"]["model"] == intent["server"]["model_name"]
    assert answer["body"]["choices"][0]["text"].strip()


def test_reports_the_settings_of_the_inventory(report, intent):
    asked = intent["server"]["report"]
    assert {field: report[field] for field in asked} == asked


def test_reports_the_version_of_the_release(report, intent):
    assert report["version"] == intent["sglang"]["version"]


def test_runs_from_the_source_tree_of_the_patch_series(report, intent, host, same):
    if not intent["sglang"]["series"]["patched"]:
        pytest.skip(f"the patch series of SGLang {intent['sglang']['version']} is empty: there is no tree to report")
    same(tree_difference(intent["sglang"]["series"], report, host.backend.host))


def test_speculation_follows_the_load_as_asked_for(report, intent, host, same):
    same(load_differences(intent["server"]["load_policy"], report, host.backend.host))
