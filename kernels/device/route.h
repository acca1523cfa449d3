/* SPDX-License-Identifier: BSD-3-Clause
 * The router's choice and its gradient: a block a token.
 */

/* Scores as kernels.h of the CPU has them. */
#define MFD_SOFTMAX 0
#define MFD_SIGMOID 1

/* Is expert A with value VA chosen before B with VB? B < 0 is nobody; what is
 * not a number loses; of equals the lower expert wins.
 */
MFD_FN mfd_i32 mfd_before(float va, mfd_i32 a, float vb, mfd_i32 b)
{
    if (a < 0)
        return 0;
    if (b < 0)
        return 1;
    if (MFD_ISNAN(va) || MFD_ISNAN(vb))
        return MFD_ISNAN(va) == MFD_ISNAN(vb) ? a < b : !MFD_ISNAN(va);
    return va > vb || (va == vb && a < b);
}

/* Scores of one token into score[experts], which the whole block shares. */
MFD_FN void mfd_scores(mfd_i64 experts, mfd_i32 kind,
    MFD_GLOBAL const float *logits, MFD_SHARED_PTR float *score,
    MFD_SHARED_PTR float *scratch)
{
    float most = logits[0], sum = 0;

    if (kind == MFD_SIGMOID) {
        for (mfd_i64 e = MFD_THREAD; e < experts; e += MFD_THREADS)
            score[e] = 1.0f / (1.0f + MFD_EXP(-logits[e]));
        MFD_BARRIER();
        return;
    }
    for (mfd_i64 e = MFD_THREAD; e < experts; e += MFD_THREADS)
        if (logits[e] > most)
            most = logits[e];
    most = mfd_block_max(most, scratch);
    for (mfd_i64 e = MFD_THREAD; e < experts; e += MFD_THREADS) {
        score[e] = MFD_EXP(logits[e] - most);
        sum += score[e];
    }
    sum = mfd_block_sum(sum, scratch);
    for (mfd_i64 e = MFD_THREAD; e < experts; e += MFD_THREADS)
        score[e] /= sum;
    MFD_BARRIER();
}

/* The best expert by choice[experts] that is not excluded; -1: none left. The
 * same on every thread.
 */
MFD_FN mfd_i32 mfd_best(mfd_i64 experts, MFD_SHARED_PTR const float *choice,
    MFD_SHARED_PTR const mfd_i32 *excluded, MFD_SHARED_PTR float *value,
    MFD_SHARED_PTR mfd_i32 *index)
{
    const mfd_i64 me = MFD_THREAD;
    mfd_i32 best = -1;

    for (mfd_i64 e = me; e < experts; e += MFD_THREADS)
        if (!excluded[e] && mfd_before(choice[e], (mfd_i32)e,
                                best < 0 ? 0 : choice[best], best))
            best = (mfd_i32)e;
    value[me] = best < 0 ? 0 : choice[best];
    index[me] = best;
    MFD_BARRIER();
    for (mfd_i64 step = MFD_THREADS / 2; step > 0; step /= 2) {
        if (me < step && mfd_before(value[me + step], index[me + step],
                             value[me], index[me])) {
            value[me] = value[me + step];
            index[me] = index[me + step];
        }
        MFD_BARRIER();
    }
    best = index[0];
    MFD_BARRIER();
    return best;
}

/* The sum of the N best choices of a group that begins at expert FIRST. */
MFD_FN float mfd_group_score(
    mfd_i64 first, mfd_i64 size, mfd_i64 n, MFD_SHARED_PTR const float *choice)
{
    float last_value = 0, sum = 0;
    mfd_i32 last = -1;

    for (mfd_i64 j = 0; j < n && j < size; j++) {
        mfd_i32 best = -1;

        for (mfd_i64 e = first; e < first + size; e++) {
            if (last >= 0 &&
                !mfd_before(last_value, last, choice[e], (mfd_i32)e))
                continue;
            if (mfd_before(
                    choice[e], (mfd_i32)e, best < 0 ? 0 : choice[best], best))
                best = (mfd_i32)e;
        }
        last = best;
        last_value = choice[best];
        sum += choice[best];
    }
    return sum;
}

/* Exclude the experts of all but the TOPK_GROUPS best of GROUPS groups. VALUE
 * has room for GROUPS, which is at most the threads of a block.
 */
MFD_FN void mfd_exclude_groups(mfd_i64 experts, mfd_i64 topk, mfd_i64 groups,
    mfd_i64 topk_groups, MFD_SHARED_PTR const float *choice,
    MFD_SHARED_PTR mfd_i32 *excluded, MFD_SHARED_PTR float *value)
{
    const mfd_i64 size = experts / groups;
    const mfd_i64 n = topk / topk_groups > 0 ? topk / topk_groups : 1;

    for (mfd_i64 g = MFD_THREAD; g < groups; g += MFD_THREADS)
        value[g] = mfd_group_score(g * size, size, n, choice);
    MFD_BARRIER();
    for (mfd_i64 e = MFD_THREAD; e < experts; e += MFD_THREADS) {
        const mfd_i32 mine = (mfd_i32)(e / size);
        mfd_i64 better = 0;

        for (mfd_i32 g = 0; g < groups; g++)
            better += mfd_before(value[g], g, value[mine], mine);
        excluded[e] = better >= topk_groups;
    }
    MFD_BARRIER();
}

