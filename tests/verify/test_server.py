"""The server answers, and reports the settings that are asked for."""

import pytest

pytestmark = pytest.mark.service


def test_healthy(ask):
    assert ask("/health")["status"] == 200


def test_generates(ask, intent):
    answer = ask(
        "/generate", {"text": intent["server"]["prompt"], "sampling_params": {"temperature": 0, "max_new_tokens": 32}}
    )
    assert answer["status"] == 200
    assert answer["body"]["meta_info"]["completion_tokens"] > 0
    assert answer["body"]["text"].strip()


def test_answers_the_openai_api_under_the_models_name(ask, intent):
    answer = ask(
        "/v1/completions",
        {"model": intent["server"]["model_name"], "prompt": intent["server"]["prompt"], "max_tokens": 8},
    )
    assert answer["status"] == 200
    assert answer["body"]["model"] == intent["server"]["model_name"]
    assert answer["body"]["choices"][0]["text"].strip()


def test_reports_the_settings_of_the_inventory(ask, intent):
    report = ask("/server_info")["body"]
    asked = intent["server"]["report"]
    assert {field: report[field] for field in asked} == asked


def test_reports_the_version_of_the_release(ask, intent):
    assert ask("/server_info")["body"]["version"] == intent["sglang"]["version"]


def test_speculation_is_accepted(ask, intent):
    if not intent["server"]["speculates"]:
        pytest.skip("sglang_server_speculative_algorithm is none: nothing is drafted")
    answer = ask(
        "/generate", {"text": intent["server"]["prompt"], "sampling_params": {"temperature": 0, "max_new_tokens": 64}}
    )
    assert answer["body"]["meta_info"]["spec_accept_length"] > 1
