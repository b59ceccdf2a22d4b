"""Verification of a deployed host over SSH: what runs is compared with what the inventory asks for.

Run by ``run.py`` for ``scripts/verify`` and ``playbooks/verify.yml``, with one JSON file of what is asked of each host.
"""

import json
import shlex
from pathlib import Path

import pytest

HERE = Path(__file__).parent


def pytest_addoption(parser):
    parser.addoption("--intent", type=Path, required=True, help="file with what is asked of each host")


def pytest_configure(config):
    config.addinivalue_line("markers", "service: a failure shows the end of the service's journal")
    config.addinivalue_line("markers", "gpu: needs a host with GPUs")


@pytest.fixture(scope="module")
def intent(request, host):
    return json.loads(request.config.getoption("--intent").read_text(encoding="utf-8"))[host.backend.host]


@pytest.fixture(scope="module", autouse=True)
def _deployed(host):
    if host.run("systemctl cat sglang.service").rc != 0:
        pytest.fail(f"{host.backend.host} has no sglang.service: deploy to it with site.yml first", pytrace=False)


@pytest.fixture(autouse=True)
def _gpu_only(request):
    if request.node.get_closest_marker("gpu") and request.getfixturevalue("intent")["sglang"]["device"] != "cuda":
        pytest.skip("sglang_device is not cuda: this host has no GPU to look at")


@pytest.fixture(scope="module")
def service(host):
    return host.service("sglang")


@pytest.fixture(scope="module")
def properties(service):
    return service.systemd_properties


@pytest.fixture(scope="module")
def main_pid(properties):
    return properties["MainPID"]


@pytest.fixture(scope="module")
def on_host(host, intent):
    """Runs a program of this directory on the host with the unit's own interpreter; returns its JSON output."""

    def run(program: str, *arguments: str):
        source = (HERE / program).read_text(encoding="utf-8")
        words = [intent["server"]["argv"][0], "-I", "-c", source, *arguments]
        return json.loads(host.check_output(shlex.join(words)))

    return run


@pytest.fixture(scope="module")
def ask(on_host, intent):
    """Sends a request to the server from its own host; returns ``{"status": ..., "body": ...}``."""
    address, port = intent["server"]["host"], intent["server"]["port"]

    def request(path: str, body=None):
        url = f"http://{f'[{address}]' if ':' in address else address}:{port}{path}"
        return on_host("ask_server.py", url, json.dumps(body))

    return request


@pytest.fixture(scope="session")
def same():
    """Fails with the sentences that say what differs, if there are any."""

    def check(sentences: list[str]):
        if sentences:
            pytest.fail("\n".join(sentences), pytrace=False)

    return check


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item):
    report = yield
    if report.failed and item.get_closest_marker("service") and "host" in item.funcargs:
        journal = item.funcargs["host"].run("journalctl --unit=sglang.service --lines=40 --no-pager --output=short-iso")
        report.sections.append(("journal of sglang.service", journal.stdout or journal.stderr))
    return report
