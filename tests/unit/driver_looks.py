"""What the probe of the role nvidia_driver prints on hosts that are not at hand, written from documented formats.

Sources of the formats: /proc/driver/nvidia/version of the open module in github.com/nix-community/nixGL/issues/186, and
of the closed one in github.com/LukeShortCloud/rootpages/issues/812; states of packages in dpkg-query(1), names and
versions in github.com/NVIDIA/k8s-device-plugin/issues/471 (Debian) and, for the branch in Ubuntu's names up to 580,
docs.nvidia.com/datacenter/tesla/driver-installation-guide; archives in apt-cache(8).
"""

OPEN = "NVIDIA UNIX Open Kernel Module for x86_64  {}  Release Build  (dvs-builder@U16)  Thu Oct 10 12:15:00 UTC 2024"
CLOSED = "NVIDIA UNIX x86_64 Kernel Module  {}  Thu Oct 10 12:15:00 UTC 2024"
ARCHIVE = "https://developer.download.nvidia.com/compute/cuda/repos/{}/x86_64"
METAL = {
    "os": "debian 12",
    "machine": "x86_64",
    "kernel": "6.1.0-40-amd64",
    "container": "none",
    "nvrm": "",
    "headers": "true",
}
KERNEL = [
    ("ii ", "linux-image-6.1.0-40-amd64", "6.1.153-1"),
    ("ii ", "linux-headers-6.1.0-40-amd64", "6.1.153-1"),
    ("ii ", "linux-headers-6.1.0-40-common", "6.1.153-1"),
]
DRIVER = ("nvidia-open", "nvidia-persistenced", "nvidia-driver", "nvidia-kernel-open-dkms", "libcuda1")
CONTAINER = METAL | {
    "container": "lxc",
    "headers": "",
    "nvrm": OPEN.format("580.95.05"),
}


def driver(version="580.95.05-1", state="hi ", names=DRIVER, pin="nvidia-driver-pinning-580"):
    """The packages of a driver, and its pin."""
    return [(state, name, version) for name in names] + [(state, pin, "580-1"), ("ii ", "cuda-keyring", "1.1-1")]


def policy(name, version, archive):
    """What apt-cache policy says of a package whose installed version is in an archive, and an older one too."""
    return [
        f"{name}:",
        f"  Installed: {version}",
        f"  Candidate: {version}",
        "  Version table:",
        f" *** {version} 600",
        f"        600 {archive}  Packages",
        "        100 /var/lib/dpkg/status",
        "     580.65.06-1 600",
        "        600 https://older.example/debian12  Packages",
    ]


def printed(values, packages=(), **lists):
    """The lines of the probe."""
    everything = values | lists
    lines = [
        f"{key}={one}" for key, value in everything.items() for one in (value if isinstance(value, list) else [value])
    ]
    return lines + [f"package={state}|{name}|{version}" for state, name, version in packages]
