"""The patched server on a host, by the interpreter and the packages of its release: the tests of ``tests/patches``."""

import subprocess

import pytest
from target import SETTINGS

from blackwell import paths
from blackwell.sandbox import api

HERE = "/root/tiers"
ENVIRONMENT = "SGLANG_USE_CPU_ENGINE=1 TORCHDYNAMO_DISABLE=1 OMP_NUM_THREADS=1 HF_HUB_OFFLINE=1"
PYTHON = (
    f"{ENVIRONMENT} PYTHONPYCACHEPREFIX={HERE}/pycache PYTHONPATH={HERE}/standin/tests:{HERE}/tests/patches "
    "/opt/sglang/current/venv/bin/python"
)


@pytest.fixture(scope="module")
def suite(deployed):
    """The tests and what they share with the stand-in's, copied to the host."""
    words = ["tar", "-C", paths.ROOT, "-c", "standin/tests", "tests/patches"]
    archive = subprocess.run(words, check=True, capture_output=True).stdout
    command = [*api.ssh_command(deployed.host, settings=SETTINGS), f"rm -rf {HERE}; mkdir {HERE} && tar -C {HERE} -x"]
    subprocess.run(command, input=archive, check=True)
    return deployed


@pytest.mark.parametrize("module", sorted(path.stem for path in (paths.ROOT / "tests" / "patches").glob("test_*.py")))
def test_module(suite, module):
    said = suite.ssh(f"cd {HERE} && {PYTHON} -m unittest -v {module} 2>&1", check=False)
    assert said.splitlines()[-1] == "OK", said
