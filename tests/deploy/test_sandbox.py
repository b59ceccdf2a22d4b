"""The sandbox on this machine's kernel: real hosts, their end, and what killed commands leave.

Needs root; runs beside a sandbox in use.
"""

import json
import os
import signal
import subprocess
import sys
from contextlib import contextmanager
from dataclasses import replace
from ipaddress import IPv4Network
from pathlib import Path

import pytest

from blackwell import paths
from blackwell.sandbox import api, cgroups, firewall, images, mounts, network, processes, recipe, records
from blackwell.sandbox.commands import run_json, wait_until
from blackwell.sandbox.settings import PREFIX, Settings

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="sandbox hosts need root")

# State directories with fixed names: what a killed test run left is found and removed by the next.
HERE = Settings(Path("/run/blackwell-sandbox-test"), paths.cache() / "sandbox", IPv4Network("10.213.1.0/24"))
BESIDE = replace(HERE, run=Path("/run/blackwell-sandbox-test-beside"), network=IPv4Network("10.213.2.0/24"))
SANDBOX = paths.ROOT / "scripts/sandbox"


def environment(settings, **more):
    return os.environ | {
        "BLACKWELL_SANDBOX_RUN": str(settings.run),
        "BLACKWELL_SANDBOX_NET": str(settings.network),
        "BLACKWELL_CACHE": str(settings.cache.parent),
        **more,
    }


def sandbox(settings, *arguments):
    return subprocess.run([SANDBOX, *arguments], env=environment(settings), capture_output=True, text=True, check=False)


