/* SPDX-License-Identifier: BSD-3-Clause
 * Products by cuBLAS, one by one and grouped.
 */
#include "kernels/cuda/multiply.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

static int done(
    struct mfk_device *device, cublasStatus_t status, const char *what)
{
    if (status == CUBLAS_STATUS_SUCCESS)
        return 0;
    device->out_of_memory = status == CUBLAS_STATUS_ALLOC_FAILED;
    snprintf(device->error, sizeof device->error, "%s: %s", what,
        cublasGetStatusString(status));
    return -1;
}

int mfk_cuda_blas_create(
    struct mfk_device *device, cudaStream_t stream, cublasHandle_t *blas)
{
    if (done(device, cublasCreate(blas), "cublasCreate") ||
        done(device, cublasSetStream(*blas, stream), "cublasSetStream"))
        return -1;
    /* Sums in fp32 throughout, and the same bits in every run. */
    return done(device,
        cublasSetMathMode(*blas,
            (cublasMath_t)(CUBLAS_DEFAULT_MATH |
                           CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION)),
        "cublasSetMathMode");
}

/* A product as cuBLAS has it: C^T = B' * A', columns first. */
struct call {
    cublasOperation_t op_b, op_a;
    int m, n, k, ldb, lda;
    float beta;
};

static int call_of(struct mfk_device *device, const struct mfk_product *product,
    struct call *call)
{
    const bool nt = product->form == MFK_NT, tn = product->form == MFK_TN;

    if (product->m > INT_MAX || product->n > INT_MAX || product->k > INT_MAX) {
        snprintf(device->error, sizeof device->error,
            "a product of %lld x %lld x %lld is beyond cuBLAS",
            (long long)product->m, (long long)product->n,
            (long long)product->k);
        return -1;
    }
    *call = (struct call){
        .op_b = nt ? CUBLAS_OP_T : CUBLAS_OP_N,
        .op_a = tn ? CUBLAS_OP_T : CUBLAS_OP_N,
        .m = (int)product->n,
        .n = (int)product->m,
        .k = (int)product->k,
        .ldb = (int)(nt ? product->k : product->n),
        .lda = (int)(tn ? product->m : product->k),
        .beta = product->add ? 1 : 0,
    };
    return 0;
}

static cudaDataType type_of(enum mfk_type type)
{
    return type == MFK_BF16 ? CUDA_R_16BF : CUDA_R_32F;
}

static size_t size_of(enum mfk_type type)
{
    return type == MFK_BF16 ? 2 : 4;
}

/* A sum over nothing is zeros. Returns 1 when there is nothing to multiply. */
static int empty(struct mfk_device *device, const struct mfk_product *product)
{
    if (product->m == 0 || product->n == 0)
        return 1;
    if (product->k > 0)
        return 0;
    if (!product->add &&
        device->api->fill(device, product->c, 0,
            (size_t)product->m * (size_t)product->n * size_of(product->out)))
        return -1;
    return 1;
}

int mfk_cuda_multiply_each(struct mfk_device *device, cublasHandle_t blas,
    const struct mfk_product *product, int count)
{
    const float one = 1;

    for (int i = 0; i < count; i++) {
        const struct mfk_product *p = &product[i];
        const int none = empty(device, p);
        struct call c;

        if (none < 0 || (none == 0 && call_of(device, p, &c)))
            return -1;
        if (none == 0 &&
            done(device,
                cublasGemmEx(blas, c.op_b, c.op_a, c.m, c.n, c.k, &one, p->b,
                    type_of(p->in), c.ldb, p->a, type_of(p->in), c.lda, &c.beta,
                    p->c, type_of(p->out), c.m, CUBLAS_COMPUTE_32F,
                    CUBLAS_GEMM_DEFAULT),
                "cublasGemmEx"))
            return -1;
    }
    return 0;
}

