"""What the modules of the ``triton`` stand-in hold: enough to define SGLang's kernels, nothing that launches one."""

from collections.abc import Callable, Mapping

from sglang_cpu_standin.stubs import missing_operation


class JITFunction:
    """What ``triton.jit`` makes of a function; launching or calling it raises NotImplementedError."""

    arg_names: tuple[str, ...] = ()

    def __init__(self, function: Callable) -> None:
        """Keep the names of the function and none of its code."""
        self.fn = function
        self.__name__ = function.__name__
        self.__doc__ = function.__doc__
        self.__module__ = function.__module__
        self._launch = missing_operation(f"triton kernel {function.__module__}", function.__name__)

    def __getitem__(self, _grid: object) -> Callable:
        """Return what launches the kernel over a grid."""
        return self._launch

    def __call__(self, *_args: object, **_kwargs: object) -> object:
        """Refuse to run the kernel's body."""
        return self._launch()


class Name:
    """Any class or value of triton: can be called, subscripted, joined to a type by ``|`` and used as a decorator."""

    def __init__(self, *args: object, **_kwargs: object) -> None:
        """Keep the first argument, as ``triton.language.constexpr`` does."""
        self.value = args[0] if args else None

    def __call__(self, *args: object, **_kwargs: object) -> object:
        """Return a function that is being decorated, else this object."""
        return args[0] if len(args) == 1 and callable(args[0]) else self

    def __getattr__(self, name: str) -> "Name":
        """Return another name for any public attribute."""
        if name.startswith("__"):
            raise AttributeError(name)
        return Name()

    def __getitem__(self, _item: object) -> "Name":
        """Return this object for any subscript."""
        return self

    def __or__(self, _other: object) -> "Name":
        """Return this object for a union of types."""
        return self

    __ror__ = __or__


class Config(Name):
    """One configuration of ``triton.autotune``, whose attributes SGLang reads while it is imported."""

    def __init__(self, kwargs: dict | None = None, num_warps: int = 4, num_stages: int = 2, **_other: object) -> None:
        """Keep what a configuration is described by."""
        super().__init__()
        self.kwargs = kwargs or {}
        self.num_warps = num_warps
        self.num_stages = num_stages


class NoDriver:
    """``triton.runtime.driver`` of a machine without a GPU."""

    def __getattr__(self, name: str) -> object:
        """Raise RuntimeError as triton does where it finds no active driver."""
        raise RuntimeError(f"triton stand-in: 0 active drivers (asked for {name})")


def jit(function: Callable | None = None, **_options: object) -> object:
    """Replace ``triton.jit``, with and without options."""
    return JITFunction(function) if callable(function) else JITFunction


def decorate_nothing(*_args: object, **_kwargs: object) -> Callable:
    """Replace ``triton.autotune`` and ``triton.heuristics``."""
    return lambda kernel: kernel


def cdiv(x: int, y: int) -> int:
    """Return x / y, rounded up."""
    return -(-x // y)


def next_power_of_2(n: int) -> int:
    """Return the smallest power of two that is at least ``n``."""
    return 1 << max(0, int(n) - 1).bit_length()


NAMES: Mapping[str, object] = {
    "Config": Config,
    "JITFunction": JITFunction,
    "TRITON_MAX_TENSOR_NUMEL": 1 << 20,
    "autotune": decorate_nothing,
    "cdiv": cdiv,
    "constexpr": type("constexpr", (Name,), {}),
    "driver": NoDriver(),
    "heuristics": decorate_nothing,
    "jit": jit,
    "next_power_of_2": next_power_of_2,
}
"""Names that every module of the stand-in holds."""


def make_name(_module: str, name: str) -> object:
    """Return a class for a capitalised name, else a value."""
    return type(name, (Name,), {}) if name[:1].isupper() else Name()
