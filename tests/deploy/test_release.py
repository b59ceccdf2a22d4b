"""What measures a server, by the interpreter and the packages of a release: the tests of ``tests/release``."""

import json

import pytest
from rendered_profiles import render
from target import CPU_ENVIRONMENT

from blackwell import paths

HERE = "/root/release"
PATH = ":".join(f"{HERE}{folder}" for folder in ("", "/standin/tests", "/tests/unit", "/tests/release"))
PYTHON = f"{CPU_ENVIRONMENT} PYTHONPYCACHEPREFIX={HERE}/pycache PYTHONPATH={PATH} /opt/sglang/current/venv/bin/python"


@pytest.fixture(scope="module")
def suite(deployed, tmp_path_factory):
    """The tests, what they test and what they share with others, copied to the host."""
    deployed.unpack(HERE, "blackwell", "standin/tests", "tests/unit", "tests/release")
    servers = render(deployed, tmp_path_factory.mktemp("profiles"))
    deployed.write(f"{HERE}/tests/release/profiles.json", json.dumps(servers).encode())
    return deployed


@pytest.mark.parametrize("module", sorted(path.stem for path in (paths.ROOT / "tests" / "release").glob("test_*.py")))
def test_module(suite, module):
    said = suite.ssh(f"cd {HERE} && {PYTHON} -m unittest -v {module} 2>&1", check=False)
    assert said.splitlines()[-1] == "OK", said
