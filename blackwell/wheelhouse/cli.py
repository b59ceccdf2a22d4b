"""The command line of the wheelhouse."""

import argparse
import signal
import sys
import time

from blackwell.wheelhouse.errors import WheelhouseError
from blackwell.wheelhouse.fetch import fetch, is_fresh, megabytes
from blackwell.wheelhouse.house import Wheelhouse, all_wheelhouses, wheelhouse
from blackwell.wheelhouse.lock import write_lock
from blackwell.wheelhouse.products import PRODUCTS, SGLANG, product

DESCRIPTION = """\
Collects the wheels that a host without a package index installs SGLang or the CUDA toolkit from, into one archive on
this machine.

  fetch   download what is missing and make the archive; quick if nothing changed, safe to kill and to run again
  path    print the archive's path
  list    print every wheelhouse that the checkout describes, and whether its archive is up to date
  lock    resolve PRODUCT-RELEASE-VARIANT.in anew and write the exact versions with their hashes
"""

EPILOG = """Packages come from the indexes that pip is configured for. PyTorch's CPU build is taken from its own
index only where those do not have it: BLACKWELL_TORCH_INDEX (default https://download.pytorch.org/whl/cpu). So are
the builds for CUDA 13: BLACKWELL_TORCH_CUDA_INDEX, BLACKWELL_FLASHINFER_INDEX (default .../whl/cu130 of both projects).
The kernel package is the one wheel that BLACKWELL_SGL_KERNEL_WHEEL names, with {version} in it. Archives
and wheels are kept in $BLACKWELL_CACHE/wheelhouse (default ~/.cache/blackwell/wheelhouse), which can be deleted at
any time.
"""


def parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    made = argparse.ArgumentParser(
        prog="scripts/wheelhouse",
        description=DESCRIPTION,
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = made.add_subparsers(dest="command", required=True, metavar="{fetch,path,list,lock}")
    for name in ("fetch", "path", "list", "lock"):
        command = commands.add_parser(name)
        if name != "list":
            command.add_argument(
                "--product",
                choices=[known.name for known in PRODUCTS],
                default=SGLANG.name,
                help="what is installed from it (default %(default)s)",
            )
            command.add_argument("--release", help=f"its release (default {defaults('release')})")
            command.add_argument("--variant", help=f"kind of host, or extent (default {defaults('variant')})")
        if name == "lock":
            command.add_argument(
                "--upgrade", action="store_true", help="take the newest versions, not those of the lock"
            )
    return made


def defaults(field: str) -> str:
    """Return what is meant of each product where nothing is named."""
    return ", ".join(f"{getattr(known, field)} of {known.name}" for known in PRODUCTS)


def run(arguments: argparse.Namespace) -> None:
    """Run one command; raises WheelhouseError or OSError."""
    if arguments.command == "list":
        for house in all_wheelhouses():
            sys.stdout.write(f"{described(house)}\n")
        return
    wanted = product(arguments.product)
    house = wheelhouse(arguments.release or wanted.release, arguments.variant or wanted.variant, wanted)
    if arguments.command == "lock":
        say(f"{house.lock}: {write_lock(house, upgrade=arguments.upgrade)} packages")
        return
    if arguments.command == "fetch" and not fetch(house, say):
        say(f"{house.tar} is up to date")
    sys.stdout.write(f"{house.tar}\n")


def described(house: Wheelhouse) -> str:
    """Return one line about a wheelhouse: name, state, size, path."""
    state = "up to date" if is_fresh(house) else "out of date" if house.tar.exists() else "not fetched"
    size = megabytes(house.tar) if house.tar.exists() else "-"
    return f"{house.name:20} {state:12} {size:>10}  {house.tar}"


def say(line: str) -> None:
    """Show a line of progress with the time of day."""
    sys.stderr.write(f"{time.strftime('%H:%M:%S')} {line}\n")


def main(arguments: list[str] | None = None) -> int:
    """Run the command line and return its exit status; an error is one sentence."""
    # As an exception, the signal also ends pip and removes what is unfinished.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    try:
        run(parser().parse_args(arguments))
    except WheelhouseError as error:
        sys.stderr.write(f"wheelhouse: {error}\n")
        return 1
    except OSError as error:
        sys.stderr.write(f"wheelhouse: {error.filename or 'a file'}: {error.strerror}\n")
        return 1
    except KeyboardInterrupt:
        return 128 + signal.SIGINT
    return 0
