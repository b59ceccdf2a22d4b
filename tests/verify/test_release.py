"""The release on the host is the one that is asked for, whole, and the one that the service's interpreter imports."""

import json
import shlex

import pytest
from differences import option_differences, source_differences


@pytest.fixture(scope="module")
def server_args(on_host):
    return on_host("read_server_args.py")


def test_release_is_complete_and_built_from_what_is_asked_for(host, intent):
    record = json.loads(host.file(f"{intent['sglang']['release_dir']}/release.json").content_string)
    asked = {"release": intent["sglang"]["release"], "build": intent["sglang"]["build"]}
    assert {name: record[name] for name in asked} == asked


def test_current_is_that_release(host, intent):
    assert host.file(intent["sglang"]["current"]).linked_to == intent["sglang"]["release_dir"]


def test_the_units_interpreter_imports_the_releases_server_args(server_args, intent):
    assert server_args["path"] == f"{intent['sglang']['release_dir']}/src/sglang/srt/server_args.py"


def test_every_option_of_the_unit_is_known_to_it(server_args, intent):
    assert not set(intent["server"]["options"]) - set(server_args["options"])


def test_every_setting_is_a_field_of_it(server_args, intent):
    assert not set(intent["server"]["report"]) - set(server_args["fields"])


def test_it_has_what_the_patch_series_adds(server_args, intent, same):
    same(option_differences(intent["sglang"]["series"]["options"], server_args))


def test_every_file_is_that_of_the_package_and_the_patch_series(on_host, intent, same):
    series = intent["sglang"]["series"]
    asked = {"files": series["files"], "generated": series["generated"]}
    same(source_differences(on_host("compare_sources.py", json.dumps(asked)), series["files"]))


@pytest.mark.gpu
def test_what_is_installed_has_code_for_the_cards(host, intent, same):
    asked = intent["sglang"]
    done = host.run(f"cd {shlex.quote(asked['cache_dir'])} && {shlex.join(asked['kernel_check'])}")
    assert done.rc in {0, 1}, done.stderr
    same(json.loads(done.stdout.splitlines()[-1])["problems"])


def test_the_service_cannot_change_its_own_code(host, intent):
    writable = host.run(
        "runuser -u %s -- env --chdir=/ find %s/src %s/venv -maxdepth 5 -writable -not -type l",
        intent["sglang"]["user"],
        intent["sglang"]["release_dir"],
        intent["sglang"]["release_dir"],
    )
    assert writable.rc == 0
    assert writable.stdout == ""


def test_cache_belongs_to_the_service(host, intent):
    user = intent["sglang"]["user"]
    assert host.check_output("stat -c '%%U %%G %%a' %s", intent["sglang"]["cache_dir"]) == f"{user} {user} 750"
