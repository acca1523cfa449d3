/* SPDX-License-Identifier: BSD-3-Clause
 * Moving and adding rows, for one element type; kernels.h includes this once
 * for each, with MFD_E (the type in memory), MFD_T (its name) and MFD_PACK
 * (elements in 16 bytes) defined.
 *
 * Rows have HIDDEN elements. Where that is a multiple of MFD_PACK, memory is
 * read and written 16 bytes at a time, else element by element; the result is
 * the same. A place below 0 stands for a row that was dropped.
 */
/* 16 bytes as fp32 and back. */
MFD_FN void MFD_NAME(mfd_unpack_)(uint4 raw, float *value)
{
#if MFD_PACK == 4
    value[0] = MFD_FLOAT(raw.x);
    value[1] = MFD_FLOAT(raw.y);
    value[2] = MFD_FLOAT(raw.z);
    value[3] = MFD_FLOAT(raw.w);
#else
    const mfd_u32 word[4] = {raw.x, raw.y, raw.z, raw.w};

    for (int i = 0; i < 4; i++) {
        value[2 * i] = MFD_FLOAT(word[i] << 16);
        value[2 * i + 1] = MFD_FLOAT(word[i] & 0xffff0000u);
    }
#endif
}

MFD_FN uint4 MFD_NAME(mfd_pack_)(const float *value)
{
    uint4 raw;
#if MFD_PACK == 4
    raw.x = MFD_BITS(value[0]);
    raw.y = MFD_BITS(value[1]);
    raw.z = MFD_BITS(value[2]);
    raw.w = MFD_BITS(value[3]);
#else
    mfd_u32 word[4];

    for (int i = 0; i < 4; i++)
        word[i] = (mfd_u32)mfd_to_bf16(value[2 * i]) |
                  (mfd_u32)mfd_to_bf16(value[2 * i + 1]) << 16;
    raw.x = word[0];
    raw.y = word[1];
    raw.z = word[2];
    raw.w = word[3];
#endif
    return raw;
}

/* rows[place[t*topk+j]] = x[t]: a block reads a token once and writes it to
 * each of its places.
 */
MFD_KERNEL MFD_NAME(mfd_permute_)(mfd_i64 tokens, mfd_i64 topk, mfd_i64 hidden,
    MFD_GLOBAL const MFD_E *x, MFD_GLOBAL const mfd_i64 *place,
    MFD_GLOBAL MFD_E *rows)
{
    const mfd_i64 packs = hidden % MFD_PACK == 0 ? hidden / MFD_PACK : 0;

    for (mfd_i64 t = MFD_BLOCK; t < tokens; t += MFD_BLOCKS) {
        MFD_GLOBAL const MFD_E *from = x + t * hidden;

        for (mfd_i64 i = MFD_THREAD; i < packs; i += MFD_THREADS) {
            const uint4 raw = ((MFD_GLOBAL const uint4 *)from)[i];

            for (mfd_i64 j = 0; j < topk; j++) {
                const mfd_i64 to = place[t * topk + j];

                if (to >= 0)
                    ((MFD_GLOBAL uint4 *)(rows + to * hidden))[i] = raw;
            }
        }
        for (mfd_i64 i = MFD_THREAD; packs == 0 && i < hidden; i += MFD_THREADS)
            for (mfd_i64 j = 0; j < topk; j++) {
                const mfd_i64 to = place[t * topk + j];

                if (to >= 0)
                    rows[to * hidden + i] = from[i];
            }
    }
}

/* to[i] = from[index[i]]; index[i] < 0: zeros (padding rows). */
MFD_KERNEL MFD_NAME(mfd_collect_)(mfd_i64 rows, mfd_i64 hidden,
    MFD_GLOBAL const MFD_E *from, MFD_GLOBAL const mfd_i64 *index,
    MFD_GLOBAL MFD_E *to)
{
    const mfd_i64 packs = hidden % MFD_PACK == 0 ? hidden / MFD_PACK : 0;

    for (mfd_i64 r = MFD_BLOCK; r < rows; r += MFD_BLOCKS) {
        const mfd_i64 at = index[r];

        for (mfd_i64 i = MFD_THREAD; i < packs; i += MFD_THREADS) {
            uint4 raw = {0, 0, 0, 0};

            if (at >= 0)
                raw = ((MFD_GLOBAL const uint4 *)(from + at * hidden))[i];
            ((MFD_GLOBAL uint4 *)(to + r * hidden))[i] = raw;
        }
        for (mfd_i64 i = MFD_THREAD; packs == 0 && i < hidden; i += MFD_THREADS)
            to[r * hidden + i] = at < 0 ? (MFD_E)0 : from[at * hidden + i];
    }
}

/* y[t] = sum over j of weights[t*topk+j] * rows[place[t*topk+j]], in fp32 and
 * in the order of j; HAVE_WEIGHTS 0: plain sums.
 */
