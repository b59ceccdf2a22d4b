"""The unit runs with the properties and flags that are asked for."""

import json

import pytest
from differences import environment_differences

pytestmark = pytest.mark.service


def test_enabled(service):
    assert service.is_enabled


def test_running(properties):
    assert (properties["ActiveState"], properties["SubState"]) == ("active", "running")


def test_properties(properties, intent):
    asked = intent["server"]["properties"]
    assert {name: properties.get(name, "") for name in asked} == asked


def test_the_process_runs_with_the_flags(host, main_pid, intent):
    cmdline = host.check_output("tr '\\0' '\\n' < /proc/%s/cmdline", main_pid).split("\n")
    assert cmdline == intent["server"]["argv"]


def test_the_process_has_the_environment(host, main_pid, intent, same):
    environ = host.check_output("tr '\\0' '\\n' < /proc/%s/environ", main_pid).split("\n")
    running = dict(line.split("=", 1) for line in environ if "=" in line)
    same(environment_differences(intent["server"]["environment"], running))


@pytest.fixture(scope="module")
def ready(host, intent):
    return json.loads(host.file(intent["server"]["ready_record"]).content_string)


def test_the_deployment_that_is_ready_is_the_one_asked_for(ready, intent, main_pid):
    assert (ready["deployment"], str(ready["pid"])) == (intent["server"]["deployment"], main_pid)


def test_garbage_collection_is_frozen_as_asked_for(ready, intent):
    assert ready["gc_frozen"] == intent["server"]["freeze_gc"]


def test_a_rollback_would_find_this_deployment(host, intent):
    record = json.loads(host.file("/var/lib/sglang/deployments/good/deployment.json").content_string)
    assert record == {"deployment": intent["server"]["deployment"], "release": intent["sglang"]["release"]}


def test_not_restarted_by_systemd_since_it_was_started(properties):
    assert properties["NRestarts"] == "0"
