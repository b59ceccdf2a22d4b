"""host_vars/<host>/speculation.yml: written whole, undone, and never over what somebody else wrote."""

import json
import os
import re
import subprocess

import pytest

from blackwell import inventory, paths, speculation_file
from blackwell.host_errors import HostError
from blackwell.speculation_file import BEFORE, NAME
from blackwell.speculation_setting import POLICY, THRESHOLD, Setting
from blackwell.speculation_text import Origin

TYPED = Origin("fab -H box threshold 12", "2026-11-30T06:15:00+00:00")
MEASURED = Origin("fab -H box tune", "2026-11-30T07:00:00+00:00", run="20261130-061500")
TIERS = {"version": 1, "tiers": [{"max_batch": 8, "steps": "full"}, {"steps": 0}]}


@pytest.fixture
def known(tmp_path):
    """An inventory whose group sets a policy."""
    root = tmp_path / "inventory"
    (root / "group_vars").mkdir(parents=True)
    (root / "hosts.yml").write_text("sglang_hosts: {hosts: {box: {ansible_host: 192.0.2.1}, other: {}}}")
    (root / "group_vars/all.yml").write_text(json.dumps({POLICY: TIERS}))
    return inventory.read(root)


@pytest.fixture
def directory(known, tmp_path):
    del known
    return tmp_path / "inventory/host_vars/box"


def asked(known, host="box"):
    """What ``ansible-inventory --host`` says of both variables."""
    words = [paths.ROOT / ".venv/bin/ansible-inventory", "--inventory", known.source, "--host", host]
    environment = os.environ | {"ANSIBLE_CONFIG": str(paths.ROOT / "ansible.cfg")}
    done = subprocess.run(words, env=environment, capture_output=True, text=True, check=True)
    found = json.loads(done.stdout)
    return found.get(THRESHOLD), found.get(POLICY)


def contents(directory):
    """Every file below the inventory, by name."""
    root = directory.parent.parent
    return {str(file.relative_to(root)): file.read_text() for file in root.rglob("*") if file.is_file()}


def refused(call, *arguments, **options):
    with pytest.raises(HostError) as caught:
        call(*arguments, **options)
    return str(caught.value)


def test_ansible_reads_what_is_written_and_not_what_the_group_says(known):
    assert asked(known) == (None, TIERS)
    file = speculation_file.write(known, "box", Setting(12), TYPED)
    assert asked(known) == (12, {})
    assert asked(known, "other") == (None, TIERS)
    assert speculation_file.read(file) == speculation_file.Written(Setting(12), TYPED, by_hand=False)


def test_the_one_before_is_kept_and_no_variable(known, directory):
    speculation_file.write(known, "box", Setting(12), TYPED)
    first = (directory / NAME).read_text()
    assert (directory / BEFORE).read_text() == ""
    speculation_file.write(known, "box", Setting(16), TYPED)
    assert (directory / BEFORE).read_text() == first
    assert sorted(file.name for file in directory.iterdir()) == [BEFORE, NAME]


def test_undone_and_done_again(known):
    speculation_file.write(known, "box", Setting(12), TYPED)
    speculation_file.write(known, "box", Setting(16), TYPED)
    assert speculation_file.before(known, "box").setting == Setting(12)
    assert speculation_file.undo(known, "box").setting == Setting(12)
    assert asked(known) == (12, {})
    assert speculation_file.before(known, "box").setting == Setting(16)
    assert speculation_file.undo(known, "box").setting == Setting(16)


def test_undoing_the_first_leaves_it_to_the_group(known, directory):
    speculation_file.write(known, "box", Setting(12), TYPED)
    assert speculation_file.undo(known, "box") is None
    assert not (directory / NAME).exists()
    assert asked(known) == (None, TIERS)
    assert speculation_file.undo(known, "box").setting == Setting(12)
    assert asked(known) == (12, {})


def test_nothing_to_undo(known, directory):
    assert refused(speculation_file.undo, known, "box") == (
        f"box: fab has not written {directory}/{NAME}, so that there is none before to put back"
    )


