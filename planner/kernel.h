/* SPDX-License-Identifier: BSD-3-Clause
 * Prices single kernels: products, experts' products, collectives in a node,
 * DeepEP.
 */
#ifndef MF_KERNEL_H
#define MF_KERNEL_H

#include "planner/layout/error.h"

struct mf_kernel_price {
    double seconds, low, high; /* nine in ten lie between the two */
};

/* TEXT is one of gemm:M,N,K; grouped:TOKENS,H,F,TOPK,E,ETP,EP; COLLECTIVE:
 * RANKS,BYTES with all_gather, reduce_scatter, all_reduce or alltoall and the
 * bytes of the whole buffer; deepep:TOKENS,H,E,TOPK,RANKS (dispatch and combine
 * of one rank, in one node). bf16. GPU is a name such as h100. MF_INVALID: not
 * that, or not known for that GPU.
 */
int mf_kernel_price(const char *text, const char *gpu,
    struct mf_kernel_price *out, struct mf_error *err);

#endif
