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

/* What experts are ranked by: the logits where nothing is added to scores,
 * since the rounding of scores makes ties; else score plus bias.
 */
struct ranking {
    const float *key, *bias;
};

static float rank_of(const struct ranking *r, int64_t e)
{
    return r->bias ? r->key[e] + r->bias[e] : r->key[e];
}

/* The largest of [first, end) that is not among ids[n]; -1: none. Keys that
 * are not numbers lose against all others and still give distinct experts.
 */
static int64_t best_of(const struct ranking *r, int64_t first, int64_t end,
    const int32_t *ids, int64_t n)
{
    int64_t best = -1;

    for (int64_t e = first; e < end; e++) {
        const float key = rank_of(r, e);

        if (best >= 0 && !(key > rank_of(r, best)) &&
            !(isnan(rank_of(r, best)) && !isnan(key)))
            continue;
        if (!chosen(n, ids, e))
            best = e;
    }
    return best;
}

/* The sum of the best of a group; IDS is room for them. */
static float group_score(const struct mfk_router *router,
    const struct ranking *r, int64_t group, int32_t *ids)
{
    const int64_t size = router->experts / router->groups;
    float sum = 0;

    for (int64_t j = 0; j < router->group_best && j < size; j++) {
        const int64_t best =
            best_of(r, group * size, (group + 1) * size, ids, j);

        ids[j] = (int32_t)best;
        sum += rank_of(r, best);
    }
    return sum;
}

/* Whether GROUP is among the TOPK_GROUPS best; of equals the lower one. */
static bool group_stays(
    const struct mfk_router *router, const float *score, int64_t group)
{
    int64_t better = 0;

    for (int64_t g = 0; g < router->groups; g++)
        better += score[g] > score[group] ||
                  (isnan(score[group]) && !isnan(score[g])) ||
                  (g < group && !(score[g] < score[group]) &&
                      isnan(score[g]) == isnan(score[group]));
    return better < router->topk_groups;
}

/* The best over the groups that stay; one pass for each choice. */
static void choose(
    const struct mfk_router *router, const struct ranking *r, int32_t *ids)
{
    const bool grouped = router->groups > 1;
    const int64_t groups = grouped ? router->groups : 1;
    const int64_t size = router->experts / groups;
    float score[MFK_GROUPS_MOST];
    bool stays[MFK_GROUPS_MOST];

    for (int64_t g = 0; grouped && g < groups; g++)
        score[g] = group_score(router, r, g, ids);
    for (int64_t g = 0; grouped && g < groups; g++)
        stays[g] = group_stays(router, score, g);
    for (int64_t j = 0; j < router->topk; j++) {
        int64_t best = -1;

        for (int64_t g = 0; g < groups; g++) {
            int64_t of_group;

            if (grouped && !stays[g])
                continue;
            of_group = best_of(r, g * size, (g + 1) * size, ids, j);
            if (best < 0 ||
                (of_group >= 0 && (rank_of(r, of_group) > rank_of(r, best) ||
                                      (isnan(rank_of(r, best)) &&
                                          !isnan(rank_of(r, of_group))))))
                best = of_group;
        }
        ids[j] = (int32_t)best;
    }
}

static void score(
    const struct mfk_router *router, const float *logits, float *scores)
{
    if (!router->sigmoid) {
        softmax(router->experts, logits, scores);
        return;
    }
    for (int64_t e = 0; e < router->experts; e++)
        scores[e] = 1.0f / (1.0f + expf(-logits[e]));
}

void mfk_route(const struct mfk_router *router, const float *logits,
    float *scores, int32_t *ids, float *weights)
{
    const int64_t topk = router->topk, experts = router->experts;
    const bool added =
        router->bias || (router->groups > 1 && router->group_best > 1);

    for (int64_t t = 0; t < router->tokens; t++) {
        const float *logit = logits + t * experts;
        float *s = scores + t * experts, *weight = weights + t * topk;
        const struct ranking ranking = {added ? s : logit, router->bias};
        int32_t *id = ids + t * topk;
        float sum = 0;

        score(router, logit, s);
        choose(router, &ranking, id);
        for (int64_t j = 0; j < topk; j++)
            sum += s[id[j]];
        for (int64_t j = 0; j < topk; j++)
            weight[j] = router->scaling *
                        (router->renormalize ? s[id[j]] / sum : s[id[j]]);
    }
}

/* With w_j = c s_j / S, S the sum of the chosen scores (or 1 without
 * renormalisation), and q_j = s_j / S:
 *
 * Softmax: dlogit_e = c q_e (dw_e - sum_j q_j dw_j), dw_e = 0 for experts not
 * chosen; renormalised, those drop out.
 * Sigmoid: ds_j = c (dw_j - sum_i q_i dw_i) / S (without the sum when not
 * renormalised), and dlogit_j = ds_j s_j (1 - s_j); others have none.
 */
void mfk_route_backward(const struct mfk_router *router, const float *scores,
    const int32_t *ids, const float *dweights, float *dlogits)
{
    const int64_t topk = router->topk, experts = router->experts;
    const float scaling = router->scaling;
    const bool renormalize = router->renormalize;

    for (int64_t t = 0; t < router->tokens; t++) {
        const float *s = scores + t * experts, *dw = dweights + t * topk;
        const int32_t *id = ids + t * topk;
        float *dlogit = dlogits + t * experts;
        float sum = renormalize ? 0 : 1, mean = 0;

        for (int64_t j = 0; renormalize && j < topk; j++)
            sum += s[id[j]];
        for (int64_t j = 0; j < topk; j++)
            mean += s[id[j]] / sum * dw[j];
        for (int64_t e = 0; e < experts; e++)
            dlogit[e] =
                renormalize || router->sigmoid ? 0 : -(s[e] * scaling * mean);
        if (router->sigmoid && !renormalize)
            mean = 0;
        for (int64_t j = 0; j < topk; j++) {
            dlogit[id[j]] = s[id[j]] / sum * scaling * (dw[j] - mean);
            if (router->sigmoid)
                dlogit[id[j]] *= 1 - s[id[j]];
        }
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
