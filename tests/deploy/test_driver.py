"""The role nvidia_driver on hosts whose kernel module is a file, from repositories of nearly empty packages."""

import json
import re

import driver_packages
import pytest
from driver_packages import KERNEL, NEW, OLD
from metal import ARCHIVE, LOADED, REPOSITORIES, add_headers, leave_debian, load, make_metal, publish, serve
from target import make

PLAYBOOK = "playbooks/driver.yml"
BLACKLIST = "/etc/apt/apt.conf.d/52blackwell-nvidia"
ASIDE = "/root/blacklist"


@pytest.fixture(scope="module")
def mirror_key(key, tmp_path_factory):
    """The file on the control machine with the key of the mirror."""
    file = tmp_path_factory.mktemp("public") / "mirror.asc"
    file.write_bytes(key.public("--armor"))
    return str(file)


@pytest.fixture(scope="module")
def metal(repositories):
    """A host with a kernel of its own, without its headers yet, and with NVIDIA's repository."""
    host = make_metal("metal", repositories)
    install = "DEBIAN_FRONTEND=noninteractive apt-get install -yqq --no-install-recommends unattended-upgrades"
    host.ssh(f"apt-get update -qq && {install}")
    leave_debian(host)
    return host


@pytest.fixture(scope="module")
def contained(repositories):
    """A container whose host has a driver."""
    host = make("contained")
    host.ssh("mount -t tmpfs none /proc/driver")
    serve(host, repositories)
    return host


def play(host, *arguments, **variables):
    return host.play(
        *arguments, playbook=PLAYBOOK, nvidia_driver_manage=True, nvidia_driver_repository=REPOSITORIES, **variables
    )


def verify(host, **variables):
    asked = {"nvidia_driver_manage": True, **variables}
    # The verification looks at deployed hosts only.
    host.write("/run/systemd/system/sglang.service", b"[Service]\nExecStart=/bin/true\n")
    return host.verify("--extra-vars", json.dumps(asked), "-k", "test_driver")


def said(run) -> str:
    """The output without the line breaks of YAML."""
    return " ".join(run.output.split())


def versions(host) -> set[str]:
    """Versions of the packages of the driver."""
    return set(host.ssh(f"dpkg-query -Wf '${{Version}}\\n' {' '.join(METAL)} 2>/dev/null || :").split())


def installed(host, pattern) -> str:
    """Names of packages that are installed."""
    return host.ssh(f"dpkg-query -Wf '${{db:Status-Abbrev}}${{Package}}\\n' '{pattern}' | sed -n 's/^.i //p'")


def held(host) -> list[str]:
    return host.ssh("apt-mark showhold").split()


def state(host) -> str:
    """What a run that changes nothing leaves as it is."""
    return host.fingerprint() + host.ssh(
        "dpkg-query -Wf '${Package} ${Version} ${db:Status-Abbrev}\\n'; ls /var/cache/apt/archives; "
        f"cat /proc/sys/kernel/random/boot_id; cat {LOADED} 2>&1; systemctl list-unit-files --no-legend 'nvidia*' || :"
    )


LIBRARIES = ["libcuda1", "nvidia-driver-cuda"]
METAL = [*LIBRARIES, "nvidia-driver", "nvidia-kernel-open-dkms", "nvidia-open", "nvidia-persistenced"]


def test_a_host_without_headers_is_refused_before_anything_changes(metal):
    before = state(metal)
    run = play(metal)
    assert run.returncode != 0
    assert "metal is refused, nothing was changed. 1 to mend: 1. The headers of the running kernel" in said(run)
    assert state(metal) == before
    add_headers(metal)


def test_a_dry_run_on_a_host_without_a_driver_changes_nothing(metal):
    before = state(metal)
    run = play(metal, "--check", "--diff")
    assert run.returncode == 0, run.output
    what = "Installing nvidia-open, nvidia-persistenced with nvidia-driver-pinning-580 from"
    assert f"{what} {ARCHIVE}" in said(run)
    assert state(metal) == before


