"""The command line of a patch series' maintainer."""

import argparse
import signal
import sys
import time
from pathlib import Path

from blackwell import paths
from blackwell.patches import header, repository
from blackwell.patches.check import Report, check, look, one_line, series_problems
from blackwell.patches.errors import PatchesError
from blackwell.patches.host_programs import SourceTreeError, source_tree
from blackwell.patches.refresh import UNCHANGED, refresh, write_files
from blackwell.patches.series import series_directory
from blackwell.patches.stock import stock_wheel

DESCRIPTION = """\
Maintains the patch series of a release of SGLang (patches/sglang-VERSION).

  check    apply the series to the stock source, compare everything that the manifest says, examine every header
  apply    make a git repository at OUT: the stock source, then one commit for each patch
  refresh  write the series back from that repository: one patch for each commit
  status   list the patches and whether they are those of the manifest; needs no wheel
"""

EPILOG = """\
The stock source is SGLang's own wheel: --wheel, else that of the wheelhouse, else pip downloads it by its hash.

To change a patch: `apply VERSION OUT`, edit in OUT with git (rebase -i, commit --amend, commit --fixup), then
`refresh VERSION OUT`. A commit's subject is the file name of its patch, its body the patch's header.

Exit status: 0 all is well, 1 something is wrong and was said, 2 the command line is wrong.
"""


def parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    made = argparse.ArgumentParser(
        prog="scripts/patches",
        description=DESCRIPTION,
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = made.add_subparsers(dest="command", required=True, metavar="{check,apply,refresh,status}")
    helps = {
        "check": "check a series against its manifest and the stock source",
        "apply": "make a repository to edit a series in",
        "refresh": "write a series back from its repository",
        "status": "list the patches of a series",
    }
    made_for = {name: commands.add_parser(name, help=text, description=text) for name, text in helps.items()}
    for name, command in made_for.items():
        command.add_argument("version", metavar="VERSION", help="release of SGLang, such as 0.5.9")
        if name in {"apply", "refresh"}:
            command.add_argument("out", metavar="OUT", type=Path, help="the repository's directory")
        if name != "status":
            command.add_argument("--wheel", type=Path, help="SGLang's wheel; its hash must be the manifest's")
    how = made_for["apply"].add_mutually_exclusive_group()
    how.add_argument("--series", metavar="OLD", help="take the patches of another release, to move them to VERSION")
    how.add_argument("--continue", dest="go_on", action="store_true", help="go on after a patch that did not apply")
    made_for["refresh"].add_argument("--dry-run", action="store_true", help="say what would change and write nothing")
    return made


def run(arguments: argparse.Namespace, root: Path) -> int:
    """Run one command on a checkout of the project and return its exit status; raises PatchesError or OSError."""
    directory = series_directory(root, arguments.version)
    if arguments.command == "status":
        return show_status(directory)
    if arguments.command == "apply" and arguments.go_on:
        return say_applied(repository.go_on(arguments.out.resolve()), arguments)
    manifest = source_tree.read_manifest(directory)
    wheel = arguments.wheel or stock_wheel(manifest, say)
    if arguments.command == "check":
        return show_report(arguments.version, check(directory, wheel))
    out = arguments.out.resolve()
    if arguments.command == "apply":
        patches = series_directory(root, arguments.series) if arguments.series else directory
        return say_applied(repository.make(patches, wheel, out, manifest), arguments)
    new = refresh(directory, wheel, out)
    if not arguments.dry_run:
        write_files(directory, new.files)
    would = "would be " if arguments.dry_run else ""
    for name, state in new.states.items():
        print(f"{name}: {would if state != UNCHANGED else ''}{state}")
    print(f"{directory}: {would}written: {', '.join(sorted(new.files))}" if new.files else f"{directory}: unchanged")
    return 0


def say_applied(count: int, arguments: argparse.Namespace) -> int:
    """Print what a repository holds and what it is for; return the exit status."""
    print(f"{arguments.out}: {count} patch{'es' * (count != 1)} on the stock source of SGLang {arguments.version}; "
          f"edit with git, then: scripts/patches refresh {arguments.version} {arguments.out}")  # fmt: skip
    return 0


def show_report(version: str, report: Report) -> int:
    """Print one line a patch and the verdict; return the exit status."""
    for patch in report.patches:
        print(f"FAILED {patch.name}: it {'; it '.join(patch.problems)}" if patch.problems else
              f"ok     {patch.name}: {patch.title} ({files(len(patch.files))})")  # fmt: skip
    for problem in report.problems:
        print(f"FAILED {problem}")
    count = len(report.patches)
    print(f"SGLang {version}, {count} patch{'es' * (count != 1)}: " +
          (f"good, the tree is {report.tree}" if report.good else "not as the manifest says"))  # fmt: skip
    return 0 if report.good else 1


def show_status(directory: Path) -> int:
    """Print one line a patch, and what is wrong with the series without applying it; return the exit status."""
    manifest, names = source_tree.read_manifest(directory), source_tree.read_series(directory)
    patches = [look(directory / name, manifest) for name in names]
    problems = series_problems(directory, names, manifest)
    for patch in patches:
        updated = header.first_of(patch.header, "Last-Update")
        facts = [updated, files(len(patch.files)), patch.title] if patch.header else []
        print(f"{patch.name}: {', '.join(fact for fact in facts if fact)}".rstrip())
        for problem in patch.problems:
            print(f"  it {problem}")
    for problem in problems:
        print(problem)
    print(f"{directory}: {len(names)} of {len(manifest['patches'])} patches, tree {manifest['tree'] or 'not known'}")
    return 1 if problems or any(patch.problems for patch in patches) else 0


def files(count: int) -> str:
    """A number of files in words."""
    return f"{count} file{'s' * (count != 1)}"


def say(line: str) -> None:
    """Show a line of progress with the time of day."""
    sys.stderr.write(f"{time.strftime('%H:%M:%S')} {line}\n")


def main(arguments: list[str] | None = None, root: Path = paths.ROOT) -> int:
    """Run the command line and return its exit status; an error is one sentence."""
    # As an exception, the signal also ends pip and git, and removes what is unfinished.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    try:
        return run(parser().parse_args(arguments), root)
    except (PatchesError, SourceTreeError) as error:
        sys.stderr.write(f"patches: {one_line(error)}\n")
        return 1
    except OSError as error:
        sys.stderr.write(f"patches: {error.filename or 'a file'}: {error.strerror}\n")
        return 1
    except KeyboardInterrupt:
        return 128 + signal.SIGINT
