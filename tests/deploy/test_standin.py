"""The stand-in for CUDA, run by the interpreter and the packages of a release, and what the service makes of it."""

import sys

import pytest
from target import CPU_ENVIRONMENT

from blackwell import paths

sys.path.insert(0, str(paths.ROOT / "standin" / "src"))
from sglang_cpu_standin import counting

HERE = "/root/suite"
PYTHON = f"{CPU_ENVIRONMENT} PYTHONPYCACHEPREFIX={HERE}/pycache /opt/sglang/current/venv/bin/python"


@pytest.fixture(scope="module")
def suite(deployed):
    """The stand-in's sources with its own tests, copied to the host."""
    deployed.unpack(HERE, "standin")
    return deployed


def test_every_operation(suite):
    said = suite.ssh(f"cd {HERE} && {PYTHON} -m unittest discover -s standin/tests 2>&1", check=False)
    assert said.splitlines()[-1].startswith("OK"), said


def test_a_server_with_speculation_says_what_one_without_says(suite):
    said = suite.ssh(f"cd {HERE} && {PYTHON} standin/tests/test_server.py 2>&1", check=False)
    assert said.splitlines()[-1].startswith("OK"), said


@pytest.mark.parametrize("word", [5, 250, 1000])
def test_the_service_counts_and_its_drafts_are_accepted_as_computed(deployed, word):
    body = {"text": f"n{word}", "sampling_params": {"temperature": 0, "max_new_tokens": 64}}
    answer = deployed.request("/generate", body)["body"]
    assert answer["text"].split() == counting.expected_text(word, 64).split()
    assert answer["meta_info"]["spec_verify_ct"] == pytest.approx(len(counting.accepted_lengths(word, 64, 3)), abs=1)
    assert answer["meta_info"]["spec_accept_length"] > 2
