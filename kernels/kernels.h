/* SPDX-License-Identifier: BSD-3-Clause
 * The work inside one rank: routing, permutation, activation, products.
 *
 * All arrays are row-major, fp32 unless said otherwise, and do not overlap.
 * Sizes of 0 are legal everywhere. "Row-exact" means that a result row depends
 * on its own input row (and the weights) alone, never on how many other rows
 * there are or where it stands: sums run in one fixed order.
 */
#ifndef MFK_KERNELS_H
#define MFK_KERNELS_H

#include <stdbool.h>
#include <stdint.h>

enum mfk_gemm {
    MFK_BLAS,  /* OpenBLAS where it was found, else as MFK_EXACT */
    MFK_EXACT, /* row-exact for nt and nn */
};

/* Is MFK_BLAS a BLAS in this build? */
bool mfk_has_blas(void);
/* Its name and version ("OpenBLAS 0.3.21 ..."), or "built-in loops". */
const char *mfk_blas_version(void);
/* Threads that each product may use. */
void mfk_set_threads(int threads);

/* c[m,n] = a[m,k] * b[n,k]^T, or += with ADD. Every size < 2^31. */
void mfk_gemm_nt(enum mfk_gemm kind, int64_t m, int64_t n, int64_t k,
    const float *a, const float *b, bool add, float *c);
/* c[m,n] = a[m,k] * b[k,n], or += with ADD. */
void mfk_gemm_nn(enum mfk_gemm kind, int64_t m, int64_t n, int64_t k,
    const float *a, const float *b, bool add, float *c);
/* c[m,n] = a[k,m]^T * b[k,n], or += with ADD; a sum over rows, not row-exact.
 */
void mfk_gemm_tn(enum mfk_gemm kind, int64_t m, int64_t n, int64_t k,
    const float *a, const float *b, bool add, float *c);

/* Sum of a[i]*b[i] in one fixed order. */
float mfk_dot(int64_t n, const float *a, const float *b);

/* Softmax over EXPERTS of each row of logits[tokens,experts], the TOPK best
 * in descending order (ties: lower expert first) into ids and weights
 * [tokens,topk]; probs[tokens,experts] is kept for the backward pass. The
 * weights are scaling * p, or scaling * p / (sum of the chosen p).
 */
void mfk_route(int64_t tokens, int64_t experts, int64_t topk, bool renormalize,
    float scaling, const float *logits, float *probs, int32_t *ids,
    float *weights);
/* dlogits[tokens,experts] from dweights[tokens,topk]. */
void mfk_route_backward(int64_t tokens, int64_t experts, int64_t topk,
    bool renormalize, float scaling, const float *probs, const int32_t *ids,
    const float *dweights, float *dlogits);

/* counts[experts] of ids[n]; every id lies in [0, experts). */
void mfk_count(int64_t n, int64_t experts, const int32_t *ids, int64_t *counts);
/* place[n]: where entry i goes when entries are grouped by expert, ascending,
 * and keep their order inside an expert. cursor[experts] is scratch.
 */
void mfk_place(int64_t n, int64_t experts, const int32_t *ids,
    const int64_t *counts, int64_t *cursor, int64_t *place);

/* rows[place[t*topk+j]] = x[t], rows of HIDDEN values. */
void mfk_permute(int64_t tokens, int64_t topk, int64_t hidden, const float *x,
    const int64_t *place, float *rows);
/* The same, each expert's rows into a buffer of its own: row place[i] +
 * shift[ids[i]] of base[ids[i]]. A place below 0 or a base that
 * is NULL: no row.
 */
void mfk_permute_to(int64_t tokens, int64_t topk, int64_t hidden,
    const float *x, const int32_t *ids, const int64_t *place,
    const int64_t *shift, float *const *base);
/* y[t] = sum over j of weights[t*topk+j] * rows[place[t*topk+j]], added in the
 * order of j; weights NULL: plain sums.
 */
void mfk_unpermute(int64_t tokens, int64_t topk, int64_t hidden,
    const float *rows, const int64_t *place, const float *weights, float *y);
/* The transpose: drows = weight * dy, dweights = rows . dy. */
void mfk_unpermute_backward(int64_t tokens, int64_t topk, int64_t hidden,
    const float *rows, const int64_t *place, const float *weights,
    const float *dy, float *drows, float *dweights);

/* out[n] = silu(gate) * up, with silu(g) = g / (1 + exp(-g)). */
void mfk_swiglu(int64_t n, const float *gate, const float *up, float *out);
/* dgate and dup from dout; they may be the arrays gate and up. */
void mfk_swiglu_backward(int64_t n, const float *gate, const float *up,
    const float *dout, float *dgate, float *dup);

/* sum[i] += part[i]. */
void mfk_add(int64_t n, const float *part, float *sum);
void mfk_scale(int64_t n, float factor, float *values);

#endif
