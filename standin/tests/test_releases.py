"""Which releases of SGLang are accepted, and how a module is patched while it is imported."""

import importlib
import sys
import tempfile
import types
import unittest
from pathlib import Path

from sglang_cpu_standin import hooks, releases


class Releases(unittest.TestCase):
    def test_an_unlisted_release_is_refused_by_name(self):
        with self.assertRaisesRegex(ImportError, r"no patches for sglang 0\.5\.10; it knows 0\.5\.9"):
            releases.patches("0.5.10")

    def test_every_listed_release_has_patches_for_modules_of_sglang(self):
        for release in releases.RELEASES:
            with self.subTest(release):
                found = releases.patches(release)
                self.assertTrue(found)
                self.assertTrue(all(name.startswith("sglang.srt.") for name in found))

    def test_the_installed_release_is_listed(self):
        self.assertIn(releases.installed(), releases.RELEASES)


class Hooks(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        before = (sys.path[:], sys.meta_path[:], set(sys.modules))
        self.addCleanup(self.restore, *before)
        sys.path.insert(0, scratch.name)
        (Path(scratch.name) / "patched_one.py").write_text("value = 1\n")
        (Path(scratch.name) / "patched_user.py").write_text("from patched_one import value\n")

    def restore(self, path, meta_path, modules):
        sys.path[:], sys.meta_path[:] = path, meta_path
        for name in set(sys.modules) - modules:
            del sys.modules[name]

    def test_a_patch_runs_after_the_module_and_before_its_users(self):
        hooks.arm({"patched_one": lambda module: hooks.replace(module, "value", module.value + 1)})
        self.assertEqual(importlib.import_module("patched_user").value, 2)

    def test_other_modules_are_left_alone(self):
        hooks.arm({"patched_other": lambda _module: None})
        self.assertEqual(importlib.import_module("patched_one").value, 1)

    def test_a_module_that_is_imported_already_is_refused(self):
        importlib.import_module("patched_one")
        with self.assertRaisesRegex(ImportError, "before patched_one"):
            hooks.arm({"patched_one": lambda _module: None})

    def test_a_name_that_is_not_there_is_refused(self):
        with self.assertRaisesRegex(ImportError, "somewhere has no gone"):
            hooks.replace(types.ModuleType("somewhere"), "gone", 1)

    def test_a_wrapper_is_given_the_function_and_the_arguments(self):
        module = types.ModuleType("somewhere")
        module.double = lambda x: 2 * x
        hooks.wrap(module, "double", lambda original, x: original(x) + 1)
        self.assertEqual(module.double(5), 11)


if __name__ == "__main__":
    unittest.main()
