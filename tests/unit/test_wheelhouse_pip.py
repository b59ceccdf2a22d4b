"""Calls of pip, with a real pip that knows a directory of tiny wheels and no index."""

import re

import pytest
from wheelhouse_fixtures import CPU, configure_pip, make_wheel

from blackwell.wheelhouse import pip
from blackwell.wheelhouse.errors import WheelhouseError
from blackwell.wheelhouse.pins import Pin

MISMATCH = """\
Collecting idna==3.20
ERROR: THESE PACKAGES DO NOT MATCH THE HASHES FROM THE REQUIREMENTS FILE. If you have updated the package versions...
    idna==3.20 from https://example.invalid/idna-3.20-py3-none-any.whl (from -r requirements.txt (line 1)):
        Expected sha256 1111
             Got        2222

"""
UNREACHABLE = """\
WARNING: Retrying (Retry(total=1, connect=None, read=None, redirect=None, status=None)) after connection broken by \
'NewConnectionError(Connection refused)': /simple/idna/
ERROR: Could not find a version that satisfies the requirement idna==3.20 (from versions: none)
ERROR: No matching distribution found for idna==3.20
"""


@pytest.fixture
def offered(tmp_path, monkeypatch):
    configure_pip(monkeypatch, tmp_path / "offered")
    return tmp_path / "offered"


@pytest.fixture
def into(tmp_path):
    directory = tmp_path / "scratch/into"
    directory.mkdir(parents=True)
    return directory


def names(directory):
    return sorted(path.name for path in directory.iterdir())


@pytest.mark.parametrize(
    ("output", "sentence"),
    [
        (MISMATCH, "the wheel of idna==3.20 that was offered has SHA-256 2222, but it must have 1111"),
        (UNREACHABLE, "cannot get idna: a package index cannot be reached"),
        ("ERROR: No matching distribution found for x", "cannot get idna: no package index that pip is configured for"),
        ("OSError: [Errno 28] No space left on device", "cannot get idna: no space left on the disk"),
        ("/usr/bin/python3: No module named pip", "has no pip; run scripts/bootstrap"),
        ("ERROR: one\nERROR: two\n", "cannot get idna: pip says: two"),
        ("", "cannot get idna: pip says: no message"),
    ],
)
def test_each_failure_is_one_sentence(output, sentence):
    error = str(pip.pip_error(output, "idna"))
    assert sentence in error
    assert "\n" not in error


def test_only_an_index_that_was_asked_counts_as_not_offering():
    assert isinstance(pip.pip_error("ERROR: No matching distribution found for x", "x"), pip.NotOfferedError)
    assert not isinstance(pip.pip_error(UNREACHABLE, "x"), pip.NotOfferedError)


def test_wheels_are_chosen_for_the_hosts_and_not_for_this_machine(offered, into):
    pins = [make_wheel(offered, "alpha", "1.0", tag="cp311-cp311-manylinux_2_28_x86_64")]
    for tag in ("cp312-cp312-manylinux_2_28_x86_64", "cp311-cp311-manylinux_2_28_aarch64", "cp311-cp311-win_amd64"):
        make_wheel(offered, "alpha", "1.0", tag=tag)
    pip.download(pins, into, CPU)
    assert names(into) == [pins[0].wheel]


def test_dependencies_are_not_followed(offered, into):
    pin = make_wheel(offered, "alpha", "1.0", requires=("beta",))
    pip.download([pin], into, CPU)
    assert names(into) == [pin.wheel]


def test_a_wheel_with_other_bytes_is_refused_with_both_digests(offered, into):
    pin = make_wheel(offered, "alpha", "1.0")
    with pytest.raises(
        WheelhouseError, match=f"alpha==1.0 that was offered has SHA-256 {pin.sha256}, .* have {'0' * 64}"
    ):
        pip.download([Pin("alpha", "1.0", "0" * 64)], into, CPU)
    assert names(into) == []


def test_torch_is_taken_from_its_own_index_only_if_pip_has_none(offered, into, tmp_path, monkeypatch):
    # pip ignores an index while it is told to use none, so the second source is a directory here.
    elsewhere = tmp_path / "elsewhere"
    calls = []
    real = pip.download_with

    def download(pins, directory, *options, **more):
        calls.append(options)
        if options:
            monkeypatch.setenv("PIP_FIND_LINKS", str(elsewhere))
        real(pins, directory, *options, **more)

    monkeypatch.setattr(pip, "download_with", download)
    monkeypatch.setenv("BLACKWELL_TORCH_INDEX", "https://example.invalid/cpu")
    offered.mkdir()
    pip.download([make_wheel(elsewhere, "torch", "2.13.0+cpu")], into, CPU)
    assert calls == [(), ("--index-url=https://example.invalid/cpu",)]

    calls.clear()
    monkeypatch.setenv("PIP_FIND_LINKS", str(offered))
    pip.download([make_wheel(offered, "torch", "2.13.1+cpu")], into, CPU)
    assert calls == [()]


def test_a_failure_of_both_sources_names_both(offered, into, monkeypatch):
    offered.mkdir()
    monkeypatch.setenv("BLACKWELL_TORCH_INDEX", "https://example.invalid/cpu")
    with pytest.raises(
        WheelhouseError, match=r"torch==2\.13\.0\+cpu: no package index .* from https://example\.invalid/cpu: "
    ):
        pip.download([Pin("torch", "2.13.0+cpu", "0" * 64)], into, CPU)


def test_a_wrong_torch_is_refused_and_not_looked_for_elsewhere(offered, into, monkeypatch):
    make_wheel(offered, "torch", "2.13.0+cpu")
    monkeypatch.setenv("BLACKWELL_TORCH_INDEX", "https://example.invalid/cpu")
    with pytest.raises(WheelhouseError, match=re.escape("torch==2.13.0+cpu that was offered has SHA-256")) as error:
        pip.download([Pin("torch", "2.13.0+cpu", "0" * 64)], into, CPU)
    assert "example.invalid" not in str(error.value)
