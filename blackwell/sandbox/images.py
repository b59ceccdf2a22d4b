"""Building images, each once."""

import os
import shutil
import subprocess
import time
from collections import deque
from contextlib import suppress
from pathlib import Path

from blackwell import locks
from blackwell.sandbox import mounts
from blackwell.sandbox.commands import Say, wait_until
from blackwell.sandbox.errors import SandboxError
from blackwell.sandbox.recipe import File, Recipe
from blackwell.sandbox.settings import Settings

# mmdebstrap in PID and mount namespaces of its own, which end with this process however it ends: nothing goes on
# writing, nothing stays mounted.
ENCLOSED = ("setpriv", "--pdeathsig", "KILL", "unshare", "--pid", "--fork", "--kill-child", "--mount-proc")

UNFINISHED = ".unfinished"


def ensure(settings: Settings, recipe: Recipe, say: Say) -> Path:
    """The directory of the image, built now when it is not there.

    Raises SandboxError with the last lines of the build's log when the build fails.
    """
    target = settings.images / recipe.name
    settings.cache.mkdir(parents=True, exist_ok=True)
    settings.cache.chmod(0o700)
    with locks.held(settings.cache / "lock", lambda: say("waiting for another build")):
        if not target.is_dir():
            for leftover in settings.images.glob(f"*{UNFINISHED}"):
                discard(leftover)
            _build(settings, recipe, target, say)
            _prune(settings, recipe)
    return target


def _build(settings: Settings, recipe: Recipe, target: Path, say: Say) -> None:
    say(f"image {recipe.suite}: building, half a minute to a minute")
    started = time.monotonic()
    work = target.with_name(target.name + UNFINISHED)
    root, files = work / "root", work / "files"
    try:
        (work / "tmp").mkdir(parents=True)
        _lay_out(recipe, files)
        _run(
            recipe.command(files, root),
            work / "tmp",
            settings.cache / f"build-{recipe.suite}.log",
            lambda text: say(f"image {recipe.suite}: {text}"),
        )
        # mmdebstrap empties apt's lists; while they look fresh, "update when older than a day" skips the update and
        # finds no package.
        os.utime(root / "var/lib/apt/lists", (0, 0))
        root.rename(target)
    finally:
        discard(work)
    say(f"image {recipe.suite}: built in {time.monotonic() - started:.0f} s")


def _lay_out(recipe: Recipe, files: Path) -> None:
    """Write the recipe's files into a tree whose directories have a root file system's modes."""
    masks = Path("etc/systemd/system")
    for file in (*recipe.files, *recipe.certificates):
        path = files / file.path.lstrip("/")
        path.parent.mkdir(parents=True, exist_ok=True)
        write(path, file)
    (files / masks).mkdir(parents=True, exist_ok=True)
    for unit in recipe.masked:
        (files / masks / unit).symlink_to("/dev/null")
    for directory in (files, *(path for path in files.rglob("*") if path.is_dir())):
        directory.chmod(0o755)


def write(path: Path, file: File) -> None:
    """Put a file in place of whatever is there, following no link."""
    path.unlink(missing_ok=True)
    path.write_text(file.text, errors="surrogateescape")
    path.chmod(file.mode)


def _run(command: list[str], temporary: Path, log: Path, progress: Say) -> None:
    """Run the build, with its output in the log and its headlines as progress."""
    # A session of its own: the terminal's Ctrl-C reaches this process only, which then ends the build as a whole.
    process = subprocess.Popen(
        [*ENCLOSED, *command],
        env=os.environ | {"TMPDIR": str(temporary), "DEBIAN_FRONTEND": "noninteractive"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        start_new_session=True,
    )
    last: deque[str] = deque(maxlen=5)
    with log.open("w") as kept, process:
        try:
            for line in process.stdout or ():
                kept.write(line)
                last.append(line.strip())
                if line.startswith("I: ") and line.endswith("...\n"):
                    progress(line[3:].strip())
        except BaseException:
            process.kill()
            raise
    if process.returncode:
        raise SandboxError(f"the image was not built, see {log}: {' | '.join(last)}")


def discard(tree: Path) -> None:
    """Remove a tree that an ending build may still be writing to.

    Raises SandboxError when something is mounted in it or it keeps filling up.
    """

    def gone() -> bool:
        if mounts.at(tree):
            return False
        with suppress(OSError):
            shutil.rmtree(tree)
        return not tree.exists()

    if not wait_until(gone, 10):
        raise SandboxError(f"cannot remove {tree}: look for mounts and processes in it")


def _prune(settings: Settings, recipe: Recipe) -> None:
    """Remove images of the suite that another recipe made and no host stands on."""
    used = {option for mount in mounts.current() if mount.kind == "overlay" for option in mount.options}
    for image in settings.images.glob(f"{recipe.suite}-*"):
        if image.name != recipe.name and f"lowerdir={image}" not in used:
            discard(image)