def test_the_branch_is_installed_loaded_pinned_and_held(metal):
    run = play(metal)
    assert run.returncode == 0, run.output
    assert versions(metal) == {f"{OLD}-1"}
    assert f"  {OLD}  " in metal.ssh(f"cat {LOADED}")
    assert held(metal) == sorted([*METAL, "nvidia-driver-pinning-580"])
    assert metal.ssh("systemctl is-enabled nvidia-persistenced") == "enabled"
    assert metal.ssh("systemctl is-active nvidia-persistenced") == "active"
    assert installed(metal, "linux-*") == ""


def test_a_second_run_changes_nothing_also_when_the_repository_has_a_newer_version(metal):
    publish(metal, "after")
    metal.ssh("apt-get update")
    assert f"Candidate: {NEW}-1" in metal.ssh("apt-cache policy nvidia-open")
    before = state(metal)
    run = play(metal)
    assert (run.returncode, run.recap["changed"]) == (0, 0), run.output
    assert state(metal) == before


def test_no_upgrade_installs_it(metal):
    assert "nvidia" not in metal.ssh("apt-get --simulate dist-upgrade | grep ^Inst || :")


def test_unattended_upgrades_leave_it_alone_even_where_somebody_released_it(metal):
    metal.ssh(f"apt-mark unhold {' '.join(METAL)}")
    assert f"Inst nvidia-open [{OLD}-1]" in metal.ssh("apt-get --simulate dist-upgrade")
    metal.write("/etc/apt/apt.conf.d/60allowed", b'Unattended-Upgrade::Origins-Pattern { "origin=NVIDIA"; };\n')
    upgrade = "unattended-upgrade --dry-run --verbose 2>&1 | grep '^Packages that will be upgraded' || echo none"
    assert metal.ssh(upgrade) == "none"
    # The same command without what the role wrote.
    metal.ssh(f"mv {BLACKLIST} {ASIDE}")
    assert "nvidia-open" in metal.ssh(upgrade)
    metal.ssh(f"mv {ASIDE} {BLACKLIST}")


def test_what_was_released_is_held_again(metal):
    run = play(metal)
    assert run.returncode == 0, run.output
    assert held(metal) == sorted([*METAL, "nvidia-driver-pinning-580"])
    assert versions(metal) == {f"{OLD}-1"}


def test_another_version_is_installed_and_the_run_stops_where_the_host_must_not_reboot(metal):
    boot = metal.ssh("cat /proc/sys/kernel/random/boot_id")
    run = play(metal, nvidia_driver_version=NEW)
    assert run.returncode != 0
    stopped = f"metal has driver {NEW} installed and {OLD} loaded, so it must reboot: run this playbook again with"
    assert f"{stopped} -e nvidia_driver_reboot=true --limit metal." in said(run)
    assert versions(metal) == {f"{NEW}-1"}
    assert held(metal) == sorted([*METAL, f"nvidia-driver-pinning-{NEW}"])
    before = state(metal)
    for arguments in ((), ("--check",)):
        again = play(metal, *arguments, nvidia_driver_version=NEW)
        assert again.returncode != 0
        assert stopped in said(again)
        assert again.recap["changed"] == 0
    assert state(metal) == before
    assert metal.ssh("cat /proc/sys/kernel/random/boot_id") == boot


def test_the_verification_says_what_differs(metal):
    metal.ssh(f"apt-mark unhold nvidia-open; systemctl disable --quiet nvidia-persistenced; mv {BLACKLIST} {ASIDE}")
    run = verify(metal, nvidia_driver_version=OLD)
    metal.ssh(f"mv {ASIDE} {BLACKLIST}")
    assert run.returncode == 1, run.output
    failed = re.findall(r"(?:FAILED|ERROR) tests/verify/test_driver.py::(\w+)", run.output)
    assert sorted(failed) == [
        "test_every_card_answers_with_that_version",
        "test_it_is_held",
        "test_the_cards_stay_initialised",
        "test_the_installed_version_is_loaded_as_an_open_module",
        "test_the_version_that_is_asked_for_is_installed",
        "test_unattended_upgrades_leave_it_alone",
    ]


def test_it_reboots_where_it_may_once(metal):
    boot = metal.ssh("cat /proc/sys/kernel/random/boot_id")
    run = play(metal, nvidia_driver_version=NEW, nvidia_driver_reboot=True)
    assert run.returncode == 0, run.output
    assert metal.ssh("cat /proc/sys/kernel/random/boot_id") != boot
    assert f"  {NEW}  " in metal.ssh(f"cat {LOADED}")
    assert metal.ssh("systemctl is-active nvidia-persistenced") == "active"
    before = state(metal)
    again = play(metal, nvidia_driver_version=NEW, nvidia_driver_reboot=True)
    assert (again.returncode, again.recap["changed"]) == (0, 0), again.output
    assert state(metal) == before


