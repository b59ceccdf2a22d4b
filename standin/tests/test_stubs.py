"""What the stand-in packages offer, and how they refuse what they do not."""

import subprocess
import sys
import unittest


def run(program: str) -> str:
    """Run a program in an interpreter of its own and return its output, or the last line of its error."""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    return done.stdout.strip() if done.returncode == 0 else done.stderr.strip().splitlines()[-1]


class SglKernel(unittest.TestCase):
    def test_an_operation_without_a_cpu_version_names_itself(self):
        self.assertEqual(
            run("import sgl_kernel; sgl_kernel.fp8_scaled_mm(1, 2)"),
            "NotImplementedError: sgl_kernel.fp8_scaled_mm has no CPU version in sglang-cpu-standin",
        )

    def test_so_does_one_of_a_submodule(self):
        self.assertEqual(
            run("from sgl_kernel.flash_attn import varlen as f; f()"),
            "NotImplementedError: sgl_kernel.flash_attn.varlen has no CPU version in sglang-cpu-standin",
        )

    def test_the_module_that_sglang_replaces_itself_is_absent(self):
        self.assertIn("No module named 'sgl_kernel.scalar_type'", run("import sgl_kernel.scalar_type"))

    def test_private_names_are_absent(self):
        self.assertEqual(run("import sgl_kernel; print(hasattr(sgl_kernel, '_ops'))"), "False")


class Triton(unittest.TestCase):
    def test_a_kernel_can_be_defined_and_not_launched(self):
        program = (
            "import triton, triton.language as tl\n"
            "@triton.autotune(configs=[triton.Config({'B': 1}, num_warps=4)], key=['n'])\n"
            "@triton.jit\n"
            "def copy(n, B: tl.constexpr): pass\n"
            "assert triton.cdiv(7, 2) == 4 and triton.next_power_of_2(5) == 8 and triton.next_power_of_2(8) == 8\n"
            "copy[(1,)](3)"
        )
        self.assertEqual(
            run(program),
            "NotImplementedError: triton kernel __main__.copy has no CPU version in sglang-cpu-standin",
        )

    def test_there_is_no_driver(self):
        self.assertIn("0 active drivers", run("import triton; triton.runtime.driver.active"))


class Others(unittest.TestCase):
    def test_a_torchvision_class_can_be_named_and_not_used(self):
        self.assertEqual(
            run("from torchvision.transforms import Resize\nclass Mine(Resize): pass\nMine()"),
            "NotImplementedError: torchvision.transforms.Resize has no CPU version in sglang-cpu-standin",
        )

    def test_transformers_finds_its_interpolation_modes(self):
        program = "from torchvision.transforms import InterpolationMode as m; print(m.NEAREST_EXACT.value)"
        self.assertEqual(run(program), "nearest-exact")

    def test_functions_of_datasets_and_ipython_name_themselves(self):
        for name in ("datasets.load_dataset", "IPython.display.display"):
            with self.subTest(name):
                module, _, function = name.rpartition(".")
                self.assertEqual(
                    run(f"from {module} import {function} as f; f()"),
                    f"NotImplementedError: {name} has no CPU version in sglang-cpu-standin",
                )


if __name__ == "__main__":
    unittest.main()
