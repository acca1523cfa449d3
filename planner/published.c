/* SPDX-License-Identifier: BSD-3-Clause
 * Kriging over published runs: what two runs have in common is a sum of what a
 * source, a source and model shape, a model shape, device and precision, and
 * alike recipes share.
 */
#include "planner/published.h"

#include <fnmatch.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NEAR_MAX 96
#define FACTOR_LOG_MAX 0.7

const struct mf_source_run mf_sources[] = {
    {"folding-paper", "*2504.14960*", 0, false},
    {"megatron-report", "*2603.07685*", 0, false},
    {"modelzoo", "*ModelZoo*", 0, false},
    {"megatron-dev", "*Megatron-LM dev*", 0, false},
    {"megatron-pr", "*Megatron-LM PR*", 0, false},
    {"megatron-ci", "*Megatron-LM*", 0, false},
    {"bridge-26.08", "*performance-summary* 26.08*", 320, false},
    {"bridge-26.06.01", "*performance-summary* 26.06.01*", 318.2, false},
    {"bridge-26.06", "*performance-summary* 26.06", 318, false},
    {"bridge-26.04.01", "*performance-summary* 26.04.01*", 316.2, false},
    {"bridge-26.04", "*performance-summary* 26.04", 316, false},
    {"bridge-26.02.01", "*performance-summary* 26.02.01*", 314.2, false},
    {"bridge-26.02", "*performance-summary* 26.02", 314, false},
    {"bridge-25.11", "*performance-summary* 25.11*", 311, false},
    {"bridge-25.09", "*performance-summary* 25.09*", 309, false},
    {"bridge-25.07", "*performance-summary* 25.07*", 307, false},
    {"bridge-cards", "*Megatron-Bridge*verification_cards*", 0, false},
    {"bridge-pr", "*Megatron-Bridge PR*", 0, false},
    {"bridge-skills", "*Megatron-Bridge skills*", 0, false},
    {"dgxc-24.11", "*dgxc-benchmarking v24*", 299, false},
    {"dgxc-25.02", "*dgxc-benchmarking v25.02*", 302, false},
    {"dgxc-25.05", "*dgxc-benchmarking v25.0[3-5]*", 305, false},
    {"dgxc-25.08", "*dgxc-benchmarking v25.0[6-9]*", 308, false},
    {"dgxc-25.12", "*dgxc-benchmarking v25.1*", 312, false},
    {"dgxc-26.02", "*dgxc-benchmarking v26*", 314, false},
    {"automodel", "*Automodel*", 0, false},
    {"nemo-25.02", "*nemo-framework*", 302, false},
    {"efa", "*awsome-distributed-ai*", 0, true},
};
const int mf_source_count = (int)(sizeof mf_sources / sizeof *mf_sources);

int mf_source_find(const char *text)
{
    for (int i = 0; i < mf_source_count; i++)
        if (!strcmp(text, mf_sources[i].name))
            return i;
    for (int i = 0; i < mf_source_count; i++)
        if (!fnmatch(mf_sources[i].pattern, text, 0))
            return i;
    return -1;
}

int mf_published_runs_of(int source)
{
    int count = 0;

    for (int i = 0; i < mf_published_run_count; i++)
        count += source < 0 || mf_published_runs[i].source == source;
    return count;
}

void mf_published_describe(const struct mf_model *model, const char *device,
    int source, const struct mf_layout *layout,
    const struct mf_settings *settings, struct mf_published_run *run)
{
    *run = (struct mf_published_run){
        .source = source,
        .hidden = (int32_t)model->hidden,
        .moe_ffn = (int32_t)model->moe_ffn,
        .experts = (int32_t)model->experts,
        .topk = (int32_t)model->topk,
        .tp = (int32_t)layout->tp,
        .cp = (int32_t)layout->cp,
        .pp = (int32_t)layout->pp,
        .ep = (int32_t)layout->ep,
        .etp = (int32_t)layout->etp,
        .world = (int32_t)mf_layout_world(layout),
        .micro_batch = (int32_t)settings->micro_batch,
        .precision = (int8_t)settings->precision,
        .shard = (int8_t)settings->shard,
        .dispatcher = (int8_t)settings->dispatcher,
        .recompute = (int8_t)settings->recompute,
        .graphs = (int8_t)settings->graphs,
        .overlap = settings->ep_overlap,
        .capacity = !isnan(settings->capacity_factor),
    };
    snprintf(run->device, sizeof run->device, "%.11s", device);
}

