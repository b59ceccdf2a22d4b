"""Packages whose submodules exist and whose names are made on demand, so that an import of them succeeds."""

import importlib.abc
import importlib.machinery
import sys
from collections.abc import Callable, Mapping
from types import ModuleType

MakeName = Callable[[str, str], object]
"""``make(module name, attribute name)`` gives the value of an attribute that a stub module does not hold."""


class StubFinder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds every submodule of one package, as a stub."""

    def __init__(
        self,
        package: str,
        make: MakeName,
        *,
        names: Mapping[str, object] | None = None,
        absent: frozenset[str] = frozenset(),
    ) -> None:
        """Serve the submodules of ``package``; ``names`` are in each of them, ``absent`` ones are not found."""
        self._prefix = f"{package}."
        self._make = make
        self._names = dict(names or {})
        self._absent = absent

    def find_spec(
        self, name: str, _path: object = None, _target: object = None
    ) -> importlib.machinery.ModuleSpec | None:
        """Return a spec for any submodule of the package that is not absent."""
        if not name.startswith(self._prefix) or name in self._absent:
            return None
        return importlib.machinery.ModuleSpec(name, self, is_package=True)

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType:
        """Return a module that makes its names on demand."""
        module = ModuleType(spec.name)
        vars(module).update(self._names)
        module.__getattr__ = public_names(spec.name, self._make)
        return module

    def exec_module(self, module: ModuleType) -> None:
        """Do nothing: a stub runs no code."""


def public_names(module: str, make: MakeName) -> Callable[[str], object]:
    """Return a module's ``__getattr__`` (PEP 562): every name without a leading underscore comes from ``make``."""

    def getattr_of_module(name: str) -> object:
        if name.startswith("_"):
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        return make(module, name)

    return getattr_of_module


def serve(finder: StubFinder) -> None:
    """Let ``finder`` find what no other finder finds."""
    sys.meta_path.append(finder)


def missing_operation(module: str, name: str) -> Callable[..., object]:
    """Return a function that raises NotImplementedError with its own full name."""

    def missing(*_args: object, **_kwargs: object) -> object:
        raise NotImplementedError(f"{module}.{name} has no CPU version in sglang-cpu-standin")

    missing.__name__ = name
    return missing
