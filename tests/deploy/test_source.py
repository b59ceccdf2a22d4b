"""The stock source from a tag or a checkout on the host: refused before anything changes, or the very same release."""

import json
import shlex
import subprocess

import pytest
from target import SETTINGS, Target
from test_site import refusal

from blackwell import paths
from blackwell.sandbox import api

PATCHES = paths.ROOT / "patches/sglang-0.5.9"
ELSEWHERE = {"sglang_release_revision": "source"}
"""A release of its own, as a complete one is not built again."""
# As when a person other than root made it; `evil` is what root must not execute.
MAKE = """set -e
rm -rf /root/sglang && mkdir -p /root/sglang/python && cd /root/sglang
python3 -m zipfile -e /root/wheels/*.whl /root/unpacked && mv /root/unpacked/sglang python/ && rm -r /root/unpacked
rm python/sglang/_version.py
echo 'tag_only = 1' >python/sglang/tag_only.py && echo '[project]' >python/pyproject.toml
git init --quiet && git config user.name Owner && git config user.email owner@example.org
git add --force . && git commit --quiet --message tag && git tag v0.5.9
printf '#!/bin/sh\\ntouch /root/executed\\n' >.git/evil && chmod +x .git/evil
git config core.fsmonitor /root/sglang/.git/evil
useradd --system owner 2>/dev/null || :
chown -R owner: /root/sglang"""


def put(base, local, there) -> None:
    """Copies a file to a host."""
    with local.open("rb") as content:
        command = [*api.ssh_command(base.host, settings=SETTINGS), f"mkdir -p {there} && cat >{there}/{local.name}"]
        subprocess.run(command, stdin=content, check=True)


@pytest.fixture(scope="module")
def base(deployed) -> Target:
    """The deployed host, with a repository in the tag's layout that another user owns."""
    stock = json.loads((PATCHES / "manifest.json").read_text())["base"]
    put(deployed, paths.cache() / "wheelhouse/wheels" / stock["sha256"] / stock["wheel"], "/root/wheels")
    deployed.ssh(MAKE)
    yield deployed
    deployed.ssh("rm -rf /root/sglang /root/wheels /root/by-tag /root/executed")


def checkout(base) -> str:
    """What reading a checkout must leave as it is."""
    return base.ssh("cd /root/sglang && find . -printf '%p %u %m %s %T@\\n' | sort | sha256sum")


@pytest.mark.parametrize(
    ("variables", "reason"),
    [
        ({"sglang_source": "git"}, "value of sglang_source must be one of: package, tag, checkout, got: git"),
        ({"sglang_source_chekout": "/x"}, "did you mean sglang_source_checkout?"),
        ({"sglang_source": "checkout"}, "sglang_source_checkout: it is not set"),
        ({"sglang_source": "checkout", "sglang_source_checkout": "/root/none"}, "checkout: /root/none is not there"),
        ({"sglang_source": "checkout", "sglang_source_checkout": "/etc"}, "checkout: /etc is not a git repository"),
        (
            {"sglang_source": "tag", "sglang_source_repository": "/root/sglang", "sglang_source_tag": "v9"},
            "sglang_source_repository: /root/sglang has no tag v9",
        ),
        ({"sglang_source": "tag", "sglang_source_repository": "root/sglang"}, "root/sglang is neither a URL"),
        ({"sglang_source_repository": "https://me:pw@example.org/x"}, "holds a user or a password"),
        ({"sglang_source_tag": "--all"}, "sglang_source_tag: --all is not the name of a tag"),
    ],
)
def test_a_road_that_cannot_work_is_refused(base, variables, reason):
    said = refusal(base.play("--tags", "preflight", **ELSEWHERE, **variables))
    assert reason in said
    assert "1 to mend" in said


def test_a_patched_checkout_is_refused_with_the_list_before_anything_changes(base):
    base.ssh("cd /root/sglang && echo 'patched = 1' >>python/sglang/version.py && rm python/sglang/utils.py "
             "&& touch python/sglang/new.py")  # fmt: skip
    before = base.fingerprint(), checkout(base)
    said = refusal(base.play(**ELSEWHERE, sglang_source="checkout", sglang_source_checkout="/root/sglang"))
    assert "sglang_source_checkout: /root/sglang differs from its tag v0.5.9 in 3 files: " in said
    for name in ("new.py (untracked)", "utils.py (deleted)", "version.py (modified)"):
        assert f"python/sglang/{name}" in said
    assert (base.fingerprint(), checkout(base)) == before
    base.ssh(MAKE)


