/* SPDX-License-Identifier: BSD-3-Clause
 * The one door between the plug-in's C and its CUDA C.
 */
#ifndef MFK_CUDA_LAUNCH_H
#define MFK_CUDA_LAUNCH_H

#include <cuda_runtime_api.h>

#include "kernels/device/api.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ARGS point to the arguments, each of the kernel's own width. */
cudaError_t mfk_cuda_launch(enum mfk_device_kernel kernel, int64_t blocks,
    void **args, cudaStream_t stream);

#ifdef __cplusplus
}
#endif

#endif
