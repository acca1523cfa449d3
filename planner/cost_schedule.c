/* SPDX-License-Identifier: BSD-3-Clause
 * How the layers of a model are cut into pipeline stages.
 */
#include "planner/cost_parts.h"

#include <stdlib.h>
#include <string.h>

void mf_kinds_fill(const struct mf_model *model, struct mf_kinds *kinds)
{
    int number[MF_MIXERS][MF_FFNS] = {{0}};

    kinds->count = 0;
    kinds->mtp = 0;
    for (int64_t i = 0; i < model->layers; i++) {
        struct mf_layer_kind kind = model->layer_kind[i];
        int *n = &number[kind.mixer][kind.ffn];

        if (!*n) {
            kinds->layers[kinds->count] = 0;
            kinds->kind[kinds->count++] = kind;
            *n = kinds->count;
        }
        kinds->layers[*n - 1]++;
        kinds->mtp = *n - 1;
    }
}

/* First layer of CHUNK when all chunks are as even as can be. Where MTP layers
 * follow, a recipe places layers by hand: then they
 * and the loss count as a layer each, at the end.
 */
static int64_t even_first(
    const struct mf_model *m, int64_t chunks, int64_t chunk)
{
    int64_t units = m->layers, least, more, first;

    if (chunks > 1 && m->mtp_layers > 0)
        units += m->mtp_layers + 1;
    least = units / chunks;
    more = units % chunks;
    first = chunk * least + (chunk < more ? chunk : more);
    return first < m->layers ? first : m->layers;
}

/* The same when the first and last stage have sizes of their own: a round of
 * chunks passes all stages, and takes 1/vpp of the layers of each.
 */
static int64_t split_first(const struct mf_model *m, int64_t pp, int64_t vpp,
    struct mf_split split, int64_t chunk)
{
    int64_t rest = m->layers - split.first - split.last;
    int64_t middle = pp > 2 ? rest / (pp - 2) / vpp : 0;
    int64_t round = chunk / pp, stage = chunk % pp;
    int64_t first = round * (m->layers / vpp);

    if (stage > 0)
        first += split.first / vpp + (stage - 1) * middle;
    return first;
}

void mf_stage_fill(const struct mf_model *model, int64_t pp, int64_t vpp,
    struct mf_split split, int64_t stage, struct mf_stage *out)
{
    int64_t chunks = pp * vpp;
    bool even = !split.first && !split.last;

    *out = (struct mf_stage){.first = stage == 0, .last = stage == pp - 1};
    for (int64_t chunk = stage; chunk < chunks; chunk += pp) {
        int64_t first = even ? even_first(model, chunks, chunk)
                             : split_first(model, pp, vpp, split, chunk);
        int64_t end = even ? even_first(model, chunks, chunk + 1)
                           : split_first(model, pp, vpp, split, chunk + 1);

        for (int64_t i = first; i < end; i++)
            out->count[model->layer_kind[i].mixer][model->layer_kind[i].ffn]++;
        out->layers += end - first;
    }
    if (out->last)
        out->mtp = model->mtp_layers;
}

static bool stage_equal(const struct mf_stage *a, const struct mf_stage *b)
{
    return a->first == b->first && a->last == b->last &&
           a->layers == b->layers && a->mtp == b->mtp &&
           !memcmp(a->count, b->count, sizeof a->count);
}

static void schedule_add(struct mf_schedule *schedule,
    const struct mf_kinds *kinds, const struct mf_stage *stage, int64_t index)
{
    struct mf_class *class = schedule->class;

    for (int i = 0; i < schedule->classes; i++)
        if (stage_equal(&class[i].stage, stage)) {
            class[i].count++;
            return;
        }
    class += schedule->classes++;
    *class = (struct mf_class){.stage = *stage, .index = index, .count = 1};
    for (int i = 0; i < kinds->count; i++)
        class->times[i] =
            (double)stage->count[kinds->kind[i].mixer][kinds->kind[i].ffn];
}

int mf_schedule_fill(const struct mf_model *model, const struct mf_kinds *kinds,
    int64_t pp, int64_t vpp, struct mf_split split, struct mf_schedule *out)
{
    struct mf_stage stage;

    *out = (struct mf_schedule){.pp = pp, .vpp = vpp, .split = split};
    out->class = malloc((size_t)pp * sizeof *out->class);
    if (!out->class)
        return -1;
    for (int64_t i = 0; i < pp; i++) {
        mf_stage_fill(model, pp, vpp, split, i, &stage);
        schedule_add(out, kinds, &stage, i);
    }
    return 0;
}

void mf_schedule_free(struct mf_schedule *schedule)
{
    if (schedule)
        free(schedule->class);
}

int mf_schedule_class(const struct mf_schedule *schedule,
    const struct mf_model *model, int64_t stage)
{
    struct mf_stage here;
    int i = 0;

    mf_stage_fill(
        model, schedule->pp, schedule->vpp, schedule->split, stage, &here);
    while (i + 1 < schedule->classes &&
           !stage_equal(&schedule->class[i].stage, &here))
        i++;
    return i;
}
