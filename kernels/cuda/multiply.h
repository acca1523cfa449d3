/* SPDX-License-Identifier: BSD-3-Clause
 * Products by cuBLAS. Matrices are row-major, as everywhere else here; cuBLAS
 * has them column by column, so it is asked for the transpose.
 */
#ifndef MFK_CUDA_MULTIPLY_H
#define MFK_CUDA_MULTIPLY_H

#include <cublas_v2.h>
#include <cuda_runtime_api.h>

#include "kernels/device/api.h"

extern const struct mfk_device_api mfk_device_plugin;

int mfk_cuda_blas_create(
    struct mfk_device *device, cudaStream_t stream, cublasHandle_t *blas);

/* One cublasGemmEx a product that has rows; the others are skipped, or their
 * result zeroed where they do not add.
 */
int mfk_cuda_multiply_each(struct mfk_device *device, cublasHandle_t blas,
    const struct mfk_product *product, int count);

/* All of them in one cublasGemmGroupedBatchedEx. */
int mfk_cuda_multiply_grouped(struct mfk_device *device, cublasHandle_t blas,
    const struct mfk_product *product, int count);

#endif
