"""What a wheelhouse can be for, and where the checkout says what belongs into it."""

from dataclasses import dataclass

from blackwell.wheelhouse.errors import WheelhouseError


@dataclass(frozen=True)
class Product:
    """Something that hosts install from a wheelhouse."""

    name: str
    """Beginning of the names of its files."""

    title: str

    locks: str
    """Directory of its locks in a checkout."""

    release: str
    """The release that is meant where none is named."""

    variant: str
    """The variant that is meant where none is named."""

    manifest: str = ""
    """File of a checkout that names the product's own wheel, with ``{release}``; empty if the lock has all."""


SGLANG = Product(
    "sglang",
    "SGLang",
    locks="roles/sglang/files/locks",
    release="0.5.9",
    variant="cpu",
    manifest="patches/sglang-{release}/manifest.json",
)
CUDA = Product("cuda", "the CUDA toolkit", locks="requirements", release="13.0", variant="libraries")

PRODUCTS = (SGLANG, CUDA)


def product(name: str) -> Product:
    """Return a product by its name; raise WheelhouseError for an unknown one."""
    for known in PRODUCTS:
        if known.name == name:
            return known
    raise WheelhouseError(f"no product is called {name}; known: {', '.join(known.name for known in PRODUCTS)}")
