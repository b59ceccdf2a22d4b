"""Loads programs that live outside of the package: what lands on a host, and Ansible's plugins."""

import importlib.util
import sys

import pytest
from release_fixtures import make_release

from blackwell import paths


@pytest.fixture(scope="session")
def load():
    """Imports a Python file by its path in the checkout; it can import its neighbours, as a program that is run can."""

    def by_path(path: str):
        if (directory := str((paths.ROOT / path).parent)) not in sys.path:
            sys.path.append(directory)
        spec = importlib.util.spec_from_file_location(path.replace("/", "_").removesuffix(".py"), paths.ROOT / path)
        module = importlib.util.module_from_spec(spec)
        # Where dataclasses look for the module of a class.
        sys.modules[spec.name] = module
        spec.loader.exec_module(module)
        return module

    return by_path


@pytest.fixture(scope="session")
def source_tree(load):
    """The program that makes a release's source tree."""
    return load("roles/sglang/files/source_tree.py")


@pytest.fixture
def release(tmp_path, source_tree):
    """A stock wheel and a series of two patches, where the second changes what the first adds."""
    return make_release(tmp_path, source_tree)
