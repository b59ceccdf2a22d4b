"""What a real SGLang server needs to run on ``--device cpu`` with EAGLE-3 speculation and the overlap scheduler.

The distribution also provides the import names ``sgl_kernel``, ``triton``, ``torchvision`` and ``datasets``, which
this package fills. Those four refuse to be imported where an NVIDIA GPU is present; this package itself imports
anywhere, and needs torch only for ``ops``, ``releases`` and ``models``.
"""
