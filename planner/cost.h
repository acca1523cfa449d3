/* SPDX-License-Identifier: BSD-3-Clause
 * The cost model: prices a layout from where its groups lie on the tiers.
 */
#ifndef MF_COST_H
#define MF_COST_H

#include "planner/layout/plan.h"

/* Physical figures first, then what past runs correct. */
enum mf_coefficient {
    MF_COEF_GEMM,      /* dense product, fraction of peak */
    MF_COEF_GROUPED,   /* expert product against dense */
    MF_COEF_NARROW,    /* expert width at which its efficiency halves */
    MF_COEF_LOW_BITS,  /* products in 8 bits against bf16 */
    MF_COEF_ATTENTION, /* core attention, fraction of peak */
    MF_COEF_HBM,       /* memory passes, fraction of peak */
    MF_COEF_PASSES,    /* hidden-wide passes of a sublayer, forward */
    MF_COEF_TIER0,     /* innermost network tier, fraction of its rate */
    MF_COEF_TIER1,     /* all outer tiers */
    MF_COEF_RAMP_S,    /* how slowly an exchange reaches its rate, seconds */
    MF_COEF_KERNEL_S,  /* seconds to start a kernel */
    MF_COEF_FLOOR_S,   /* least seconds of an MoE layer in a step, both ways */
    MF_COEF_LATENCY,   /* times the tier's latency */
    MF_COEF_COMPUTE,   /* factor of products (1 before any fit) */
    MF_COEF_MEMORY,    /* factor of route, permute and unpermute */
    MF_COEF_EXCHANGE,  /* factor of exchanges inside the layer */
    MF_COEF_REDUCE,    /* factor of gradient reductions */
    MF_COEF_MESSAGE_S, /* seconds more for each peer of an exchange (0) */
    MF_COEF_LAYER_S,   /* seconds more for each layer and direction (0) */
    MF_COEF_QUANTIZE,  /* hidden-wide passes more of a sublayer in 8 bits */
    MF_COEF_EXPOSED,   /* share of exchanges that EP overlap leaves exposed */
    MF_COEF_HOT,       /* share of the hottest rank's excess that shows */
    MF_COEF_DEEPEP,    /* rate of DeepEP against the all-to-all's */
    MF_COEF_HYBRIDEP,  /* the same of HybridEP */
    MF_COEF_GATHERED,  /* rate of gathers and reductions of full shards */
    MF_COEF_DROPPED,   /* floor of a layer with fixed shapes (token drop) */
    MF_COEF_LIGHT,     /* floor with HybridEP */
    MF_COEF_GRAPHED,   /* floor with full against partial graphs */
    MF_COEF_UNGRAPHED, /* floor without graphs where they are the rule */
    MF_COEF_STRAGGLE,  /* slowing by each doubling of the nodes */
    MF_COEF_DENSE_FLOOR, /* floor of a layer without experts */
    MF_COEF_STEP_S,      /* seconds a step */
    MF_COEFS
};

struct mf_coefficients {
    char name[64]; /* "prior" before any fit */
    double value[MF_COEFS];
    bool published; /* fitted to published runs: see published.h */
    int source;     /* of mf_sources, -1: none; with PUBLISHED */
};

/* The prior of a Hopper GPU. */
void mf_coefficients_init(struct mf_coefficients *set);
/* The prior of the devices of CLUSTER: Hopper, Blackwell or CPU ranks. */
void mf_coefficients_prior(
    const struct mf_cluster *cluster, struct mf_coefficients *set);
/* Are the devices of CLUSTER of the Blackwell family? */
bool mf_coefficients_blackwell(const struct mf_cluster *cluster);
/* A stable text for each value, such as "gemm"; NULL out of range. */
const char *mf_coefficient_name(int index);
int mf_coefficient_find(const char *name); /* -1: none of that name */

/* Check that LAYOUT suits MODEL and SETTINGS (experts by ep, heads by tp,
 * layers by pp, batch by dp, sequence by shards): MF_INVALID with the mend.
 */
int mf_cost_check(const struct mf_model *model, const struct mf_layout *layout,
    const struct mf_settings *settings, enum mf_scope scope,
    struct mf_error *err);

/* Megatron's model FLOPs of one token of a training step. */
double mf_cost_token_flops(const struct mf_model *model, int64_t seq);

/* Price ENTRY->layout under ENTRY->settings; settings that are auto are
 * replaced by the best that fits. Fills ENTRY->cost (free with mf_cost_free).
 */
int mf_cost_predict(const struct mf_model *model,
    const struct mf_cluster *cluster, enum mf_scope scope,
    const struct mf_coefficients *set, struct mf_plan_entry *entry,
    struct mf_error *err);

/* The same for many layouts of one world: what does not depend on the layout
 * is worked out once, where groups lie is remembered. MODEL, CLUSTER and SET
 * must outlive it. Not for use by several threads at once.
 */
typedef struct mf_pricer mf_pricer;

mf_pricer *mf_pricer_create(const struct mf_model *model,
    const struct mf_cluster *cluster, int64_t world, enum mf_scope scope,
    const struct mf_coefficients *set, struct mf_error *err);
void mf_pricer_free(mf_pricer *pricer);
/* Go on with other coefficients. */
void mf_pricer_use(mf_pricer *pricer, const struct mf_coefficients *set);
/* As mf_cost_predict. *PRICED and *BOUNDED (may be NULL) grow by the settings
 * that were priced, and by those left out since they could not be better.
 */
int mf_pricer_price(mf_pricer *pricer, struct mf_plan_entry *entry,
    int64_t *priced, int64_t *bounded, struct mf_error *err);

/* What is tried for settings that are auto. */
struct mf_limits {
    int64_t max_vpp, max_micro_batch; /* 0: no limit */
    unsigned dispatchers, recomputes; /* bits of those allowed */
};

void mf_pricer_limit(mf_pricer *pricer, const struct mf_limits *limits);

/* A setting that is best in time or in memory. */
struct mf_point {
    struct mf_layout layout;
    struct mf_settings settings;
    double step_s, peak_bytes;
};

/* Those that no other one beats in both, by ascending time. */
struct mf_front {
    struct mf_point *point;
    size_t points, room;
    bool failed; /* for want of memory */
};

void mf_front_add(struct mf_front *front, const struct mf_point *point);
void mf_front_free(struct mf_front *front);
/* From now on, add every setting that fits to FRONT; NULL: stop that. */
void mf_pricer_collect(mf_pricer *pricer, struct mf_front *front);

/* From now on, steps longer than STEP_S need not be priced: it is enough to
 * know whether they fit.
 */
void mf_pricer_bound(mf_pricer *pricer, double step_s);

/* The best setting of a layout, without its breakdown. */
struct mf_best {
    struct mf_settings settings;
    double step_s, peak_bytes;
    bool fits;
    int64_t priced, bounded;
};

/* LAYOUT has passed mf_cost_check. Allocates nothing once its tables are
 * filled.
 */
int mf_pricer_best(mf_pricer *pricer, const struct mf_layout *layout,
    const struct mf_settings *settings, struct mf_best *best,
    struct mf_error *err);
/* Fill ENTRY->cost, whose settings have nothing auto. */
int mf_pricer_fill(
    mf_pricer *pricer, struct mf_plan_entry *entry, struct mf_error *err);

/* Add the notes that mf_cost_predict adds. */
int mf_pricer_note(
    const mf_pricer *pricer, struct mf_plan_entry *entry, struct mf_error *err);

#endif
