"""Repositories of packages that have the names of NVIDIA's for Debian 12 and next to nothing in them.

Names: docs.nvidia.com/datacenter/tesla/driver-installation-guide. What depends on what, and what a pinning package
says, is made up here: enough that apt would take the newest version of everything if nothing held it back.
"""

import gzip
import hashlib
import shutil
import subprocess
from dataclasses import dataclass, field
from email.utils import formatdate
from pathlib import Path

OLD, NEW, NEXT = "580.95.05", "580.105.08", "590.48.01"
"""Versions: that of the host, a newer one of its branch, and one of another branch, which wants another kernel."""
KERNEL = "linux-image-6.99.0-1-amd64"
MODULE = "/usr/src/nvidia-open/version"
"""Stands for the kernel module on disk."""
KEYRING = "usr/share/keyrings/{}.gpg"

NVIDIA_SMI = """\
#!/bin/sh
# Answers for two cards, as long as the module that is loaded is of its version.
if ! grep -q '  {version}  ' /proc/driver/nvidia/version; then
  echo 'Failed to initialize NVML: Driver/library version mismatch'
  exit 18
fi
printf '{version}\\n{version}\\n'
"""
PERSISTENCED = """\
[Unit]
Description=Stands for NVIDIA's persistence daemon

[Service]
ExecStart=/usr/bin/sleep infinity

[Install]
WantedBy=multi-user.target
"""
PIN = """\
Package: nvidia-* libnvidia-* libcuda1
Pin: version {}
Pin-Priority: 1001
"""


@dataclass(frozen=True)
class Package:
    """``files``: contents by path, a program's path below bin."""

    name: str
    version: str
    depends: tuple[str, ...] = ()
    files: dict[str, str | bytes] = field(default_factory=dict)

    @property
    def file(self) -> str:
        """The name that apt's archives give to it."""
        return f"{self.name}_{self.version}_amd64.deb"

    def control(self) -> str:
        """Its control file (deb-control(5))."""
        fields = {
            "Package": self.name,
            "Version": self.version,
            "Architecture": "amd64",
            "Maintainer": "The Blackwell maintainers <root@localhost>",
            "Depends": ", ".join(self.depends),
            "Description": "stands for the package of this name",
        }
        return "".join(f"{name}: {value}\n" for name, value in fields.items() if value)

    def build(self, directory: Path) -> Path:
        """Makes the package in a directory, and returns its path."""
        tree = directory / f"{self.file}.tree"
        for path, content in {"DEBIAN/control": self.control(), **self.files}.items():
            file = tree / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(content if isinstance(content, bytes) else content.encode())
            file.chmod(0o755 if file.parent.name == "bin" else 0o644)
        made = directory / self.file
        # Without compression: there is nothing to compress, and it takes most of the time.
        words = ["dpkg-deb", "--build", "--root-owner-group", "-Znone", str(tree), str(made)]
        subprocess.run(words, check=True, capture_output=True)
        shutil.rmtree(tree)
        return made


def driver(version: str) -> list[Package]:
    """The packages of a driver, each of which asks for a version that is at least its own."""
    least = f"(>= {version}-1)"
    needs = {
        "nvidia-open": ("nvidia-driver", "nvidia-kernel-open-dkms"),
        "nvidia-driver": ("nvidia-driver-cuda",),
        "nvidia-driver-cuda": ("libcuda1",),
    }
    files = {
        "nvidia-driver-cuda": {"usr/bin/nvidia-smi": NVIDIA_SMI.format(version=version)},
        "libcuda1": {f"usr/lib/x86_64-linux-gnu/libcuda.so.{version}": ""},
        "nvidia-kernel-open-dkms": {MODULE[1:]: f"{version}\n"},
        "nvidia-persistenced": {"lib/systemd/system/nvidia-persistenced.service": PERSISTENCED},
    }
    kernel = (KERNEL,) if version == NEXT else ()
    return [
        Package(
            name,
            f"{version}-1",
            (*(f"{need} {least}" for need in needs.get(name, ())), *(kernel if "dkms" in name else ())),
            files.get(name, {}),
        )
        for name in (*needs, "libcuda1", "nvidia-kernel-open-dkms", "nvidia-persistenced")
    ]


