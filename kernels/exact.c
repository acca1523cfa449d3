/* SPDX-License-Identifier: BSD-3-Clause
 * Row-exact products.
 *
 * Each element is summed by one sequence of operations that depends on the
 * length of the sum only. Blocks of rows and columns share loads, never sums.
 */
#include "kernels/exact.h"

#include "kernels/kernels.h"
#include "kernels/vector.h"

enum { ROWS = 2, COLUMNS = 2, BLOCK = 64 };

static inline int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* out[rows][columns] = dot products of rows of a with rows of b. */
MFK_INLINE void dots(int rows, int columns, int64_t k, const float *a,
    const float *b, float out[ROWS][COLUMNS])
{
    const int64_t whole = k - k % MFK_LANES;
    mfk_v8 sum[ROWS][COLUMNS], x[ROWS], y;

    for (int r = 0; r < rows; r++)
        for (int c = 0; c < columns; c++)
            mfk_v8_fill(&sum[r][c], 0);
    for (int64_t p = 0; p < whole; p += MFK_LANES) {
        for (int r = 0; r < rows; r++)
            mfk_v8_load(&x[r], a + r * k + p);
        for (int c = 0; c < columns; c++) {
            mfk_v8_load(&y, b + c * k + p);
            for (int r = 0; r < rows; r++)
                sum[r][c] += x[r] * y;
        }
    }
    if (whole < k) {
        for (int r = 0; r < rows; r++)
            mfk_v8_load_part(&x[r], a + r * k + whole, k - whole);
        for (int c = 0; c < columns; c++) {
            mfk_v8_load_part(&y, b + c * k + whole, k - whole);
            for (int r = 0; r < rows; r++)
                sum[r][c] += x[r] * y;
        }
    }
    for (int r = 0; r < rows; r++)
        for (int c = 0; c < columns; c++)
            out[r][c] = mfk_v8_sum(&sum[r][c]);
}

MFK_INLINE void store(int rows, int columns, int64_t n,
    float out[ROWS][COLUMNS], bool add, float *c)
{
    for (int r = 0; r < rows; r++)
        for (int j = 0; j < columns; j++) {
            float *to = c + r * n + j;
            *to = add ? *to + out[r][j] : out[r][j];
        }
}

/* M rows of a with COLUMNS rows of b. */
MFK_INLINE void columns_nt(int columns, int64_t m, int64_t n, int64_t k,
    const float *a, const float *b, bool add, float *c)
{
    float out[ROWS][COLUMNS];
    int64_t i = 0;

    for (; i + ROWS <= m; i += ROWS) {
        dots(ROWS, columns, k, a + i * k, b, out);
        store(ROWS, columns, n, out, add, c + i * n);
    }
    for (; i < m; i++) {
        dots(1, columns, k, a + i * k, b, out);
        store(1, columns, n, out, add, c + i * n);
    }
}

void mfk_exact_nt(int64_t m, int64_t n, int64_t k, const float *a,
    const float *b, bool add, float *c)
{
    for (int64_t i = 0; i < m; i += BLOCK) {
        const int64_t rows = least(BLOCK, m - i);
        const float *from = a + i * k;
        float *to = c + i * n;
        int64_t j = 0;

        for (; j + COLUMNS <= n; j += COLUMNS)
            columns_nt(COLUMNS, rows, n, k, from, b + j * k, add, to + j);
        for (; j < n; j++)
            columns_nt(1, rows, n, k, from, b + j * k, add, to + j);
    }
}

/* Where A lies, and how far apart its elements are. */
struct strided {
    const float *at;
    int64_t row, column;
};

/* ROWS x (2 * MFK_LANES) elements. */
MFK_INLINE void tile_nn(int rows, int64_t n, int64_t k, const struct strided *a,
    const float *b, bool add, float *c)
{
    mfk_v8 sum[ROWS][2], y[2], x, old;

    for (int r = 0; r < rows; r++)
        for (int v = 0; v < 2; v++)
            mfk_v8_fill(&sum[r][v], 0);
    for (int64_t p = 0; p < k; p++) {
        mfk_v8_load(&y[0], b + p * n);
        mfk_v8_load(&y[1], b + p * n + MFK_LANES);
        for (int r = 0; r < rows; r++) {
            mfk_v8_fill(&x, a->at[r * a->row + p * a->column]);
            sum[r][0] += x * y[0];
            sum[r][1] += x * y[1];
        }
    }
    for (int r = 0; r < rows; r++)
        for (int v = 0; v < 2; v++) {
            float *to = c + r * n + v * MFK_LANES;
            if (add) {
                mfk_v8_load(&old, to);
                sum[r][v] = old + sum[r][v];
            }
            mfk_v8_store(to, &sum[r][v]);
        }
}

MFK_INLINE void element_nn(int64_t n, int64_t k, const struct strided *a,
    const float *b, bool add, float *c)
{
    float sum = 0;

    for (int64_t p = 0; p < k; p++)
        sum += a->at[p * a->column] * b[p * n];
    *c = add ? *c + sum : sum;
}

MFK_INLINE void rows_nn(int rows, int64_t n, int64_t k, const struct strided *a,
    const float *b, bool add, float *c)
{
    int64_t j = 0;

    for (; j + 2 * MFK_LANES <= n; j += 2 * MFK_LANES)
        tile_nn(rows, n, k, a, b + j, add, c + j);
    for (; j < n; j++)
        for (int r = 0; r < rows; r++) {
            const struct strided row = {a->at + r * a->row, a->row, a->column};
            element_nn(n, k, &row, b + j, add, c + r * n + j);
        }
}

void mfk_exact_nn(int64_t m, int64_t n, int64_t k, const float *a,
    int64_t row_stride, int64_t column_stride, const float *b, bool add,
    float *c)
{
    int64_t i = 0;

    for (; i + ROWS <= m; i += ROWS) {
        const struct strided from = {
            a + i * row_stride, row_stride, column_stride};
        rows_nn(ROWS, n, k, &from, b, add, c + i * n);
    }
    for (; i < m; i++) {
        const struct strided from = {
            a + i * row_stride, row_stride, column_stride};
        rows_nn(1, n, k, &from, b, add, c + i * n);
    }
}

float mfk_dot(int64_t n, const float *a, const float *b)
{
    float out[ROWS][COLUMNS];

    dots(1, 1, n, a, b, out);
    return out[0][0];
}
