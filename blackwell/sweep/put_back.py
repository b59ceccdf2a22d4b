"""Puts the service back after a sweep, however that ended: ``python -m blackwell.sweep.put_back RUN``."""

import sys
from pathlib import Path

from blackwell.bench.errors import BenchError

from . import service


def main() -> int:
    """Command line; returns the exit status."""
    try:
        print(service.put_back(Path(sys.argv[1]), wait=False), flush=True)
    except BenchError as error:
        print(f"put_back: {error}", file=sys.stderr, flush=True)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
