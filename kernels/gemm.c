/* SPDX-License-Identifier: BSD-3-Clause
 * Products of the experts: BLAS, or the built-in row-exact loops.
 */
#include "config.h"

#include "kernels/exact.h"
#include "kernels/kernels.h"

#ifdef HAVE_BLAS
#include <cblas.h>

bool mfk_has_blas(void)
{
    return true;
}

const char *mfk_blas_version(void)
{
    return openblas_get_config();
}

void mfk_set_threads(int threads)
{
    openblas_set_num_threads(threads);
}

/* TRANS_A: A is stored [k,m]; TRANS_B: B is stored [n,k]. */
static void blas_gemm(bool trans_a, bool trans_b, int64_t m, int64_t n,
    int64_t k, const float *a, const float *b, bool add, float *c)
{
    if (m == 0 || n == 0)
        return;
    cblas_sgemm(CblasRowMajor, trans_a ? CblasTrans : CblasNoTrans,
        trans_b ? CblasTrans : CblasNoTrans, (blasint)m, (blasint)n, (blasint)k,
        1.0f, a,
        (blasint)(trans_a ? m
                  : k > 0 ? k
                          : 1),
        b, (blasint)(trans_b ? (k > 0 ? k : 1) : n), add ? 1.0f : 0.0f, c,
        (blasint)n);
}
#else
bool mfk_has_blas(void)
{
    return false;
}

const char *mfk_blas_version(void)
{
    return "built-in loops";
}

void mfk_set_threads(int threads)
{
    (void)threads;
}

static void blas_gemm(bool trans_a, bool trans_b, int64_t m, int64_t n,
    int64_t k, const float *a, const float *b, bool add, float *c)
{
    if (trans_b)
        mfk_exact_nt(m, n, k, a, b, add, c);
    else if (trans_a)
        mfk_exact_nn(m, n, k, a, 1, m, b, add, c);
    else
        mfk_exact_nn(m, n, k, a, k, 1, b, add, c);
}
#endif

void mfk_gemm_nt(enum mfk_gemm kind, int64_t m, int64_t n, int64_t k,
    const float *a, const float *b, bool add, float *c)
{
    if (kind == MFK_EXACT)
        mfk_exact_nt(m, n, k, a, b, add, c);
    else
        blas_gemm(false, true, m, n, k, a, b, add, c);
}

void mfk_gemm_nn(enum mfk_gemm kind, int64_t m, int64_t n, int64_t k,
    const float *a, const float *b, bool add, float *c)
{
    if (kind == MFK_EXACT)
        mfk_exact_nn(m, n, k, a, k, 1, b, add, c);
    else
        blas_gemm(false, false, m, n, k, a, b, add, c);
}

void mfk_gemm_tn(enum mfk_gemm kind, int64_t m, int64_t n, int64_t k,
    const float *a, const float *b, bool add, float *c)
{
    if (kind == MFK_EXACT)
        mfk_exact_nn(m, n, k, a, 1, m, b, add, c);
    else
        blas_gemm(true, false, m, n, k, a, b, add, c);
}
