"""A mirror of the Hugging Face Hub that serves made models, for tests; needs the standard library only.

Answers as huggingface_hub 0.36.2 reads the hub (file_download.py: get_hf_file_metadata, http_get; utils/_http.py:
hf_raise_for_status): small files at once with their git name as ETag, large ones by a redirection with X-Linked-Size
and X-Linked-Etag to another host, which takes ranges. Every request is a line in the log.
"""

from __future__ import annotations

import hashlib
import json
import random
import re
import sys
import time
from contextlib import suppress
from dataclasses import dataclass, field
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.error import HTTPError
from urllib.parse import unquote, urlsplit
from urllib.request import urlopen

REVISION = "5f0e3a1b" * 5
LARGE = 4096
"""Files of so many bytes or more are large ones."""

BLOCK = 1 << 18


@dataclass
class Faults:
    """What is otherwise than at a hub that works."""

    token: str = ""
    """What must be shown to read files; empty for anybody."""

    listed_to_all: bool = True
    """Whether the list needs no token, as that of a gated repository."""

    damaged: frozenset[str] = frozenset()
    """Files of which another byte is sent than is announced."""

    bytes_a_second: float = 0
    cut_after: int = 0
    """Ends each answer after so many bytes."""

    stalls_after: int = 0
    """Sends no more than so many bytes of an answer, for as long as it is set."""

    without: frozenset[str] = frozenset()
    """Keys that the list leaves out of what it says of a file."""


@dataclass
class Mirror:
    """Repositories by name, each with its files by path, at one commit."""

    repositories: dict[str, dict[str, bytes]]
    faults: Faults = field(default_factory=Faults)
    log: list[dict] = field(default_factory=list)
    echo: bool = False
    revision: str = REVISION
    connections: set[object] = field(default_factory=set)
    """Those that were accepted and are not closed; what was answered on the others is in the log."""

    def note(self, **entry) -> None:
        self.log.append(entry)
        if self.echo:
            print(json.dumps(entry), flush=True)

    def settled(self, seconds: float = 30) -> list[dict]:
        """The log once nothing is being answered: a client may have its answer before that is in it."""
        deadline = time.monotonic() + seconds
        while self.connections:
            assert time.monotonic() < deadline, "the mirror still answers"
            time.sleep(0.02)
        return self.log

    def sent(self, path: str) -> int:
        """Bytes of a file that were sent in all."""
        return sum(entry["bytes"] for entry in self.log if entry["file"] == path and entry["method"] == "GET")

    def asked(self, path: str) -> list[int]:
        """Where the answers to the requests for a file began."""
        return [entry["start"] for entry in self.log if entry["file"] == path and entry["method"] == "GET"]


def git_blob(content: bytes) -> str:
    return hashlib.sha1(b"blob %d\0" % len(content) + content, usedforsecurity=False).hexdigest()


def sibling(path: str, content: bytes) -> dict:
    """What the hub's list says of a file."""
    said = {"rfilename": path, "size": len(content), "blobId": git_blob(content)}
    if len(content) >= LARGE:
        said["lfs"] = {"sha256": hashlib.sha256(content).hexdigest(), "size": len(content), "pointerSize": 134}
    return said


def made_model(shards: int = 2, size: int = 24_000_000) -> dict[str, bytes]:
    """Files of a model with content that does not repeat."""
    files = {f"model-{number}.safetensors": random.Random(number).randbytes(size) for number in range(1, shards + 1)}
    return files | {"config.json": b'{"architectures": ["LlamaForCausalLM"]}\n', "sub/tokenizer.json": b"{}\n"}


