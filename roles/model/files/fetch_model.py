"""Fetches a model at a commit from the Hugging Face Hub or a mirror, all of it or nothing.

Runs on the host, in a unit of its own that alone holds the token, with the release's interpreter, whose huggingface_hub
takes up again what was interrupted. What it prints is the unit's journal, and the last line also its status: how far it
is, or why it gave up. Ends with 1 if the model cannot be had; what there is of it stays for the next run.
"""

from __future__ import annotations

import argparse
import errno
import os
import shutil
import socket
import ssl
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

from hub_listing import REFUSED, ModelError, Source, listing, refusal
from model_store import SCRATCH, amount, begun, bytes_free, bytes_missing, damage, fault, finish, partial, space_problem

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from hub_listing import HubFile

CREDENTIAL = "hub-token"
"""Name of the token among the credentials of the unit (systemd.exec(5), LoadCredential=)."""

LIBRARY = {
    # Xet's client keeps no part of a file that it could go on from; the hub serves every file over HTTP as well.
    "HF_HUB_DISABLE_XET": "1",
    "HF_HUB_DISABLE_PROGRESS_BARS": "1",
    "HF_HUB_DISABLE_TELEMETRY": "1",
    "HF_HUB_DOWNLOAD_TIMEOUT": "60",
    "HF_HUB_ETAG_TIMEOUT": "60",
    "HF_HUB_OFFLINE": "0",
}
"""What huggingface_hub reads when it is imported."""

AT_ONCE = 8
CHECKED_AT_ONCE = 4
TRIES = 5
"""How often a file is asked for without a byte of it coming, before the download gives up."""

LONGEST_PAUSE_SECONDS = 60
FINAL = (*REFUSED, 404)
"""What the hub would answer again."""

FULL = (errno.ENOSPC, errno.EDQUOT)
RANGE_NOT_SATISFIABLE = 416


STATUS_LENGTH = 3000
"""systemd drops messages above 4096 bytes."""


