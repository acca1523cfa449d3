/* SPDX-License-Identifier: BSD-3-Clause
 * Where each choice goes when choices are grouped by expert and keep their
 * order inside an expert: a histogram, a scan and a placement, without atomic
 * operations, so that the order never varies.
 *
 * Choices are cut into chunks of MFD_BLOCK_THREADS; part[chunk][expert] counts
 * them. An id below 0 is a choice that was dropped: it is counted nowhere, and
 * its place is -1.
 */

/* part[chunk][expert] of ids[n]. */
MFD_KERNEL mfd_count(mfd_i64 n, mfd_i64 experts, MFD_GLOBAL const mfd_i32 *ids,
    MFD_GLOBAL mfd_i64 *part)
{
    MFD_SHARED mfd_i32 id[MFD_BLOCK_THREADS];
    const mfd_i64 chunks = (n + MFD_BLOCK_THREADS - 1) / MFD_BLOCK_THREADS;

    for (mfd_i64 c = MFD_BLOCK; c < chunks; c += MFD_BLOCKS) {
        const mfd_i64 at = c * MFD_BLOCK_THREADS;
        const mfd_i64 here =
            n - at < MFD_BLOCK_THREADS ? n - at : MFD_BLOCK_THREADS;

        for (mfd_i64 i = MFD_THREAD; i < here; i += MFD_THREADS)
            id[i] = ids[at + i];
        MFD_BARRIER();
        for (mfd_i64 e = MFD_THREAD; e < experts; e += MFD_THREADS) {
            mfd_i64 count = 0;

            for (mfd_i64 i = 0; i < here; i++)
                count += id[i] == e;
            part[c * experts + e] = count;
        }
        MFD_BARRIER();
    }
}

/* The exclusive scan of one value a thread; *TOTAL their sum. */
MFD_FN mfd_i64 mfd_block_scan(
    mfd_i64 value, MFD_SHARED_PTR mfd_i64 *scratch, mfd_i64 *total)
{
    const mfd_i64 me = MFD_THREAD;
    mfd_i64 before;

    scratch[me] = value;
    MFD_BARRIER();
    for (mfd_i64 step = 1; step < MFD_THREADS; step *= 2) {
        const mfd_i64 add = me >= step ? scratch[me - step] : 0;

        MFD_BARRIER();
        scratch[me] += add;
        MFD_BARRIER();
    }
    before = scratch[me] - value;
    *total = scratch[MFD_THREADS - 1];
    MFD_BARRIER();
    return before;
}

/* From the counts of each chunk: counts[experts] of all, and in place of
 * part[chunk][expert] the first place of that chunk's choices. One block.
 */
MFD_KERNEL mfd_scan(mfd_i64 n, mfd_i64 experts, MFD_GLOBAL mfd_i64 *part,
    MFD_GLOBAL mfd_i64 *counts)
{
    MFD_SHARED mfd_i64 scratch[MFD_BLOCK_THREADS];
    const mfd_i64 chunks = (n + MFD_BLOCK_THREADS - 1) / MFD_BLOCK_THREADS;
    mfd_i64 first = 0;

    if (MFD_BLOCK != 0)
        return;
    for (mfd_i64 base = 0; base < experts; base += MFD_THREADS) {
        const mfd_i64 e = base + MFD_THREAD;
        mfd_i64 count = 0, total = 0, at;

        for (mfd_i64 c = 0; e < experts && c < chunks; c++)
            count += part[c * experts + e];
        if (e < experts)
            counts[e] = count;
        at = first + mfd_block_scan(count, scratch, &total);
        first += total;
        for (mfd_i64 c = 0; e < experts && c < chunks; c++) {
            const mfd_i64 here = part[c * experts + e];

            part[c * experts + e] = at;
            at += here;
        }
    }
}

/* place[n] from ids[n] and what mfd_scan left in PART. */
MFD_KERNEL mfd_place(mfd_i64 n, mfd_i64 experts, MFD_GLOBAL const mfd_i32 *ids,
    MFD_GLOBAL const mfd_i64 *part, MFD_GLOBAL mfd_i64 *place)
{
    MFD_SHARED mfd_i32 id[MFD_BLOCK_THREADS];
    const mfd_i64 chunks = (n + MFD_BLOCK_THREADS - 1) / MFD_BLOCK_THREADS;

    for (mfd_i64 c = MFD_BLOCK; c < chunks; c += MFD_BLOCKS) {
        const mfd_i64 at = c * MFD_BLOCK_THREADS;
        const mfd_i64 here =
            n - at < MFD_BLOCK_THREADS ? n - at : MFD_BLOCK_THREADS;

        for (mfd_i64 i = MFD_THREAD; i < here; i += MFD_THREADS) {
            id[i] = ids[at + i];
            if (id[i] < 0)
                place[at + i] = -1;
        }
        MFD_BARRIER();
        for (mfd_i64 e = MFD_THREAD; e < experts; e += MFD_THREADS) {
            mfd_i64 next = part[c * experts + e];

            for (mfd_i64 i = 0; i < here; i++)
                if (id[i] == e)
                    place[at + i] = next++;
        }
        MFD_BARRIER();
    }
}