/* logits[tokens,experts] to scores of the same shape, and the TOPK best of a
 * token in descending order into ids and weights [tokens,topk]. SCORE is
 * MFD_SOFTMAX or MFD_SIGMOID. Chosen by the logits, or with BIAS[experts]
 * (HAVE_BIAS) or sigmoid by score + bias; with GROUPS > 1 among the experts of
 * the TOPK_GROUPS best groups, by the sum of a group's topk/topk_groups best.
 * Weights are scaling * score, with RENORMALIZE over the sum of the chosen.
 * At most MFD_EXPERTS_MAX experts and MFD_BLOCK_THREADS groups.
 */
#define MFD_EXPERTS_MAX 2048

MFD_KERNEL mfd_route(mfd_i64 tokens, mfd_i64 experts, mfd_i64 topk,
    mfd_i32 score_kind, mfd_i64 groups, mfd_i64 topk_groups,
    mfd_i32 renormalize, float scaling, mfd_i32 have_bias,
    MFD_GLOBAL const float *bias, MFD_GLOBAL const float *logits,
    MFD_GLOBAL float *scores, MFD_GLOBAL mfd_i32 *ids,
    MFD_GLOBAL float *weights)
{
    MFD_SHARED float score[MFD_EXPERTS_MAX];
    MFD_SHARED float choice[MFD_EXPERTS_MAX];
    MFD_SHARED mfd_i32 excluded[MFD_EXPERTS_MAX];
    MFD_SHARED float scratch[MFD_BLOCK_THREADS];
    MFD_SHARED mfd_i32 index[MFD_BLOCK_THREADS];
    const mfd_i32 by_score = have_bias || score_kind == MFD_SIGMOID;

    for (mfd_i64 t = MFD_BLOCK; t < tokens; t += MFD_BLOCKS) {
        MFD_GLOBAL const float *logit = logits + t * experts;
        MFD_GLOBAL mfd_i32 *id = ids + t * topk;
        MFD_GLOBAL float *weight = weights + t * topk;
        float sum = 0;

        mfd_scores(experts, score_kind, logit, score, scratch);
        for (mfd_i64 e = MFD_THREAD; e < experts; e += MFD_THREADS) {
            choice[e] = by_score ? score[e] : logit[e];
            if (have_bias)
                choice[e] += bias[e];
            excluded[e] = 0;
            scores[t * experts + e] = score[e];
        }
        MFD_BARRIER();
        if (groups > 1)
            mfd_exclude_groups(
                experts, topk, groups, topk_groups, choice, excluded, scratch);
        for (mfd_i64 j = 0; j < topk; j++) {
            const mfd_i32 best =
                mfd_best(experts, choice, excluded, scratch, index);

            sum += score[best];
            if (MFD_THREAD == 0) {
                id[j] = best;
                weight[j] = score[best];
                excluded[best] = 1;
            }
            MFD_BARRIER();
        }
        if (MFD_THREAD == 0)
            for (mfd_i64 j = 0; j < topk; j++)
                weight[j] =
                    scaling * (renormalize ? weight[j] / sum : weight[j]);
        MFD_BARRIER();
    }
}

/* dlogits[tokens,experts] from dweights[tokens,topk] and, with HAVE_DSCORES,
 * the gradient of the scores themselves (auxiliary losses).
 */
MFD_KERNEL mfd_route_backward(mfd_i64 tokens, mfd_i64 experts, mfd_i64 topk,
    mfd_i32 score_kind, mfd_i32 renormalize, float scaling,
    MFD_GLOBAL const float *scores, MFD_GLOBAL const mfd_i32 *ids,
    MFD_GLOBAL const float *dweights, mfd_i32 have_dscores,
    MFD_GLOBAL const float *dscores, MFD_GLOBAL float *dlogits)
{
    MFD_SHARED float dscore[MFD_EXPERTS_MAX];
    MFD_SHARED float scratch[MFD_BLOCK_THREADS];

    for (mfd_i64 t = MFD_BLOCK; t < tokens; t += MFD_BLOCKS) {
        MFD_GLOBAL const float *score = scores + t * experts;
        MFD_GLOBAL const mfd_i32 *id = ids + t * topk;
        MFD_GLOBAL const float *dw = dweights + t * topk;
        float sum = renormalize ? 0 : 1, mean = 0, part = 0;

        for (mfd_i64 j = 0; renormalize && j < topk; j++)
            sum += score[id[j]];
        for (mfd_i64 j = 0; renormalize && j < topk; j++)
            mean += score[id[j]] / sum * dw[j];
        for (mfd_i64 e = MFD_THREAD; e < experts; e += MFD_THREADS)
            dscore[e] = have_dscores ? dscores[t * experts + e] : 0;
        MFD_BARRIER();
        if (MFD_THREAD == 0)
            for (mfd_i64 j = 0; j < topk; j++)
                dscore[id[j]] += scaling / sum * (dw[j] - mean);
        MFD_BARRIER();
        for (mfd_i64 e = MFD_THREAD; e < experts; e += MFD_THREADS)
            part += score[e] * dscore[e];
        part = mfd_block_sum(part, scratch);
        for (mfd_i64 e = MFD_THREAD; e < experts; e += MFD_THREADS)
            dlogits[t * experts + e] =
                score_kind == MFD_SIGMOID
                    ? score[e] * (1.0f - score[e]) * dscore[e]
                    : score[e] * (dscore[e] - part);
        MFD_BARRIER();
    }
}
