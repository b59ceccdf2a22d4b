"""The toolkit that the server is given compiles kernels for the cards, as the user that the server runs as."""

import shlex

import pytest


@pytest.fixture
def toolkit(intent):
    asked = intent["cuda"]
    if not asked["home"]:
        pytest.skip("neither cuda_manage nor cuda_home asks for a CUDA toolkit on this host")
    return asked


@pytest.fixture
def proved(host, intent, toolkit):
    """What came out of the toolkit, by its name."""
    words = ["sh", "-c", toolkit["proof"], "prove_toolkit", toolkit["home"], toolkit["architecture"]]
    said = host.check_output(shlex.join(["runuser", f"--user={intent['sglang']['user']}", "--", *words]))
    return dict(line.split("=", 1) for line in said.splitlines() if "=" in line)


def test_it_compiles_a_kernel_for_the_cards_as_the_services_user(proved, toolkit):
    assert proved["version"].startswith(f"{toolkit['version']}.") or not toolkit["version"]
    assert proved["target"] == toolkit["architecture"]
    assert proved["linked"] == "libcudart.so.13"


def test_the_service_cannot_change_it(host, intent, toolkit):
    user = intent["sglang"]["user"]
    writable = host.run(
        "runuser -u %s -- env --chdir=/ find -H %s -maxdepth 3 -writable -not -type l", user, toolkit["home"]
    )
    assert writable.rc == 0
    assert writable.stdout == ""
