"""What the role model makes of its variables, and of what a host has: refusals, downloads, waits, what is removed."""

import json
import os
import subprocess
import sys
import threading
from pathlib import Path

import hub_mirror
import pytest
from hub_mirror import REVISION, Faults, Mirror, made_model

from blackwell import paths

MODELS = "/var/lib/sglang/models"
TARGET = {"model_repository": "org/target", "model_revision": REVISION}
DRAFT = {"model_draft_repository": "org/draft", "model_draft_revision": REVISION}
REFUSED = {
    "nothing": (
        {},
        """model_path is not set: name the directory on the host that holds the model, or a repository in
        model_repository.""",
    ),
    "no such path": (
        {"model_path": "/no/model", "model_draft_path": "/no/draft"},
        """model_path, model_draft_path: no config.json on the host in /no/model and /no/draft: put the model there
        first, or correct the variable.""",
    ),
    "branch": (
        TARGET | {"model_revision": "main"},
        """model_revision: main is not the 40 hexadecimal digits of a commit of org/target: a branch or a tag may
        change; take the commit from the history of its files on the hub.""",
    ),
    "no commit": (
        TARGET | {"model_draft_repository": "org/draft"},
        """model_draft_revision: it is not set, and must be the 40 hexadecimal digits of a commit of org/draft: a branch
        or a tag may change; take the commit from the history of its files on the hub.""",
    ),
    "commit and more": (
        TARGET | {"model_revision": f"{REVISION}\n"},
        f"""model_revision: {REVISION} is not the 40 hexadecimal digits of a commit of org/target: a branch or a tag may
        change; take the commit from the history of its files on the hub.""",
    ),
    "no repository": (
        TARGET | {"model_draft_revision": REVISION},
        """model_draft_revision is set without model_draft_repository: name the repository that it is a commit of, or
        remove it.""",
    ),
    "no name": (
        TARGET | {"model_repository": "org/../up"},
        "model_repository: org/../up is not the name of a repository, such as org/name.",
    ),
    "path and repository": (
        TARGET | DRAFT | {"model_draft_path": "/srv/draft"},
        """model_path, model_draft_path: no config.json on the host in /srv/draft: put the model there first, or correct
        the variable. model_draft_repository and model_draft_path are both set: keep one of them.""",
    ),
    "no URL": (
        TARGET | {"model_hub": "hub.example"},
        "model_hub: hub.example is not a URL, such as https://huggingface.co.",
    ),
    "no word of a unit": (
        TARGET | {"model_hub": "https://hub.example/a b"},
        "model_hub: https://hub.example/a b is not a URL, such as https://huggingface.co.",
    ),
    "password": (
        TARGET | {"model_hub": "https://me:pw@hub.example"},
        """model_hub holds a user or a password, and would be written into logs: name one that asks for a token, in
        model_hub_token.""",
    ),
    "token in the clear": (
        TARGET | {"model_hub": "http://hub.example", "model_hub_token": "hf_secret"},
        "model_hub: http://hub.example would get model_hub_token unencrypted: use https, or leave the token out.",
    ),
    "token to a name like loopback": (
        TARGET | {"model_hub": "http://127.0.0.1.example", "model_hub_token": "hf_secret"},
        "model_hub: http://127.0.0.1.example would get model_hub_token unencrypted: use https, or leave the token out.",
    ),
    "directory": (
        TARGET | {"model_directory": "/srv/my models"},
        """model_directory: /srv/my models is not an absolute path of letters, digits and any of ._/@+=,- (systemd reads
        it from a unit).""",
    ),
    "numbers": (
        TARGET | {"model_fetch_timeout": 0, "model_revisions_kept": -1},
        """model_fetch_timeout: 0 is not a number of seconds from 1. model_revisions_kept: -1 is not a number of models
        from 0.""",
    ),
    "gated": (
        TARGET | DRAFT,
        """model_repository: {hub} answers 401 for org/target, which needs a token or is not there: set model_hub_token
        to one that may read it, or correct the name. model_draft_repository: {hub} answers 401 for org/draft, which
        needs a token or is not there: set model_hub_token to one that may read it, or correct the name.""",
    ),
    "a look that fails": (
        TARGET | {"sglang_python": "{{ old_python }}"},
        """model_repository, model_draft_repository: {old_python} on the host could not look for them (SyntaxError: of
        old): install Python 3.9 or newer on the host.""",
    ),
}
TOKEN = {"model_hub_token": "hf_secret"}
LISTED = [
    f"complete=org--new/{'1' * 40}", f"complete=org--middle/{'2' * 40}", f"complete=org--target/{REVISION}",
    f"complete=org--rollback/{'3' * 40}", f"complete=org--old/{'4' * 40}", "complete=org--hand/made",
    f"partial=org--target/.partial-{'5' * 40}", f"partial=org--target/.partial-{REVISION}",
    "partial=org--x/.partial-mine", f"used=org--rollback/{'3' * 40}",
]  # fmt: skip
ACCEPTED = {
    "both": TARGET | DRAFT | TOKEN,
    "no draft": TARGET | TOKEN,
    "no python": TARGET | {"sglang_python": "/no/python"},
    "short": {"model_fetch_timeout": 20},
    "long": {"model_fetch_timeout": 9000},
    "kept 1": TARGET | TOKEN | {"_model_listed": {"stdout_lines": LISTED}},
    "kept 0": TARGET | TOKEN | {"_model_listed": {"stdout_lines": LISTED}, "model_revisions_kept": 0},
}
OLD_PYTHON = """#!/bin/sh
# As an interpreter does, it reads the program before it complains: a writer whose reader is gone says something else.
[ "$1" = -c ] || { cat >/dev/null; echo Traceback; echo "SyntaxError: of old"; exit 1; } >&2
"""
PLAYBOOK = """
- hosts: all
  gather_facts: false
  tasks:
    - import_role: {{name: sglang, tasks_from: intent}}
    - import_role: {{name: model, tasks_from: preflight}}
    - set_fact:
        problems: "{{{{ _model_problems }}}}"
        absent: "{{{{ _model_absent | map(attribute='unit') }}}}"
        paths: "{{{{ [model_path, model_draft_path] }}}}"
        waits: "{{{{ _model_waits }}}}"
        superfluous: "{{{{ _model_superfluous }}}}"
    - copy:
        dest: {out}
        content: "{{{{ dict(ansible_play_hosts | zip(ansible_play_hosts | map('extract', hostvars))) | to_json }}}}"
        mode: "0600"
      run_once: true
"""