def test_the_same_again_does_not_lose_the_one_before(known, directory):
    speculation_file.write(known, "box", Setting(12), TYPED)
    speculation_file.write(known, "box", Setting(16), MEASURED)
    before = contents(directory)
    speculation_file.write(known, "box", Setting(16), TYPED)
    assert contents(directory) == before
    again = Origin("fab -H box tune", "2026-12-01T07:00:00+00:00", run="20261201-061500")
    speculation_file.write(known, "box", Setting(16), again)
    assert speculation_file.read(directory / NAME).origin == again
    assert speculation_file.before(known, "box").setting == Setting(12)


def test_what_fails_with_it_takes_it_back(known, directory):
    before = contents(directory)

    def failing():
        with speculation_file.written(known, "box", Setting(12), TYPED):
            assert asked(known) == (12, {})
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        failing()
    assert contents(directory) == before
    # A directory would make Ansible pass over a file host_vars/box.yml.
    assert not directory.parent.exists()


def test_an_undo_that_fails_is_none(known, directory):
    speculation_file.write(known, "box", Setting(12), TYPED)
    before = contents(directory)

    def failing():
        with speculation_file.undone(known, "box"):
            raise HostError("the server does not take it")

    assert refused(failing) == "the server does not take it"
    assert contents(directory) == before


@pytest.mark.parametrize("text", [f"{THRESHOLD}: 5\n", "{", f"---\n{THRESHOLD}: 12\n{POLICY}: {{}}\n"])
def test_what_somebody_wrote_is_written_over_with_force_only(known, directory, text):
    directory.mkdir(parents=True)
    (directory / NAME).write_text(text)
    said = refused(speculation_file.write, known, "box", Setting(12), TYPED)
    assert said.startswith(f"{directory}/{NAME} was written or changed by hand: --force writes over it")
    assert (directory / NAME).read_text() == text
    file = speculation_file.write(known, "box", Setting(12), TYPED, force=True)
    assert speculation_file.read(file) == speculation_file.Written(Setting(12), TYPED, by_hand=False)
    assert (directory / BEFORE).read_text() == text


def test_what_somebody_changed_is_seen_and_can_be_put_back(known, directory):
    speculation_file.write(known, "box", Setting(12), TYPED)
    changed = (directory / NAME).read_text().replace("threshold: 12", "threshold: 13")
    (directory / NAME).write_text(changed)
    assert speculation_file.read(directory / NAME).by_hand
    assert "by hand" in refused(speculation_file.write, known, "box", Setting(14), TYPED)
    speculation_file.write(known, "box", Setting(14), TYPED, force=True)
    speculation_file.undo(known, "box")
    assert (directory / NAME).read_text() == changed


def test_a_hand_written_file_with_one_variable_can_be_put_back(known, directory):
    (directory.parent.parent / "group_vars/all.yml").unlink()
    directory.mkdir(parents=True)
    (directory / NAME).write_text(f"{THRESHOLD}: 5\n")
    speculation_file.write(known, "box", Setting(policy=TIERS), MEASURED, force=True)
    assert speculation_file.undo(known, "box").setting == Setting(5)
    assert asked(known) == (5, None)


@pytest.mark.parametrize(
    ("name", "text", "wins"),
    [
        ("zz.yml", f"{THRESHOLD}: 5", "it is read after speculation.yml and wins"),
        ("t/a.yml", f"{POLICY}: {json.dumps(TIERS)}", "it is read after speculation.yml and wins"),
        ("main.yml", f"{THRESHOLD}: '{{{{ 5 }}}}'", "speculation.yml is read after it and wins"),
    ],
)
def test_another_file_of_the_host_that_says_something_else(known, directory, name, text, wins):
    (directory / name).parent.mkdir(parents=True)
    (directory / name).write_text(text)
    before = contents(directory)
    said = refused(speculation_file.write, known, "box", Setting(12), TYPED, force=True)
    assert said.startswith(f"{directory / name} sets {text.partition(':')[0]} to ")
    assert f"for the same host, and {wins}" in said
    assert contents(directory) == before


