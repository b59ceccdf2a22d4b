"""Whether this machine has an NVIDIA GPU, and the refusal to hide its real packages."""

from pathlib import Path

DRIVER_FILES = ("proc/driver/nvidia/version", "dev/nvidiactl")
"""Files that exist where the NVIDIA driver is loaded, relative to the root directory."""

NVIDIA = "0x10de"
"""PCI vendor identifier of NVIDIA (https://pci-ids.ucw.cz/read/PC/10de)."""

DISPLAY_CLASS = "0x03"
"""Prefix of the PCI classes of display and 3D controllers (PCI Code and ID Assignment Specification, base class 03)."""


def find_gpu(root: Path = Path("/")) -> str | None:
    """Return what shows that the machine has an NVIDIA GPU, as a path, or None.

    ``root`` is the directory that stands for ``/``. A GPU without a driver counts: its PCI device is enough.
    """
    for name in DRIVER_FILES:
        if (root / name).exists():
            return f"/{name}"
    devices = root / "sys/bus/pci/devices"
    found = [device for device in sorted(devices.glob("*")) if _is_nvidia_display(device)]
    return f"/{found[0].relative_to(root)}" if found else None


def refuse_gpu(package: str, root: Path = Path("/")) -> None:
    """Raise ImportError if the machine has an NVIDIA GPU, since the real ``package`` would then be hidden."""
    evidence = find_gpu(root)
    if evidence:
        raise ImportError(
            f"sglang-cpu-standin hides the real {package}, and this machine has an NVIDIA GPU ({evidence}): "
            "uninstall sglang-cpu-standin"
        )


def _is_nvidia_display(device: Path) -> bool:
    return _read(device / "vendor") == NVIDIA and _read(device / "class").startswith(DISPLAY_CLASS)


def _read(path: Path) -> str:
    try:
        return path.read_text().strip()
    except OSError:
        return ""
