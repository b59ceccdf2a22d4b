"""Runs what was packed into a zip, and nothing of the checkout."""

import os
import subprocess
import sys


def printed(archive, program):
    """What a program prints that imports from the zip alone."""
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=archive.parent,
        env=os.environ | {"PYTHONPATH": str(archive)},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout
