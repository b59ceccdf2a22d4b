"""What a model repository holds at a commit, as the Hugging Face Hub or a mirror of it says.

Runs on the host, with nothing but the standard library. The forms are those that huggingface_hub 0.36.2 reads:
``/api/models/{repository}/revision/{commit}?blobs=true`` (hf_api.py: repo_info, RepoSibling, BlobLfsInfo) and
``/{repository}/resolve/{commit}/{file}`` (constants.py: HUGGINGFACE_CO_URL_TEMPLATE).
"""

from __future__ import annotations

import json
import re
import urllib.error
import urllib.request
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any
from urllib.parse import quote

SHA256, GIT_BLOB = "sha256", "git-blob"
HEXADECIMAL_DIGITS = {SHA256: 64, GIT_BLOB: 40}
CONFIGURATION = "config.json"
"""Without it SGLang loads nothing."""

PATIENCE_SECONDS = 30
REFUSED, ABSENT = (401, 403), 404


class ModelError(Exception):
    """A model cannot be had; the message is a sentence without a full stop."""


@dataclass(frozen=True)
class Source:
    """A commit of a repository, and where it is had."""

    hub: str
    """URL of the hub or mirror, without a slash at its end."""

    repository: str
    revision: str
    token: str | None = None

    def __str__(self) -> str:
        """The repository and the commit, for sentences."""
        return f"{self.repository} at {self.revision[:12]}"


@dataclass(frozen=True)
class HubFile:
    """A file of a repository, and what it must be."""

    path: str
    size: int
    algorithm: str
    """``SHA256`` of its content, or ``GIT_BLOB``: git's name of it, for small files."""

    digest: str


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_: object) -> None:
        """Leaves a redirection alone: that there is one says that the file may be read."""


def request(url: str, token: str | None, method: str = "GET") -> urllib.request.Request:
    """A request that shows the token to the host of its URL and, if that redirects, to no other."""
    made = urllib.request.Request(url, method=method, headers={"Accept-Encoding": "identity"})
    if token:
        made.add_unredirected_header("Authorization", f"Bearer {token}")
    return made


def refusal(source: Source, status: int, reason: str = "") -> str:
    """What it means that the hub answers with this status, and what to do about it.

    ``reason`` is the hub's X-Error-Code, where it has one.
    """
    if status in REFUSED and source.token:
        return (
            f"{source.hub} answers {status} for {source.repository}, so the token of model_hub_token may not read it: "
            "ask for access on the repository's page, or use another token"
        )
    if status in REFUSED:
        return (
            f"{source.hub} answers {status} for {source.repository}, which needs a token or is not there: "
            "set model_hub_token to one that may read it, or correct the name"
        )
    if status == ABSENT:
        what = "no such commit" if reason == "RevisionNotFound" else "no such repository, commit or file"
        return f"{source.hub} answers 404 for {source}: there is {what}"
    return f"{source.hub} answers {status} for {source}: try again later, or name a mirror in model_hub"


def ask(source: Source, url: str, method: str = "GET", *, follow: bool = True) -> bytes:
    """The body of the hub's answer; raises ModelError if it is not one."""
    opener = urllib.request.build_opener(*([] if follow else [_NoRedirect]))
    try:
        with opener.open(request(url, source.token, method), timeout=PATIENCE_SECONDS) as answer:
            return answer.read()
    except urllib.error.HTTPError as error:
        error.close()
        if not follow and 300 <= error.code < 400:
            return b""
        raise ModelError(refusal(source, error.code, error.headers.get("X-Error-Code", ""))) from error
    except OSError as error:
        said = getattr(error, "reason", error)
        raise ModelError(f"{source.hub} cannot be reached from the host: {said}") from error


def listing_url(source: Source) -> str:
    """Where the hub lists the files of a commit with their sizes and hashes."""
    return f"{source.hub}/api/models/{source.repository}/revision/{source.revision}?blobs=true"


def file_url(source: Source, path: str) -> str:
    """Where the hub serves a file of a commit."""
    return f"{source.hub}/{source.repository}/resolve/{source.revision}/{quote(path)}"


def hub_file(sibling: dict[str, Any]) -> HubFile:
    """A file from the hub's description of it; raises ModelError if that is not enough to check the file by."""
    path, size, large = sibling.get("rfilename"), sibling.get("size"), sibling.get("lfs")
    if not isinstance(path, str) or not path or PurePosixPath(path).is_absolute() or ".." in path.split("/"):
        raise ModelError(f"it lists a file whose name cannot be taken: {path!r}")
    algorithm, digest = (SHA256, large.get("sha256")) if isinstance(large, dict) else (GIT_BLOB, sibling.get("blobId"))
    if isinstance(large, dict):
        size = large.get("size", size)
    if not isinstance(size, int) or not re.fullmatch(f"[0-9a-f]{{{HEXADECIMAL_DIGITS[algorithm]}}}", str(digest)):
        raise ModelError(f"it does not tell size and hash of {path}")
    return HubFile(path, size, algorithm, str(digest))


def parsed(answer: bytes, source: Source) -> list[HubFile]:
    """The files in the hub's answer, in its order; raises ModelError if it lists no model of that commit."""
    try:
        told = json.loads(answer)
        siblings = told["siblings"]
        files = [hub_file(sibling) for sibling in siblings]
    except ModelError as error:
        raise ModelError(f"{source.hub} lists {source}, but {error}") from error
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ModelError(f"{source.hub} does not list {source} as the Hugging Face Hub does") from error
    if told.get("sha") != source.revision:
        raise ModelError(
            f"{source.hub} lists {source.repository} at {told.get('sha')} when asked for {source.revision}"
        )
    if all(file.path != CONFIGURATION for file in files):
        raise ModelError(f"{source} has no {CONFIGURATION}, without which SGLang loads nothing")
    return files


def listing(source: Source) -> list[HubFile]:
    """The files of a commit, after asking whether they may be read; raises ModelError if the hub does not give them."""
    files = parsed(ask(source, listing_url(source)), source)
    # Anybody may list a gated repository; its weights are what the hub does not give to everybody.
    largest = max(files, key=lambda file: file.size)
    ask(source, file_url(source, largest.path), "HEAD", follow=False)
    return files
