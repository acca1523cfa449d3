/* SPDX-License-Identifier: BSD-3-Clause
 * Reads past runs and prices them term by term.
 */
#include "config.h"

#include "planner/fit_rows.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Newest runs that are looked at: enough for any fit of a handful of terms. */
#define RUNS_MOST 4096
#define GROUP_WEIGHT 0.3

enum mf_coefficient mf_fit_coefficient(enum mf_fit_term term)
{
    static const enum mf_coefficient coefficient[MF_FIT_TERMS] = {
        [MF_FIT_COMPUTE] = MF_COEF_COMPUTE,
        [MF_FIT_MEMORY] = MF_COEF_MEMORY,
        [MF_FIT_EXCHANGE] = MF_COEF_EXCHANGE,
        [MF_FIT_MESSAGE] = MF_COEF_MESSAGE_S,
        [MF_FIT_LAYER] = MF_COEF_LAYER_S,
    };

    return coefficient[term];
}

/* Phases whose time one factor governs. */
enum group { COMPUTE, MEMORY, EXCHANGE, GROUPS };

static int phase_group(int phase)
{
    switch (phase) {
    case MF_PHASE_ROUTE:
    case MF_PHASE_EXPERTS:
    case MF_PHASE_SHARED:
        return COMPUTE;
    case MF_PHASE_PERMUTE:
    case MF_PHASE_UNPERMUTE:
        return MEMORY;
    case MF_PHASE_DISPATCH:
    case MF_PHASE_GATHER:
    case MF_PHASE_REDUCE:
    case MF_PHASE_COMBINE:
        return EXCHANGE;
    default:
        return -1;
    }
}

/* One run under pricing. */
struct past {
    const struct mfdb_run *run;
    struct mf_model model;
    struct mf_layer_kind kind;
    struct mf_layout layout;
    struct mf_settings settings;
};

/* The MoE layer that RUN executed, as a model of one layer. */
static int past_fill(const struct mfdb_run *run, struct past *past)
{
    struct mf_model *m = &past->model;
    int dispatcher = mf_dispatcher_find(run->dispatcher);
    unsigned given = ~0u;

    *past = (struct past){.run = run, .kind = {MF_MIXER_NONE, MF_FFN_MOE}};
    *m = (struct mf_model){.layers = 1,
        .layer_kind = &past->kind,
        .hidden = run->hidden,
        .moe_ffn = run->ffn,
        .experts = run->experts,
        .topk = run->topk,
        .gated = run->gated,
        .vocab = 1,
        .heads = 1,
        .kv_heads = 1,
        .head_dim = 1};
    mf_settings_init(&past->settings);
    past->settings.seq = run->seq;
    past->settings.micro_batch = run->micro_batch;
    past->settings.global_batch = 0;
    past->settings.recompute = MF_RECOMPUTE_NONE;
    if (dispatcher >= 0)
        past->settings.dispatcher = (enum mf_dispatcher)dispatcher;
    if (run->hidden < 1 || run->ffn < 1 || run->experts < 1 || run->topk < 1 ||
        run->seq < 1 || run->micro_batch < 1 || run->ranks < 1 ||
        !(run->layer_s > 0))
        return -1;
    if (mf_layout_parse(run->layout, &past->layout, NULL))
        return -1;
    if (run->rank_order[0] &&
        mf_order_parse(run->rank_order, &past->layout.order, &given, NULL))
        return -1;
    past->layout.coupled = run->coupled;
    if (mf_layout_resolve(&past->layout, run->ranks, given, NULL))
        return -1;
    return mf_model_count_params(m, NULL);
}

/* Seconds of the layer and of each group of phases. */
struct seconds {
    double layer, group[GROUPS], reduce;
};

