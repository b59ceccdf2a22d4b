"""Runs on the host, where it is sent as text: the standard library only, nothing of this package.

Each public function takes and returns what JSON can hold.
"""

import http.client
import ipaddress
import itertools
import json
import os
import pwd
import re
import subprocess
import sys
import time
from pathlib import Path

UNIT = "sglang.service"
READY = Path("/run/sglang/ready.json")
DEPLOYMENTS = Path("/var/lib/sglang/deployments")
ROOT = Path("/opt/sglang")
BENCH = Path("/var/lib/sglang/bench")
BENCH_UNITS = {"sweep": "blackwell-bench.service", "server": "blackwell-bench-server.service"}

INTERCONNECT_UNIT = "blackwell-interconnect.service"
# Program and arguments come over stdin: systemd would replace what looks like a variable in a command line.
RANKS = (
    "import json, sys; sent = json.load(sys.stdin); space = {'__name__': 'ranks'}; "
    "exec(compile(sent['ranks'], 'ranks', 'exec'), space); print(json.dumps(space['run'](**sent['arguments'])))"
)
# What a unit may take beyond the time of its ranks: to start, to read its environment, to end them.
UNIT_SECONDS = 30

PROPERTIES = (
    "LoadState,ActiveState,SubState,Result,StateChangeTimestamp,ActiveEnterTimestamp,NRestarts,MemoryCurrent,MainPID,"
    "NeedDaemonReload,UnitFileState,ExecStart"
)
# What the server prints has one level in the journal, so its errors are told by their words: a level, the last line of
# a traceback, and what its processes say when they end.
TROUBLE = re.compile(
    r"\b(WARNING|ERROR|CRITICAL|FATAL)\b|^[\w.]*(Error|Exception)\b|hit an exception|^Fatal Python|Segmentation fault"
)
SEARCHED_LINES = 2000
WARNING_PRIORITY = 4
# /health generates a token and gives up after 20 s by itself.
HEALTH_SECONDS = 25
INFORMATION_SECONDS = 10
# A card that fell off the bus can hold the driver.
GPU_SECONDS = 15
GPU_DOCTOR_SECONDS = 100


def _output(*words: str) -> str:
    done = subprocess.run(words, capture_output=True, text=True, errors="replace", check=False)
    if done.returncode:
        raise SystemExit(f"{words[0]}: {done.stderr.strip()}")
    return done.stdout


def unit() -> dict:
    """What systemd says of the service; times are ``@`` and seconds since the epoch."""
    lines = _output("systemctl", "show", "--timestamp=unix", f"--property={PROPERTIES}", UNIT).splitlines()
    return dict(line.split("=", 1) for line in lines if "=" in line)


def _arguments(properties: dict) -> list:
    try:
        return Path(f"/proc/{int(properties.get('MainPID', 0))}/cmdline").read_text(encoding="utf-8").split("\0")
    except OSError:
        return properties.get("ExecStart", "").split()


def bound(arguments: list) -> dict:
    """Host and port of a server's command line, as a client on the same host uses them; None where there are none."""
    after = dict(itertools.pairwise(arguments))
    host, port = after.get("--host"), after.get("--port", "")
    return {"host": _reachable(host) if host else None, "port": int(port) if port.isdigit() else None}


def _reachable(host: str) -> str:
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return host
    loopback = {4: "127.0.0.1", 6: "::1"}[address.version]
    return loopback if address.is_unspecified else host


def request(address: dict, path: str, seconds: float, body: object = None) -> dict:
    """One request to the server: status (0 if there was no answer), seconds, and the body, decoded if it is JSON."""
    started = time.monotonic()
    connection = http.client.HTTPConnection(address["host"], address["port"], timeout=seconds)
    try:
        headers = {"Content-Type": "application/json"}
        connection.request("GET" if body is None else "POST", path, None if body is None else json.dumps(body), headers)
        answer = connection.getresponse()
        status, text = answer.status, answer.read().decode("utf-8", "replace")
    except (OSError, http.client.HTTPException) as error:
        status, text = 0, str(error) or type(error).__name__
    finally:
        connection.close()
    try:
        content = json.loads(text)
    except ValueError:
        content = text
    return {"status": status, "seconds": time.monotonic() - started, "body": content}


def _file(path: Path) -> dict:
    try:
        return {"text": path.read_text(encoding="utf-8")}
    except FileNotFoundError:
        return {}
    except OSError as error:
        return {"error": error.strerror}


