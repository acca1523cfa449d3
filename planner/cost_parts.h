/* SPDX-License-Identifier: BSD-3-Clause
 * What the files of the cost model share: rates, one layout under pricing, and
 * the work of a layer, part by part.
 */
#ifndef MF_COST_PARTS_H
#define MF_COST_PARTS_H

#include "planner/cost.h"
#include "planner/cost_place.h"

/* Seconds of a step are booked under one of these. */
enum mf_part_id {
    MF_PART_ATTENTION,
    MF_PART_CP,
    MF_PART_TP,
    MF_PART_NORM,
    MF_PART_DENSE,
    MF_PART_ROUTE,
    MF_PART_PERMUTE,
    MF_PART_DISPATCH,
    MF_PART_GATHER,
    MF_PART_EXPERTS,
    MF_PART_REDUCE,
    MF_PART_COMBINE,
    MF_PART_UNPERMUTE,
    MF_PART_SHARED,
    MF_PART_EMBEDDING,
    MF_PART_LOGITS,
    MF_PART_RECOMPUTE,
    MF_PART_LAUNCH,
    MF_PART_STAGE_SEND,
    MF_PART_BUBBLE,
    MF_PART_GRAD_EXPERT,
    MF_PART_GRAD_DENSE,
    MF_PART_OPTIMIZER,
    MF_PART_IDS
};

/* What one rank can do; coefficients that hold for every layout are in. */
struct mf_cost_rates {
    double peak_flops;         /* bf16 (fp32 for CPU ranks), a second */
    double gemm_flops;         /* of a large dense product */
    double memory_bytes_per_s; /* of passes over memory */
    double tier_bytes_per_s[MF_TIERS_MAX];
    double tier_latency_s[MF_TIERS_MAX];
    double element_bytes; /* of an activation */
    double share;         /* of a core: under 1 when CPU ranks share cores */
    double memory_bytes;  /* of the device, NAN: not known */
    bool cpu, blackwell;
    const double *coef;
};

void mf_cost_rates_init(struct mf_cost_rates *rates,
    const struct mf_cluster *cluster, int64_t node_ranks,
    const struct mf_coefficients *set);

/* Seconds of [m,k] x [k,n]; LOW: in 8 bits. Soft roofline. */
double mf_time_gemm(
    const struct mf_cost_rates *rates, double m, double n, double k, bool low);
/* The same for LOCAL experts that ROWS rows are spread over. */
double mf_time_grouped(const struct mf_cost_rates *rates, double rows,
    double local, double n, double k, double narrow, bool low);
double mf_time_memory(const struct mf_cost_rates *rates, double bytes);
/* Seconds until all of BYTES, spread over the members, is with each of them
 * (all-gather); the same for its transpose (reduce-scatter). FACTOR:
 * MF_COEF_EXCHANGE inside a layer, MF_COEF_REDUCE for gradients.
 */
double mf_time_gather(const struct mf_cost_rates *rates,
    const struct mf_place *place, double bytes, enum mf_coefficient factor);
/* Seconds of an all-to-all where a rank sends BYTES[t] over tier t. */
double mf_time_exchange(const struct mf_cost_rates *rates,
    const struct mf_place *place, const double bytes[MF_TIERS_MAX]);
/* Seconds to send BYTES to a neighbour in the group. */
double mf_time_send(const struct mf_cost_rates *rates,
    const struct mf_place *place, double bytes);

/* The alpha of a symmetric Dirichlet whose shares have Gini coefficient GINI;
 * infinity when it is 0.
 */
double mf_balance_alpha(double gini);
/* Load of the most loaded of RANKS ranks over the mean, when the loads of
 * EXPERTS experts follow ALPHA and TOKENS tokens choose TOPK; 1 when ALPHA is
 * infinite (forced balance).
 */
double mf_balance_hottest(
    double alpha, int64_t experts, int64_t topk, int64_t ranks, double tokens);
/* Expected distinct bins, of BINS equal ones, that TOPK of EXPERTS hit. */
double mf_balance_distinct(int64_t experts, int64_t topk, int64_t bins);

/* Parameters of one layer, part by part, before sharding. */
struct mf_shares {
    double mixer[MF_MIXERS], dense, shared, router, norm, experts;
    double beside; /* of an MoE layer: a dense part and the way to experts */
    double other;  /* of any layer */
    bool moe;      /* is there an MoE layer at all? */
};

void mf_shares_fill(const struct mf_model *model, struct mf_shares *shares);

