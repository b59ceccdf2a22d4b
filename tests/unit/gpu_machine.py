"""A machine of eight RTX PRO 6000 for the doctor of the GPUs: files below a root, and programs on a PATH."""

import shlex
from pathlib import Path

RECORDINGS = Path(__file__).parent / "recordings/gpus"
DRIVER = "580.105.08"
SECURE_BOOT = "sys/firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c"
NAMESPACE = "         0     100000      65536\n"


def recording(name):
    return (RECORDINGS / name).read_text(encoding="utf-8")


class Machine:
    """``root``: what stands for /. ``programs``: what stands for PATH."""

    def __init__(self, directory: Path):
        self.root, self.programs = directory / "root", directory / "bin"
        self.programs.mkdir(parents=True)

    def write(self, path, text):
        (self.root / path).parent.mkdir(parents=True, exist_ok=True)
        (self.root / path).write_bytes(text if isinstance(text, bytes) else text.encode())

    def link(self, path, to):
        (self.root / path).parent.mkdir(parents=True, exist_ok=True)
        (self.root / path).symlink_to(self.root / to)

    def program(self, name, **answers):
        """A program that prints the answer of the pattern of shell that its arguments fit."""
        cases = [f"{pattern}) exec /bin/cat {shlex.quote(str(path))} ;;" for pattern, path in answers.items()]
        text = "\n".join(["#!/bin/sh", 'case "$*" in', *cases, "esac", "exit 1"])
        (self.programs / name).write_text(text)
        (self.programs / name).chmod(0o755)

    def answer(self, name, pattern, text):
        path = self.programs / f"{name}.{len(list(self.programs.iterdir()))}"
        path.write_text(text)
        self.program(name, **{pattern: path})


def add_kernel(machine):
    """The driver, the command line and the PCI bus, as a container of the machine shows them too."""
    machine.write("proc/driver/nvidia/version", recording("version-open.txt"))
    machine.write("proc/modules", "nvidia_uvm 2170880 4 - Live 0x0000000000000000\nnvidia 14376960 90 - Live 0x0\n")
    machine.write("proc/cmdline", "BOOT_IMAGE=/boot/vmlinuz-6.1.0-40-amd64 root=/dev/md0 ro quiet iommu=pt\n")
    ports = [line.split()[0] for line in recording("lspci.txt").splitlines() if "PCI bridge" in line]
    cards = [line.split()[0] for line in recording("lspci.txt").splitlines() if "3D controller" in line]
    for number, card in enumerate(cards):
        device = f"sys/devices/pci{ports[number][:7]}/{ports[number]}/{card}"
        facts = {"vendor": "0x10de", "class": "0x030200", "current_link_width": "16", "max_link_width": "16"}
        for name, value in facts.items():
            machine.write(f"{device}/{name}", f"{value}\n")
        machine.write(f"sys/kernel/iommu_groups/{number}/type", "identity\n")
        machine.link(f"{device}/iommu_group", f"sys/kernel/iommu_groups/{number}")
        machine.link(f"sys/bus/pci/devices/{card}", device)
    machine.write("sys/devices/pci0000:80/0000:80:01.1/vendor", "0x1022\n")
    machine.link("sys/bus/pci/devices/0000:80:01.1", "sys/devices/pci0000:80/0000:80:01.1")


def add_userspace(machine):
    """The driver's libraries and nvidia-smi, and the device nodes."""
    for name in ("libcuda.so", "libnvidia-ml.so"):
        machine.write(f"usr/lib/x86_64-linux-gnu/{name}.{DRIVER}", "")
        machine.link(f"usr/lib/x86_64-linux-gnu/{name}.1", f"usr/lib/x86_64-linux-gnu/{name}.{DRIVER}")
    for name in ("nvidiactl", "nvidia-uvm", *(f"nvidia{number}" for number in range(8))):
        machine.write(f"dev/{name}", "")
    empty = machine.programs / "nothing"
    empty.write_text("")
    clocks = machine.programs / "clocks"
    clocks.write_text("".join(f"{number}, 0x0000000000000001\n" for number in range(8)))
    answers = {"--query-gpu=index,uuid,*": "cards.csv", "'topo -p2p r'": "p2p.txt"}
    machine.program(
        "nvidia-smi",
        **{pattern: RECORDINGS / name for pattern, name in answers.items()},
        **{"--query-compute-apps=*": empty, "--query-gpu=index,clocks_*": clocks},
    )


def bare(directory: Path) -> Machine:
    """The machine itself."""
    machine = Machine(directory)
    add_kernel(machine)
    add_userspace(machine)
    machine.write("proc/1/limits", recording("limits-host.txt"))
    machine.write("proc/self/uid_map", "         0          0 4294967295\n")
    machine.write(SECURE_BOOT, b"\x06\0\0\0\1")
    machine.write("var/lib/dkms/mok.pub", b"key")
    machine.answer("mokutil", "'--test-key /var/lib/dkms/mok.pub'", "/var/lib/dkms/mok.pub is already enrolled\n")
    machine.answer("modinfo", "'-F version nvidia'", f"{DRIVER}\n")
    machine.program("lspci", **{"'-D -vvv'": RECORDINGS / "lspci.txt"})
    return machine


def without_driver(directory: Path) -> Machine:
    """The machine before a driver is installed, whose firmware lets any module load."""
    machine = Machine(directory)
    add_kernel(machine)
    (machine.root / "proc/driver/nvidia/version").unlink()
    machine.write("proc/modules", "")
    machine.write("proc/self/uid_map", "         0          0 4294967295\n")
    machine.program("lspci", **{"'-D -vvv'": RECORDINGS / "lspci.txt"})
    return machine


def container(directory: Path) -> Machine:
    """An LXC container of it with users of its own: another's kernel and bus, no lspci, no Secure Boot to see."""
    machine = Machine(directory)
    add_kernel(machine)
    add_userspace(machine)
    machine.write("run/systemd/container", "lxc\n")
    machine.write("proc/1/limits", recording("limits-container.txt"))
    machine.write("proc/self/uid_map", NAMESPACE)
    return machine
