"""Loads programs that live outside of the package: what lands on a host, and Ansible's plugins."""

import importlib.util

import pytest

from blackwell import paths


@pytest.fixture(scope="session")
def load():
    """Imports a Python file by its path in the checkout."""

    def by_path(path: str):
        spec = importlib.util.spec_from_file_location(path.replace("/", "_").removesuffix(".py"), paths.ROOT / path)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module

    return by_path
