"""The check of a release's kernels, on libraries that the toolkit's compiler makes here, and on made-up packages."""

import functools
import json
import shutil
import subprocess
import sys

import pytest

from blackwell import paths

PROGRAM = paths.ROOT / "roles/sglang/files/check_kernels.py"
TOOLKIT = paths.cache() / "wheelhouse/cuda-13.0-compiler.tar"
KERNEL = """
__global__ void twice(float *values) { values[threadIdx.x] *= 2; }
extern "C" void launch(float *values) { twice<<<1, 32>>>(values); }
"""
TORCH = """
__version__ = "2.9.1+cu130"
class version: cuda = {cuda!r}
class _C:
    @staticmethod
    def _cuda_getArchFlags(): return {flags!r}
"""


@pytest.fixture
def checks(load):
    return load("roles/sglang/files/check_kernels.py")


@pytest.fixture(scope="module")
def compile_for(tmp_path_factory):
    """Compiles a shared library for some architectures, and returns its path."""
    if not TOOLKIT.is_file():
        pytest.skip(f"{TOOLKIT} is not there: run scripts/wheelhouse fetch --product cuda --variant compiler")
    if not shutil.which("c++"):
        pytest.skip("there is no c++, which the toolkit's compiler calls: install g++")
    here = tmp_path_factory.mktemp("toolkit")
    subprocess.run(["tar", "--extract", "--file", TOOLKIT, "--directory", here], check=True)
    for wheel in (here / "wheels").glob("*.whl"):
        subprocess.run([sys.executable, "-m", "zipfile", "--extract", wheel, here], check=True)
    home = here / "nvidia/cu13"
    for program in (*(home / "bin").iterdir(), *(home / "nvvm/bin").iterdir()):
        program.chmod(0o755)
    (here / "kernel.cu").write_text(KERNEL)

    @functools.cache
    def make(name, *architectures, options=()):
        codes = [f"-gencode=arch={arch.replace('sm', 'compute')},code={arch}" for arch in architectures]
        out = here / name
        command = [home / "bin/nvcc", *codes, *options, "-Xcompiler=-fPIC", "-shared", "-cudart=none", "-o", out]
        subprocess.run([*command, here / "kernel.cu"], check=True, capture_output=True)
        return out

    return make


@pytest.mark.parametrize(
    ("architectures", "options"),
    [
        (["sm_120a"], ()),
        (["sm_120"], ()),
        (["sm_90"], ()),
        (["sm_120a", "sm_90a"], ("--compress-mode=size",)),
    ],
    ids=str,
)
def test_architectures_are_read_of_what_the_compiler_made(checks, compile_for, architectures, options):
    name = "-".join(architectures) + ".so"
    assert checks.read_architectures(compile_for(name, *architectures, options=options)) == architectures


def test_code_that_the_driver_would_compile_is_none(checks, compile_for):
    options = ("-gencode=arch=compute_120,code=compute_120",)
    assert checks.read_architectures(compile_for("ptx.so", "sm_90", options=options)) == ["sm_90"]


def test_several_fat_binaries_of_one_library_are_all_read(checks, compile_for):
    one = compile_for("one.o", "sm_90", options=("-c",))
    two = compile_for("two.o", "sm_120a", options=("-c",))
    out = one.with_name("both.so")
    subprocess.run(["c++", "-shared", "-Wl,--allow-multiple-definition", "-o", out, one, two], check=True)
    assert checks.read_architectures(out) == ["sm_120a", "sm_90"]


@pytest.mark.parametrize(
    ("content", "sentence"),
    [(b"", "is empty"), (b"#!/bin/sh\n", "is not a 64-bit ELF file"), (b"\x7fELF\x02\x01" + b"\0" * 20, "is damaged")],
    ids=["empty", "text", "half"],
)
def test_what_is_no_library_is_named(checks, tmp_path, content, sentence):
    path = tmp_path / "common_ops.so"
    path.write_bytes(content)
    with pytest.raises(checks.UnreadableError, match=f"common_ops.so {sentence}"):
        checks.read_architectures(path)


