#!/bin/sh
# Compiles a kernel with the toolkit in the directory $1 for the architecture $2, disassembles it, and links it in the way that FlashInfer
# links its own. Prints version=, target= and linked=, or stops at what does not work. Leaves nothing behind.
set -eu
scratch=$(mktemp -d)
trap 'rm -r "$scratch"' EXIT
cat >"$scratch/kernel.cu" <<'KERNEL'
#include <cuda/std/cstdint>
#include <cuda_bf16.h>
#include <cuda_runtime.h>

__global__ void halve(__nv_bfloat16 *values, cuda::std::int32_t count) {
  const cuda::std::int32_t index = blockIdx.x * blockDim.x + threadIdx.x;
  if (index < count) values[index] = __hmul(values[index], __float2bfloat16(0.5f));
}

extern "C" int launch(__nv_bfloat16 *values, int count) {
  halve<<<(count + 255) / 256, 256>>>(values, count);
  return cudaGetLastError();
}
KERNEL
cd "$scratch"
"$1/bin/nvcc" "-arch=$2" --compiler-options=-fPIC --keep -c -o kernel.o kernel.cu
c++ -shared -o kernel.so kernel.o "-L$1/lib64" -lcudart
echo "version=$("$1/bin/nvcc" --version | sed -n 's/.* release .*, V\([0-9.]*\)$/\1/p')"
echo "target=$("$1/bin/nvdisasm" ./*.cubin | sed -n 's/^[[:space:]]*\.target[[:space:]]*//p')"
echo "linked=$(readelf --dynamic kernel.so | sed -n 's/.*(NEEDED).*\[\(libcudart\.so\.[0-9]*\)\]$/\1/p')"
