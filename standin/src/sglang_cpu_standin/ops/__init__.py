"""Pure-torch versions of the CUDA and Triton operations that speculative decoding needs, for page size 1."""