static int past_price(const struct past *past, const struct mf_cluster *cluster,
    const struct mf_coefficients *set, struct seconds *out)
{
    struct mf_plan_entry entry = {
        .layout = past->layout, .settings = past->settings};
    struct mf_cost *cost = &entry.cost;

    *out = (struct seconds){0};
    if (mf_cost_predict(&past->model, cluster, MF_SCOPE_MOE, set, &entry, NULL))
        return -1;
    out->layer = cost->layer_forward_s + cost->layer_backward_s;
    out->reduce = cost->phase_s[MF_PHASE_GRAD_REDUCE_EXPERT][MF_BACKWARD];
    for (int i = 0; i < MF_PHASES; i++)
        for (int d = 0; d < MF_DIRECTIONS; d++)
            if (phase_group(i) >= 0 && isfinite(cost->phase_s[i][d]))
                out->group[phase_group(i)] += cost->phase_s[i][d];
    mf_cost_free(cost);
    return 0;
}

/* What was measured: medians over ranks, since a rank that waits in a phase
 * for a slower one counts the other's work as its own.
 */
static void past_measured(
    const struct mfdb_phases *phases, struct seconds *out, int64_t *samples)
{
    *out = (struct seconds){0};
    for (size_t i = 0; i < phases->count; i++) {
        const struct mfdb_phase *p = &phases->phase[i];
        int phase = mf_phase_find(p->phase);

        *samples += p->samples;
        if (phase < 0 || !(p->median_s > 0))
            continue;
        if (phase == MF_PHASE_GRAD_REDUCE_EXPERT)
            out->reduce += p->median_s;
        else if (phase_group(phase) >= 0)
            out->group[phase_group(phase)] += p->median_s;
    }
}

static struct mf_fit_row *rows_add(struct mf_fit_rows *rows)
{
    if (rows->count == rows->room) {
        size_t room = rows->room ? 2 * rows->room : 64;
        struct mf_fit_row *row = realloc(rows->row, room * sizeof *row);

        if (!row)
            return NULL;
        rows->row = row;
        rows->room = room;
    }
    rows->row[rows->count] = (struct mf_fit_row){0};
    return &rows->row[rows->count++];
}

/* Since time is linear in the terms, the difference that each makes is its
 * factor: price with none of them, then with one at a time.
 */
struct terms {
    struct seconds base, term[MF_FIT_TERMS];
};

static int past_terms(const struct past *past, const struct mf_cluster *cluster,
    const struct mf_coefficients *prior, struct terms *out)
{
    struct mf_coefficients set = *prior;

    for (int i = 0; i < MF_FIT_TERMS; i++)
        set.value[mf_fit_coefficient((enum mf_fit_term)i)] = 0;
    if (past_price(past, cluster, &set, &out->base))
        return -1;
    for (int i = 0; i < MF_FIT_TERMS; i++) {
        enum mf_coefficient c = mf_fit_coefficient((enum mf_fit_term)i);

        set.value[c] = 1;
        if (past_price(past, cluster, &set, &out->term[i]))
            return -1;
        set.value[c] = 0;
    }
    return 0;
}

/* Phases that do not make up the layer, roughly, are not of it. */
static bool phases_add_up(const struct seconds *measured, double layer_s)
{
    double sum = 0;

    for (int g = 0; g < GROUPS; g++)
        sum += measured->group[g];
    return sum > 0.3 * layer_s && sum < 1.5 * layer_s;
}

static int rows_add_run(struct mf_fit_rows *rows, const struct past *past,
    const struct terms *t, const struct seconds *measured, int64_t key,
    bool use_phases, struct mf_error *err)
{
    int groups =
        use_phases && phases_add_up(measured, past->run->layer_s) ? GROUPS : 0;

    for (int g = -1; g < groups; g++) {
        bool whole = g < 0;
        double seconds = whole ? past->run->layer_s : measured->group[g];
        struct mf_fit_row *row;

        if (!(seconds > 0))
            continue;
        row = rows_add(rows);
        if (!row)
            return mf_error_set(err, MF_FAILED, "out of memory");
        row->whole = whole;
        row->key = key;
        row->weight = whole ? 1 : GROUP_WEIGHT;
        row->measured = seconds;
        row->layer_s = past->run->layer_s;
        row->base = whole ? t->base.layer : t->base.group[g];
        for (int i = 0; i < MF_FIT_TERMS; i++)
            row->f[i] = whole ? t->term[i].layer - t->base.layer
                              : t->term[i].group[g] - t->base.group[g];
    }
    return 0;
}

