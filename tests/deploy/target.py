"""A sandbox host as a target of the deployment, and the commands that a person would type."""

import json
import os
import re
import shlex
import signal
import subprocess
import time
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from ipaddress import IPv4Network
from pathlib import Path

from blackwell import paths
from blackwell.sandbox import api
from blackwell.sandbox.settings import Settings

BIN = paths.ROOT / ".venv" / "bin"
INVENTORY = paths.ROOT / "inventory" / "sandbox"
# With a fixed name: what a killed test run left is found and removed by the next.
SETTINGS = Settings(Path("/run/blackwell-sandbox-deploy"), paths.cache() / "sandbox", IPv4Network("10.213.3.0/24"))
# What the interpreter of a release needs to serve on a CPU.
CPU_ENVIRONMENT = "SGLANG_USE_CPU_ENGINE=1 TORCHDYNAMO_DISABLE=1 OMP_NUM_THREADS=1 HF_HUB_OFFLINE=1"
PROMPT = {"text": "n5 n6 n7", "sampling_params": {"temperature": 0, "max_new_tokens": 16}}


def descendants(pid: int) -> list[int]:
    """Every process that this one started and that is still below it (proc_pid_task(5))."""
    try:
        children = [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except FileNotFoundError:
        return []
    return [process for child in children for process in (child, *descendants(child))]


@dataclass(frozen=True)
class Run:
    """What a command printed and how it ended."""

    returncode: int
    output: str

    @property
    def recap(self) -> dict[str, int]:
        """The counters of the only host in the recap of a playbook."""
        line = re.search(r"PLAY RECAP \*+\n\S+\s+:(.*)", self.output)
        assert line, self.output
        return {name: int(value) for name, value in re.findall(r"(\w+)=(\d+)", line[1])}


@dataclass(frozen=True)
class Target:
    """A sandbox host as Ansible's inventory knows it."""

    host: str
    address: str
    inventory: Path = INVENTORY

    @property
    def environment(self) -> dict[str, str]:
        return os.environ | {
            "BLACKWELL_SANDBOX_RUN": str(SETTINGS.run),
            "BLACKWELL_SANDBOX_NET": str(SETTINGS.network),
            "ANSIBLE_CONFIG": str(paths.ROOT / "ansible.cfg"),
            "ANSIBLE_FORCE_COLOR": "0",
            "PATH": f"{BIN}:{os.environ['PATH']}",
        }

    def command(self, *words: object) -> Run:
        """Runs a command of the project to its end."""
        done = subprocess.run(
            [str(word) for word in words],
            cwd=paths.ROOT,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        return Run(done.returncode, done.stdout)

    def arguments(self, *arguments: str, playbook: str = "site.yml", **variables: object) -> list[str]:
        """The words of an ansible-playbook command for this host."""
        words = [str(BIN / "ansible-playbook"), playbook, "-i", str(self.inventory), "--limit", self.host, *arguments]
        return words + (["--extra-vars", json.dumps(variables)] if variables else [])

    def play(self, *arguments: str, playbook: str = "site.yml", **variables: object) -> Run:
        """Runs a playbook against this host to its end; ``variables`` are its extra variables."""
        return self.command(*self.arguments(*arguments, playbook=playbook, **variables))

    @contextmanager
    def playing(self, log: Path, **variables: object):
        """A playbook that runs in a process group of its own, for tests that kill it."""
        with (
            log.open("w") as out,
            subprocess.Popen(
                self.arguments(**variables),
                cwd=paths.ROOT,
                env=self.environment,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
                process_group=0,
            ) as process,
        ):
            try:
                yield process
            finally:
                # As when the machine that ran it is switched off; Ansible's workers are in sessions of their own.
                for victim in (process.pid, *descendants(process.pid)) if process.poll() is None else ():
                    with suppress(ProcessLookupError):
                        os.kill(victim, signal.SIGKILL)

    def verify(self, *arguments: str) -> Run:
        """Runs scripts/verify against this host."""
        return self.command("scripts/verify", "-i", self.inventory, "-l", self.host, *arguments)

    def fab(self, *words: str) -> Run:
        """Runs a task of fab against this host."""
        return self.command(BIN / "fab", "-H", self.host, *words, "--inventory", self.inventory)

    def ssh(self, command: str, *, check: bool = True) -> str:
        """Output of a shell command on the host, as root."""
        words = [*api.ssh_command(self.host, settings=SETTINGS), command]
        done = subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
        assert not check or done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"
        return done.stdout.strip()

    def record(self, path: str) -> dict:
        """A JSON file of the host; empty if it is not there."""
        return json.loads(self.ssh(f"cat {path} 2>/dev/null || echo '{{}}'"))

    def unpack(self, directory: str, *names: str, base: Path = paths.ROOT) -> None:
        """Copies files and directories, of the project if not of another, into a host's directory that is made anew."""
        archive = subprocess.run(["tar", "-C", base, "-c", *names], check=True, capture_output=True).stdout
        place = shlex.quote(directory)
        make_anew = f"rm -rf {place}; mkdir {place} && tar -C {place} -x"
        subprocess.run([*api.ssh_command(self.host, settings=SETTINGS), make_anew], input=archive, check=True)

    def write(self, file: str, data: bytes) -> None:
        """Writes a file of the host, whose directory is there."""
        command = [*api.ssh_command(self.host, settings=SETTINGS), f"cat >{shlex.quote(file)}"]
        subprocess.run(command, input=data, check=True)

    @property
    def ready(self) -> dict:
        """What the readiness check wrote down of the server that runs."""
        return self.record("/run/sglang/ready.json")

    def request(self, path: str, body: dict | None = None) -> dict:
        """The server's answer to a request from its own host."""
        source = (paths.ROOT / "tests" / "verify" / "ask_server.py").read_text(encoding="utf-8")
        url = f"http://127.0.0.1:30000{path}"
        return json.loads(self.ssh(shlex.join(["python3", "-c", source, url, json.dumps(body)])))

    def generates(self) -> bool:
        """Whether the server completes a prompt."""
        answer = self.request("/generate", PROMPT)
        return answer["status"] == 200 and answer["body"]["meta_info"]["completion_tokens"] == 16

    def until(self, command: str, seconds: float) -> str:
        """Waits until a shell command succeeds on the host; returns its output."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            words = [*api.ssh_command(self.host, settings=SETTINGS), command]
            done = subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
            if done.returncode == 0:
                return done.stdout.strip()
            time.sleep(0.2)
        raise AssertionError(f"{self.host}: not within {seconds} s: {command}")

    def fingerprint(self) -> str:
        """What a refused or dry run must leave as it is: files with owner, mode and time, the user and the process."""
        return self.ssh(
            "find /opt /etc /usr/local /var/lib/sglang -xdev -not -path '*/cache/*' "
            "-printf '%p %u %g %m %s %l %T@\\n' 2>/dev/null | sort | sha256sum; "
            "systemctl show sglang -p MainPID; id sglang 2>&1 || :"
        )


def make(name: str) -> Target:
    (host,) = api.up([name], settings=SETTINGS)
    return Target(host=host.name, address=host.address)
