/* SPDX-License-Identifier: BSD-3-Clause
 * The plan file: a model, a cluster, settings, and ranked layouts with their
 * prices. It is what flows from the planner to the launcher and the runtime.
 */
#ifndef MF_PLAN_H
#define MF_PLAN_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "planner/layout/cluster.h"
#include "planner/layout/error.h"
#include "planner/layout/layout.h"
#include "planner/layout/model.h"
#include "planner/layout/phase.h"

#define MF_PLAN_SCHEMA 1
#define MF_PARTS_MAX 32
#define MF_NOTES_MAX 16
#define MF_STAGES_MAX 1024
#define MF_REASONS_MAX 32

enum mf_scope { MF_SCOPE_STEP, MF_SCOPE_MOE };
enum mf_precision { MF_BF16, MF_FP8, MF_MXFP8 };
enum mf_recompute {
    MF_RECOMPUTE_NONE,
    MF_RECOMPUTE_SELECTIVE,
    MF_RECOMPUTE_FULL,
    MF_RECOMPUTE_AUTO,
    MF_RECOMPUTE_MODULES /* those of settings.modules */
};
/* What Megatron-LM can recompute of a layer by itself. */
enum mf_module {
    MF_MODULE_CORE_ATTN = 1,
    MF_MODULE_MOE_ACT = 2,
    MF_MODULE_LAYERNORM = 4,
    MF_MODULE_MLA_UP_PROJ = 8,
    MF_MODULE_MLP = 16,
    MF_MODULE_MOE = 32,
    MF_MODULE_SHARED_EXPERTS = 64
};
#define MF_MODULES 7
#define MF_RECOMPUTE_TEXT 96
/* How much of a step is captured in CUDA graphs. AUTO: partial on Blackwell,
 * none elsewhere, as published recipes have it.
 */
enum mf_graphs {
    MF_GRAPHS_NONE,
    MF_GRAPHS_PARTIAL,
    MF_GRAPHS_FULL,
    MF_GRAPHS_AUTO
};
enum mf_dispatcher {
    MF_ALLTOALL,
    MF_ALLGATHER,
    MF_DEDUP,
    MF_DEEPEP,
    MF_HYBRIDEP,
    MF_DISPATCHER_AUTO
};
enum mf_shard { MF_SHARD_NONE, MF_SHARD_OPTIMIZER, MF_SHARD_FULL };

/* Inputs besides model, cluster and layout. */
struct mf_settings {
    int64_t seq;          /* tokens */
    int64_t global_batch; /* sequences an optimizer step, 0 with scope moe */
    int64_t micro_batch;  /* sequences, 0: auto */
    int64_t vpp;          /* 0: auto */
    /* Layers of the first and last pipeline stage; 0 and 0: spread evenly, -1
     * and -1: auto.
     */
    int64_t first_layers, last_layers;
    enum mf_precision precision;
    enum mf_recompute recompute;
    unsigned modules; /* of enum mf_module, with MF_RECOMPUTE_MODULES */
    enum mf_dispatcher dispatcher;
    double imbalance;       /* Gini of expert loads */
    double capacity_factor; /* NAN: dropless */
    enum mf_shard shard;
    bool ep_overlap; /* exchanges run under the other micro batch's compute */
    enum mf_graphs graphs;
};

struct mf_part {
    const char *name; /* one of mf_part_name's */
    double seconds;
};

struct mf_stage_memory {
    double static_bytes, peak_bytes;
};

/* The price of one layout; NAN where not known (null in JSON). */
struct mf_cost {
    double step_s, step_s_low, step_s_high;
    double tokens_per_s_per_gpu, tflops_per_gpu, mfu;
    bool fits;
    struct {
        double params, grads, optimizer, activations, buffers, total;
    } memory; /* bytes, hottest rank; total = peak_bytes */
    double static_bytes, peak_bytes;
    struct mf_stage_memory *stage;     /* [layout.pp] */
    struct mf_part part[MF_PARTS_MAX]; /* sums to step_s within 1e-9 */
    int parts;
    double hidden_s;                          /* overlapped seconds */
    double layer_forward_s, layer_backward_s; /* one MoE layer, micro batch */
    double phase_s[MF_PHASES][MF_DIRECTIONS]; /* NAN: not part of the layer */
    const char *limit; /* what limits it, a name of a part */
    char *note[MF_NOTES_MAX];
    int notes;
};

struct mf_plan_entry {
    struct mf_layout layout;
    struct mf_settings settings; /* nothing auto in it */
    struct mf_cost cost;
};

struct mf_reason {
    char text[96];
    int64_t count;
};

struct mf_plan {
    struct mf_model model;
    struct mf_cluster cluster;
    int64_t world;
    enum mf_scope scope;
    char coefficients[64];       /* name or id of those used */
    struct mf_plan_entry *entry; /* best first */
    size_t entries;
    int64_t enumerated, bounded, priced;
    struct mf_reason rejected[MF_REASONS_MAX];
    int reasons;
    double elapsed_s;
};

/* TEXT as the literal of a part of the step time, such as "experts" or
 * "dispatch" (the table is in plan_read.c; add there what a cost model needs);
 * NULL when it is none.
 */
const char *mf_part_name(const char *text);

/* Defaults of `predict`, with SEQ and the rest of DESIGN's settings. */
void mf_settings_init(struct mf_settings *settings);

/* Names as on the command line; the finders return -1. */
const char *mf_precision_name(enum mf_precision precision);
const char *mf_recompute_name(enum mf_recompute recompute);
const char *mf_dispatcher_name(enum mf_dispatcher dispatcher);
const char *mf_shard_name(enum mf_shard shard);
const char *mf_scope_name(enum mf_scope scope);
/* The word or the modules of SETTINGS, as mf_recompute_parse reads them. */
void mf_recompute_format(
    const struct mf_settings *settings, char text[MF_RECOMPUTE_TEXT]);
/* none, selective, full, auto, or names of modules joined by commas, into
 * SETTINGS; -1: TEXT is none of these.
 */
int mf_recompute_parse(const char *text, struct mf_settings *settings);
const char *mf_graphs_name(enum mf_graphs graphs);
int mf_graphs_find(const char *name);
int mf_precision_find(const char *name);
int mf_dispatcher_find(const char *name);
int mf_shard_find(const char *name);
int mf_scope_find(const char *name);

/* Add a note line (printf style). */
int mf_cost_note(struct mf_cost *cost, struct mf_error *err, const char *fmt,
    ...) MF_PRINTF(3, 4);
void mf_cost_free(struct mf_cost *cost);

/* What `predict --json` prints for one layout. */
json_t *mf_plan_entry_to_json(const struct mf_plan_entry *entry);

/* What `plan --json` prints and `plan --output` writes, and back. */
json_t *mf_plan_to_json(const struct mf_plan *plan);
int mf_plan_from_json(
    const json_t *json, struct mf_plan *plan, struct mf_error *err);

/* Read the plan in FILE; every figure in it is checked. */
int mf_plan_read(const char *file, struct mf_plan *plan, struct mf_error *err);

/* Write FILE whole or not at all (a new file, renamed into place). */
int mf_plan_write(
    const struct mf_plan *plan, const char *file, struct mf_error *err);

void mf_plan_free(struct mf_plan *plan);

#endif