def test_another_file_of_the_host_that_says_the_same(known, directory):
    directory.mkdir(parents=True)
    (directory / "zz.yml").write_text(f"{{{THRESHOLD}: 12, sglang_server_port: 1}}")
    speculation_file.write(known, "box", Setting(12), TYPED)
    assert asked(known) == (12, {})


@pytest.mark.parametrize("name", ["box.yml", "box.yaml", "box.json"])
def test_a_file_that_a_directory_would_hide_is_refused(known, directory, name):
    directory.parent.mkdir()
    (directory.parent / name).write_text('{"sglang_server_port": 1}')
    said = refused(speculation_file.write, known, "box", Setting(12), TYPED)
    assert said.startswith(f"{directory.parent}/{name} is not read by Ansible where there is a directory {directory}")
    assert f"move it to {directory}/main.yml" in said
    assert not directory.exists()


def test_a_file_in_place_of_the_directory(known, directory):
    directory.parent.mkdir()
    directory.write_text("sglang_server_port: 1")
    said = refused(speculation_file.write, known, "box", Setting(12), TYPED)
    assert said.startswith(f"{directory}/{NAME} cannot be read: Not a directory")
    assert directory.read_text() == "sglang_server_port: 1"


def test_a_link_is_not_written_through(known, directory, tmp_path):
    directory.mkdir(parents=True)
    shared = tmp_path / "shared.yml"
    shared.write_text(f"{THRESHOLD}: 5\n")
    (directory / NAME).symlink_to(shared)
    said = refused(speculation_file.write, known, "box", Setting(12), TYPED, force=True)
    assert said.startswith(f"{directory}/{NAME} is a link to a file that others may share")
    assert shared.read_text() == f"{THRESHOLD}: 5\n"


def test_a_place_that_cannot_be_written(known, directory):
    # Nobody makes files in /proc, not even root.
    directory.parent.symlink_to("/proc")
    said = refused(speculation_file.write, known, "box", Setting(12), TYPED)
    assert re.fullmatch(rf"{directory}/\.?{re.escape(NAME)}(\.before)? cannot be written: .+", said)


def test_ansible_has_the_last_word(known, directory, monkeypatch):
    # Merged, an empty policy takes nothing from the one of the group.
    monkeypatch.setenv("ANSIBLE_HASH_BEHAVIOUR", "merge")
    before = contents(directory)
    said = refused(speculation_file.write, known, "box", Setting(12), TYPED)
    assert said.startswith(f"{directory}/{NAME} was put back as it was: for box, Ansible reads {POLICY} as ")
    assert contents(directory) == before


def test_a_host_that_is_not_in_the_inventory(known):
    said = f"nobox is not in {known.source}, so that no variables of it can be written there"
    assert refused(speculation_file.write, known, "nobox", Setting(12), TYPED) == said


def test_no_inventory():
    nothing = inventory.Inventory("none", {}, {})
    assert refused(speculation_file.place, nothing, "box").startswith("box is in no inventory")


def test_beside_an_inventory_that_is_a_program(tmp_path):
    program = tmp_path / "hosts.py"
    program.write_text(
        "#!/usr/bin/env python3\nimport json\n"
        'print(json.dumps({"sglang_hosts": {"hosts": ["box"]}, "_meta": {"hostvars": {"box": {}}}}))\n'
    )
    program.chmod(0o755)
    known = inventory.read(program)
    file = speculation_file.write(known, "box", Setting(12), TYPED)
    assert file == tmp_path / "host_vars/box" / NAME
    assert asked(known) == (12, {})


def test_git_takes_no_sandbox_hosts_file_and_no_one_before():
    words = ["git", "check-ignore", "inventory/sandbox/host_vars/sandbox1/speculation.yml"]
    words += [f"inventory/example/host_vars/blackwell1/{BEFORE}"]
    done = subprocess.run(words, cwd=paths.ROOT, capture_output=True, text=True, check=False)
    assert done.stdout.split() == words[2:]
    kept = ["git", "check-ignore", "inventory/example/host_vars/blackwell1/speculation.yml"]
    assert subprocess.run(kept, cwd=paths.ROOT, capture_output=True, check=False).returncode == 1
