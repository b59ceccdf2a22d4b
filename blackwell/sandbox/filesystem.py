"""A host's root file system: an overlay of its own files on an image."""

import os
from pathlib import Path

from blackwell.sandbox import mounts, resolver
from blackwell.sandbox.commands import run
from blackwell.sandbox.errors import SandboxError
from blackwell.sandbox.images import discard, write
from blackwell.sandbox.recipe import OPERATOR, OPERATOR_ID, File
from blackwell.sandbox.records import Record
from blackwell.sandbox.settings import Settings

OWNER = "run-directory"
"""File beside a sandbox's layers that names its state directory: when that is gone, so is the sandbox."""


def overlay_options(image: Path, layer: Path) -> str:
    """The options of the overlay mount of a host's files over its image.

    volatile (Linux 5.10): what is to be thrown away need not reach the disk, neither for dpkg nor before unmounting.
    """
    return f"lowerdir={image},upperdir={layer / 'upper'},workdir={layer / 'work'},volatile"


def mount(settings: Settings, record: Record) -> None:
    """Mount the host's root file system unless it is mounted."""
    root, layer = settings.root(record.name), settings.layers / record.name
    if mounts.at(root):
        return
    # A volatile mount leaves a mark in here, with which the kernel refuses the next one.
    discard(layer / "work")
    for directory in (root, layer / "upper", layer / "work"):
        directory.mkdir(parents=True, exist_ok=True)
    settings.inside(record.name).chmod(0o700)
    # The upper directory's mode becomes that of the host's /.
    (layer / "upper").chmod(0o755)
    (settings.layers / OWNER).write_text(str(settings.run))
    options = overlay_options(Path(record.image), layer)
    run("mount", "-t", "overlay", "-o", options, settings.machine(record.name), str(root))


def personalise(settings: Settings, record: Record, public_key: str) -> str:
    """Write what tells this host from others of its image, and return its public host key.

    Only for a host that never ran: one that did could have put links where the files go.
    """
    root = settings.root(record.name)
    files = (
        File("/etc/hostname", f"{record.name}\n"),
        File("/etc/hosts", f"127.0.0.1 localhost\n::1 localhost\n127.0.1.1 {record.name}\n"),
        File("/etc/resolv.conf", resolver.configuration()),
        File("/root/.ssh/authorized_keys", public_key, 0o600),
        File(f"/home/{OPERATOR}/.ssh/authorized_keys", public_key, 0o600),
    )
    for file in files:
        path = root / file.path.lstrip("/")
        path.parent.mkdir(exist_ok=True, mode=0o700)
        write(path, file)
    own = root / "home" / OPERATOR / ".ssh"
    for path in (own, own / "authorized_keys"):
        os.chown(path, OPERATOR_ID, -1)
    host_key = root / "etc/ssh/ssh_host_ed25519_key"
    run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", record.name, "-f", str(host_key))
    return " ".join(host_key.with_suffix(".pub").read_text().split()[:2])


def remove(settings: Settings, name: str) -> None:
    """Unmount the host's root file system and remove all that it wrote; safe when there is nothing.

    Raises SandboxError when something else is mounted in there.
    """
    for mounted in mounts.at(settings.host(name)):
        if mounted.source != settings.machine(name):
            raise SandboxError(f"{mounted.target} is a mount that is not the sandbox's: unmount it first")
        # Lazily: a shell of the administrator's may stand in there, and what it sees ends with it.
        run("umount", "--lazy", mounted.target)
    for tree in (settings.layers / name, settings.host(name)):
        discard(tree)


def remove_layers(settings: Settings) -> None:
    """Remove this sandbox's layers, and those whose state directory went with a restart of this machine."""
    for layers in (settings.cache / "hosts").glob("*"):
        owner = layers / OWNER
        run_directory = Path(owner.read_text()) if owner.exists() else settings.run
        if layers == settings.layers or not run_directory.exists():
            discard(layers)