def test_a_tag_that_is_not_the_package_is_refused_and_what_runs_goes_on(base):
    base.ssh("cd /root/sglang && git -c safe.directory='*' -c core.fsmonitor=false rm --quiet python/sglang/version.py "
             "&& git -c safe.directory='*' -c core.fsmonitor=false commit --quiet --message other "
             "&& git -c safe.directory='*' tag v0.5.9-other")  # fmt: skip
    before = base.fingerprint(), base.ready
    run = base.play("--tags", "sglang", **ELSEWHERE, sglang_source="tag", sglang_source_repository="/root/sglang",
                    sglang_source_tag="v0.5.9-other")  # fmt: skip
    assert run.returncode != 0
    said = " ".join(run.output.split())
    assert "tag v0.5.9-other of /root/sglang is not the package that the series is made for" in said
    assert "it lacks sglang/version.py" in said
    assert "was not built, and what there was of it is removed; what runs goes on" in said
    assert (len(base.ssh("ls /opt/sglang/releases").split()), base.ssh("ls /opt/sglang")) == (1, "current\nreleases")
    assert base.ready == before[1]
    assert base.generates()
    base.ssh(MAKE)


def test_by_a_checkout_of_another_user_the_release_is_the_same(base):
    before, old = checkout(base), base.ssh("readlink /opt/sglang/current")
    road = {"sglang_source": "checkout", "sglang_source_checkout": "/root/sglang"}
    run = base.play("--tags", "sglang", **ELSEWHERE, **road)
    assert run.returncode == 0, run.output
    new = base.ssh("readlink /opt/sglang/current")
    assert new == f"{old}.source"
    assert base.ssh(f"diff -r {old}/src {new}/src && echo same") == "same"
    tree = base.record(f"{old}/release.json")["build"]["tree"]
    assert base.ssh(f"cat {new}/src/sglang/_patch_tree") == tree
    assert base.record(f"{new}/release.json")["build"] == base.record(f"{old}/release.json")["build"]
    commit = base.ssh("git -c safe.directory='*' -C /root/sglang rev-parse v0.5.9")
    assert base.record(f"{new}/release.json")["source"] == {
        "road": "checkout", "checkout": "/root/sglang", "tag": "v0.5.9", "commit": commit,
    }  # fmt: skip
    assert base.record(f"{old}/release.json")["source"] == {"road": "package"}
    assert checkout(base) == before
    assert base.ssh("test ! -e /root/executed && echo nothing") == "nothing"


def test_by_another_road_a_complete_release_is_the_same_and_its_source_is_not_needed(base):
    base.ssh("rm -r /root/sglang")
    for road in ({}, {"sglang_source": "checkout", "sglang_source_checkout": "/root/sglang"}):
        run = base.play("--tags", "sglang", **ELSEWHERE, **road)
        assert (run.returncode, run.recap["changed"]) == (0, 0), run.output
    base.ssh(MAKE)
    new = base.ssh("readlink /opt/sglang/current")
    run = base.play("--tags", "sglang")
    assert run.returncode == 0, run.output
    base.ssh(shlex.join(["rm", "-r", new]))


def test_by_a_tag_the_tree_is_the_same(base):
    for path in (paths.ROOT / "roles/sglang/files").glob("*.py"):
        put(base, path, "/root/by-tag")
    for path in PATCHES.iterdir():
        put(base, path, "/root/by-tag/patches")
    words = "--patches=patches --wheels=/root/wheels --out=out --repository=/root/sglang --tag=v0.5.9"
    made = json.loads(base.ssh(f"cd /root/by-tag && python3 source_tree.py {words}"))
    assert made["tree"] == base.record("/opt/sglang/current/release.json")["build"]["tree"]
    assert base.ssh("diff -r /root/by-tag/out /opt/sglang/current/src && echo same") == "same"
    assert base.ssh("test ! -e /root/executed && echo nothing") == "nothing"