def _disk() -> dict:
    try:
        found = os.statvfs(ROOT)
    except OSError as error:
        return {"error": error.strerror}
    return {"free": found.f_bavail * found.f_frsize, "total": found.f_blocks * found.f_frsize}


def _journal(*words: str) -> tuple:
    fields = "--output-fields=MESSAGE,PRIORITY"
    command = ["journalctl", f"--unit={UNIT}", "--no-pager", "--all", "--output=json", fields, *words]
    done = subprocess.run(command, capture_output=True, check=False, env={**os.environ, "LC_ALL": "C"})
    entries = [json.loads(line) for line in done.stdout.splitlines() if line.startswith(b"{")]
    return entries, not re.search(b"not seeing messages|insufficient permissions", done.stderr)


def message(entry: dict) -> str:
    """Text of a journal entry, which is a list of bytes where it is not printable."""
    found = entry.get("MESSAGE") or ""
    return bytes(found).decode("utf-8", "replace") if isinstance(found, list) else found


def trouble(entries: list, count: int) -> list:
    """The last warnings and errors among journal entries, oldest first: time in seconds since the epoch, and text."""
    chosen = {
        entry["__CURSOR"]: {"time": int(entry["__REALTIME_TIMESTAMP"]) / 1e6, "text": message(entry)}
        for entry in entries
        if int(entry.get("PRIORITY") or 6) <= WARNING_PRIORITY or TROUBLE.search(message(entry))
    }
    return sorted(chosen.values(), key=lambda found: found["time"])[-count:]


def clock() -> dict:
    """The host's time, in seconds since the epoch."""
    return {"now": time.time()}


def deployments() -> dict:
    """The records of the deployment that runs, of the last good one and of the one before; who read them."""
    return {
        "user": pwd.getpwuid(os.geteuid()).pw_name,
        "running": _file(READY),
        "good": _file(DEPLOYMENTS / "good/deployment.json"),
        "previous": _file(DEPLOYMENTS / "previous/deployment.json"),
    }


def status(warnings: int) -> dict:
    """Everything that a look at the server needs, with the last ``warnings`` warnings and errors of its journal."""
    properties = unit()
    address = bound(_arguments(properties))
    recent, readable = _journal(f"--lines={SEARCHED_LINES}")
    marked, _ = _journal("--priority=warning", f"--lines={warnings}")
    found = {
        **deployments(),
        **clock(),
        "unit": properties,
        "address": address,
        "current": os.path.realpath(ROOT / "current") if (ROOT / "current").is_symlink() else None,
        "disk": _disk(),
        "journal": trouble([*recent, *marked], warnings),
        "journal_readable": readable,
    }
    if properties.get("MainPID", "0") != "0" and address["host"] and address["port"]:
        found["health"] = request(address, "/health", HEALTH_SECONDS)
        if found["health"]["status"] == http.client.OK:
            found["information"] = request(address, "/server_info", INFORMATION_SECONDS)
            found["load"] = request(address, "/get_load", INFORMATION_SECONDS)
    return found


def doctor(warnings: int, gpus: dict | None) -> dict:
    """``status``, and what else goes wrong on a host: its memory, what a measurement left, its GPUs.

    ``gpus``: the ``program`` that looks at them and its ``arguments``; None where there are to be none.
    """
    return {**status(warnings), "memory": _memory(), "bench": _bench(), "gpus": gpus and _gpus(**gpus)}


def _memory() -> dict:
    """Bytes of memory, of which ``MemAvailable`` can be had without swapping (proc_meminfo(5))."""
    lines = [line.split() for line in Path("/proc/meminfo").read_text(encoding="utf-8").splitlines()]
    found = {words[0].rstrip(":"): int(words[1]) * 1024 for words in lines if len(words) == 3}
    return {"available": found.get("MemAvailable", 0), "total": found.get("MemTotal", 0)}


def _bench() -> dict:
    """The state of each unit of a measurement, and the run that the sweep's own names, if it does."""
    fields = "--property=ActiveState,ExecStart,WorkingDirectory,Environment,Description"
    shown = {name: _output("systemctl", "show", fields, unit) for name, unit in BENCH_UNITS.items()}
    states = {name: re.search(r"^ActiveState=(.*)$", text, re.MULTILINE) for name, text in shown.items()}
    run = re.search(re.escape(str(BENCH)) + r"/([\w.-]+)", shown["sweep"])
    return {**{name: state[1] if state else "unknown" for name, state in states.items()}, "run": run and run[1]}