def notify(text: str, path: str) -> None:
    """Makes a line the status of the unit (sd_notify(3)), which is there when the unit ends, unlike the journal."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
        sender.connect(f"\0{path[1:]}" if path.startswith("@") else path)
        sender.send(f"STATUS={text[:STATUS_LENGTH]}".encode())


def say(text: str) -> None:
    """Writes a line to the journal."""
    print(text, flush=True)
    if path := os.environ.get("NOTIFY_SOCKET"):
        notify(text, path)


def status_of(error: BaseException | None) -> int | None:
    """The HTTP status that an error of huggingface_hub comes from; None if it is of another kind."""
    while error is not None:
        if (response := getattr(error, "response", None)) is not None:
            return response.status_code
        error = error.__cause__
    return None


def final(error: Exception, source: Source, model: Path) -> str:
    """Why a file will not come however often it is asked for; empty if it may."""
    status = status_of(error)
    if status in FINAL:
        return refusal(source, status)
    if getattr(error, "errno", None) in FULL:
        return f"{model.parent} is full: make room there, and run again; what was fetched is kept"
    if status is None and getattr(error, "errno", None) is not None:
        return f"{model.parent}: {error}"
    return ""


def fetch_file(file: HubFile, source: Source, model: Path) -> None:
    """Brings a file into the partial model, or the rest of it; raises ModelError if it does not come."""
    from huggingface_hub import hf_hub_download  # noqa: PLC0415

    gathered, failures = partial(model), 0
    while failures < TRIES:
        before = bytes_missing([file], gathered)
        try:
            hf_hub_download(
                source.repository,
                file.path,
                revision=source.revision,
                endpoint=source.hub,
                token=source.token or False,
                local_dir=gathered,
                cache_dir=gathered / SCRATCH / "hub",
            )
        except (OSError, ValueError) as error:
            if problem := final(error, source, model):
                raise ModelError(problem) from error
            if status_of(error) == RANGE_NOT_SATISFIABLE:
                for part in begun(file, gathered):
                    part.unlink()
            failures = 1 if bytes_missing([file], gathered) < before else failures + 1
            said, pause = str(error).partition("\n")[0], min(2**failures, LONGEST_PAUSE_SECONDS)
            say(f"{file.path} did not come ({said}), asking again in {pause} s")
            time.sleep(pause)
        else:
            return
    raise ModelError(f"{file.path} does not come from {source.hub}: {said}; run again, what was fetched is kept")


def progress(start: tuple[float, int], now: tuple[float, int], whole: int) -> str:
    """How far a download is; times in seconds, and how many bytes were there at them."""
    seconds, fetched = now[0] - start[0], now[1] - start[1]
    said = f"{amount(now[1])} of {amount(whole)} fetched ({100 * now[1] // max(whole, 1)} %)"
    if fetched <= 0 or seconds <= 0:
        return said
    minutes = (whole - now[1]) * seconds / fetched / 60
    left = f"{minutes:.0f} min" if minutes >= 1 else "under 1 min"
    return f"{said}, {amount(round(fetched / seconds))} a second, {left} left"


def report(fetched: Callable[[], int], whole: int, seconds: float) -> None:
    """Says every so many seconds how far the download is, for as long as the process lives."""
    start = (time.monotonic(), fetched())
    while True:
        time.sleep(seconds)
        say(progress(start, (time.monotonic(), fetched()), whole))


def check(files: Sequence[HubFile], model: Path) -> None:
    """Compares every file with what the hub has, and removes those that differ.

    Raises:
        ModelError: some differ; the message names them.
    """
    with ThreadPoolExecutor(CHECKED_AT_ONCE) as pool:
        faults = dict(zip(files, pool.map(lambda file: fault(file, partial(model)), files), strict=True))
    wrong = {file: said for file, said in faults.items() if said}
    for file in wrong:
        (partial(model) / file.path).unlink(missing_ok=True)
    if wrong:
        raise ModelError(f"{'; '.join(wrong.values())}: nothing was switched; run again to fetch that anew")


def fetch(source: Source, model: Path, report_seconds: float) -> None:
    """Fetches a model unless it is complete; raises ModelError if it cannot be had."""
    complete = f"{source} is complete in {model}"
    if model.exists():
        if problem := damage(model):
            raise ModelError(problem)
        say(complete)
        return
    gathered = partial(model)
    files = listing(source)
    whole = sum(file.size for file in files)
    missing = bytes_missing(files, gathered)
    if problem := space_problem(str(source), model.parent, missing, bytes_free(model.parent)):
        raise ModelError(problem)
    say(f"fetching {source} from {source.hub}: {len(files)} files, {amount(whole)}, {amount(missing)} of it to come")
    gathered.mkdir(exist_ok=True)
    arguments = (lambda: whole - bytes_missing(files, gathered), whole, report_seconds)
    threading.Thread(target=report, args=arguments, daemon=True).start()
    pool = ThreadPoolExecutor(AT_ONCE)
    # The large ones first, so that the end does not wait for one of them.
    by_size = sorted(files, key=lambda file: file.size, reverse=True)
    for task in [pool.submit(fetch_file, file, source, model) for file in by_size]:
        task.result()
    say(f"checking size and hash of {len(files)} files")
    check(files, model)
    shutil.rmtree(gathered / SCRATCH)
    finish(model, source, files)
    say(complete)


def trusted() -> dict[str, str]:
    """Has huggingface_hub trust whom the host trusts, as the listing does: a mirror may have its own authority."""
    found = ssl.get_default_verify_paths()
    return {"REQUESTS_CA_BUNDLE": path} if (path := found.cafile or found.capath) else {}


def token() -> str | None:
    """The token that systemd passes to the unit; None if it has none."""
    credentials = os.environ.get("CREDENTIALS_DIRECTORY")
    path = Path(credentials, CREDENTIAL) if credentials else None
    return path.read_text(encoding="utf-8").strip() if path and path.exists() else None


def main() -> int:
    """Fetches what the arguments name; returns the exit status."""
    parser = argparse.ArgumentParser(description="Fetches a model at a commit, all of it or nothing.")
    parser.add_argument("--hub", required=True, help="URL of the hub or of a mirror")
    parser.add_argument("--repository", required=True, help="such as org/name")
    parser.add_argument("--revision", required=True, help="the commit, 40 hexadecimal digits")
    parser.add_argument("--model", required=True, type=Path, help="directory that the model gets; its parent is there")
    parser.add_argument("--report", type=float, default=15, metavar="SECONDS", help="how often to say how far it is")
    arguments = parser.parse_args()
    os.environ.update(LIBRARY | trusted())
    source = Source(arguments.hub, arguments.repository, arguments.revision, token())
    try:
        fetch(source, arguments.model, arguments.report)
    except ModelError as error:
        say(f"{error}.")
        return 1
    return 0


if __name__ == "__main__":
    status = main()
    # Other files may still be on their way after one has failed; what there is of them is taken up by the next run.
    sys.stdout.flush()
    os._exit(status)
