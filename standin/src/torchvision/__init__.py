"""Stand-in for ``torchvision``, which SGLang and transformers import and a server of text models never calls."""

import enum

from sglang_cpu_standin import host, stubs

host.refuse_gpu(__name__)


class InterpolationMode(enum.Enum):
    """Members of ``torchvision.transforms.InterpolationMode``, which transformers reads while it is imported."""

    NEAREST = "nearest"
    NEAREST_EXACT = "nearest-exact"
    BILINEAR = "bilinear"
    BICUBIC = "bicubic"
    BOX = "box"
    HAMMING = "hamming"
    LANCZOS = "lanczos"


def _missing_class(module: str, name: str) -> type:
    """Return a class that can be named and subclassed, and raises NotImplementedError when it is instantiated."""
    return type(name, (), {"__init__": stubs.missing_operation(module, name), "__module__": module})


stubs.serve(stubs.StubFinder(__name__, _missing_class, names={"InterpolationMode": InterpolationMode}))

__version__ = "0.0.0"
__getattr__ = stubs.public_names(__name__, _missing_class)
