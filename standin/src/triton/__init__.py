"""Stand-in for ``triton``, of which a CPU server imports names and launches nothing."""

import importlib

from sglang_cpu_standin import host, stubs, triton_names

host.refuse_gpu(__name__)
stubs.serve(stubs.StubFinder(__name__, triton_names.make_name, names=triton_names.NAMES))
vars().update(triton_names.NAMES)
for submodule in ("compiler", "language", "language.core", "runtime"):
    # The real package imports them, and SGLang uses them without an import of its own.
    importlib.import_module(f"{__name__}.{submodule}")

__version__ = "3.5.1"
__getattr__ = stubs.public_names(__name__, triton_names.make_name)