def handler(mirror: Mirror) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_) -> None:
            pass

        def answer(
            self, status: int, headers: dict[str, str], content: bytes = b"", start: int = 0, name: str = ""
        ) -> None:
            self.send_response(status)
            for key, value in ({"Content-Length": str(len(content))} | headers).items():
                self.send_header(key, value)
            self.end_headers()
            sent = 0
            try:
                if self.command == "GET":
                    sent = self.body(content, paced=bool(name))
            finally:
                mirror.note(method=self.command, path=self.path, status=status, file=name, start=start, bytes=sent,
                            token=self.headers.get("Authorization", ""))  # fmt: skip

        def body(self, content: bytes, *, paced: bool) -> int:
            sent, faults = 0, mirror.faults
            while sent < len(content):
                while paced and 0 < faults.stalls_after <= sent:
                    time.sleep(0.02)
                block = content[sent : sent + BLOCK]
                try:
                    self.wfile.write(block)
                except OSError:
                    self.close_connection = True
                    break
                sent += len(block)
                if paced and faults.bytes_a_second:
                    time.sleep(len(block) / faults.bytes_a_second)
                if paced and faults.cut_after and sent >= faults.cut_after:
                    self.close_connection = True
                    break
            return sent

        def refuse(self, status: int, code: str) -> None:
            self.answer(status, {"X-Error-Code": code, "X-Error-Message": code})

        @property
        def may_read(self) -> bool:
            return not mirror.faults.token or self.headers.get("Authorization") == f"Bearer {mirror.faults.token}"

        def do_GET(self) -> None:
            path = unquote(urlsplit(self.path).path)
            if found := re.fullmatch(r"/api/models/(.+)/revision/([^/]+)", path):
                self.listing(*found.groups())
            elif found := re.fullmatch(r"/cdn/(.+?)@@(.+)", path):
                self.large(mirror.repositories[found[1]][found[2]], found[2])
            elif found := re.fullmatch(r"/(.+?)/resolve/([^/]+)/(.+)", path):
                self.file(*found.groups())
            else:
                self.refuse(404, "RepoNotFound")

        do_HEAD = do_GET  # noqa: N815

        def listing(self, repository: str, revision: str) -> None:
            if not self.may_read and not mirror.faults.listed_to_all:
                return self.refuse(401, "RepoNotFound")
            if repository not in mirror.repositories:
                return self.refuse(404, "RepoNotFound")
            if revision != mirror.revision:
                return self.refuse(404, "RevisionNotFound")
            files = mirror.repositories[repository]
            siblings = [sibling(path, content) for path, content in files.items()]
            told = [{key: said for key, said in one.items() if key not in mirror.faults.without} for one in siblings]
            answer = {"id": repository, "sha": revision, "siblings": told}
            return self.answer(200, {"Content-Type": "application/json"}, json.dumps(answer).encode())

        def file(self, repository: str, revision: str, path: str) -> None:
            content = mirror.repositories.get(repository, {}).get(path)
            if content is None or revision != mirror.revision:
                return self.refuse(404, "EntryNotFound")
            if not self.may_read:
                return self.refuse(401 if not self.headers.get("Authorization") else 403, "GatedRepo")
            headers = {"X-Repo-Commit": revision, "ETag": f'"{git_blob(content)}"', "Accept-Ranges": "bytes"}
            if len(content) < LARGE:
                return self.ranged(content, path, headers)
            other = f"http://localhost:{self.server.server_address[1]}/cdn/{repository}@@{path}"
            headers |= {"X-Linked-Size": str(len(content)), "Location": other}
            headers |= {"X-Linked-Etag": f'"{hashlib.sha256(content).hexdigest()}"'}
            return self.answer(HTTPStatus.FOUND, headers)

        def large(self, content: bytes, path: str) -> None:
            self.ranged(content, path, {"Accept-Ranges": "bytes"})

        def ranged(self, content: bytes, path: str, headers: dict[str, str]) -> None:
            if path in mirror.faults.damaged:
                content = content[:-1] + bytes([content[-1] ^ 1])
            if self.command == "HEAD":
                return self.answer(200, headers | {"Content-Length": str(len(content))}, name=path)
            found = re.fullmatch(r"bytes=(\d+)-", self.headers.get("Range", ""))
            start = int(found[1]) if found else 0
            if found and start >= len(content):
                return self.answer(416, {"Content-Range": f"bytes */{len(content)}"})
            if found:
                headers = headers | {"Content-Range": f"bytes {start}-{len(content) - 1}/{len(content)}"}
            return self.answer(206 if found else 200, headers, content[start:], start, path)

    return Handler


class Server(ThreadingHTTPServer):
    """A server of a mirror on loopback; its threads end with the process."""

    daemon_threads = True

    def __init__(self, mirror: Mirror, port: int = 0):
        super().__init__(("127.0.0.1", port), handler(mirror))
        self.mirror = mirror

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    # In the order in which they come, one after the other.
    def process_request(self, request, client_address) -> None:
        self.mirror.connections.add(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request) -> None:
        super().shutdown_request(request)
        self.mirror.connections.discard(request)

    def forget(self, seconds: float = 30) -> None:
        """Empties the log, once the answers to clients that are gone are in it."""
        # Answered after those that connected before it were accepted.
        with suppress(HTTPError):
            urlopen(f"{self.url}/api", timeout=seconds).close()
        self.mirror.settled(seconds).clear()


def main() -> None:
    """Serves directories as repositories: PORT [NAME=DIRECTORY ...]; a request a line on standard output."""
    repositories = {}
    for word in sys.argv[2:]:
        name, _, directory = word.partition("=")
        files = (path for path in Path(directory).rglob("*") if path.is_file())
        repositories[name] = {str(path.relative_to(directory)): path.read_bytes() for path in files}
    Server(Mirror(repositories, echo=True), int(sys.argv[1])).serve_forever()


if __name__ == "__main__":
    main()
