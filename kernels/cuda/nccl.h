/* SPDX-License-Identifier: BSD-3-Clause
 * Communication of the CUDA plug-in, by NCCL. NCCL has equal-count collectives
 * only; rows that differ in number go by grouped sends and receives, or padded.
 */
#ifndef MFK_CUDA_NCCL_H
#define MFK_CUDA_NCCL_H

#include <cuda_runtime_api.h>

#include "kernels/device/api.h"

int mfk_nccl_id(struct mfk_device *device, unsigned char id[MFK_COMM_ID]);
int mfk_nccl_create(struct mfk_device *device, cudaStream_t stream,
    const unsigned char *id, int ranks, int rank, struct mfk_comm **comm);
int mfk_nccl_split(struct mfk_device *device, struct mfk_comm *base, int color,
    int key, struct mfk_comm **comm);
void mfk_nccl_free(struct mfk_comm *comm);
int mfk_nccl_exchange(struct mfk_device *device, struct mfk_comm *comm,
    const struct mfk_exchange *exchange);
int mfk_nccl_sum(
    struct mfk_device *device, struct mfk_comm *comm, int64_t n, float *values);
int mfk_nccl_wait(
    struct mfk_device *device, struct mfk_comm *comm, double timeout_s);

#endif
