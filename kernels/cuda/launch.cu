/* SPDX-License-Identifier: BSD-3-Clause
 * The device kernels as CUDA C, and their launch by number.
 */
#include <cuda_runtime_api.h>

#include "kernels/cuda/launch.h"
#include "kernels/device/kernels.h"

static const void *const kernel_table[MFK_DEVICE_KERNELS] = {
#define MFD_ADDRESS(name) (const void *)name,
    MFD_LIST(MFD_ADDRESS)
#undef MFD_ADDRESS
};

extern "C" cudaError_t mfk_cuda_launch(enum mfk_device_kernel kernel,
    int64_t blocks, void **args, cudaStream_t stream)
{
    return cudaLaunchKernel(kernel_table[kernel], dim3((unsigned)blocks),
        dim3(MFD_BLOCK_THREADS), args, 0, stream);
}