/* Runs of one layout, whatever their shape, are left out together. */
static int64_t run_key(const struct mfdb_runs *runs, size_t which)
{
    const struct mfdb_run *run = &runs->run[which];

    for (size_t i = 0; i < which; i++)
        if (!strcmp(runs->run[i].layout, run->layout) &&
            !strcmp(runs->run[i].rank_order, run->rank_order) &&
            runs->run[i].coupled == run->coupled)
            return (int64_t)i;
    return (int64_t)which;
}

struct reading {
    mfdb *db;
    const struct mf_cluster *cluster;
    const struct mf_coefficients *prior;
    struct mf_fit_rows *rows;
    double *ratio; /* of gradient reductions */
    size_t ratios;
    struct mf_error *err;
};

static int read_run(struct reading *r, const struct mfdb_runs *runs, size_t i)
{
    const struct mfdb_run *run = &runs->run[i];
    struct mfdb_phases phases = {0};
    char text[MFDB_ERROR_TEXT];
    struct seconds measured, predicted;
    struct terms terms;
    struct past past;
    int rc;

    if (strcmp(run->status, "done") || strcmp(run->cluster, r->cluster->name))
        return 0;
    if (past_fill(run, &past) ||
        past_terms(&past, r->cluster, r->prior, &terms) ||
        past_price(&past, r->cluster, r->prior, &predicted)) {
        r->rows->skipped++;
        return 0;
    }
    if (mfdb_phases_of(r->db, run->run_id, &phases, text))
        return mf_error_set(r->err, MF_FAILED, "%s", text);
    past_measured(&phases, &measured, &r->rows->samples);
    mfdb_phases_free(&phases);
    if (measured.reduce > 0 && predicted.reduce > 0)
        r->ratio[r->ratios++] = measured.reduce / predicted.reduce;
    /* Of ranks that share cores, a phase shows when the rank had one: short
     * phases run at full speed in a time slice, and others wait for it. Only
     * the whole layer counts there.
     */
    rc = rows_add_run(r->rows, &past, &terms, &measured, run_key(runs, i),
        !r->cluster->cpu_ranks || r->cluster->cores >= run->ranks, r->err);
    r->rows->runs++;
    return rc;
}

static int64_t count_keys(const struct mf_fit_rows *rows)
{
    int64_t keys = 0;

    for (size_t i = 0; i < rows->count; i++) {
        size_t j = 0;

        if (!rows->row[i].whole)
            continue;
        while (rows->row[j].key != rows->row[i].key)
            j++;
        keys += j == i;
    }
    return keys;
}

int mf_fit_rows_read(mfdb *db, const struct mf_cluster *cluster,
    const struct mf_coefficients *prior, struct mf_fit_rows *rows,
    struct mf_error *err)
{
    struct mfdb_filter filter = {.cluster = cluster->name, .limit = RUNS_MOST};
    struct reading r = {db, cluster, prior, rows, NULL, 0, err};
    struct mfdb_runs runs = {0};
    char text[MFDB_ERROR_TEXT];
    int rc = 0;

    *rows = (struct mf_fit_rows){.reduce_ratio = NAN};
    if (mfdb_list(db, &filter, &runs, text))
        return mf_error_set(err, MF_FAILED, "%s", text);
    r.ratio = calloc(runs.count + 1, sizeof *r.ratio);
    if (!r.ratio)
        rc = mf_error_set(err, MF_FAILED, "out of memory");
    for (size_t i = 0; !rc && i < runs.count; i++)
        rc = read_run(&r, &runs, i);
    if (!rc) {
        rows->keys = count_keys(rows);
        rows->reduce_ratio = mf_fit_median(r.ratio, r.ratios);
    }
    free(r.ratio);
    mfdb_runs_free(&runs);
    return rc;
}

void mf_fit_rows_free(struct mf_fit_rows *rows)
{
    free(rows->row);
    *rows = (struct mf_fit_rows){0};
}
