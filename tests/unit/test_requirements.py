"""What is installed here is what the files in requirements/ say, whatever was released since."""

import importlib.metadata
import re

import pytest

from blackwell import paths

FILES = ("control", "dev", "constraints")
OF_VENV = {"pip", "setuptools"}
"""They come with the interpreter."""


def canonical(name):
    """A project's name as indexes compare it (PEP 503)."""
    return re.sub(r"[-_.]+", "-", name).lower()


def pinned(file):
    lines = (paths.ROOT / f"requirements/{file}.txt").read_text().splitlines()
    return {canonical(name): version for name, _, version in (line.partition("==") for line in lines) if version}


def test_every_package_of_the_environment_is_pinned():
    wanted = {name: version for file in FILES for name, version in pinned(file).items()}
    installed = {canonical(one.name): one.version for one in importlib.metadata.distributions()}
    assert {name: version for name, version in installed.items() if name not in OF_VENV} == wanted


@pytest.mark.parametrize("file", ["control", "dev"])
def test_what_is_named_is_no_constraint_as_well(file):
    assert pinned(file).keys() & pinned("constraints").keys() == set()