def pins(version: str) -> list[Package]:
    """The packages that keep apt to a version, and to its branch."""
    branch = version.partition(".")[0]
    preferences = {branch: f"{branch}.*", version: f"{version}-*"}
    return [
        Package(
            f"nvidia-driver-pinning-{name}", "1", (), {f"etc/apt/preferences.d/nvidia-{name}.pref": PIN.format(pattern)}
        )
        for name, pattern in preferences.items()
    ]


@dataclass(frozen=True)
class Key:
    """A key of its own that signs repositories."""

    home: Path

    def gpg(self, *words: str, **options) -> bytes:
        """Output of gpg."""
        command = ["gpg", "--homedir", str(self.home), "--batch", "--quiet", *words]
        return subprocess.run(command, check=True, capture_output=True, **options).stdout

    @classmethod
    def make(cls, home: Path) -> "Key":
        """A new one, in a directory that becomes gpg's home."""
        home.mkdir(mode=0o700)
        key = cls(home)
        key.gpg("--passphrase", "", "--quick-generate-key", "driver@localhost", "ed25519", "sign", "never")
        return key

    def discard(self) -> None:
        """Ends the agent that gpg started."""
        subprocess.run(["gpgconf", "--homedir", str(self.home), "--kill", "all"], check=True)

    def public(self, *words: str) -> bytes:
        """The public half; with ``--armor`` as text."""
        return self.gpg(*words, "--export")


def index(packages: list[Package], directory: Path, key: Key) -> None:
    """Makes a directory of packages a flat repository (DebianRepository/Format), signed."""
    paragraphs = []
    for package in packages:
        content = (directory / package.file).read_bytes()
        facts = {
            "Filename": f"./{package.file}",
            "Size": len(content),
            "SHA256": hashlib.sha256(content).hexdigest(),
        }
        paragraphs.append(package.control() + "".join(f"{name}: {value}\n" for name, value in facts.items()))
    lists = {"Packages": "\n".join(paragraphs).encode()}
    lists["Packages.gz"] = gzip.compress(lists["Packages"], mtime=0)
    sums = [f" {hashlib.sha256(content).hexdigest()} {len(content)} {name}" for name, content in lists.items()]
    release = ["Origin: NVIDIA", "Label: NVIDIA", f"Date: {formatdate(usegmt=True)}", "SHA256:", *sums, ""]
    for name, content in lists.items():
        (directory / name).write_bytes(content)
    (directory / "InRelease").write_bytes(key.gpg("--clearsign", input="\n".join(release).encode()))


def repository(directory: Path, key: Key, *versions: str) -> list[Package]:
    """Makes a directory a repository of drivers; returns what is in it."""
    packages = [package for version in versions for package in (*driver(version), *pins(version))]
    # Versions of one branch have its pin in common.
    own = list({package.file: package for package in packages}.values())
    if NEXT in versions:
        own.append(Package(KERNEL, "6.99.1-1"))
    directory.mkdir(parents=True)
    for package in own:
        package.build(directory)
    index(own, directory, key)
    return own


def keyring(directory: Path, key: Key, url: str) -> None:
    """Makes the package that brings the key of a repository, and the list that names it."""
    name = KEYRING.format("cuda-archive-keyring")
    made = Package(
        "cuda-keyring",
        "1.1-1",
        (),
        {
            name: key.public(),
            "etc/apt/sources.list.d/cuda-debian12-x86_64.list": f"deb [signed-by=/{name}] {url}/ /\n",
        },
    ).build(directory)
    made.rename(directory / "cuda-keyring_1.1-1_all.deb")


def local(directory: Path, key: Key, version: str) -> Path:
    """Makes the package that is a repository itself, for hosts that reach none."""
    name = f"nvidia-driver-local-repo-debian12-{version}"
    tree = directory / "repository"
    repository(tree, key, version)
    keyring_file = "nvidia-driver-local-0123ABCD-keyring.gpg"
    (tree / keyring_file).write_bytes(key.public())
    line = f"deb [signed-by=/usr/share/keyrings/{keyring_file}] file:///var/{name} /\n"
    files = {f"var/{name}/{file.name}": file.read_bytes() for file in tree.iterdir()}
    files[f"etc/apt/sources.list.d/{name}.list"] = line
    return Package(name, "1.0-1", (), files).build(directory)
