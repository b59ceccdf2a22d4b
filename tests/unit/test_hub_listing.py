"""The list of a repository's files is taken only if every file can be checked by it."""

import json
import threading

import hub_mirror
import pytest
from hub_mirror import REVISION, Faults, Mirror, made_model

MODEL = made_model(shards=1, size=5000)


@pytest.fixture
def hub(load):
    return load("roles/model/files/hub_listing.py")


@pytest.fixture
def serve():
    """Starts a mirror; returns its URL."""
    servers = []

    def start(mirror):
        servers.append(made := hub_mirror.Server(mirror))
        threading.Thread(target=made.serve_forever, daemon=True).start()
        return made.url

    yield start
    for made in servers:
        made.shutdown()
        made.server_close()


def refused(hub, source):
    with pytest.raises(hub.ModelError) as error:
        hub.listing(source)
    return str(error.value)


def test_size_and_hash_of_every_file_are_known(hub, serve):
    url = serve(Mirror({"org/tiny": MODEL}))
    files = {file.path: file for file in hub.listing(hub.Source(url, "org/tiny", REVISION))}
    assert files.keys() == MODEL.keys()
    assert files["model-1.safetensors"].algorithm == "sha256"
    # As `git hash-object` names it.
    assert files["sub/tokenizer.json"] == hub.HubFile(
        "sub/tokenizer.json", 3, "git-blob", "0967ef424bce6791893e9a57bb952f80fd536e93"
    )


@pytest.mark.parametrize(
    ("faults", "asked", "said"),
    [
        (
            Faults(),
            ("org/other", REVISION, None),
            "answers 404 for org/other at 5f0e3a1b5f0e: there is no such repository",
        ),
        (Faults(), ("org/tiny", "0" * 40, None), "answers 404 for org/tiny at 000000000000: there is no such commit"),
        (
            Faults(token="t"),
            ("org/tiny", REVISION, None),
            "answers 401 for org/tiny, which needs a token or is not there",
        ),
        (
            Faults(token="t"),
            ("org/tiny", REVISION, "x"),
            "answers 403 for org/tiny, so the token of model_hub_token may not",
        ),
        (
            Faults(token="t", listed_to_all=False),
            ("org/tiny", REVISION, None),
            "answers 401 for org/tiny, which needs a",
        ),
        (
            Faults(without=frozenset({"blobId"})),
            ("org/tiny", REVISION, None),
            "does not tell size and hash of config.json",
        ),
        (Faults(without=frozenset({"rfilename"})), ("org/tiny", REVISION, None), "whose name cannot be taken: None"),
    ],
    ids=["repository", "commit", "no token", "wrong token", "private", "no hash", "no name"],
)
def test_refused_with_a_sentence(hub, serve, faults, asked, said):
    url = serve(Mirror({"org/tiny": MODEL}, faults))
    assert said in refused(hub, hub.Source(url, *asked))


def test_a_hub_that_does_not_answer_is_named(hub):
    said = refused(hub, hub.Source("http://127.0.0.1:9", "org/tiny", REVISION))
    assert said.startswith("http://127.0.0.1:9 cannot be reached from the host: ")
    assert "refused" in said


def test_the_token_reads_a_gated_repository_and_is_shown_to_no_other_host(hub, serve):
    mirror = Mirror({"org/tiny": MODEL}, Faults(token="secret"))
    assert hub.listing(hub.Source(serve(mirror), "org/tiny", REVISION, "secret"))
    assert [entry["method"] for entry in mirror.settled()] == ["GET", "HEAD"]
    made = hub.request("http://hub.example/x", "secret")
    assert "Authorization" not in made.headers
    assert made.unredirected_hdrs == {"Authorization": "Bearer secret"}


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (b"<html>", "does not list org/tiny at 5f0e3a1b5f0e as the Hugging Face Hub does"),
        (b"[]", "as the Hugging Face Hub does"),
        (b'{"siblings": null}', "as the Hugging Face Hub does"),
        (
            json.dumps({"sha": REVISION, "siblings": []}).encode(),
            "has no config.json, without which SGLang loads nothing",
        ),
        (
            json.dumps({"sha": "1" * 40, "siblings": []}).encode(),
            f"lists org/tiny at {'1' * 40} when asked for {REVISION}",
        ),
        *(
            (json.dumps({"sha": REVISION, "siblings": [{"rfilename": name}]}).encode(), f"cannot be taken: {name!r}")
            for name in ("/etc/passwd", "../up", "a/../../up", "")
        ),
    ],
)
def test_what_is_no_list_of_that_commit_is_refused(hub, answer, said):
    source = hub.Source("http://hub.example", "org/tiny", REVISION)
    with pytest.raises(hub.ModelError) as error:
        hub.parsed(answer, source)
    assert said in str(error.value)