static bool efa(const struct mf_published_run *run)
{
    return run->source >= 0 && mf_sources[run->source].efa;
}

static bool same_shape(
    const struct mf_published_run *a, const struct mf_published_run *b)
{
    return a->hidden == b->hidden && a->moe_ffn == b->moe_ffn &&
           a->experts == b->experts && a->topk == b->topk;
}

static double octaves(int32_t a, int32_t b)
{
    double d;

    if (a == b)
        return 0;
    if (a < 1 || b < 1)
        return 0.5;
    if ((a & (a - 1)) == 0 && (b & (b - 1)) == 0)
        d = __builtin_ctzl((unsigned long)a) - __builtin_ctzl((unsigned long)b);
    else
        d = log2((double)a / (double)b);
    return d * d;
}

/* How alike two recipes are, from 0 to 1. */
static double alike(const struct mf_published_spreads *spreads,
    const struct mf_published_run *a, const struct mf_published_run *b)
{
    double d = octaves(a->tp, b->tp) + octaves(a->cp, b->cp) +
               octaves(a->ep, b->ep) + octaves(a->pp, b->pp) +
               octaves(a->etp, b->etp) +
               octaves(a->micro_batch, b->micro_batch) +
               0.25 * octaves(a->world, b->world);

    if (a->dispatcher != b->dispatcher)
        d += 1;
    if (a->overlap != b->overlap)
        d += 0.5;
    if (a->recompute != b->recompute)
        d += 0.2;
    if (a->capacity != b->capacity)
        d += 0.5;
    if (a->graphs != b->graphs)
        d += 0.3;
    return exp(-d / spreads->octaves);
}

/* How alike two releases are: close ones share what they do to a recipe. */
static double nearness(const struct mf_published_spreads *spreads, int a, int b)
{
    double x = a < 0 ? 0 : mf_sources[a].months;
    double y = b < 0 ? 0 : mf_sources[b].months;

    if (a == b)
        return 1;
    if (x > 0 && y > 0)
        return 0.2 + 0.75 * exp(-fabs(x - y) / spreads->months);
    return 0.2;
}

double mf_published_covariance(const struct mf_published_spreads *spreads,
    const struct mf_published_run *a, const struct mf_published_run *b)
{
    const struct mf_published_spreads *s = spreads;
    bool source = a->source >= 0 && a->source == b->source;
    bool shape = same_shape(a, b), shard = a->shard == b->shard;
    double sum = 0;

    if (source)
        sum += s->source * s->source;
    if (!shape)
        return sum;
    if (source && shard)
        sum += s->source_shape * s->source_shape;
    if (a->precision != b->precision || efa(a) != efa(b) ||
        strcmp(a->device, b->device))
        return sum;
    sum += s->shape_device * s->shape_device;
    if (shard)
        sum += s->recipe * s->recipe * nearness(s, a->source, b->source) *
               alike(s, a, b);
    return sum;
}

enum mf_kind mf_published_kind(const char *device)
{
    if (strstr(device, "GB200") || strstr(device, "GB300"))
        return MF_KIND_RACK;
    if (strstr(device, "B200"))
        return MF_KIND_B200;
    return strstr(device, "B300") ? MF_KIND_B300 : MF_KIND_HOPPER;
}

void mf_published_set(
    const struct mf_cluster *cluster, int source, struct mf_coefficients *set)
{
    enum mf_kind kind = mf_published_kind(cluster->gpu.model);
    bool hopper = kind == MF_KIND_HOPPER;

    *set = (struct mf_coefficients){.source = source, .published = true};
    snprintf(set->name, sizeof set->name, "%s",
        source < 0 ? "published" : mf_sources[source].name);
    memcpy(set->value, mf_published_coefficients[kind], sizeof set->value);
    if (source < 0)
        return;
    if (mf_sources[source].efa) {
        set->value[MF_COEF_DEEPEP] *= mf_published_source[source][hopper];
        set->value[MF_COEF_TIER1] *= mf_published_efa_tier;
    } else {
        set->value[MF_COEF_FLOOR_S] *= mf_published_source[source][0];
    }
}