@pytest.fixture(scope="module")
def hub():
    """A hub whose repositories are gated."""
    repositories = {"org/target": made_model(shards=1, size=5000), "org/draft": made_model(shards=1, size=7000)}
    made = hub_mirror.Server(Mirror(repositories, Faults(token="hf_secret")))
    threading.Thread(target=made.serve_forever, daemon=True).start()
    yield made
    made.shutdown()
    made.server_close()


@pytest.fixture(scope="module")
def played(tmp_path_factory, hub):
    """Facts by case, after the real look at this machine and at the hub; what Ansible printed."""
    scratch = tmp_path_factory.mktemp("model")
    old_python = scratch / "python"
    old_python.write_text(OLD_PYTHON)
    old_python.chmod(0o755)
    common = {
        "ansible_connection": "local",
        "ansible_python_interpreter": sys.executable,
        "sglang_device": "cpu",
        "sglang_python": sys.executable,
        "old_python": str(old_python),
        "model_hub": f"{hub.url}/",
    }
    cases = {name: variables for name, (variables, _) in REFUSED.items()} | ACCEPTED
    hosts = {name.replace(" ", "_"): common | variables for name, variables in cases.items()}
    inventory, playbook, out = scratch / "hosts.json", scratch / "play.yml", scratch / "out.json"
    inventory.write_text(json.dumps({"all": {"hosts": hosts}}))
    playbook.write_text(PLAYBOOK.format(out=out))
    done = subprocess.run(
        [Path(sys.executable).with_name("ansible-playbook"), "-i", inventory, playbook, "--diff", "-vvv"],
        env=os.environ | {"ANSIBLE_CONFIG": str(paths.ROOT / "ansible.cfg")},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads(out.read_text()), done.stdout + done.stderr


@pytest.fixture(scope="module")
def resolved(played):
    return lambda case: played[0][case.replace(" ", "_")]


@pytest.mark.parametrize("case", REFUSED)
def test_refused_with_a_sentence(resolved, hub, case):
    wanted = REFUSED[case][1].replace("{hub}", hub.url).replace("{old_python}", resolved(case)["old_python"])
    assert " ".join(" ".join(resolved(case)["problems"]).split()) == " ".join(wanted.split())


@pytest.mark.parametrize("case", ["both", "no draft"])
def test_what_can_be_fetched_is_accepted(resolved, case):
    assert resolved(case)["problems"] == []


def test_a_repository_is_served_from_where_it_is_fetched_to(resolved):
    target, draft = f"{MODELS}/org--target/{REVISION}", f"{MODELS}/org--draft/{REVISION}"
    assert resolved("both")["paths"] == [target, draft]
    assert resolved("no draft")["paths"] == [target, ""]
    assert resolved("both")["absent"] == ["blackwell-model-target", "blackwell-model-draft"]
    assert resolved("no draft")["absent"] == ["blackwell-model-target"]


def test_without_the_interpreter_nothing_is_asked_and_its_own_check_says_so(resolved):
    assert resolved("no python")["problems"] == []


def test_the_token_is_in_nothing_that_ansible_prints(played):
    look = played[1].partition("See what is to be fetched")[2].partition("TASK [set_fact]")[0]
    assert "the output has been hidden" in look
    assert "hf_secret" not in look


@pytest.mark.parametrize(
    ("case", "waits"),
    [("short", [5, 10, 5]), ("long", [5, 10, 20, 40, 80, 160, 320, 640, 1280, 2560, 3600, 285])],
)
def test_it_is_waited_for_as_long_as_is_said(resolved, case, waits):
    assert resolved(case)["waits"] == waits


@pytest.mark.parametrize(
    ("case", "models"),
    [("kept 1", ["org--middle/2", "org--old/4"]), ("kept 0", ["org--new/1", "org--middle/2", "org--old/4"])],
)
def test_only_what_was_fetched_and_nothing_needs_is_removed(resolved, case, models):
    partial = f"org--target/.partial-{'5' * 40}"
    assert resolved(case)["superfluous"] == [model + model[-1] * 39 for model in models] + [partial]
