"""Whether a machine with an NVIDIA GPU is recognised, and that every stand-in package refuses to be imported there."""

import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

from sglang_cpu_standin.host import find_gpu, refuse_gpu

PACKAGES = ("IPython", "datasets", "sgl_kernel", "torchvision", "triton")


def pci_device(root: Path, name: str, vendor: str, kind: str) -> None:
    device = root / "sys/bus/pci/devices" / name
    device.mkdir(parents=True)
    (device / "vendor").write_text(f"{vendor}\n")
    (device / "class").write_text(f"{kind}\n")


class FindGpu(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.root = Path(scratch.name)

    def test_an_empty_machine_has_none(self):
        self.assertIsNone(find_gpu(self.root))
        refuse_gpu("triton", self.root)

    def test_a_file_of_the_driver_is_enough(self):
        for name in ("proc/driver/nvidia/version", "dev/nvidiactl"):
            with self.subTest(name), tempfile.TemporaryDirectory() as root:
                (Path(root) / name).parent.mkdir(parents=True)
                (Path(root) / name).touch()
                self.assertEqual(find_gpu(Path(root)), f"/{name}")

    def test_a_pci_device_without_a_driver_is_enough(self):
        for kind in ("0x030000", "0x030200"):
            with self.subTest(kind), tempfile.TemporaryDirectory() as root:
                pci_device(Path(root), "0000:01:00.0", "0x10de", kind)
                self.assertEqual(find_gpu(Path(root)), "/sys/bus/pci/devices/0000:01:00.0")

    def test_other_devices_do_not_count(self):
        pci_device(self.root, "0000:00:02.0", "0x8086", "0x030000")
        pci_device(self.root, "0000:01:00.1", "0x10de", "0x040300")
        self.assertIsNone(find_gpu(self.root))

    def test_a_device_that_vanishes_does_not_count(self):
        (self.root / "sys/bus/pci/devices/0000:03:00.0").mkdir(parents=True)
        self.assertIsNone(find_gpu(self.root))

    def test_the_refusal_names_package_and_evidence(self):
        (self.root / "dev").mkdir()
        (self.root / "dev/nvidiactl").touch()
        with self.assertRaisesRegex(ImportError, r"hides the real triton, .*NVIDIA GPU \(/dev/nvidiactl\)"):
            refuse_gpu("triton", self.root)


class Packages(unittest.TestCase):
    def test_each_refuses_to_be_imported_beside_a_gpu(self):
        for package in PACKAGES:
            with self.subTest(package):
                program = f"from sglang_cpu_standin import host; host.find_gpu = lambda _root: '/gpu'; import {package}"
                done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
                self.assertEqual(done.returncode, 1)
                self.assertIn(f"ImportError: sglang-cpu-standin hides the real {package}, ", done.stderr)


if __name__ == "__main__":
    unittest.main()