struct mf_published {
    struct mf_model model; /* its sizes */
    char device[64];
    int source, count;
    double constant; /* from runs that only share the source */
    double weight[NEAR_MAX];
    struct mf_published_run run[NEAR_MAX]; /* of the same shape and device, or
                                              source and shape */
};

struct mf_published *mf_published_create(const struct mf_model *model,
    const struct mf_cluster *cluster, const struct mf_coefficients *set,
    bool *failed)
{
    struct mf_published *p;
    struct mf_published_run probe = {.source = set->source};

    *failed = false;
    if (!set->published)
        return NULL;
    p = calloc(1, sizeof *p);
    if (!p) {
        *failed = true;
        return NULL;
    }
    p->model = *model;
    p->source = set->source;
    snprintf(p->device, sizeof p->device, "%s", cluster->gpu.model);
    probe.hidden = (int32_t)model->hidden;
    probe.moe_ffn = (int32_t)model->moe_ffn;
    probe.experts = (int32_t)model->experts;
    probe.topk = (int32_t)model->topk;
    for (int i = 0; i < mf_published_run_count; i++) {
        const struct mf_published_run *run = &mf_published_runs[i];

        if (same_shape(&probe, run) && p->count < NEAR_MAX)
            p->run[p->count++] = *run;
        else if (set->source >= 0 && run->source == set->source)
            p->constant += run->weight * mf_published_spreads.source *
                           mf_published_spreads.source;
    }
    return p;
}

void mf_published_free(struct mf_published *published)
{
    free(published);
}

double mf_published_factor(const struct mf_published *published,
    const struct mf_layout *layout, const struct mf_settings *settings)
{
    const struct mf_published *p = published;
    struct mf_published_run run;
    double sum;

    if (!p)
        return 1;
    sum = p->constant;
    mf_published_describe(
        &p->model, p->device, p->source, layout, settings, &run);
    for (int i = 0; i < p->count; i++)
        sum += p->run[i].weight *
               mf_published_covariance(&mf_published_spreads, &run, &p->run[i]);
    return exp(fmax(-FACTOR_LOG_MAX, fmin(FACTOR_LOG_MAX, sum)));
}

double mf_published_least(const struct mf_published *published)
{
    return published ? exp(-FACTOR_LOG_MAX) : 1;
}

/* What is left of the variance when the runs at hand are known: by Cholesky's
 * factor, row by row.
 */
static double left_variance(const struct mf_published *p,
    const struct mf_published_run *run, double *l, double *k)
{
    const struct mf_published_spreads *s = &mf_published_spreads;
    double variance =
        mf_published_covariance(s, run, run) + s->noise * s->noise;
    int n = p->count;

    for (int i = 0; i < n; i++) {
        double *row = l + (size_t)i * NEAR_MAX;

        k[i] = mf_published_covariance(s, run, &p->run[i]);
        for (int j = 0; j <= i; j++) {
            const double *other = l + (size_t)j * NEAR_MAX;
            double sum = mf_published_covariance(s, &p->run[i], &p->run[j]);

            for (int m = 0; m < j; m++)
                sum -= row[m] * other[m];
            row[j] = i == j ? sqrt(sum + p->run[i].noise) : sum / other[j];
        }
        for (int j = 0; j < i; j++)
            k[i] -= row[j] * k[j];
        k[i] /= row[i];
        variance -= k[i] * k[i];
    }
    return variance;
}

double mf_published_deviation(const struct mf_published *published,
    const struct mf_layout *layout, const struct mf_settings *settings)
{
    const struct mf_published_spreads *s = &mf_published_spreads;
    struct mf_published_run run;
    double *l, k[NEAR_MAX], variance, least = s->noise * s->noise;

    if (!published)
        return NAN;
    l = calloc((size_t)NEAR_MAX * NEAR_MAX, sizeof *l);
    if (!l)
        return NAN;
    mf_published_describe(&published->model, published->device,
        published->source, layout, settings, &run);
    variance = left_variance(published, &run, l, k);
    /* What a source has in common is not known without one. */
    if (published->source < 0)
        variance += s->source * s->source + s->source_shape * s->source_shape;
    free(l);
    return sqrt(variance > least ? variance : least);
}
