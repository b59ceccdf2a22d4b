"""Stand-in for ``datasets``, which SGLang's benchmarks import and which a server without the network never calls."""

from sglang_cpu_standin import host, stubs

host.refuse_gpu(__name__)

__version__ = "0+cpu.standin"
__getattr__ = stubs.public_names(__name__, stubs.missing_operation)