def _gpus(program: str, arguments: list) -> dict:
    """What the doctor of the GPUs prints, as ``text``; where it does not get there, its last word, as ``error``."""
    words = [sys.executable, "-I", "-", *arguments]
    try:
        done = subprocess.run(
            words, input=program, capture_output=True, text=True, timeout=GPU_DOCTOR_SECONDS, check=False
        )
    except subprocess.TimeoutExpired:
        return {"error": f"no answer within {GPU_DOCTOR_SECONDS} s"}
    if done.stdout.startswith("{"):
        return {"text": done.stdout}
    return {"error": (done.stderr.strip().splitlines() or ["it said nothing"])[-1]}


def speculation(change: dict) -> dict:
    """What the server says of itself, if it is active, and with settings to change its answer and what it says then.

    With what systemd says of the service.
    """
    properties = unit()
    address = bound(_arguments(properties))
    found = {"unit": properties, "address": address}
    if properties.get("ActiveState") == "active" and address["host"] and address["port"]:
        found["before"] = request(address, "/server_info", INFORMATION_SECONDS)
        if change:
            found["answer"] = request(address, "/set_internal_state", INFORMATION_SECONDS, {"server_args": change})
            found["after"] = request(address, "/server_info", INFORMATION_SECONDS)
    return found


def ask(prompt: str, tokens: int, wait: float) -> dict:
    """One completion within ``wait`` seconds, if the service is active; with what systemd says of it."""
    properties = unit()
    address = bound(_arguments(properties))
    found = {"now": time.time(), "unit": properties, "address": address}
    if properties.get("ActiveState") == "active" and address["host"] and address["port"]:
        wanted = {"text": prompt, "sampling_params": {"temperature": 0, "max_new_tokens": tokens}}
        found["answer"] = request(address, "/generate", wait, wanted)
    return found


def interconnect(ranks: str, arguments: dict, beside: bool) -> dict:  # noqa: FBT001 (JSON names it)
    """Run an all-reduce with the current release, as the service's user and in its environment.

    ``ranks``: text of interconnect/ranks.py; ``arguments``: of its ``run``, with a ``total`` of 0 for all GPUs.
    ``beside``: also while the service runs. Returns what it returns, ``total`` and whether the service was ``active``;
    ``problem``, in one sentence without the host, if it could not be run. systemd ends it when its time is up, whatever
    becomes of who asked for it.
    """
    python = ROOT / "current/venv/bin/python"
    fields = ("LoadState", "ActiveState", "User", "EnvironmentFiles")
    shown = _output("systemctl", "show", f"--property={','.join(fields)}", UNIT)
    found = dict(line.split("=", 1) for line in shown.splitlines() if "=" in line)
    if found.get("LoadState") != "loaded" or not python.exists():
        return {"problem": "there is no release to run it with: deploy first (ansible-playbook site.yml)"}
    active = found.get("ActiveState") not in ("inactive", "failed")
    if active and not beside:
        return {"problem": f"{UNIT} runs, and its requests would be measured too: stop it first, or --beside"}
    total = arguments["total"] or _count_gpus()
    if total < 2:
        return {"problem": f"it has {total or 'no'} GPU{'' if total else 's'}, and an all-reduce takes two"}
    files = re.findall(r"^EnvironmentFiles=(\S+)", shown, re.MULTILINE)
    properties = [f"User={found['User']}", "LimitMEMLOCK=infinity", "PrivateTmp=yes", "KillMode=control-group"]
    properties += [
        f"RuntimeMaxSec={arguments['seconds'] + UNIT_SECONDS:g}",
        *(f"EnvironmentFile={file}" for file in files),
    ]
    command = ["systemd-run", "--quiet", "--pipe", "--wait", "--collect", f"--unit={INTERCONNECT_UNIT}"]
    command += [f"--property={text}" for text in properties]
    sent = {"ranks": ranks, "arguments": {**arguments, "total": total}}
    done = subprocess.run(
        [*command, str(python), "-I", "-c", RANKS], input=json.dumps(sent), capture_output=True, text=True, check=False
    )
    if done.returncode:
        said = (done.stderr.strip().splitlines() or ["it said nothing"])[-1]
        return {"problem": f"{INTERCONNECT_UNIT} failed with {done.returncode}: {said}"}
    return {**json.loads(done.stdout), "total": total, "active": active}


def _count_gpus() -> int:
    """The cards that nvidia-smi lists; none where it is not there, fails, or does not answer."""
    words = ["nvidia-smi", "--query-gpu=index", "--format=csv,noheader,nounits"]
    try:
        done = subprocess.run(words, capture_output=True, text=True, timeout=GPU_SECONDS, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return 0
    return 0 if done.returncode else len(done.stdout.split())
