"""Stand-in for ``IPython``, of which SGLang imports two functions for notebooks; it needs fifteen packages more."""

from sglang_cpu_standin import host, stubs

host.refuse_gpu(__name__)
stubs.serve(stubs.StubFinder(__name__, stubs.missing_operation))

__version__ = "0+cpu.standin"
__getattr__ = stubs.public_names(__name__, stubs.missing_operation)
