/* SPDX-License-Identifier: BSD-3-Clause
 * A row-exact product for router logits and for verification: each element is
 * a sum over p, ascending, by one thread, so a row of the result has the same
 * bits wherever it stands and however many rows there are.
 */
#define MFD_TILE 64  /* rows and columns of the result that a block makes */
#define MFD_DEPTH 16 /* of the sum, loaded at a time */
#define MFD_SIDE 4   /* rows and columns that a thread makes */

/* c[i*n+j] (+)= sum over p of A(i,p) * B(p,j), where A(i,p) is
 * a[i*a_row + p*a_column] and B(p,j) is b[p*b_row + j*b_column].
 */
MFD_KERNEL mfd_product(mfd_i64 m, mfd_i64 n, mfd_i64 k,
    MFD_GLOBAL const float *a, mfd_i64 a_row, mfd_i64 a_column,
    MFD_GLOBAL const float *b, mfd_i64 b_row, mfd_i64 b_column, mfd_i32 add,
    MFD_GLOBAL float *c)
{
    MFD_SHARED float at[MFD_DEPTH][MFD_TILE + 1];
    MFD_SHARED float bt[MFD_DEPTH][MFD_TILE + 1];
    const mfd_i64 down = (m + MFD_TILE - 1) / MFD_TILE;
    const mfd_i64 across = (n + MFD_TILE - 1) / MFD_TILE;
    const mfd_i64 row = MFD_THREAD / (MFD_TILE / MFD_SIDE) * MFD_SIDE;
    const mfd_i64 column = MFD_THREAD % (MFD_TILE / MFD_SIDE) * MFD_SIDE;

    for (mfd_i64 tile = MFD_BLOCK; tile < down * across; tile += MFD_BLOCKS) {
        const mfd_i64 top = tile / across * MFD_TILE;
        const mfd_i64 left = tile % across * MFD_TILE;
        float sum[MFD_SIDE][MFD_SIDE];

        for (int i = 0; i < MFD_SIDE; i++)
            for (int j = 0; j < MFD_SIDE; j++)
                sum[i][j] = 0;
        for (mfd_i64 p0 = 0; p0 < k; p0 += MFD_DEPTH) {
            for (mfd_i64 s = MFD_THREAD; s < MFD_DEPTH * MFD_TILE;
                 s += MFD_THREADS) {
                /* Neighbours in memory to neighbouring threads. */
                const mfd_i64 ap = a_column == 1 ? s % MFD_DEPTH : s / MFD_TILE;
                const mfd_i64 ai = a_column == 1 ? s / MFD_DEPTH : s % MFD_TILE;
                const mfd_i64 bp = b_row == 1 ? s % MFD_DEPTH : s / MFD_TILE;
                const mfd_i64 bj = b_row == 1 ? s / MFD_DEPTH : s % MFD_TILE;

                at[ap][ai] = top + ai < m && p0 + ap < k
                                 ? a[(top + ai) * a_row + (p0 + ap) * a_column]
                                 : 0;
                bt[bp][bj] = left + bj < n && p0 + bp < k
                                 ? b[(p0 + bp) * b_row + (left + bj) * b_column]
                                 : 0;
            }
            MFD_BARRIER();
            for (int p = 0; p < MFD_DEPTH && p0 + p < k; p++)
                for (int i = 0; i < MFD_SIDE; i++)
                    for (int j = 0; j < MFD_SIDE; j++)
                        sum[i][j] += at[p][row + i] * bt[p][column + j];
            MFD_BARRIER();
        }
        for (int i = 0; i < MFD_SIDE; i++)
            for (int j = 0; j < MFD_SIDE; j++) {
                const mfd_i64 to = (top + row + i) * n + left + column + j;

                if (top + row + i >= m || left + column + j >= n)
                    continue;
                c[to] = add ? c[to] + sum[i][j] : sum[i][j];
            }
    }
}
