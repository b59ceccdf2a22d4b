"""How the programs here read their options."""

import argparse
from typing import NoReturn

WRONG = 2
"""Exit status where an option is wrong."""


class Parser(argparse.ArgumentParser):
    """Says what is wrong in one sentence."""

    def error(self, message: str) -> NoReturn:
        """Exit with ``WRONG``."""
        self.exit(WRONG, f"{self.prog}: {message}\n")
