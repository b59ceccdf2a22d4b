"""A word after a task's name that may be left out, as in ``fab threshold 12``; Invoke has words that must be there.

Such a word is the value of an option of its task, and becomes that before Invoke reads the tasks.
"""

from collections.abc import Collection, Sequence
from itertools import pairwise

from fabric.main import program

OPTION = "to"
"""Of every task that takes such a word."""


def spelled_out(words: Sequence[str], takers: Collection[str], tasks: Collection[str]) -> list[str]:
    """What Invoke reads: the word that follows the name of one of ``takers`` becomes the value of its option.

    Neither an option nor the name of a task, by ``tasks``, is such a word. A number below 0 is, so that it can be
    refused as one.
    """
    return [
        f"--{OPTION}={word}" if before in takers and _value(word, tasks) else word
        for before, word in pairwise(["", *words])
    ]


def _value(word: str, tasks: Collection[str]) -> bool:
    return word not in tasks and (not word.startswith("-") or word[1:].isdecimal())


def take(takers: Collection[str], tasks: Collection[str]) -> None:
    """Let tasks take such a word. Fabric must have read its own options, as it has when it loads the fabfile."""
    core = getattr(program, "core", None)
    if core is not None:
        core.unparsed[:] = spelled_out(core.unparsed, takers, tasks)
