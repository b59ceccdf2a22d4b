"""A run comes home without what only its host needs."""

import subprocess

import pytest

from blackwell import remote
from blackwell.bench_control import results
from blackwell.host_errors import HostError
from blackwell.inventory import Host

BOX = Host("box", "192.0.2.1")


@pytest.fixture
def there(tmp_path, monkeypatch):
    """The runs of a host, which commands reach as files of this machine."""
    runs = tmp_path / "there"

    def stream(_connection, _host, words, write):
        write(subprocess.run(words, capture_output=True, check=True).stdout)

    monkeypatch.setattr(remote, "stream", stream)
    monkeypatch.setattr(results, "ROOT", runs)
    run = runs / "one"
    run.mkdir(parents=True)
    for name in ("plan.json", "deployed.json", "service.json", "program.zip"):
        (run / name).write_text("{}")
    return runs


@pytest.mark.usefixtures("there")
def test_what_only_the_host_needs_stays_there(tmp_path):
    home = results.fetch(None, BOX, "one", tmp_path / "here")
    assert home == tmp_path / "here" / "box" / "one"
    assert sorted(file.name for file in home.iterdir()) == ["deployed.json", "plan.json"]


def test_a_second_time_replaces_the_first(there, tmp_path):
    results.fetch(None, BOX, "one", tmp_path / "here")
    (there / "one" / "plan.json").rename(there / "one" / "points.jsonl")
    home = results.fetch(None, BOX, "one", tmp_path / "here")
    assert sorted(file.name for file in home.iterdir()) == ["deployed.json", "points.jsonl"]
    assert [file.name for file in home.parent.iterdir()] == ["one"]


@pytest.mark.usefixtures("there")
def test_what_is_no_archive_leaves_what_was_there(tmp_path, monkeypatch):
    home = results.fetch(None, BOX, "one", tmp_path / "here")
    monkeypatch.setattr(remote, "stream", lambda _connection, _host, _words, write: write(b"no archive"))
    with pytest.raises(HostError, match="box: run one cannot be brought to"):
        results.fetch(None, BOX, "one", tmp_path / "here")
    assert sorted(file.name for file in home.iterdir()) == ["deployed.json", "plan.json"]
