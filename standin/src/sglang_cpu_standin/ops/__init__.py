"""Pure-torch versions of the CUDA and Triton operations that speculative decoding and a paged KV cache need."""
