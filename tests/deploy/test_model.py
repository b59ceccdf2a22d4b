"""Target and draft from a mirror of the hub: refused, killed half-way, damaged, switched, and what is left of it.

The mirror runs in the test; the host reaches it as its own loopback, so that a token may be shown to it without TLS.
"""

import json
import random
import shlex
import subprocess
import tarfile
import threading
from contextlib import contextmanager
from dataclasses import replace
from io import BytesIO

import hub_mirror
import pytest
from hub_mirror import REVISION, Faults, Mirror
from target import SETTINGS
from test_site import refusal

from blackwell.sandbox import api

NEXT = "6a1f4b2c" * 5
TOKEN = "hf_s3cr3t"
COUNTING, MODELS, RUN = "/var/lib/sglang/models/counting", "/var/lib/sglang/models", "/run/blackwell-model"
DEPLOYMENTS, ASIDE = "/var/lib/sglang/deployments", "/root/deployments"
UNIT = "blackwell-model-target.service"
OLD, NEW = f"{MODELS}/org--target/{REVISION}", f"{MODELS}/org--target/{NEXT}"
DRAFT = f"{MODELS}/org--draft/{REVISION}"
PARTIAL = f"{MODELS}/org--target/.partial-{REVISION}"
# SGLang does not load it. huggingface_hub writes a file in pieces of 10 MiB.
BIG = "original/weights.pth"
STALLED = 12_000_000


@contextmanager
def tunnel(host, port):
    """A port of the host's loopback that leads to the same one of this machine."""
    ssh, *more = api.ssh_command(host.host, settings=SETTINGS)
    words = [ssh, "-N", "-o", "ExitOnForwardFailure=yes", "-R", f"127.0.0.1:{port}:127.0.0.1:{port}", *more]
    with subprocess.Popen(words, stdin=subprocess.DEVNULL) as process:
        try:
            host.until(f"ss -Hltn 'sport = :{port}' | grep -q .", 30)
            yield
        finally:
            process.terminate()


def files_of(host, directory):
    """The files of a directory of a host."""
    command = [*api.ssh_command(host.host, settings=SETTINGS), shlex.join(["tar", "-C", directory, "-c", "."])]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, check=True)
    with tarfile.open(fileobj=BytesIO(done.stdout)) as archive:
        members = [member for member in archive if member.isfile()]
        return {member.name.removeprefix("./"): archive.extractfile(member).read() for member in members}


@pytest.fixture(scope="module")
def hub(deployed):
    """A mirror with the counting models, the target with a large file more, which needs a token."""
    target = files_of(deployed, f"{COUNTING}/target") | {BIG: random.Random(1).randbytes(2 * STALLED)}
    repositories = {"org/target": target, "org/draft": files_of(deployed, f"{COUNTING}/eagle3")}
    made = hub_mirror.Server(Mirror(repositories, Faults(token=TOKEN)))
    threading.Thread(target=made.serve_forever, daemon=True).start()
    yield made
    made.shutdown()
    made.server_close()


@pytest.fixture(scope="module")
def base(deployed, hub, tmp_path_factory):
    """The host by an inventory that names repositories; afterwards it is as its own inventory says."""
    words = [".venv/bin/ansible-inventory", "--inventory", deployed.inventory, "--host", deployed.host]
    variables = json.loads(deployed.command(*words).output)
    kept = {name: value for name, value in variables.items() if not name.startswith("model_")}
    asked = {"model_repository": "org/target", "model_revision": REVISION, "model_draft_repository": "org/draft",
             "model_draft_revision": REVISION, "model_hub": hub.url, "model_hub_token": TOKEN,
             "model_fetch_timeout": 300}  # fmt: skip
    file = tmp_path_factory.mktemp("inventory") / "hosts.json"
    file.write_text(json.dumps({"sglang_hosts": {"hosts": {deployed.host: kept | asked}}}))
    deployed.ssh(f"cp -a {DEPLOYMENTS} {ASIDE}")
    yield replace(deployed, inventory=file)
    run = deployed.play("--tags", "model,serve")
    assert run.returncode == 0, run.output
    deployed.ssh(f"rm -rf {DEPLOYMENTS} {MODELS}/org--* && mv {ASIDE} {DEPLOYMENTS}")