def test_the_verification_finds_it_as_asked_for(metal):
    run = verify(metal, nvidia_driver_version=NEW)
    assert run.returncode == 0, run.output
    assert "6 passed" in run.output


def test_a_driver_that_wants_another_kernel_is_not_installed(metal):
    before = versions(metal), held(metal)
    run = play(metal, nvidia_driver_branch=590, nvidia_driver_reboot=True)
    assert run.returncode != 0
    why = f"apt would install {KERNEL}, which is the kernel's: do that by hand, or name another version."
    assert why in said(run)
    assert "the driver was not installed, and pins and holds are as they were" in said(run)
    assert installed(metal, "linux-*") == ""
    assert versions(metal) == before[0] == {f"{NEW}-1"}
    assert installed(metal, "nvidia-driver-pinning-*") == f"nvidia-driver-pinning-{NEW}"


@pytest.fixture(scope="module")
def mirrored(contained, mirror_key):
    """Runs the playbook on a container that has a mirror."""

    def run(**variables):
        source = {"nvidia_driver_source": "mirror", "nvidia_driver_mirror": ARCHIVE}
        return play(contained, **source, nvidia_driver_mirror_key=mirror_key, **variables)

    return run


def test_a_container_without_a_driver_on_its_host_is_refused(contained, mirrored):
    before = state(contained)
    run = mirrored()
    assert run.returncode != 0
    assert "contained is refused, nothing was changed. 1 to mend:" in said(run)
    assert "This is a container (systemd-nspawn) whose host has no NVIDIA driver loaded" in said(run)
    assert state(contained) == before


def test_a_container_gets_the_userspace_of_its_hosts_version_from_a_mirror(contained, mirrored):
    publish(contained, "after")
    load(contained, OLD)
    run = mirrored()
    assert run.returncode == 0, run.output
    # The role had a package of Debian's to install.
    leave_debian(contained)
    assert held(contained) == sorted([*LIBRARIES, f"nvidia-driver-pinning-{OLD}"])
    assert versions(contained) == {f"{OLD}-1"}
    assert installed(contained, "nvidia-*").split() == ["nvidia-driver-cuda", f"nvidia-driver-pinning-{OLD}"]
    before = state(contained)
    again = mirrored()
    assert (again.returncode, again.recap["changed"]) == (0, 0), again.output
    assert state(contained) == before


@pytest.mark.long
def test_a_container_follows_its_host(contained, mirrored):
    load(contained, NEW)
    run = mirrored()
    assert run.returncode == 0, run.output
    assert versions(contained) == {f"{NEW}-1"}
    assert held(contained) == sorted([*LIBRARIES, f"nvidia-driver-pinning-{NEW}"])


@pytest.mark.long
def test_a_version_that_the_repository_lacks_is_named(contained, mirrored):
    load(contained, "580.126.09")
    run = mirrored()
    assert run.returncode != 0
    why = f"From {ARCHIVE}: No package matching 'nvidia-driver-pinning-580.126.09' is available"
    assert f"the driver was not installed, and pins and holds are as they were. {why}" in said(run)
    assert versions(contained) == {f"{NEW}-1"}
    assert held(contained) == sorted([*LIBRARIES, f"nvidia-driver-pinning-{NEW}"])


@pytest.mark.long
def test_a_host_that_reaches_no_repository_gets_it_from_a_package(key, tmp_path):
    host = make("offline")
    host.ssh("mount -t tmpfs none /proc/driver")
    leave_debian(host)
    load(host, OLD)
    file = driver_packages.local(tmp_path, key, OLD)
    package = {"nvidia_driver_source": "package", "nvidia_driver_package_file": str(file)}
    run = play(host, **package)
    assert run.returncode == 0, run.output
    assert versions(host) == {f"{OLD}-1"}
    assert "file:/var/nvidia-driver-local-repo" in host.ssh("apt-cache policy libcuda1")
    again = play(host, **package)
    assert (again.returncode, again.recap["changed"]) == (0, 0), again.output
