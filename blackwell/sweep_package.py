"""The zip that a sweep runs from on a host."""

from blackwell.bench import package

PARTS = ("__init__.py", "locks.py", "bench", "sweep")
"""Of this package: what imports nothing of the rest."""


def packed() -> bytes:
    """The zip, with this package as it is now."""
    return package.zipped(PARTS)
