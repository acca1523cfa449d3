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

/* How a router chooses.
 *
 * Scores are a softmax over the experts, or a sigmoid of each logit. The TOPK
 * best are chosen by score plus bias, in descending order (ties: lower expert
 * first). With groups > 1 the experts lie in so many equal, consecutive groups;
 * the TOPK_GROUPS best groups, each judged by the sum of its GROUP_BEST best
 * scores plus biases, have the others left out.
 * The weights are scaling * s, or scaling * s / (sum of the chosen s), without
 * the bias.
 */
#define MFK_GROUPS_MOST 1024

struct mfk_router {
    int64_t tokens, experts, topk;
    bool sigmoid; /* else softmax */
    bool renormalize;
    float scaling;
    int64_t groups, topk_groups, group_best; /* groups 0 or 1: none */
    const float *bias;                       /* [experts], NULL: none */
};

/* logits[tokens,experts] to ids and weights[tokens,topk]; scores[tokens,
 * experts] are kept for the backward pass.
 */
void mfk_route(const struct mfk_router *router, const float *logits,
    float *scores, int32_t *ids, float *weights);
/* dlogits[tokens,experts] from dweights[tokens,topk]. */
void mfk_route_backward(const struct mfk_router *router, const float *scores,
    const int32_t *ids, const float *dweights, float *dlogits);

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

/* What stands between an expert's products. */
enum mfk_activation {
    MFK_SWIGLU,  /* silu(gate) * up, silu(g) = g / (1 + exp(-g)) */
    MFK_GEGLU,   /* gelu(gate) * up, gelu(g) = g (1 + erf(g / sqrt 2)) / 2 */
    MFK_CLAMPED, /* g sigmoid(1.702 g) * (u + 1), g = min(gate, 7) and u = up
                    within 7 of 0, as in gpt-oss */
};

/* out[n] of gate[n] and up[n]. */
void mfk_activate(enum mfk_activation kind, int64_t n, const float *gate,
    const float *up, float *out);
/* dgate and dup from dout; they may be the arrays gate and up. */
void mfk_activate_backward(enum mfk_activation kind, int64_t n,
    const float *gate, const float *up, const float *dout, float *dgate,
    float *dup);

/* rows[n,width] += bias[width]; bias[width] += sum of rows[n,width], in their
 * order.
 */
void mfk_bias(int64_t n, int64_t width, const float *bias, float *rows);
void mfk_bias_backward(
    int64_t n, int64_t width, const float *drows, float *dbias);

/* sum[i] += part[i]. */
void mfk_add(int64_t n, const float *part, float *sum);
void mfk_scale(int64_t n, float factor, float *values);

#endif