@pytest.fixture
def reached(base, hub):
    """The host while it reaches the mirror."""
    with tunnel(base, hub.server_address[1]):
        yield base


def left(host):
    """What downloads leave that must not be left: files, and units that systemd remembers."""
    files = host.ssh(f"ls -d {RUN} /run/systemd/system/blackwell-model-* 2>/dev/null", check=False)
    return files + host.ssh("systemctl list-units --all --plain -q 'blackwell-model-*'")


def stalled(host):
    """Waits until the download has written what the mirror gives it."""
    parts = f"{PARTIAL}/.cache/huggingface/download/original/*.incomplete"
    host.until(f"test $(cat {parts} 2>/dev/null | wc -c) -ge 10000000", 60)


def test_refused_before_a_byte_with_every_reason_at_once(reached, hub):
    reached.ssh("mkdir /srv/small && mount -t tmpfs -o size=8m none /srv/small")
    before = reached.fingerprint()
    said = refusal(
        reached.play(
            "--tags", "preflight", "--diff", "-vvv", model_directory="/srv/small/models", model_draft_revision="0" * 40
        )
    )
    left_there = reached.ssh("ls -A /srv/small")
    reached.ssh("umount /srv/small && rmdir /srv/small")
    assert f"model_directory: {reached.host}, org/target: 24." in said
    assert "are still to be fetched, and /srv/small/models has 8.4 MB free: make room" in said
    assert "for org/draft at 000000000000: there is no such commit" in said
    assert "2 to mend" in said
    assert TOKEN not in said
    assert (reached.fingerprint(), left_there, left(reached)) == (before, "", "")
    assert not any(entry["bytes"] for entry in hub.mirror.log if entry["file"])


def test_a_dry_run_says_what_would_come_and_changes_nothing(reached, hub):
    before = reached.fingerprint()
    run = reached.play("--tags", "model,serve", "--check", "--diff")
    assert run.returncode == 0, run.output
    assert f"It would fetch org/target at {REVISION[:12]} from {hub.url} into {OLD}: " in " ".join(run.output.split())
    assert f"+    --model-path {OLD}" in run.output
    assert TOKEN not in run.output
    assert (reached.fingerprint(), left(reached)) == (before, "")


def test_the_token_is_with_the_unit_which_outlives_the_run_and_is_killed(reached, hub, tmp_path):
    hub.mirror.faults.stalls_after = STALLED
    with reached.playing(tmp_path / "killed.log"):
        stalled(reached)
    assert reached.ssh(f"systemctl is-active {UNIT}", check=False) == "activating"
    pid = reached.ssh(f"systemctl show {UNIT} -p MainPID --value")
    assert reached.ssh(f"tr '\\0' '\\n' </proc/{pid}/environ | grep -c '^CREDENTIALS_DIRECTORY='") == "1"
    assert reached.ssh(f"systemctl cat {UNIT}; systemctl show {UNIT}").find(TOKEN) == -1
    assert (
        reached.ssh(f"cat /proc/[0-9]*/environ /proc/[0-9]*/cmdline | tr '\\0' '\\n' | grep -c '{TOKEN[:-1]}[t]' || :")
        == "0"
    )
    assert reached.ssh(f"journalctl --boot | grep -c {TOKEN[:-1]}[t] || :") == "0"
    holders = reached.ssh(
        f"grep -rlsI {TOKEN} /etc /run /var/lib/sglang /var/tmp /tmp /root/.ansible /opt/sglang/releases/*/cache"
    )
    assert set(holders.split()) == {f"{RUN}/hub-token", f"/run/credentials/{UNIT}/hub-token"}
    for holder in holders.split():
        assert reached.ssh(f"runuser -u sglang -- cat {holder} 2>&1", check=False).endswith("Permission denied")
    assert TOKEN not in (tmp_path / "killed.log").read_text()
    reached.ssh(f"systemctl kill --signal=KILL {UNIT}")
    reached.until(f"test $(systemctl is-active {UNIT}) = failed", 30)
    assert reached.ssh(f"test ! -e {OLD} && echo absent") == "absent"


