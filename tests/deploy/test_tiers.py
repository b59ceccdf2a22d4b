"""The patched server on a host, by the interpreter and the packages of its release: the tests of ``tests/patches``."""

import pytest
from target import CPU_ENVIRONMENT

from blackwell import paths

HERE = "/root/tiers"
PYTHON = (
    f"{CPU_ENVIRONMENT} PYTHONPYCACHEPREFIX={HERE}/pycache PYTHONPATH={HERE}/standin/tests:{HERE}/tests/patches "
    "/opt/sglang/current/venv/bin/python"
)


@pytest.fixture(scope="module")
def suite(deployed):
    """The tests and what they share with the stand-in's, copied to the host."""
    deployed.unpack(HERE, "standin/tests", "tests/patches")
    return deployed


@pytest.mark.parametrize("module", sorted(path.stem for path in (paths.ROOT / "tests" / "patches").glob("test_*.py")))
def test_module(suite, module):
    said = suite.ssh(f"cd {HERE} && {PYTHON} -m unittest -v {module} 2>&1", check=False)
    assert said.splitlines()[-1] == "OK", said
