"""Patches that run right after a module of SGLang has run its own code."""

import importlib.abc
import importlib.machinery
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from types import ModuleType

Patch = Callable[[ModuleType], None]
"""Changes a module that has just run."""


class PatchingLoader(importlib.machinery.SourceFileLoader):
    """Loads a source file, then patches the module."""

    def __init__(self, name: str, path: str, patch: Patch) -> None:
        """Load module ``name`` from the file ``path``."""
        super().__init__(name, path)
        self._patch = patch

    def exec_module(self, module: ModuleType) -> None:
        """Run the module's code and then the patch."""
        super().exec_module(module)
        self._patch(module)


class PatchFinder(importlib.abc.MetaPathFinder):
    """Finds the modules that have a patch, where the usual path finder finds them."""

    def __init__(self, patches: Mapping[str, Patch]) -> None:
        """``patches`` maps a module's full name to its patch."""
        self._patches = patches

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        """Return the usual spec with a loader that patches, or None for a module without a patch."""
        patch = self._patches.get(name)
        if patch is None:
            return None
        spec = importlib.machinery.PathFinder.find_spec(name, path, target)
        if spec is None or spec.origin is None:
            return None
        spec.loader = PatchingLoader(name, spec.origin, patch)
        return spec


def arm(patches: Mapping[str, Patch]) -> None:
    """Patch each module when it is imported.

    Raises ImportError for a module that is imported already: what it took from others would stay unpatched.
    """
    late = sorted(set(patches) & set(sys.modules))
    if late:
        raise ImportError(f"sgl_kernel must be imported before {late[0]}, which sglang-cpu-standin has to patch")
    sys.meta_path.insert(0, PatchFinder(patches))


def replace(owner: object, name: str, value: object) -> None:
    """Set an attribute that is there; raise ImportError if it is not: the patch was then written for another source."""
    if not hasattr(owner, name):
        raise ImportError(
            f"{getattr(owner, '__name__', owner)} has no {name}: sglang-cpu-standin does not fit this source"
        )
    setattr(owner, name, value)


def wrap(owner: object, name: str, wrapper: Callable[..., object]) -> None:
    """Replace a function by ``wrapper``, which is called with the function and then with the caller's arguments."""
    replace(owner, name, partial(wrapper, getattr(owner, name, None)))