def test_the_next_run_fetches_the_rest(reached, hub):
    hub.mirror.faults.stalls_after = 0
    hub.forget()
    run = reached.play("--tags", "model", "--diff", "-vv")
    assert run.returncode == 0, run.output
    assert TOKEN not in run.output
    assert hub.mirror.asked(BIG)[0] >= 10_000_000
    assert hub.mirror.asked(BIG)[0] + hub.mirror.sent(BIG) == 2 * STALLED
    assert {entry["token"] for entry in hub.mirror.log if entry["path"].startswith("/cdn/")} == {""}
    assert files_of(reached, OLD).items() > hub.mirror.repositories["org/target"].items()
    assert left(reached) == ""
    assert reached.ssh(f"journalctl --boot | grep -c {TOKEN[:-1]}[t] || :") == "0"
    assert reached.ssh(f"grep -rlsI {TOKEN} /etc /run /var/lib/sglang /tmp || :") == ""


@pytest.mark.long
def test_without_the_mirror_it_is_served_and_verified_and_a_second_run_changes_nothing(base):
    run = base.play("--tags", "serve")
    assert run.returncode == 0, run.output
    arguments = base.ssh(f"tr '\\0' ' ' </proc/{base.ready['pid']}/cmdline")
    assert f"--model-path {OLD} " in arguments
    assert f"--speculative-draft-model-path {DRAFT} " in arguments
    environment = base.ssh(f"tr '\\0' '\\n' </proc/{base.ready['pid']}/environ")
    assert {"HF_HUB_OFFLINE=1", "TRANSFORMERS_OFFLINE=1"} <= set(environment.split("\n"))
    assert base.generates()
    run = base.verify("-k", "fetched or reads_every_file")
    assert run.returncode == 0, run.output
    run = base.play("--tags", "model,serve")
    assert (run.returncode, run.recap["changed"]) == (0, 0), run.output


@pytest.mark.long
def test_a_damaged_file_is_refused_by_name_and_what_runs_goes_on(reached, hub):
    hub.mirror.revision = NEXT
    hub.mirror.repositories["org/target"] |= {"note.txt": b"as it was\n"}
    hub.mirror.faults.damaged = frozenset({BIG})
    before = reached.ready, reached.ssh(f"find {OLD} -printf '%p %m %s %T@\\n' | sort")
    run = reached.play("--tags", "model", model_revision=NEXT)
    assert run.returncode != 0
    said = " ".join(run.output.split())
    assert "model_repository: org/target was not fetched, and nothing was switched." in said
    assert f"{BIG} is damaged: its sha256 is " in said, said[-2000:]
    assert (reached.ready, reached.ssh(f"find {OLD} -printf '%p %m %s %T@\\n' | sort")) == before
    assert reached.ssh(f"test ! -e {NEW} && echo absent") == "absent"
    assert left(reached) == ""


@pytest.mark.long
def test_mended_only_that_file_comes_and_what_nothing_needs_goes(reached, hub):
    hub.mirror.faults.damaged = frozenset()
    hub.mirror.log.clear()
    spare = [f"{MODELS}/org--spare/{digit * 40}" for digit in "ab"]
    for model in spare:
        reached.ssh(f"mkdir -p {model} && echo '{{}}' >{model}/.fetched.json")
    reached.ssh(
        f"touch -d 2002-01-01 {spare[0]}/.fetched.json && touch -d 2001-01-01 {OLD}/.fetched.json {DRAFT}/.fetched.json"
    )
    reached.ssh(f"mkdir {MODELS}/org--spare/.partial-{'c' * 40} {MODELS}/org--spare/mine")
    run = reached.play("--tags", "model,serve", model_revision=NEXT)
    assert run.returncode == 0, run.output
    assert {entry["file"] for entry in hub.mirror.log if entry["bytes"] and entry["file"]} == {BIG}
    assert reached.ssh(f"cat {NEW}/note.txt") == "as it was"
    assert reached.ssh(f"systemctl cat sglang | grep -c -- '--model-path {NEW} '") == "1"
    assert reached.generates()
    # The newest spare one, what runs, and what a rollback needs.
    assert reached.ssh(f"ls -A {MODELS}/org--spare").split() == ["b" * 40, "mine"]
    assert set(reached.ssh(f"ls -A {MODELS}/org--target").split()) == {REVISION, NEXT}
    assert left(reached) == ""
