"""The build backend; it is part of the checkout and not of the installed distribution."""

import base64
import hashlib
import importlib.util
import tempfile
import unittest
import zipfile
from pathlib import Path

SOURCE = Path(__file__).resolve().parent.parent

spec = importlib.util.spec_from_file_location("wheel_backend", SOURCE / "wheel_backend.py")
wheel_backend = importlib.util.module_from_spec(spec)
spec.loader.exec_module(wheel_backend)


class Wheel(unittest.TestCase):
    def setUp(self):
        self.directory = self.enterContext(tempfile.TemporaryDirectory())
        self.path = Path(self.directory) / wheel_backend.build_wheel(self.directory)

    def test_the_same_sources_give_the_same_bytes(self):
        first = self.path.read_bytes()
        self.assertEqual((Path(self.directory) / wheel_backend.build_wheel(self.directory)).read_bytes(), first)

    def test_it_holds_every_package(self):
        with zipfile.ZipFile(self.path) as archive:
            names = set(archive.namelist())
        for path in (SOURCE / "src").rglob("*.py"):
            self.assertIn(path.relative_to(SOURCE / "src").as_posix(), names)

    def test_the_record_lists_every_file_with_its_digest(self):
        with zipfile.ZipFile(self.path) as archive:
            record = next(name for name in archive.namelist() if name.endswith("/RECORD"))
            lines = archive.read(record).decode().splitlines()
            self.assertEqual(len(lines), len(archive.namelist()))
            for line in lines:
                name, digest, size = line.rsplit(",", 2)
                if name == record:
                    continue
                content = archive.read(name)
                sha256 = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).decode().rstrip("=")
                self.assertEqual((digest, int(size)), (f"sha256={sha256}", len(content)))

    def test_the_metadata_names_the_project(self):
        with zipfile.ZipFile(self.path) as archive:
            metadata = archive.read(next(name for name in archive.namelist() if name.endswith("/METADATA"))).decode()
        self.assertIn("Name: sglang-cpu-standin\n", metadata)
        self.assertIn(f"Version: {wheel_backend.project()['version']}\n", metadata)


if __name__ == "__main__":
    unittest.main()
