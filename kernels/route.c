/* SPDX-License-Identifier: BSD-3-Clause
 * The router's choice: softmax, the best experts, and their gradient.
 */
#include "kernels/kernels.h"

#include <math.h>

static void softmax(int64_t n, const float *logits, float *probs)
{
    float most = n > 0 ? logits[0] : 0, sum = 0;

    for (int64_t e = 1; e < n; e++)
        if (logits[e] > most)
            most = logits[e];
    for (int64_t e = 0; e < n; e++) {
        probs[e] = expf(logits[e] - most);
        sum += probs[e];
    }
    for (int64_t e = 0; e < n; e++)
        probs[e] /= sum;
}

/* Does one of ids[n] equal E? */
static bool chosen(int64_t n, const int32_t *ids, int64_t e)
{
    for (int64_t j = 0; j < n; j++)
        if (ids[j] == e)
            return true;
    return false;
}

/* By logits, not by probabilities, whose rounding makes ties. Logits that are
 * not numbers lose against all others and still give distinct experts.
 */
static void choose(
    int64_t experts, int64_t topk, const float *logits, int32_t *ids)
{
    for (int64_t j = 0; j < topk; j++) {
        int64_t best = -1;

        for (int64_t e = 0; e < experts; e++) {
            if (best >= 0 && !(logits[e] > logits[best]) &&
                !(isnan(logits[best]) && !isnan(logits[e])))
                continue;
            if (!chosen(j, ids, e))
                best = e;
        }
        ids[j] = (int32_t)best;
    }
}

void mfk_route(int64_t tokens, int64_t experts, int64_t topk, bool renormalize,
    float scaling, const float *logits, float *probs, int32_t *ids,
    float *weights)
{
    for (int64_t t = 0; t < tokens; t++) {
        const float *logit = logits + t * experts;
        float *prob = probs + t * experts, *weight = weights + t * topk;
        int32_t *id = ids + t * topk;
        float sum = 0;

        softmax(experts, logit, prob);
        choose(experts, topk, logit, id);
        for (int64_t j = 0; j < topk; j++)
            sum += prob[id[j]];
        for (int64_t j = 0; j < topk; j++)
            weight[j] =
                scaling * (renormalize ? prob[id[j]] / sum : prob[id[j]]);
    }
}

/* With w_j = s * p_j / P, P the sum of the chosen p (or 1 without
 * renormalisation), and q the probabilities over which the softmax then runs:
 * dlogit_e = q_e * s * (dw_e - sum_j q_j dw_j), dw_e = 0 for experts not
 * chosen. Renormalised, the experts not chosen drop out and q_j = p_j / P.
 */
void mfk_route_backward(int64_t tokens, int64_t experts, int64_t topk,
    bool renormalize, float scaling, const float *probs, const int32_t *ids,
    const float *dweights, float *dlogits)
{
    for (int64_t t = 0; t < tokens; t++) {
        const float *prob = probs + t * experts, *dw = dweights + t * topk;
        const int32_t *id = ids + t * topk;
        float *dlogit = dlogits + t * experts;
        float sum = renormalize ? 0 : 1, mean = 0;

        for (int64_t j = 0; renormalize && j < topk; j++)
            sum += prob[id[j]];
        for (int64_t j = 0; j < topk; j++)
            mean += prob[id[j]] / sum * dw[j];
        for (int64_t e = 0; e < experts; e++)
            dlogit[e] = renormalize ? 0 : -(prob[e] * scaling * mean);
        for (int64_t j = 0; j < topk; j++)
            dlogit[id[j]] = prob[id[j]] / sum * scaling * (dw[j] - mean);
    }
}

void mfk_count(int64_t n, int64_t experts, const int32_t *ids, int64_t *counts)
{
    for (int64_t e = 0; e < experts; e++)
        counts[e] = 0;
    for (int64_t i = 0; i < n; i++)
        counts[ids[i]]++;
}

void mfk_place(int64_t n, int64_t experts, const int32_t *ids,
    const int64_t *counts, int64_t *cursor, int64_t *place)
{
    int64_t first = 0;

    for (int64_t e = 0; e < experts; e++) {
        cursor[e] = first;
        first += counts[e];
    }
    for (int64_t i = 0; i < n; i++)
        place[i] = cursor[ids[i]]++;
}
