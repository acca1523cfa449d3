/* SPDX-License-Identifier: BSD-3-Clause
 * What published runs say beyond the formulas of the cost model: coefficients
 * fitted to them, and how far a run of known shape, device, precision and
 * source lay from the formulas (kriging: see docs/accuracy.md).
 */
#ifndef MF_PUBLISHED_H
#define MF_PUBLISHED_H

#include "planner/cost.h"

/* A place that publishes runs, one release of software each. */
struct mf_source_run {
    const char *name;    /* as --coefficients takes it */
    const char *pattern; /* of fnmatch, for the name that a document has */
    double months;       /* of the release since 2000, 0: not known */
    bool efa;            /* ran on an EFA network */
};

extern const struct mf_source_run mf_sources[];
extern const int mf_source_count;

/* By name or by what the pattern matches; -1: not known. */
int mf_source_find(const char *text);

/* A measured run, as far as others are held against it. */
struct mf_published_run {
    int source;
    int32_t hidden, moe_ffn, experts, topk;
    char device[12];
    int32_t tp, cp, pp, ep, etp, world, micro_batch;
    int8_t precision, shard, dispatcher, recompute, graphs;
    int8_t overlap, capacity; /* 0 or 1 */
    double noise;             /* variance of its own */
    double weight;            /* inverse(K) log(measured / model) */
};

/* Spreads of what runs have in common, of log(measured / model). */
struct mf_published_spreads {
    double source, source_shape, shape_device, recipe, noise, months, octaves;
};

/* The covariance of two runs. */
double mf_published_covariance(const struct mf_published_spreads *spreads,
    const struct mf_published_run *a, const struct mf_published_run *b);
/* The run of these inputs; SOURCE -1: none of those known. */
void mf_published_describe(const struct mf_model *model, const char *device,
    int source, const struct mf_layout *layout,
    const struct mf_settings *settings, struct mf_published_run *run);

/* The table that was fitted. */
extern const struct mf_published_run mf_published_runs[];
extern const int mf_published_run_count;
extern const struct mf_published_spreads mf_published_spreads;
/* How many of them are from SOURCE; -1: all. */
int mf_published_runs_of(int source);
/* Kinds of devices: Hopper, B200, B300, racks of Blackwell. */
enum mf_kind { MF_KIND_HOPPER, MF_KIND_B200, MF_KIND_B300, MF_KIND_RACK };
enum mf_kind mf_published_kind(const char *device);
/* Fitted coefficients by kind. */
extern const double mf_published_coefficients[4][MF_COEFS];
/* By source and kind: factor on the floor, or where EFA on DeepEP's rate; and
 * on EFA the factor on the outer tier.
 */
extern const double mf_published_source[][2];
extern const double mf_published_efa_tier;

/* SET becomes that of SOURCE on CLUSTER (-1: of no source). */
void mf_published_set(
    const struct mf_cluster *cluster, int source, struct mf_coefficients *set);

/* The runs that say something about MODEL on CLUSTER with SET; NULL when there
 * are none. *FAILED: there was no memory.
 */
struct mf_published *mf_published_create(const struct mf_model *model,
    const struct mf_cluster *cluster, const struct mf_coefficients *set,
    bool *failed);
void mf_published_free(struct mf_published *published);
/* No factor is smaller. */
double mf_published_least(const struct mf_published *published);
/* Times the seconds of the formulas; PUBLISHED may be NULL. */
double mf_published_factor(const struct mf_published *published,
    const struct mf_layout *layout, const struct mf_settings *settings);
/* Standard deviation of log(measured / predicted). */
double mf_published_deviation(const struct mf_published *published,
    const struct mf_layout *layout, const struct mf_settings *settings);

#endif
