"""The doctor of the GPUs, asked by the operator's: for which hosts, with what, and what became of it."""

import json

import pytest

from blackwell import gpus
from blackwell.findings import OK, PROBLEM, WARNING, Finding

USUAL = [
    *("--driver=580", "--capability=12.0", "--refuse-nccl=2.26.2"),
    "--warn=acs,clocks,ecc,iommu,link,p2p,power",
]


@pytest.mark.parametrize(
    "variables",
    [{"sglang_device": "cpu"}, {"preflight_gpu_count": 0}, {"sglang_device": "cpu", "sglang_server_tp_size": 2}],
)
def test_a_host_that_wants_no_card_is_not_asked_for_one(variables):
    assert gpus.wanted(variables) is None


@pytest.mark.parametrize(
    ("variables", "count"),
    [
        ({}, 1),
        ({"sglang_server_tp_size": 4}, 4),
        ({"sglang_server_tp_size": "{{ cards }}"}, 1),
        ({"sglang_server_profile": "kimi_k25_int4"}, 8),
        ({"sglang_device": "cpu", "preflight_gpu_count": 2}, 2),
    ],
)
def test_how_many_cards_are_wanted(variables, count):
    found = gpus.wanted(variables)
    assert found["arguments"] == ["--json", f"--gpus={count}", *USUAL]
    assert found["program"].startswith("#!/usr/bin/env python3")


def test_what_the_inventory_asks_of_the_cards():
    variables = {
        "preflight_gpu_driver": "595.1",
        "preflight_gpu_capability": 9.0,
        "preflight_gpu_nccl_refused": [],
        "preflight_gpu_warnings": ["p2p", "acs"],
    }
    assert gpus.wanted(variables)["arguments"][2:] == [
        *("--driver=595.1", "--capability=9.0", "--refuse-nccl=", "--warn=p2p,acs"),
    ]


def test_what_only_a_play_resolves_is_left_to_the_program():
    variables = {"preflight_gpu_driver": "{{ driver }}", "preflight_gpu_warnings": ["acs", "{{ more }}"]}
    assert gpus.wanted(variables)["arguments"][2:] == ["--capability=12.0", "--refuse-nccl=2.26.2"]


def test_findings():
    told = [
        {"name": "acs", "level": WARNING, "what": "ACS redirects", "remedy": "setpci"},
        {"name": "count", "level": OK, "what": "8 x RTX, driver 580", "remedy": ""},
    ]
    assert gpus.findings({"text": json.dumps({"host": "box", "exit": 1, "findings": told})}) == [
        Finding(WARNING, "ACS redirects (acs)", "setpci"),
        Finding(OK, "8 x RTX, driver 580"),
    ]
    assert gpus.findings(None) == []


@pytest.mark.parametrize(("error", "level"), [("no answer within 100 s", PROBLEM), ("it said nothing", WARNING)])
def test_cards_that_could_not_be_looked_at(error, level):
    (finding,) = gpus.findings({"error": error})
    assert (finding.level, finding.what) == (level, f"the GPUs could not be looked at: {error}")
