"""Has the release that is deployed read command lines, while its server still answers."""

import json
import subprocess
from collections.abc import Sequence

from blackwell.bench.errors import BenchError

from . import server_words, unit_text
from .deployed import UNCHANGED, Deployed

SECONDS = 300
PROGRAM = """
import argparse, contextlib, io, json, sys
from sglang.srt.server_args import ServerArgs
parser = argparse.ArgumentParser()
ServerArgs.add_cli_args(parser)
found = []
for words in json.load(sys.stdin):
    said = io.StringIO()
    try:
        with contextlib.redirect_stderr(said):
            parser.parse_args(words)
        found.append("")
    except SystemExit:
        found.append(said.getvalue().strip().rpartition("error: ")[2])
print(json.dumps(found))
"""


def refusals(found: Deployed, command_lines: Sequence[Sequence[str]]) -> list[str]:
    """What the release says against each command line, empty where it takes it.

    It sees the options alone: what only shows when a model is loaded it does not know. Raises BenchError if it cannot
    be asked.
    """
    options = [list(words[1 + len(server_words.PROGRAM) :]) for words in command_lines]
    try:
        done = subprocess.run(
            words_for(found), input=json.dumps(options), capture_output=True, text=True, timeout=SECONDS, check=False
        )
    except subprocess.TimeoutExpired as error:
        raise BenchError(f"{found.argv[0]} has read no command line within {SECONDS} s; {UNCHANGED}") from error
    try:
        return json.loads(done.stdout.splitlines()[-1])
    except (ValueError, IndexError) as error:
        said = [line for line in done.stderr.splitlines() if line.strip()]
        why = said[-1].strip() if said else f"exit status {done.returncode}"
        raise BenchError(f"{found.argv[0]} cannot read a command line: {why}; {UNCHANGED}") from error


def words_for(found: Deployed) -> list[str]:
    """The command that runs PROGRAM as the server would be: its interpreter, user, environment and directory."""
    directory = unit_text.values(found.settings, "WorkingDirectory")[-1:]
    properties = [
        *(f"User={found.user}", f"Group={found.group}"),
        *(f"EnvironmentFile=-{file}" for file in found.environment_files),
        *(f"WorkingDirectory={path}" for path in directory),
    ]
    return [
        *("systemd-run", "--quiet", "--wait", "--pipe", "--collect"),
        *(f"--property={one}" for one in properties),
        *(found.argv[0], "-c", PROGRAM),
    ]