/* What the grouped call takes: arrays over the groups, each of one product. */
struct groups {
    int n;
    cublasOperation_t *op_b, *op_a;
    int *m, *n_, *k, *lda, *ldb, *ldc, *size;
    float *alpha, *beta;
    const void **pointer; /* host: b, a and c of each */
};

static void groups_free(struct groups *groups)
{
    free(groups->op_b);
    free(groups->op_a);
    free(groups->m);
    free(groups->alpha);
    free(groups->pointer);
}

static int groups_alloc(struct mfk_device *device, int n, struct groups *groups)
{
    const size_t room = (size_t)n;

    groups->op_b = calloc(room, sizeof *groups->op_b);
    groups->op_a = calloc(room, sizeof *groups->op_a);
    groups->m = calloc(room * 7, sizeof *groups->m);
    groups->alpha = calloc(room * 2, sizeof *groups->alpha);
    groups->pointer = calloc(room * 3, sizeof *groups->pointer);
    if (!groups->op_b || !groups->op_a || !groups->m || !groups->alpha ||
        !groups->pointer) {
        snprintf(device->error, sizeof device->error, "out of memory");
        return -1;
    }
    groups->n_ = groups->m + n;
    groups->k = groups->n_ + n;
    groups->lda = groups->k + n;
    groups->ldb = groups->lda + n;
    groups->ldc = groups->ldb + n;
    groups->size = groups->ldc + n;
    groups->beta = groups->alpha + n;
    return 0;
}

static int groups_fill(struct mfk_device *device,
    const struct mfk_product *product, int count, struct groups *groups)
{
    for (int i = 0; i < count; i++) {
        const int none = empty(device, &product[i]);
        const int at = groups->n;
        struct call c;

        if (none < 0 || (none == 0 && call_of(device, &product[i], &c)))
            return -1;
        if (none)
            continue;
        groups->op_b[at] = c.op_b;
        groups->op_a[at] = c.op_a;
        groups->m[at] = c.m;
        groups->n_[at] = c.n;
        groups->k[at] = c.k;
        groups->lda[at] = c.lda;
        groups->ldb[at] = c.ldb;
        groups->ldc[at] = c.m;
        groups->size[at] = 1;
        groups->alpha[at] = 1;
        groups->beta[at] = c.beta;
        groups->pointer[at] = product[i].b;
        groups->pointer[count + at] = product[i].a;
        groups->pointer[2 * count + at] = product[i].c;
        groups->n++;
    }
    return 0;
}

int mfk_cuda_multiply_grouped(struct mfk_device *device, cublasHandle_t blas,
    const struct mfk_product *product, int count)
{
    const size_t bytes = (size_t)count * 3 * sizeof(void *);
    struct groups g = {0};
    void *pointers = NULL;
    int rc = -1;

    if (count == 0)
        return 0;
    if (groups_alloc(device, count, &g) ||
        groups_fill(device, product, count, &g))
        goto out;
    rc = 0;
    if (g.n == 0)
        goto out;
    /* The pointers must be the device's; the sizes stay here. */
    rc = device->api->alloc(device, bytes, &pointers);
    if (rc == 0)
        rc = device->api->upload(device, pointers, g.pointer, bytes);
    if (rc == 0) {
        const void *const *b = pointers, *const *a = b + count;
        void *const *c = (void *const *)(b + 2 * (ptrdiff_t)count);

        rc = done(device,
            cublasGemmGroupedBatchedEx(blas, g.op_b, g.op_a, g.m, g.n_, g.k,
                g.alpha, b, type_of(product->in), g.ldb, a,
                type_of(product->in), g.lda, g.beta, c, type_of(product->out),
                g.ldc, g.n, g.size, CUBLAS_COMPUTE_32F),
            "cublasGemmGroupedBatchedEx");
    }
    if (device->api->wait(device))
        rc = -1;
out:
    device->api->free(device, pointers);
    groups_free(&g);
    return rc;
}
