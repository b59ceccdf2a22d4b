"""The kinds of host that a wheelhouse can be for, and what each must never hold."""

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from blackwell.wheelhouse.errors import WheelhouseError
from blackwell.wheelhouse.pins import Pin


@dataclass(frozen=True)
class FallbackIndex:
    """A package index that is asked only for what pip's own configuration does not have."""

    variable: str
    """Environment variable that overrides the address."""

    address: str

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

    alone: tuple[str, ...] = ()
    """Packages whose own requirements are left out of the lock: what they import of them is there anyway."""

    fallback: Mapping[str, FallbackIndex] = field(default_factory=dict)
    """Package -> where to get it if pip's own configuration has none."""


VARIANTS: tuple[Variant, ...] = (
    Variant(
        "cpu",
        local_versions={"torch": "cpu"},
        # The stand-in provides the names of five of them; the others come with a CUDA build of torch.
        forbidden=("nvidia-", "cuda-", "triton", "torchvision", "datasets", "ipython", "sgl-kernel", "flashinfer"),
        # It requires triton, which the stand-in provides, and ninja, which only its CUDA kernels are built with.
        alone=("xgrammar",),
        fallback={"torch": FallbackIndex("BLACKWELL_TORCH_INDEX", "https://download.pytorch.org/whl/cpu")},
    ),
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
        if pin.name.startswith(kind.forbidden):
            raise WheelhouseError(f"{source} pins {pin.name}, which must not be in a {kind.name} wheelhouse")
        label = kind.local_versions.get(pin.name)
        if label and pin.version.partition("+")[2] != label:
            raise WheelhouseError(
                f"{source} pins {pin.name} {pin.version}; a {kind.name} wheelhouse needs a +{label} build"
            )
