"""Functions that are called the way a Triton kernel is launched."""

from collections.abc import Callable


class TorchKernel:
    """Wraps a function so that ``kernel[grid](*args)`` calls it once for the whole grid."""

    def __init__(self, function: Callable[..., None]) -> None:
        """``function`` takes the kernel's arguments and does the work of every program."""
        self._function = function

    def __getitem__(self, _grid: object) -> Callable[..., None]:
        """Return the function: it loops over the batch itself."""
        return self._function
