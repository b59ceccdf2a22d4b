"""The server of a sweep as a unit of systemd, and the service that it stands in for."""

import os
import socket
import time
from dataclasses import dataclass
from pathlib import Path

from blackwell.bench.errors import BenchError

from . import deployed, server_unit, server_words, systemd
from .deployed import Deployed
from .plan import Settings
from .servers import EndedError, Server
from .systemd import RUNNER, SERVER, SERVICE

UNITS = Path("/run/systemd/system")
VARIABLES = Path("/run/blackwell-bench-server.env")
STARTED = ("active", "reloading")
TROUBLE_LINES = 200
SAID = 300


@dataclass
class Host:
    """Starts and stops the servers of a sweep on this host; ``steps``: draft steps of the one that speculates."""

    deployed: Deployed
    steps: int

    def start(self, settings: Settings, *, speculates: bool) -> Server:
        """Stop the service, start a server in its place and wait until it generates.

        Raises BenchError with the last of what it printed if it does not get there, EndedError if somebody starts
        sglang.service meanwhile.
        """
        port = free_port()
        argv = (
            server_words.speculative(self.deployed.argv, settings, port, self.steps)
            if speculates
            else server_words.baseline(self.deployed.argv, settings, port)
        )
        environment = server_words.environment(settings, speculates=speculates)
        url = f"http://{server_words.LOOPBACK}:{port}"
        text = server_unit.text(self.deployed.unit, argv, environment, VARIABLES, url)
        systemd.stop(SERVER)
        systemd.stop(SERVICE)
        _write(VARIABLES, server_unit.variables(environment), 0o600)
        _write(UNITS / SERVER, text, 0o644)
        systemd.run(["systemctl", "daemon-reload"])
        systemd.forget_failure(SERVER)
        begun = time.monotonic()
        try:
            systemd.run(["systemctl", "start", SERVER], None)
        except BenchError as error:
            self.ended()
            raise BenchError(
                f"the server of settings {settings.name} {'with' if speculates else 'without'} speculation did not "
                f"become ready: {said()}"
            ) from error
        return Server(url, time.monotonic() - begun)

    def stop(self) -> None:
        """Stop the server of the sweep; the service stays as it is."""
        systemd.stop(SERVER)

    def ended(self) -> str | None:
        """Why the sweep's server does not run, None if it does; raises EndedError if sglang.service has its place."""
        if systemd.state(SERVICE) in (*STARTED, "activating"):
            raise EndedError(f"somebody started {SERVICE}, to which the server of a sweep gives way")
        return None if systemd.state(SERVER) in STARTED else said()


def free_port() -> int:
    """A port of loopback on which nothing listens now."""
    with socket.socket() as one:
        one.bind((server_words.LOOPBACK, 0))
        return one.getsockname()[1]


def said() -> str:
    """The last trouble that the sweep's server printed, or the last line."""
    told = systemd.show(SERVER, "InvocationID", "Result")
    lines = [
        line.strip() for line in systemd.journal(SERVER, told.get("InvocationID", ""), TROUBLE_LINES) if line.strip()
    ]
    trouble = [line for line in lines if "Error" in line or "error" in line or "Killed" in line]
    line = (trouble or lines or ["it printed nothing"])[-1]
    return f"{line[:SAID]} (systemd: {told.get('Result') or 'no result'}; journalctl -u {SERVER})"


def pid() -> int:
    """The first process of the sweep's server."""
    return int(systemd.show(SERVER, "MainPID")["MainPID"])


def put_back(run: Path, *, wait: bool) -> str:
    """End the sweep's server, remove its unit, and start the service if it ran when the run began.

    Returns what was done, a sentence without a full stop. Can be cut off anywhere, and run again. ``wait``: until the
    service is ready, which raises BenchError if it does not get there.
    """
    systemd.stop(SERVER)
    for file in (UNITS / SERVER, VARIABLES):
        file.unlink(missing_ok=True)
    systemd.run(["systemctl", "daemon-reload"])
    systemd.forget_failure(SERVER)
    # A run directory with this file was begun while the service ran.
    if not (run / deployed.FILE).exists():
        return f"{SERVICE} was left as it is"
    if systemd.state(SERVICE) in STARTED:
        return f"{SERVICE} runs already"
    systemd.forget_failure(SERVICE)
    systemd.run(["systemctl", "start", *([] if wait else ["--no-block"]), SERVICE], None)
    return f"{SERVICE} is {'ready' if wait else 'being started'}"


def sweeping() -> str | None:
    """The run directory of the sweep that is under way; None if there is none."""
    if systemd.state(RUNNER) in ("inactive", "failed"):
        return None
    return systemd.show(RUNNER, "WorkingDirectory").get("WorkingDirectory") or "unknown"


def _write(file: Path, text: str, mode: int) -> None:
    try:
        handle = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, mode)
        with os.fdopen(handle, "w", encoding="utf-8") as opened:
            os.fchmod(handle, mode)
            opened.write(text)
    except OSError as error:
        raise BenchError(f"{file} cannot be written: {error.strerror}") from error