/* One layout under settings without auto. */
struct mf_case {
    const struct mf_model *model;
    const struct mf_cost_rates *rates;
    const struct mf_shares *shares;
    const struct mf_layout *layout;
    const struct mf_settings *settings;
    const struct mf_place *place[MF_GROUP_KINDS];
    int64_t micro_batches; /* a step */
    double tokens;         /* of a rank: b*s/(tp*cp) */
    double wide_tokens;    /* of its tensor parallel group: b*s/cp */
    double sent_rows;      /* tokens*k, after capacity */
    double hot;            /* time of the most loaded expert rank over the
                              mean: as its load, but see share of the rates */
    double rows;           /* of the hottest rank's experts, for its time */
    double held_rows;      /* the same, for its memory */
    double token_flops;    /* model FLOPs of a token, both passes */
    double straggle;       /* seconds more for each second, by size of world */
    bool low;              /* 8-bit products */
};

/* Seconds by part of one layer or stage and one micro batch. */
struct mf_work {
    double part[MF_PART_IDS][MF_DIRECTIONS];
    double hidden_s;
};

double mf_work_sum(const struct mf_work *work, enum mf_direction direction);
void mf_work_add(struct mf_work *to, const struct mf_work *from, double times);

/* One layer of KIND; then its recomputation, overlap and launch floor. */
void mf_work_base(
    const struct mf_case *c, struct mf_layer_kind kind, struct mf_work *work);
void mf_work_finish(
    const struct mf_case *c, struct mf_layer_kind kind, struct mf_work *work);
/* The MoE part alone, as the runtime executes it. */
void mf_work_moe(const struct mf_case *c, struct mf_work *work);

/* What a stage holds. */
struct mf_stage {
    int64_t count[MF_MIXERS][MF_FFNS]; /* layers of each kind */
    int64_t layers, mtp;
    bool first, last;
};

/* FIRST and LAST layers on the first and last stage, the others even; 0 and 0:
 * as even as can be, the first chunks taking one more.
 */
struct mf_split {
    int64_t first, last;
};

/* Can stages of FIRST, equal ones and LAST layers be cut into VPP chunks? */
bool mf_split_suits(
    int64_t layers, int64_t pp, int64_t vpp, int64_t first, int64_t last);

void mf_stage_fill(const struct mf_model *model, int64_t pp, int64_t vpp,
    struct mf_split split, int64_t stage, struct mf_stage *out);

/* The kinds of layers that a model has. */
#define MF_KINDS_MAX (MF_MIXERS * MF_FFNS)

struct mf_kinds {
    int count;
    struct mf_layer_kind kind[MF_KINDS_MAX];
    double layers[MF_KINDS_MAX]; /* of each */
    int mtp;                     /* which one an MTP layer is of */
};

void mf_kinds_fill(const struct mf_model *model, struct mf_kinds *kinds);

/* Stages that hold the same are one class. Of a class the first stage, INDEX,
 * keeps most micro batches in flight.
 */
struct mf_class {
    struct mf_stage stage;
    double times[MF_KINDS_MAX]; /* layers of each kind */
    int64_t index, count;
};

struct mf_schedule {
    int64_t pp, vpp;
    struct mf_split split;
    int classes;
    struct mf_class *class; /* free with mf_schedule_free */
};

int mf_schedule_fill(const struct mf_model *model, const struct mf_kinds *kinds,
    int64_t pp, int64_t vpp, struct mf_split split, struct mf_schedule *out);
void mf_schedule_free(struct mf_schedule *schedule);
/* The class of STAGE. */
int mf_schedule_class(const struct mf_schedule *schedule,
    const struct mf_model *model, int64_t stage);

/* Parameters that one rank holds, by how they are shared. */
struct mf_holding {
    double sharded;    /* split over tp, also the embeddings */
    double replicated; /* norms, router, gates */
    double experts;    /* split over etp*ep */
};

void mf_holding_of(const struct mf_case *c, const struct mf_stage *stage,
    struct mf_holding *out);

struct mf_memory {
    double params, grads, optimizer, activations, buffers;
    double static_bytes, peak_bytes;
};

/* What a stage holds whatever micro batches are in flight; depends on layout,
 * precision, sharding and stage.
 */
void mf_memory_of_static(const struct mf_case *c, const struct mf_stage *stage,
    const struct mf_holding *held, struct mf_memory *out);

/* Bytes of one micro batch that all stages are made from; depends on layout,
 * micro batch, recomputation and capacity.
 */
struct mf_live {
    double kept[MF_KINDS_MAX];  /* by one layer until its backward */
    double again[MF_KINDS_MAX]; /* more while it is computed again */
    double dispatch, logits;
};

void mf_live_fill(
    const struct mf_case *c, const struct mf_kinds *kinds, struct mf_live *out);
/* Activations and buffers of stage INDEX of CLASS added to those of OUT, which
 * mf_memory_of_static has filled; then its peak.
 */
void mf_memory_add_live(const struct mf_case *c, const struct mf_kinds *kinds,
    const struct mf_live *live, const struct mf_class *class, int64_t index,
    struct mf_memory *out);
void mf_memory_of_layer(const struct mf_case *c, struct mf_memory *out);

/* Does a device of BYTES hold PEAK bytes, with room for what frameworks add? */
bool mf_memory_fits(const struct mf_cost_rates *rates, double peak_bytes);

