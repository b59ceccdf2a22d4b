"""A host for ``fab`` on this machine: an SSH server, and a server that follows its load by the patched server's code.

systemd is a program on PATH that says what the host's would.
"""

import json
import os
import subprocess
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import paramiko
import ssh_server

from blackwell import paths

FAB = paths.ROOT / ".venv/bin/fab"
MOST = 16


@dataclass
class Sglang:
    """``policy``: the module of the patched server; ``controller``: its state, None where it has no load policy.

    ``fields``: what /server_info says at its top. ``refusal``: what the server answers to every change; ``changes``:
    those that it was sent.
    """

    policy: object
    controller: object = None
    fields: dict = field(default_factory=dict)
    refusal: str = ""
    changes: list = field(default_factory=list)

    def information(self):
        live = {} if self.controller is None else {"speculative_load_state": self.controller.snapshot()}
        return self.fields | {"internal_states": [{"last_gen_throughput": 1.0} | live]}

    def change(self, asked):
        self.changes.append(asked)
        if self.refusal:
            return 400, {"updated": False, "message": self.refusal}
        try:
            self.controller.apply(self.controller.plan(asked))
        except self.policy.LoadPolicyError as error:
            return 400, {"updated": False, "message": str(error)}
        return 200, {"updated": True, "message": ""}


def started(policy, threshold):
    """A server that was started with a threshold; 0 is without any policy."""
    made = policy.from_threshold(threshold, 3)
    fields = {
        "version": "0.5.9",
        "speculative_algorithm": "EAGLE3",
        "speculative_num_steps": 3,
        "max_running_requests": MOST,
        "speculative_disable_batch_threshold": threshold,
        "speculative_load_policy": None,
    }
    return Sglang(policy, policy.TierController(made, (3, 0), MOST) if threshold else None, fields)


@contextmanager
def answering(sglang):
    """Its port on loopback."""

    class Handler(BaseHTTPRequestHandler):
        def reply(self, status, body):
            self.send_response(status)
            self.end_headers()
            self.wfile.write(json.dumps(body).encode())

        def do_GET(self):
            self.reply(200, sglang.information())

        def do_POST(self):
            sent = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            self.reply(*sglang.change(sent["server_args"]))

        def log_message(self, *_):
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield server.server_port
        server.shutdown()
        thread.join()


@dataclass(frozen=True)
class Keys:
    """The key that the SSH server lets in, and its own."""

    user: Path
    server: paramiko.PKey

    @property
    def accepted(self):
        return paramiko.ECDSAKey.from_private_key_file(str(self.user))


def keys(directory):
    paramiko.ECDSAKey.generate(bits=256).write_private_key_file(str(directory / "user"))
    return Keys(directory / "user", paramiko.ECDSAKey.generate(bits=256))


def systemctl(directory, port):
    """A systemctl that shows an active service with its address on the command line."""
    lines = [
        "LoadState=loaded",
        "ActiveState=active",
        "SubState=running",
        "Result=success",
        "MainPID=0",
        f"ExecStart=python -m sglang.launch_server --host 127.0.0.1 --port {port}",
    ]
    program = directory / "systemctl"
    program.write_text("#!/bin/sh\ncat <<'EOF'\n" + "\n".join(lines) + "\nEOF\n")
    program.chmod(0o755)


def inventory(directory, keys, port, **variables):
    """An inventory with the host ``box``, reached at a port of this machine."""
    directory.mkdir()
    known = directory / ".known_hosts"
    known.write_text(f"[127.0.0.1]:{port} {keys.server.get_name()} {keys.server.get_base64()}\n")
    reached = {
        "ansible_host": "127.0.0.1",
        "ansible_port": port,
        "ansible_user": "tester",
        "ansible_ssh_private_key_file": str(keys.user),
        "ansible_ssh_common_args": f"-F none -o UserKnownHostsFile={known} -o GlobalKnownHostsFile=none",
    }
    (directory / "hosts.json").write_text(json.dumps({"sglang_hosts": {"hosts": {"box": reached | variables}}}))
    return directory


@dataclass(frozen=True)
class Live:
    """The host, and its inventory."""

    sglang: Sglang
    inventory: Path

    def fab(self, *words):
        """Runs a task on the host."""
        command = [FAB, "--search-root", paths.ROOT, "-H", "box", *words, "--inventory", self.inventory]
        return subprocess.run(
            command, cwd=paths.ROOT, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
        )

    @property
    def file(self):
        return self.inventory / "host_vars/box/speculation.yml"


@contextmanager
def running(directory, sglang, monkeypatch, **variables):
    """The host, its server and its inventory, for as long as the context lasts."""
    made = keys(directory)
    monkeypatch.delenv("SSH_AUTH_SOCK", raising=False)
    monkeypatch.setenv("PATH", f"{directory}:{os.environ['PATH']}")
    with answering(sglang) as port, ssh_server.serving(made.server, made.accepted) as ssh:
        systemctl(directory, port)
        yield Live(sglang, inventory(directory / "inventory", made, ssh.port, **variables))
