"""Has prompts tokenized by a process of its own, as another user, and reads what it wrote."""

import os
import shutil
import stat
import subprocess
import sys
import tempfile
from pathlib import Path

from . import contexts, package
from .contexts import Tokenized
from .errors import BenchError

SECONDS = 900
PROGRAM = "blackwell.bench.tokenize_prompts"
KEPT = ("PATH", "PYTHONPYCACHEPREFIX")
"""Of the environment: a release may have its bytecode apart from its files, and without it all is compiled again."""

PACKAGES = ("__init__.py", "bench")
"""What the program needs of the project."""


def tokenized(
    model: Path, kind: str, *, user: str | None = None, group: str | None = None, trust_remote_code: bool = False
) -> Tokenized:
    """The prompts of a kind as token ids of a model; ``user`` and ``group`` need root, None keeps one's own.

    The process has nothing of this one's environment but ``KEPT``, a home that is removed when it has ended, and a copy
    of the program: where this one lies, the user may not be able to look. Raises BenchError with what it says if it
    fails.
    """
    with tempfile.TemporaryDirectory(prefix="blackwell-prompts-") as scratch:
        program, home = Path(scratch) / "program.zip", Path(scratch) / "home"
        Path(scratch).chmod(0o755)
        pack(program)
        home.mkdir(mode=0o700)
        _give(home, user, group)
        out = home / "prompts.json"
        trust = ["--trust-remote-code"] if trust_remote_code else []
        command = [sys.executable, "-m", PROGRAM, str(model.absolute()), str(out), f"--kind={kind}", *trust]
        _run(command, program, home, user, group)
        return contexts.parsed(content(out), f"{PROGRAM} for {model}")


def _give(home: Path, user: str | None, group: str | None) -> None:
    if not user and not group:
        return
    try:
        shutil.chown(home, user, group)
    except LookupError as error:
        raise BenchError(f"prompts cannot be tokenized: {error}") from error
    except OSError as error:
        raise BenchError(f"prompts cannot be tokenized as {user or group}: {error.strerror}") from error


def _run(command: list[str], program: Path, home: Path, user: str | None, group: str | None) -> None:
    environment = {
        **{name: os.environ[name] for name in KEPT if name in os.environ},
        "LANG": "C.UTF-8",
        "HOME": str(home),
        "TMPDIR": str(home),
        "PYTHONPATH": str(program),
        "PYTHONDONTWRITEBYTECODE": "1",
        "HF_HUB_OFFLINE": "1",
        # A tokenizer needs no tensors, and to import PyTorch takes longer than all else.
        "USE_TORCH": "0",
    }
    # Groups of this process are no business of the model's code.
    groups = [] if user or group else None
    try:
        done = subprocess.run(
            command,
            cwd=home,
            env=environment,
            user=user,
            group=group,
            extra_groups=groups,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise BenchError(f"{PROGRAM} did not end within {SECONDS} s") from error
    except OSError as error:
        raise BenchError(f"{PROGRAM} cannot be run as {user or 'this user'}: {error.strerror}") from error
    if done.returncode:
        said = done.stderr.decode(errors="replace").strip().splitlines()
        raise BenchError(said[-1] if said else f"{PROGRAM} ended with {done.returncode}, without a word")


def pack(archive: Path) -> None:
    """Put the program into an archive that Python can import from."""
    archive.write_bytes(package.zipped(PACKAGES))
    archive.chmod(0o644)


def content(file: Path) -> str:
    """The content of a regular file that another user could write: no link leads to another one."""
    try:
        handle = os.open(file, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        with os.fdopen(handle, encoding="utf-8", errors="replace") as opened:
            if not stat.S_ISREG(os.fstat(handle).st_mode):
                raise BenchError(f"{PROGRAM} left a {file.name} that is no file")
            return opened.read()
    except OSError as error:
        raise BenchError(f"{PROGRAM} left no {file.name} that can be read: {error.strerror}") from error
