"""Stand-in for ``sgl_kernel``, whose wheels hold CUDA code only.

Every name imports. The few operations that a CPU server calls are there; any other raises NotImplementedError when it
is called. SGLang imports this package early, so importing it also arms the patches for the installed release.
"""

from sglang_cpu_standin import hooks, host, releases, stubs

host.refuse_gpu(__name__)

# SGLang has its own fallback for sgl_kernel.scalar_type and takes it on ImportError.
stubs.serve(
    stubs.StubFinder(__name__, stubs.missing_operation, absent=frozenset({f"{__name__}.scalar_type"})),
)
hooks.arm(releases.patches(releases.installed()))

__version__ = "0+cpu.standin"
__getattr__ = stubs.public_names(__name__, stubs.missing_operation)
