"""A model is fetched whole or not at all, from a mirror that fails in the ways that hubs and disks fail."""

import json
import os
import signal
import socket
import ssl
import subprocess
import sys
import threading
import time
from contextlib import suppress

import hub_mirror
import pytest
from hub_mirror import REVISION, Faults, Mirror, made_model

from blackwell import paths

PROGRAM = paths.ROOT / "roles/model/files/fetch_model.py"
# huggingface_hub writes a file in pieces of 10 MiB (constants.py: DOWNLOAD_CHUNK_SIZE), so that a part is one at least.
MODEL = made_model()
SHARDS = SHARD, _ = "model-1.safetensors", "model-2.safetensors"


class Fetching:
    """The program, a mirror that it fetches from, and a directory of models."""

    def __init__(self, directory, faults):
        self.mirror = Mirror({"org/tiny": MODEL}, faults)
        self.server = hub_mirror.Server(self.mirror)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.home = directory
        self.model = directory / "models" / "org--tiny" / REVISION
        self.model.parent.mkdir(parents=True)

    @property
    def partial(self):
        return self.model.with_name(f".partial-{REVISION}")

    def start(self, token="", hub="", **more):
        environment = {"PATH": os.environ["PATH"], "HOME": str(self.home), "HF_HUB_OFFLINE": "1"} | more
        if token:
            (self.home / "hub-token").write_text(f"{token}\n")
            environment["CREDENTIALS_DIRECTORY"] = str(self.home)
        words = [PROGRAM, f"--hub={hub or self.server.url}", "--repository=org/tiny", f"--revision={REVISION}"]
        return subprocess.Popen(
            [sys.executable, "-B", *words, "--report=0.2", f"--model={self.model}"],
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def run(self, **more):
        """Exit status and the lines of a run to its end."""
        with self.start(**more) as process:
            said = process.communicate(timeout=120)[0]
        return process.returncode, said.splitlines()

    def begun(self):
        """Sizes of the files that came in part."""
        return [path.stat().st_size for path in self.partial.rglob("*.incomplete")]

    def wait_for_a_part(self):
        deadline = time.monotonic() + 30
        # More than the small files have together, whose parts come and go.
        while sum(self.begun()) < 1_000_000:
            assert time.monotonic() < deadline, "nothing came"
            time.sleep(0.02)

    def fetched(self):
        return {
            str(path.relative_to(self.model)): path.read_bytes() for path in self.model.rglob("*") if path.is_file()
        }

    def assert_complete(self):
        files = self.fetched()
        record = json.loads(files.pop(".fetched.json"))
        assert files == MODEL
        assert (record["repository"], record["revision"]) == ("org/tiny", REVISION)
        assert {file["path"]: file["size"] for file in record["files"]} == {k: len(v) for k, v in MODEL.items()}
        assert not self.partial.exists()


@pytest.fixture
def fetching(tmp_path):
    made = []

    def make(faults=None, directory=tmp_path):
        made.append(one := Fetching(directory, faults or Faults()))
        return one

    yield make
    for one in made:
        one.server.shutdown()
        one.server.server_close()


def test_a_model_is_fetched_once_and_then_is_there(fetching):
    one = fetching()
    status, said = one.run()
    assert status == 0, said
    assert said[-1] == f"org/tiny at {REVISION[:12]} is complete in {one.model}"
    one.assert_complete()
    before = len(one.mirror.settled())
    assert one.run()[0] == 0
    assert len(one.mirror.settled()) == before


def test_what_is_said_last_is_the_status_of_the_unit(fetching, tmp_path):
    one = fetching(Faults(damaged=frozenset({SHARD})))
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as systemd:
        systemd.bind(str(tmp_path / "notify"))
        systemd.settimeout(0)
        said = one.run(NOTIFY_SOCKET=str(tmp_path / "notify"))[1]
        received = []
        with suppress(BlockingIOError):
            while True:
                received.append(systemd.recv(4096).decode())
    assert received == [f"STATUS={line}" for line in said]
    assert SHARD in received[-1]


def test_killed_half_way_only_the_rest_is_fetched(fetching):
    one = fetching(Faults(bytes_a_second=20_000_000))
    with one.start() as process:
        one.wait_for_a_part()
        os.kill(process.pid, signal.SIGKILL)
    assert not one.model.exists()
    kept = sum(one.begun())
    one.server.forget()
    one.mirror.faults.bytes_a_second = 0
    status, said = one.run()
    assert status == 0, said
    one.assert_complete()
    starts = {name: one.mirror.asked(name) for name in SHARDS}
    assert any(asked and asked[0] > 0 for asked in starts.values()), (starts, kept)
    assert sum(map(one.mirror.sent, SHARDS)) + kept == sum(len(MODEL[name]) for name in SHARDS)


def test_a_damaged_file_is_refused_and_fetched_anew_by_the_next_run(fetching):
    one = fetching(Faults(damaged=frozenset({SHARD})))
    status, said = one.run()
    assert status == 1
    assert said[-1].startswith(f"{SHARD} is damaged: its sha256 is ")
    assert said[-1].endswith("nothing was switched; run again to fetch that anew.")
    assert not one.model.exists()
    one.mirror.faults.damaged = frozenset()
    one.mirror.settled().clear()
    assert one.run()[0] == 0
    one.assert_complete()
    assert {entry["file"] for entry in one.mirror.settled() if entry["bytes"] and entry["file"]} == {SHARD}


def test_a_damaged_small_file_is_refused_as_well(fetching):
    status, said = fetching(Faults(damaged=frozenset({"config.json"}))).run()
    assert status == 1
    assert said[-1].startswith("config.json is damaged: its git-blob is ")


def test_a_connection_that_breaks_is_taken_up_again(fetching):
    one = fetching(Faults(cut_after=13_000_000))
    status, said = one.run()
    assert status == 0, said
    one.assert_complete()
    assert one.mirror.asked(SHARD)[0] == 0
    assert one.mirror.asked(SHARD)[1] > 0


def test_a_hub_that_is_away_ends_it_with_a_sentence_although_parts_are_there(fetching):
    one = fetching()
    one.partial.mkdir()
    (one.partial / "config.json").write_bytes(MODEL["config.json"])
    status, said = one.run(hub="http://127.0.0.1:9")
    assert (status, one.model.exists()) == (1, False)
    assert said[-1].startswith("http://127.0.0.1:9 cannot be reached from the host: ")


def test_a_mirror_with_an_authority_of_its_own_is_trusted_if_the_host_trusts_it(fetching, tmp_path):
    key, certificate = tmp_path / "key.pem", tmp_path / "certificate.pem"
    made = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=mirror", "-addext"]
    names = ["subjectAltName=IP:127.0.0.1", "-keyout", key, "-out", certificate]
    subprocess.run([*made, *names], check=True, capture_output=True)
    one = fetching()
    # Small files only, as the large ones are redirected to another host.
    one.mirror.repositories["org/tiny"] = {name: MODEL[name] for name in MODEL if name not in SHARDS}
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    one.server.socket = context.wrap_socket(one.server.socket, server_side=True)
    hub = one.server.url.replace("http:", "https:")
    status, said = one.run(hub=hub)
    assert status == 1
    assert "CERTIFICATE_VERIFY_FAILED" in said[-1]
    status, said = one.run(hub=hub, SSL_CERT_FILE=str(certificate))
    assert (status, said[-1]) == (0, f"org/tiny at {REVISION[:12]} is complete in {one.model}")


def test_the_token_reaches_the_hub_and_nothing_else(fetching):
    one = fetching(Faults(token="hf_secret"))
    status, said = one.run(token="hf_secret")
    assert status == 0, said
    one.assert_complete()
    shown = {entry["path"].split("/")[1]: entry["token"] for entry in one.mirror.settled()}
    assert shown == {"api": "Bearer hf_secret", "org": "Bearer hf_secret", "cdn": ""}
    assert not [path for path in one.model.rglob("*") if path.is_file() and b"hf_secret" in path.read_bytes()]
    assert "hf_secret" not in "\n".join(said)


@pytest.mark.parametrize(
    ("token", "reason"),
    [("", "set model_hub_token to one that may read it"), ("hf_wrong", "ask for access on the repository's page")],
)
def test_a_gated_repository_is_refused_before_a_byte_is_fetched(fetching, token, reason):
    one = fetching(Faults(token="hf_secret"))
    status, said = one.run(token=token)
    assert status == 1
    assert reason in said[-1]
    assert "hf_wrong" not in "\n".join(said)
    assert list(one.model.parent.iterdir()) == []


def test_a_directory_that_was_not_fetched_is_left_alone(fetching):
    one = fetching()
    one.model.mkdir()
    (one.model / "config.json").write_text("{}")
    status, said = one.run()
    assert status == 1
    assert said[-1].startswith(f"{one.model} is there and was not fetched: ")
    assert one.fetched() == {"config.json": b"{}"}


@pytest.fixture
def small_disk(tmp_path):
    """A file system of 40 MB, which is less than the model."""
    if os.geteuid():
        pytest.skip("mounting needs root")
    disk = tmp_path / "disk"
    disk.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=40000k", "none", disk], check=True)
    yield disk
    subprocess.run(["umount", "--lazy", disk], check=True)


def test_a_disk_that_is_too_small_is_refused_before_a_byte_is_fetched(fetching, small_disk):
    one = fetching(directory=small_disk)
    status, said = one.run()
    assert status == 1
    assert f"48.0 MB are still to be fetched, and {one.model.parent} has 41.0 MB free" in said[-1]
    assert "make room, or name a larger file system in model_directory" in said[-1]
    assert list(one.model.parent.iterdir()) == []


def test_a_disk_that_others_fill_meanwhile_ends_it_and_the_next_run_goes_on(fetching, small_disk):
    subprocess.run(["mount", "-o", "remount,size=60000k", small_disk], check=True)
    one = fetching(Faults(bytes_a_second=20_000_000), small_disk)
    with one.start() as process:
        one.wait_for_a_part()
        with (small_disk / "other").open("wb", buffering=0) as other, suppress(OSError):
            while True:
                other.write(bytes(1 << 20))
        said = process.communicate(timeout=60)[0].splitlines()
    assert process.returncode == 1
    assert said[-1] == f"{one.model.parent} is full: make room there, and run again; what was fetched is kept."
    assert not one.model.exists()
    (small_disk / "other").unlink()
    one.server.forget()
    one.mirror.faults.bytes_a_second = 0
    assert one.run()[0] == 0
    one.assert_complete()
    assert sum(map(one.mirror.sent, SHARDS)) < sum(len(MODEL[name]) for name in SHARDS)


def test_progress_says_how_far_and_how_long(load):
    progress = load("roles/model/files/fetch_model.py").progress
    assert progress((0, 0), (0, 0), 100) == "0 bytes of 100 bytes fetched (0 %)"
    assert (
        progress((100, 10**9), (160, 31 * 10**9), 601 * 10**9)
        == "31.0 GB of 601.0 GB fetched (5 %), 500.0 MB a second, 19 min left"
    )
