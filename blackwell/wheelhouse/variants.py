"""The kinds of host that a wheelhouse can be for, and what each must never hold."""

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from blackwell.wheelhouse.errors import WheelhouseError
from blackwell.wheelhouse.pins import Pin


@dataclass(frozen=True)
class Address:
    """Where to get a package: an index, asked only for what pip's own configuration does not have, or one wheel."""

    variable: str
    """Environment variable that overrides the address."""

    address: str
    """An index; or a wheel, with ``{version}``."""

    def chosen(self) -> str:
        """Return the address that is in force."""
        return os.environ.get(self.variable) or self.address


@dataclass(frozen=True)
class Variant:
    """One kind of host."""

    name: str

    local_versions: Mapping[str, str] = field(default_factory=dict)
    """Package -> the local version label (PEP 440, after the ``+``) that its version must have."""

    forbidden: tuple[str, ...] = ()
    """Beginnings of names of packages that must not be there."""

    forbidden_endings: tuple[str, ...] = ()
    """Ends of names of packages that must not be there."""

    alone: tuple[str, ...] = ()
    """Packages whose own requirements are left out of the lock: what they import of them is there anyway."""

    fallback: Mapping[str, Address] = field(default_factory=dict)
    """Package -> the index to get it from if pip's own configuration has none."""

    direct: Mapping[str, Address] = field(default_factory=dict)
    """Package -> the wheel that it is, whatever indexes offer; its version in the requirements must be exact."""

    standin: bool = False
    """Whether the CPU stand-in, which is built from the checkout, goes with it."""


TORCH_CPU = Address("BLACKWELL_TORCH_INDEX", "https://download.pytorch.org/whl/cpu")
TORCH_CUDA = Address("BLACKWELL_TORCH_CUDA_INDEX", "https://download.pytorch.org/whl/cu130")
FLASHINFER = Address("BLACKWELL_FLASHINFER_INDEX", "https://flashinfer.ai/whl/cu130")
SGL_KERNEL = Address(
    "BLACKWELL_SGL_KERNEL_WHEEL",
    "https://github.com/sgl-project/whl/releases/download/v{version}/"
    "sgl_kernel-{version}+cu130-cp310-abi3-manylinux2014_x86_64.whl",
)
CUDA_BUILDS = {
    "torch": TORCH_CUDA,
    "torchaudio": TORCH_CUDA,
    "torchvision": TORCH_CUDA,
    "flashinfer-jit-cache": FLASHINFER,
}
"""What PyPI has for CUDA 12 or not at all."""


VARIANTS: tuple[Variant, ...] = (
    Variant(
        "cpu",
        local_versions={"torch": "cpu"},
        # The stand-in provides the names of five of them; the others come with a CUDA build of torch.
        forbidden=("nvidia-", "cuda-", "triton", "torchvision", "datasets", "ipython", "sgl-kernel", "flashinfer"),
        # It requires triton, which the stand-in provides, and ninja, which only its CUDA kernels are built with.
        alone=("xgrammar",),
        fallback={"torch": TORCH_CPU},
        standin=True,
    ),
    Variant(
        "cuda",
        local_versions=dict.fromkeys(CUDA_BUILDS, "cu130"),
        # What the CPU has instead of the kernels, and the libraries of CUDA 12.
        forbidden=("sglang-cpu-standin",),
        forbidden_endings=("-cu11", "-cu12"),
        fallback=CUDA_BUILDS,
        # The index lists it as VERSION+cu130, while its metadata say VERSION, for which pip refuses it; and PyPI has a
        # wheel of that very version that needs CUDA 12 (sgl-project/sglang#14327, #20953).
        direct={"sgl-kernel": SGL_KERNEL},
    ),
    # The two of the CUDA toolkit: enough to compile and link a kernel, and what those of SGLang and FlashInfer include.
    Variant("compiler"),
    Variant("libraries"),
)


def variant(name: str) -> Variant:
    """Return a variant by its name; raise WheelhouseError for an unknown one."""
    for known in VARIANTS:
        if known.name == name:
            return known
    raise WheelhouseError(f"no variant is called {name}; known: {', '.join(known.name for known in VARIANTS)}")


def check_pins(kind: Variant, pins: Iterable[Pin], source: Path) -> None:
    """Raise WheelhouseError if a pin breaks a rule of the variant; ``source`` is the file to name."""
    for pin in pins:
        if pin.name.startswith(kind.forbidden) or pin.name.endswith(kind.forbidden_endings):
            raise WheelhouseError(f"{source} pins {pin.name}, which must not be in a {kind.name} wheelhouse")
        label = kind.local_versions.get(pin.name)
        if label and pin.version.partition("+")[2] != label:
            raise WheelhouseError(
                f"{source} pins {pin.name} {pin.version}; a {kind.name} wheelhouse needs a +{label} build"
            )