@pytest.fixture
def environment(tmp_path):
    """Runs the check where torch, the kernels and FlashInfer are made up; returns its status and what it reports."""

    def run(libraries, cuda="13.0", flags="sm_90 sm_120", kernels="", **folders):
        (tmp_path / "torch.py").write_text(TORCH.format(cuda=cuda, flags=flags))
        (tmp_path / "flashinfer.py").write_text("")
        for package, files in {"sgl_kernel/sm100": libraries, **folders}.items():
            folder = tmp_path / package
            folder.mkdir(parents=True)
            for number, file in enumerate(files):
                (folder / f"common_ops.{number}.so").write_bytes(file.read_bytes())
        (tmp_path / "sgl_kernel/__init__.py").write_text(kernels)
        done = subprocess.run(
            [sys.executable, "-c", PROGRAM.read_text(), "--cuobjdump=/no/such"],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.stderr == ""
        return done.returncode, json.loads(done.stdout)

    return run


def test_what_is_for_the_cards_passes(environment, compile_for):
    status, report = environment([compile_for("good.so", "sm_120a", "sm_90")])
    assert (status, report["problems"]) == (0, [])
    assert report["torch"] == {"version": "2.9.1+cu130", "cuda": "13.0", "architectures": ["sm_90", "sm_120"]}
    assert report["libraries"]["sgl_kernel"][0]["architectures"] == ["sm_120a", "sm_90"]


def test_kernels_for_other_cards_are_named_with_what_they_have(environment, compile_for):
    status, report = environment([compile_for("hopper.so", "sm_90")])
    (problem,) = report["problems"]
    assert status == 1
    assert problem.endswith("sgl_kernel/sm100/common_ops.0.so has no code for sm_120, only for sm_90")


def test_one_library_of_flashinfers_cache_is_enough(environment, compile_for):
    hopper, blackwell = compile_for("hopper.so", "sm_90"), compile_for("good.so", "sm_120a", "sm_90")
    _, report = environment([blackwell], flashinfer_jit_cache=[hopper, blackwell])
    assert report["problems"] == []


def test_a_cache_of_flashinfers_without_any_is_named(environment, compile_for):
    hopper, blackwell = compile_for("hopper.so", "sm_90"), compile_for("good.so", "sm_120a", "sm_90")
    _, report = environment([blackwell], flashinfer_jit_cache=[hopper, hopper])
    assert report["problems"] == ["none of the 2 libraries of flashinfer_jit_cache has code for sm_120, only for sm_90"]


def test_a_torch_of_another_cuda_or_for_other_cards_is_named(environment, compile_for):
    _, report = environment([compile_for("good.so", "sm_120a", "sm_90")], cuda="12.8", flags="sm_90")
    assert report["problems"] == [
        "torch 2.9.1+cu130 is built for CUDA 12.8, not 13",
        "torch 2.9.1+cu130 has no code for sm_120, only for sm_90",
    ]


def test_a_package_that_cannot_be_imported_is_named_with_the_library_that_is_missing(environment, compile_for):
    reason = "libcudart.so.12: cannot open shared object file"
    kernels = f"raise ImportError('could not load any of\\n\\n- {reason}')"
    status, report = environment([compile_for("good.so", "sm_120a", "sm_90")], kernels=kernels)
    assert status == 1
    assert report["problems"] == [f"sgl_kernel cannot be imported: ImportError: - {reason}"]


def test_kernels_without_libraries_are_named(environment):
    _, report = environment([])
    assert report["problems"] == ["sgl_kernel has no library sm100/common_ops*.so"]


def test_a_library_of_another_cuda_is_named(checks):
    reports = [{"path": "/x.so", "architectures": ["sm_120a"], "needed": ["libcudart.so.12", "libc.so.6"]}]
    assert checks.library_problems("sgl_kernel", reports, "sm_120", 13) == [
        "/x.so needs libcudart.so.12, which CUDA 13 does not have"
    ]
    reports[0]["needed"] = ["libcudart.so.13", "libstdc++.so.6"]
    assert checks.library_problems("sgl_kernel", reports, "sm_120", 13) == []


def test_the_toolkits_list_is_taken_where_it_is_there(checks, tmp_path):
    listing = tmp_path / "cuobjdump"
    listing.write_text("#!/bin/sh\necho ELF file    1: x.1.sm_120a.cubin\necho ELF file    2: x.2.sm_90.cubin\n")
    listing.chmod(0o755)
    assert checks.listed_architectures(tmp_path / "any.so", str(listing)) == ["sm_120a", "sm_90"]
    listing.write_text("#!/bin/sh\necho no such file\nexit 255\n")
    with pytest.raises(checks.UnreadableError, match=r"cuobjdump cannot read .*any\.so: no such file"):
        checks.listed_architectures(tmp_path / "any.so", str(listing))