@contextmanager
def running(settings, *arguments, **variables):
    """A command in a process group of its own, as a shell with job control starts it."""
    with subprocess.Popen(
        [SANDBOX, *arguments],
        env=environment(settings, **variables),
        stderr=subprocess.PIPE,
        text=True,
        process_group=0,
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def wait_for_line(process, words):
    for line in process.stderr:
        if words in line:
            return
    pytest.fail(f"the command ended without saying {words!r}")


def ssh(name, *command, user="root", settings=HERE, options=()):
    *start, target = api.ssh_command(name, user=user, settings=settings)
    return subprocess.run(
        [*start, *options, target, *command], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
    )


def said(name, *command, **keywords):
    done = ssh(name, *command, **keywords)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def boot(name):
    done = ssh(name, "cat /proc/sys/kernel/random/boot_id")
    return done.stdout.strip() if done.returncode == 0 else None


def state(name, settings=HERE):
    return api.host(name, settings=settings).state


def traces():
    """What the kernel and the state directories hold, without what belongs to sandboxes other than these tests'."""
    tables = run_json("nft", "--json", "list", "tables")["nftables"]
    found = {
        *(f"mount {mount.source} {mount.target}" for mount in mounts.current()),
        *(f"link {name}" for name in network.links()),
        *(f"cgroup {group}" for group in cgroups.existing("")),
        *(f"cgroup {group}" for group in cgroups.existing(PREFIX)),
        *(f"table {entry['table']['name']}" for entry in tables if "table" in entry),
        *(f"state {path}" for path in Path("/run").glob("blackwell-*")),
        *(f"layer {path}" for path in (HERE.cache / "hosts").glob("*/*")),
        *(f"nspawn {path}" for path in Path("/run/systemd/nspawn/propagate").glob("*")),
        *(f"process {process.argv}" for process in processes.current() if mentions(process)),
    }
    own = (HERE.bridge, BESIDE.bridge, str(HERE.run), str(BESIDE.run))
    foreign = (PREFIX, "/run/blackwell-")
    return {
        trace for trace in found if any(name in trace for name in own) or not any(name in trace for name in foreign)
    }


def mentions(process):
    return any(processes.host_of(settings, process) for settings in (HERE, BESIDE))


@pytest.fixture(scope="module", autouse=True)
def interruptible():
    """Commands take Ctrl-C also when these tests run in the background of a shell, which makes them ignore it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture(scope="module", autouse=True)
def image():
    subprocess.run([paths.ROOT / "scripts/bootstrap", "sandbox"], check=True)
    for settings in (HERE, BESIDE):
        api.down(settings=settings)
    return api.build(settings=HERE)


@pytest.fixture(scope="module")
def pair():
    yield api.up(["t-one", "t-two"], settings=HERE)
    api.down(settings=HERE)


@pytest.fixture
def beside():
    yield BESIDE
    api.down(settings=BESIDE)


@pytest.mark.usefixtures("pair")
def test_hosts_are_real_ones():
    assert (
        said("t-one", "cat /proc/1/comm; hostname; ls -d /run/systemd/system") == "systemd\nt-one\n/run/systemd/system"
    )
    assert said("t-one", "systemctl is-system-running --wait") == "running"
    assert (
        said("t-one", "logger -t sandbox-test hello; journalctl --sync; journalctl -t sandbox-test -o cat") == "hello"
    )


def test_hosts_have_a_network_of_their_own(pair):
    assert said("t-one", "readlink /proc/self/ns/net") != str(Path("/proc/self/ns/net").readlink())
    addresses = json.loads(said("t-one", "ip -json -4 address show dev eth0"))
    assert addresses[0]["addr_info"][0]["local"] == pair[0].address
    assert pair[0].address != pair[1].address


def test_hosts_reach_each_other(pair):
    probe = f"import socket; print(socket.create_connection(('{pair[1].address}', 22), 5).recv(4).decode())"
    assert said("t-one", f'python3 -c "{probe}"') == "SSH-"


@pytest.mark.usefixtures("pair")
def test_the_unprivileged_user_becomes_root_without_a_password():
    assert said("t-one", "id -un; sudo -n id -un", user="operator") == "operator\nroot"


@pytest.mark.usefixtures("pair")
def test_nothing_but_a_key_is_accepted():
    done = ssh("t-one", "true", options=("-o", "PubkeyAuthentication=no", "-o", "BatchMode=yes"))
    assert done.returncode == 255
    assert "Permission denied (publickey)." in done.stderr


@pytest.mark.parametrize("pinned", ["other", "none"])
def test_a_host_key_that_is_not_the_pinned_one_is_refused(pair, tmp_path, pinned):
    keys = {record.name: record.host_key for record in records.read(HERE)}
    line = f"{pair[0].address} {keys['t-two']}\n" if pinned == "other" else ""
    (tmp_path / "known_hosts").write_text(line)
    start = api.ssh_command("t-one", settings=HERE)
    altered = [part.replace(str(HERE.known_hosts), str(tmp_path / "known_hosts")) for part in start]
    done = subprocess.run([*altered, "true"], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    assert done.returncode == 255
    assert "Host key verification failed." in done.stderr


@pytest.mark.usefixtures("pair")
def test_limits_of_units_are_enforced():
    take = "python3 -c 'bytearray(150 << 20)'"
    assert ssh("t-one", f"systemd-run -q --wait {take}").returncode == 0
    assert ssh("t-one", f"systemd-run -q --wait -p MemoryMax=60M -p MemorySwapMax=0 {take}").returncode != 0
    forks = "sh -c 'for i in 1 2 3 4 5 6; do sleep 0.1 & done; wait'"
    assert ssh("t-one", f"systemd-run -q --wait {forks}").returncode == 0
    assert ssh("t-one", f"systemd-run -q --wait -p TasksMax=4 {forks}").returncode != 0


@pytest.mark.usefixtures("pair")
def test_packages_can_be_installed():
    assert said("t-one", "stat -c %Y /var/lib/apt/lists") == "0"
    said("t-one", "apt-get update -qq && apt-get install -yqq --no-install-recommends hello")
    assert said("t-one", "hello") == "Hello, world!"


def test_up_leaves_a_running_host_alone(pair):
    before = boot("t-one")
    done = sandbox(HERE, "up", "t-one")
    assert done.returncode == 0
    assert f"t-one: already up at {pair[0].address}" in done.stderr
    assert boot("t-one") == before


@pytest.mark.usefixtures("pair")
def test_ansible_reaches_the_hosts_through_the_inventory():
    command = [
        Path(sys.executable).with_name("ansible"),
        "-i",
        paths.ROOT / "inventory/sandbox",
        "sglang_hosts",
        "-m",
        "ping",
        "-o",
    ]
    done = subprocess.run(command, env=environment(HERE), cwd=paths.ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("SUCCESS") == 2


@pytest.mark.usefixtures("pair")
def test_reboot_comes_back_with_address_and_files():
    before = boot("t-two")
    ssh("t-two", "touch /root/kept; reboot")
    assert wait_until(lambda: boot("t-two") not in {None, before}, 20)
    assert said("t-two", "ls /root") == "kept"
    assert said("t-two", "systemctl is-system-running --wait") == "running"
    # A group left by the last boot would keep the new one from passing controllers on.
    assert ssh(
        "t-two", "systemd-run -q --wait -p MemoryMax=60M -p MemorySwapMax=0 python3 -c 'bytearray(150 << 20)'"
    ).returncode


@pytest.mark.usefixtures("pair")
def test_a_host_that_powered_off_is_stopped_and_starts_again_with_its_files():
    key = said("t-two", "cat /etc/ssh/ssh_host_ed25519_key.pub; echo here >/root/note")
    ssh("t-two", "poweroff")
    assert wait_until(lambda: state("t-two") == api.STOPPED, 10)
    listed = {host["name"]: host["state"] for host in json.loads(sandbox(HERE, "list", "--json").stdout)}
    assert listed == {"t-one": "up", "t-two": "stopped"}
    inventory = subprocess.run(
        [paths.ROOT / "inventory/sandbox/hosts.py", "--list"], env=environment(HERE), capture_output=True, check=True
    )
    assert json.loads(inventory.stdout)["sglang_hosts"]["hosts"] == ["t-one"]
    api.up(["t-two"], settings=HERE)
    assert said("t-two", "cat /root/note /etc/ssh/ssh_host_ed25519_key.pub").splitlines() == ["here", *key.splitlines()]


@pytest.mark.usefixtures("pair")
def test_a_host_whose_supervisor_was_killed_shuts_down_and_starts_again():
    said("t-two", "echo kept >/root/note")
    supervisor = next(found for found in processes.current() if processes.supervises(HERE, found) == "t-two")
    os.kill(supervisor.pid, signal.SIGKILL)
    assert wait_until(lambda: not processes.of(HERE, "t-two"), 20)
    assert state("t-two") == api.STOPPED
    api.up(["t-two"], settings=HERE)
    assert said("t-two", "cat /root/note") == "kept"


@pytest.mark.usefixtures("pair")
def test_a_stopped_host_that_somebody_unmounted_starts_again_with_its_files():
    said("t-two", "echo kept >/root/note")
    ssh("t-two", "poweroff")
    assert wait_until(lambda: not processes.of(HERE, "t-two"), 20)
    subprocess.run(["umount", HERE.root("t-two")], check=True)
    api.up(["t-two"], settings=HERE)
    assert said("t-two", "cat /root/note") == "kept"


@pytest.mark.usefixtures("pair")
def test_two_commands_at_once_wait_for_each_other(beside):
    with running(beside, "up", "t-a") as first:
        wait_for_line(first, "t-a: starting")
        first.send_signal(signal.SIGSTOP)
        with running(beside, "up", "t-b") as second:
            wait_for_line(second, "waiting for another scripts/sandbox")
            first.send_signal(signal.SIGCONT)
            assert (first.wait(60), second.wait(60)) == (0, 0)
    addresses = {host.address for host in api.hosts(settings=beside)}
    assert len(addresses) == 2
    assert [said(name, "hostname", settings=beside) for name in ("t-a", "t-b")] == ["t-a", "t-b"]


@pytest.mark.usefixtures("pair")
def test_down_leaves_nothing_and_hosts_of_other_sandboxes_running(beside):
    before, forwarding = traces(), (firewall.IPV4 / "ip_forward").read_text()
    api.up(["t-x", "t-y"], settings=beside)
    kinds = {trace.split()[0] for trace in traces() - before}
    assert kinds == {"mount", "link", "cgroup", "table", "state", "layer", "nspawn", "process"}
    root = beside.root("t-x").stat()
    lock = Path(f"/run/systemd/nspawn/locks/inode-{root.st_dev}:{root.st_ino}")
    assert lock.exists()
    assert api.down(["t-x"], settings=beside) == ("t-x",)
    assert not lock.exists()
    assert said("t-y", "hostname", settings=beside) == "t-y"
    assert sandbox(beside, "down").returncode == 0
    assert traces() - before == set()
    assert (firewall.IPV4 / "ip_forward").read_text() == forwarding
    assert said("t-one", "hostname") == "t-one"


@pytest.mark.parametrize("moment", ["made", "starting"])
def test_after_a_killed_up_hosts_come_up_and_go_down(beside, moment):
    before = traces()
    with running(beside, "up", "t-killed") as process:
        if moment == "starting":
            wait_for_line(process, "t-killed: starting")
        else:
            assert wait_until(beside.host("t-killed").is_dir, 30)
        process.kill()
    if moment == "starting":
        assert sandbox(beside, "down").returncode == 0
        assert traces() - before == set()
    assert sandbox(beside, "up", "t-killed").returncode == 0
    assert said("t-killed", "hostname", settings=beside) == "t-killed"
    assert sandbox(beside, "down", "t-killed").returncode == 0
    assert traces() - before == set()


def test_an_interrupted_up_removes_what_it_made(beside):
    before = traces()
    with running(beside, "up", "t-interrupted") as process:
        wait_for_line(process, "t-interrupted: starting")
        os.killpg(process.pid, signal.SIGINT)
        assert process.wait(20) == 130
    assert traces() - before == set()


# Stands for mmdebstrap in the middle of its work, with a child, and deaf to every signal that can be ignored.
OBSTINATE = """\
#!/bin/sh
trap '' HUP INT PIPE TERM
for root; do :; done
echo "I: installing packages..."
sh -c 'while :; do mkdir -p "$1" && date >"$1/growing"; done' "$root" "$root" 2>/dev/null
"""


@pytest.mark.parametrize("end", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_a_build_that_was_ended_leaves_no_image_and_goes_on_with_nothing(tmp_path, end):
    apart = replace(BESIDE, cache=tmp_path / "sandbox")
    (tmp_path / "mmdebstrap").write_text(OBSTINATE)
    (tmp_path / "mmdebstrap").chmod(0o755)
    with running(apart, "build", PATH=f"{tmp_path}:{os.environ['PATH']}") as process:
        wait_for_line(process, "installing packages")
        process.send_signal(end)
        assert process.wait(20) in {130, -signal.SIGKILL}

    def still_at_it():
        return [found for found in processes.current() if any(str(tmp_path) in part for part in found.argv)]

    try:
        assert wait_until(lambda: not still_at_it(), 5)
    finally:
        for found in still_at_it():
            os.kill(found.pid, signal.SIGKILL)
    assert not mounts.at(tmp_path)
    left = [path.name for path in apart.images.iterdir()]
    # After SIGKILL the next build removes it.
    assert left == ([recipe.recipe("bookworm").name + images.UNFINISHED] if end == signal.SIGKILL else [])


@pytest.mark.usefixtures("pair")
def test_a_network_that_is_in_use_is_refused_and_nothing_is_left():
    before = traces()
    done = sandbox(replace(BESIDE, network=HERE.network), "up", "t-clash")
    assert done.returncode == 1
    words = f"sandbox: {HERE.network} is in use on this machine ({HERE.network} on {HERE.bridge})"
    assert done.stderr.splitlines()[-1] == f"{words}: set BLACKWELL_SANDBOX_NET to a free private network"
    assert traces() - before == set()


@pytest.mark.usefixtures("pair")
def test_down_of_an_unknown_host_says_which_exist():
    done = sandbox(HERE, "down", "t-three")
    assert (done.returncode, done.stderr) == (1, "sandbox: unknown host 't-three': there is t-one, t-two\n")


def test_what_is_mounted_in_a_host_by_others_is_not_touched(beside, tmp_path):
    api.up(["t-mounted"], settings=beside)
    foreign = beside.host("t-mounted") / "foreign"
    foreign.mkdir()
    (tmp_path / "data").write_text("precious")
    subprocess.run(["mount", "--bind", tmp_path, foreign], check=True)
    try:
        done = sandbox(beside, "down")
        assert done.returncode == 1
        assert f"{foreign} is a mount that is not the sandbox's" in done.stderr
    finally:
        subprocess.run(["umount", foreign], check=True)
    assert (tmp_path / "data").read_text() == "precious"
