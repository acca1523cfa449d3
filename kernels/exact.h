/* SPDX-License-Identifier: BSD-3-Clause
 * The built-in products: a row of the result has the same bits wherever it
 * stands and however many there are.
 */
#ifndef MFK_EXACT_H
#define MFK_EXACT_H

#include <stdbool.h>
#include <stdint.h>

/* c[m,n] = a[m,k] * b[n,k]^T. Element by element a sum in eight lanes over k,
 * whatever the blocking.
 */
void mfk_exact_nt(int64_t m, int64_t n, int64_t k, const float *a,
    const float *b, bool add, float *c);

/* c[m,n] = A * b[k,n], where A[i][p] = a[i * row_stride + p * column_stride].
 * Element by element a sum over p, ascending.
 */
void mfk_exact_nn(int64_t m, int64_t n, int64_t k, const float *a,
    int64_t row_stride, int64_t column_stride, const float *b, bool add,
    float *c);

#endif
