/* SPDX-License-Identifier: BSD-3-Clause
 * The activation between the two products of an expert, for one element type
 * (see rows.h): a block a row of WIDTH values. Arithmetic is in fp32.
 *
 * SwiGLU: silu(gate) * up. With HAVE_WEIGHTS the row's routing weight is
 * multiplied in, which saves keeping the rows for the un-permute's gradient.
 */

/* out = silu(gate) * up [* weights[row]] */
MFD_KERNEL MFD_NAME(mfd_swiglu_)(mfd_i64 rows, mfd_i64 width,
    MFD_GLOBAL const MFD_E *gate, MFD_GLOBAL const MFD_E *up,
    mfd_i32 have_weights, MFD_GLOBAL const float *weights,
    MFD_GLOBAL MFD_E *out)
{
    const mfd_i64 packs = width % MFD_PACK == 0 ? width / MFD_PACK : 0;

    for (mfd_i64 r = MFD_BLOCK; r < rows; r += MFD_BLOCKS) {
        const float w = have_weights ? weights[r] : 1.0f;
        const mfd_i64 at = r * width;

        for (mfd_i64 i = MFD_THREAD; i < packs; i += MFD_THREADS) {
            float g[MFD_PACK], u[MFD_PACK];

            MFD_NAME(mfd_unpack_)
            (((MFD_GLOBAL const uint4 *)(gate + at))[i], g);
            MFD_NAME(mfd_unpack_)(((MFD_GLOBAL const uint4 *)(up + at))[i], u);
            for (int v = 0; v < MFD_PACK; v++) {
                u[v] = g[v] / (1.0f + MFD_EXP(-g[v])) * u[v];
                if (have_weights)
                    u[v] = w * u[v];
            }
            ((MFD_GLOBAL uint4 *)(out + at))[i] = MFD_NAME(mfd_pack_)(u);
        }
        for (mfd_i64 i = MFD_THREAD; packs == 0 && i < width;
             i += MFD_THREADS) {
            const float g = MFD_LOAD(gate, at + i);
            const float a = g / (1.0f + MFD_EXP(-g)) * MFD_LOAD(up, at + i);

            MFD_STORE(out, at + i, have_weights ? w * a : a);
        }
    }
}

/* dgate and dup from dout; they may be the arrays gate and up. With weights
 * also dweights[row].
 */
MFD_KERNEL MFD_NAME(mfd_swiglu_backward_)(mfd_i64 rows, mfd_i64 width,
    MFD_GLOBAL const MFD_E *gate, MFD_GLOBAL const MFD_E *up,
    MFD_GLOBAL const MFD_E *dout, mfd_i32 have_weights,
    MFD_GLOBAL const float *weights, MFD_GLOBAL MFD_E *dgate,
    MFD_GLOBAL MFD_E *dup, MFD_GLOBAL float *dweights)
{
    MFD_SHARED float scratch[MFD_BLOCK_THREADS];
    const mfd_i64 packs = width % MFD_PACK == 0 ? width / MFD_PACK : 0;

    for (mfd_i64 r = MFD_BLOCK; r < rows; r += MFD_BLOCKS) {
        const float w = have_weights ? weights[r] : 1.0f;
        const mfd_i64 at = r * width;
        float sum = 0;

        for (mfd_i64 i = MFD_THREAD; i < packs; i += MFD_THREADS) {
            float g[MFD_PACK], u[MFD_PACK], d[MFD_PACK];

            MFD_NAME(mfd_unpack_)
            (((MFD_GLOBAL const uint4 *)(gate + at))[i], g);
            MFD_NAME(mfd_unpack_)(((MFD_GLOBAL const uint4 *)(up + at))[i], u);
            MFD_NAME(mfd_unpack_)
            (((MFD_GLOBAL const uint4 *)(dout + at))[i], d);
            for (int v = 0; v < MFD_PACK; v++)
                sum += mfd_swiglu_gradient(w, d[v], &g[v], &u[v]);
            ((MFD_GLOBAL uint4 *)(dgate + at))[i] = MFD_NAME(mfd_pack_)(g);
            ((MFD_GLOBAL uint4 *)(dup + at))[i] = MFD_NAME(mfd_pack_)(u);
        }
        for (mfd_i64 i = MFD_THREAD; packs == 0 && i < width;
             i += MFD_THREADS) {
            float g = MFD_LOAD(gate, at + i), u = MFD_LOAD(up, at + i);

            sum += mfd_swiglu_gradient(w, MFD_LOAD(dout, at + i), &g, &u);
            MFD_STORE(dgate, at + i, g);
            MFD_STORE(dup, at + i, u);
        }
        if (!have_weights)
            continue;
        sum = mfd_block_sum(sum, scratch);
        if (MFD_THREAD == 0)
            dweights[r] = sum;
    }
}