/* Megatron's model FLOPs of one token, forward and backward: the whole text
 * model with its logits, or one MoE layer.
 */
double mf_flops_token(const struct mf_model *model, int64_t seq);
double mf_flops_token_moe(const struct mf_model *model);
/* Forward FLOPs of one token in a mixer besides its weights: scores, values,
 * states.
 */
double mf_flops_core(
    const struct mf_model *model, enum mf_mixer mixer, double seq);

/* Numbers in a row that goes to a routed expert. */
static inline double mf_row_width(const struct mf_model *model)
{
    return (double)(model->latent > 0 ? model->latent : model->hidden);
}

/* ---- a step, in tables ----
 *
 * A setting is priced from four tables, each of which depends on part of it,
 * so that the search fills a table seldom and reads it often:
 *   mf_base      one layer of each kind: tp cp etp ep, micro batch, dispatcher
 *   mf_blocks    the same with recomputation, overlap and floor, and the ends
 *   mf_schedule  which stages there are: pp, vpp, split
 *   mf_loads     what each class of stages holds and reduces: layout, schedule
 * mf_step_core adds them up with micro batches, vpp and pp: no allocation, no
 * search and no transcendental function.
 *
 * To add a part of a layer: an MF_PART_, its row in cost_step.c, and a
 * function beside work_experts() that mf_work_base() calls; what depends on
 * recomputation or on the layer's sum goes into mf_work_finish(). What it
 * reads besides the fields of struct mf_base_key must be added there. To add a
 * part of a step: a field of struct mf_core, worked out in mf_step_core() and
 * booked in core_book(); what is costly to work out and does not depend on
 * micro batch, dispatcher or recomputation goes into mf_loads_fill().
 * A coefficient needs nothing but its own row.
 */
struct mf_base {
    struct mf_work layer[MF_KINDS_MAX]; /* [kinds] */
    double seconds;                     /* of all layers, both passes */
};

struct mf_blocks {
    struct mf_work layer[MF_KINDS_MAX], ends[2];
    double seconds[MF_KINDS_MAX][MF_DIRECTIONS]; /* sums of layer */
    double end_s[2][MF_DIRECTIONS];
    double send_s; /* activations of a micro batch to the next stage */
    struct mf_live live;
};

/* Of one class. */
struct mf_load {
    struct mf_memory memory;
    double dense_reduce_s, dense_gather_s, expert_reduce_s, expert_gather_s;
    double optimizer_s;
};

void mf_base_fill(
    const struct mf_case *c, const struct mf_kinds *kinds, struct mf_base *out);
void mf_blocks_fill(const struct mf_case *c, const struct mf_kinds *kinds,
    const struct mf_base *base, struct mf_blocks *out);
/* LOAD is [classes]. */
void mf_loads_fill(const struct mf_case *c, const struct mf_schedule *schedule,
    struct mf_load *load);

/* The price in a few figures. */
struct mf_core {
    int slowest, fullest; /* classes */
    double stage_s;       /* of the slowest stage and one micro batch */
    double bubble_s, send_s, dense_s, expert_s, optimizer_s, launch_s;
    double hidden_s;
    double step_s, peak_bytes;
};

void mf_step_core(const struct mf_case *c, const struct mf_kinds *kinds,
    const struct mf_blocks *blocks, const struct mf_schedule *schedule,
    const struct mf_load *load, struct mf_core *core);

/* No schedule of these blocks is shorter: all micro batches pass the slowest
 * stage, which is no faster than the mean. SCHEDULE is any of one pp.
 */
double mf_step_least(const struct mf_case *c, const struct mf_kinds *kinds,
    const struct mf_blocks *blocks, const struct mf_schedule *schedule);
/* Only the memory of mf_step_core. */
double mf_step_peak(const struct mf_case *c, const struct mf_kinds *kinds,
    const struct mf_blocks *blocks, const struct mf_schedule *schedule,
    const struct mf_load *load);

/* Price the whole step, or the MoE layer with its expert gradients, into
 * COST, whose stage has room for [pp]. Interval and notes are left alone.
 * -1: no memory.
 */
int mf_step_price(const struct mf_case *c, const struct mf_kinds *kinds,
    struct mf_cost *cost);
void mf_step_price_moe(const struct mf_case *c, struct mf_cost *cost);

/* Which rule a layout breaks, with a short text for counts and a full message
 * in ERR (may be NULL): NULL when it breaks none.
 */
const char *mf_check_rule(const struct mf_model *model,
    const struct mf_layout *layout, const struct mf_settings *settings,
    enum mf_scope scope, struct mf_error *err);
/* The same for what does not depend on the experts' grid. */
const char *mf_check_attention_rule(const struct mf_model *model,
    const struct mf_layout *layout, const struct mf_settings *settings,
    enum mf_scope scope, struct mf_error *err);

#endif
