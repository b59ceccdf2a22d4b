"""Where a host's cgroups are, from the texts of /proc, and their removal."""

import subprocess
from pathlib import Path

from blackwell.sandbox import cgroups, mounts

LEAF = "bwsbx1-web"

V1_MOUNTS = mounts.parse(
    "tmpfs /sys/fs/cgroup tmpfs rw 0 0\n"
    "cgroup /sys/fs/cgroup/cpu,cpuacct cgroup rw,cpu,cpuacct 0 0\n"
    "cgroup /sys/fs/cgroup/cpuset cgroup rw,cpuset 0 0\n"
    "cgroup /sys/fs/cgroup/memory cgroup rw,memory 0 0\n"
    "cgroup /sys/fs/cgroup/systemd cgroup rw,xattr,name=systemd 0 0\n"
    "cgroup2 /sys/fs/cgroup/unified cgroup2 rw 0 0\n"
)
V2_MOUNTS = mounts.parse("cgroup2 /sys/fs/cgroup cgroup2 rw,nsdelegate,memory_recursiveprot 0 0\n")


def test_on_v1_each_mounted_hierarchy_but_cpuset_gets_a_group_under_the_callers():
    text = "9:name=systemd:/\n4:memory:/caller/1\n3:cpuset:/\n2:cpu,cpuacct:/\n1:freezer:/\n0::/\n"
    assert cgroups.groups(text, V1_MOUNTS, LEAF) == (
        Path("/sys/fs/cgroup/systemd/bwsbx1-web"),
        Path("/sys/fs/cgroup/memory/caller/1/bwsbx1-web"),
        Path("/sys/fs/cgroup/cpu,cpuacct/bwsbx1-web"),
        Path("/sys/fs/cgroup/unified/bwsbx1-web"),
    )


def test_on_v2_the_group_is_under_the_callers():
    assert cgroups.groups("0::/user.slice/x\n", V2_MOUNTS, LEAF) == (Path("/sys/fs/cgroup/user.slice/x/bwsbx1-web"),)


def test_the_scope_that_systemd_made_for_the_host_is_its_group():
    text = "0::/machine.slice/bwsbx1-web.scope\n"
    assert cgroups.groups(text, V2_MOUNTS, LEAF) == (Path("/sys/fs/cgroup/machine.slice/bwsbx1-web.scope"),)


def test_another_hosts_scope_is_not_taken_for_its_own():
    text = "0::/machine.slice/bwsbx1-other.scope\n"
    assert cgroups.groups(text, V2_MOUNTS, LEAF)[0].name == LEAF


def test_a_group_is_removed_with_all_below_it(tmp_path):
    (tmp_path / "group/host/payload/system.slice").mkdir(parents=True)
    (tmp_path / "group/loop").mkdir()
    assert cgroups.remove(tmp_path / "group")
    assert not (tmp_path / "group").exists()


def test_a_group_that_is_in_use_stays_and_says_so(tmp_path):
    (tmp_path / "group/busy").mkdir(parents=True)
    (tmp_path / "group/busy/process").touch()
    assert not cgroups.remove(tmp_path / "group")


def test_joining_enters_every_group_before_the_command_starts(tmp_path):
    groups = [tmp_path / "a", tmp_path / "b c"]
    for group in groups:
        group.mkdir()
    seen = subprocess.run(
        ["sh", "-c", cgroups.JOIN, "sh", *groups, "--", "sh", "-c", 'echo $$ "$1"', "sh", "two words"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split(" ", 1)
    assert [(group / "cgroup.procs").read_text().strip() for group in groups] == [seen[0]] * 2
    assert seen[1] == "two words\n"


def test_a_command_that_cannot_enter_its_group_does_not_start(tmp_path):
    command = ["sh", "-c", cgroups.JOIN, "sh", tmp_path / "missing", "--", "touch", tmp_path / "started"]
    assert subprocess.run(command, capture_output=True, check=False).returncode == 125
    assert not (tmp_path / "started").exists()