MFD_KERNEL MFD_NAME(mfd_unpermute_)(mfd_i64 tokens, mfd_i64 topk,
    mfd_i64 hidden, MFD_GLOBAL const MFD_E *rows,
    MFD_GLOBAL const mfd_i64 *place, mfd_i32 have_weights,
    MFD_GLOBAL const float *weights, MFD_GLOBAL MFD_E *y)
{
    const mfd_i64 packs = hidden % MFD_PACK == 0 ? hidden / MFD_PACK : 0;

    for (mfd_i64 t = MFD_BLOCK; t < tokens; t += MFD_BLOCKS) {
        MFD_GLOBAL MFD_E *to = y + t * hidden;

        for (mfd_i64 i = MFD_THREAD; i < packs; i += MFD_THREADS) {
            float sum[MFD_PACK], value[MFD_PACK];
            mfd_i32 any = 0;

            for (int v = 0; v < MFD_PACK; v++)
                sum[v] = 0;
            for (mfd_i64 j = 0; j < topk; j++) {
                const mfd_i64 at = place[t * topk + j];
                const float w = have_weights ? weights[t * topk + j] : 1.0f;

                if (at < 0)
                    continue;
                MFD_NAME(mfd_unpack_)
                (((MFD_GLOBAL const uint4 *)(rows + at * hidden))[i], value);
                for (int v = 0; v < MFD_PACK; v++)
                    sum[v] = any ? sum[v] + w * value[v] : w * value[v];
                any = 1;
            }
            ((MFD_GLOBAL uint4 *)to)[i] = MFD_NAME(mfd_pack_)(sum);
        }
        for (mfd_i64 i = MFD_THREAD; packs == 0 && i < hidden;
             i += MFD_THREADS) {
            float sum = 0;
            mfd_i32 any = 0;

            for (mfd_i64 j = 0; j < topk; j++) {
                const mfd_i64 at = place[t * topk + j];
                const float w = have_weights ? weights[t * topk + j] : 1.0f;
                float one;

                if (at < 0)
                    continue;
                one = w * MFD_LOAD(rows, at * hidden + i);
                sum = any ? sum + one : one;
                any = 1;
            }
            MFD_STORE(to, i, sum);
        }
    }
}

/* The transpose: drows = weight * dy, dweights = rows . dy (0 where dropped).
 */
MFD_KERNEL MFD_NAME(mfd_unpermute_backward_)(mfd_i64 tokens, mfd_i64 topk,
    mfd_i64 hidden, MFD_GLOBAL const MFD_E *rows,
    MFD_GLOBAL const mfd_i64 *place, MFD_GLOBAL const float *weights,
    MFD_GLOBAL const MFD_E *dy, MFD_GLOBAL MFD_E *drows,
    MFD_GLOBAL float *dweights)
{
    MFD_SHARED float scratch[MFD_BLOCK_THREADS];
    const mfd_i64 packs = hidden % MFD_PACK == 0 ? hidden / MFD_PACK : 0;

    for (mfd_i64 c = MFD_BLOCK; c < tokens * topk; c += MFD_BLOCKS) {
        const mfd_i64 at = place[c];
        MFD_GLOBAL const MFD_E *from = dy + c / topk * hidden;
        const float w = weights[c];
        float sum = 0;

        for (mfd_i64 i = MFD_THREAD; at >= 0 && i < packs; i += MFD_THREADS) {
            float d[MFD_PACK], row[MFD_PACK];

            MFD_NAME(mfd_unpack_)(((MFD_GLOBAL const uint4 *)from)[i], d);
            MFD_NAME(mfd_unpack_)
            (((MFD_GLOBAL const uint4 *)(rows + at * hidden))[i], row);
            for (int v = 0; v < MFD_PACK; v++) {
                sum += row[v] * d[v];
                d[v] = w * d[v];
            }
            ((MFD_GLOBAL uint4 *)(drows + at * hidden))[i] =
                MFD_NAME(mfd_pack_)(d);
        }
        for (mfd_i64 i = MFD_THREAD; at >= 0 && packs == 0 && i < hidden;
             i += MFD_THREADS) {
            const float d = MFD_LOAD(from, i);

            sum += MFD_LOAD(rows, at * hidden + i) * d;
            MFD_STORE(drows, at * hidden + i, w * d);
        }
        sum = mfd_block_sum(sum, scratch);
        if (MFD_THREAD == 0)
            dweights[c] = sum;
    }
}

/* sum[i] += part[i], times FACTOR. */
MFD_KERNEL MFD_NAME(mfd_add_)(mfd_i64 n, float factor,
    MFD_GLOBAL const MFD_E *part, MFD_GLOBAL MFD_E *sum)
{
    for (mfd_i64 i = MFD_BLOCK * MFD_THREADS + MFD_THREAD; i < n;
         i += MFD_BLOCKS * MFD_THREADS)
        MFD_STORE(sum, i, MFD_LOAD(sum, i) + factor * MFD_LOAD(part, i));
}

MFD_KERNEL MFD_NAME(mfd_scale_)(
    mfd_i64 n, float factor, MFD_GLOBAL MFD_E *value)
{
    for (mfd_i64 i = MFD_BLOCK * MFD_THREADS + MFD_THREAD; i < n;
         i += MFD_BLOCKS * MFD_THREADS)
        MFD_STORE(value, i, factor * MFD_LOAD(value, i));
}
