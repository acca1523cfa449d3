/* SPDX-License-Identifier: BSD-3-Clause
 * See gate.h.
 */
#include "runtime/gate.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/clock.h"
#include "runtime/collective.h"
#include "runtime/route.h"
#include "runtime/setup.h"
#include "runtime/verify_check.h"
#include "runtime/verify_expected.h"
#include "runtime/verify_folded.h"

#define ROUNDS 5 /* the quickest is told */

enum way_kind { LOCAL, GATHERED, SPLIT, WAYS };

static const char *const way_name[WAYS] = {
    "gate on the local shard", "gate after the gather", "hidden split, summed"};
static const char *const way_key[WAYS] = {"local", "gathered", "hidden_split"};

/* What one way gives for this rank's tokens, and of the whole group. */
struct way {
    int32_t *ids;   /* [tokens][topk] */
    float *weights; /* [tokens][topk] */
    float *dx;      /* [tokens][hidden] */
    float *dw;      /* [experts][hidden], of all tokens */
    float *y;       /* [tokens][hidden] */
    double aux, z;  /* losses over the group */
    int64_t bytes;  /* handed to other ranks, forward, backward */
    double seconds;
};

struct gate {
    struct mfr_shape shape;
    struct mf_layout layout;
    struct mfr_comms comms;
    struct mfr_shard shard;
    MPI_Comm group; /* the ranks that share the sequence */
    int ranks, rank;
    int64_t all;           /* tokens of the group */
    int *token, *token_at; /* [ranks] tokens of each, and where */
    int *count, *at;       /* [ranks] scratch of exchanges */
    int *count2, *at2;
    struct mfr_tensors weights; /* of the whole layer */
    float *x, *pick;            /* [tokens][hidden]; [tokens][topk] gradients */
    float *x_all, *pick_all;    /* the same of the group */
    float *part, *part_w;       /* [all][columns]; [experts][columns] */
    float *swap;                /* [all][hidden] */
    float *sum;                 /* scratch of mfr_sum */
    struct mfr_router router[2]; /* of the own tokens, of all */
    struct way way[WAYS];
    struct mfr_checks checks;
};

static int64_t column_of(const struct gate *g, int rank)
{
    return g->shape.hidden * rank / g->ranks;
}

/* ---- exchanges, counted ---- */

static void count_bytes(const struct gate *g, struct way *w, const int *count)
{
    for (int r = 0; r < g->ranks; r++)
        if (r != g->rank)
            w->bytes += (int64_t)count[r] * (int64_t)sizeof(float);
}

static int sum_floats(struct gate *g, struct way *w, int64_t n, float *values,
    struct mf_error *err)
{
    /* Each rank's part to its adder, and the sums to all. */
    w->bytes += 2 * (g->ranks - 1) * n / g->ranks * (int64_t)sizeof(float);
    return g->ranks == 1 ? 0 : mfr_sum(g->group, n, values, g->sum, err);
}

static int sum_doubles(
    struct gate *g, struct way *w, int n, double *values, struct mf_error *err)
{
    w->bytes += 2 * (g->ranks - 1) * n / g->ranks * (int64_t)sizeof(double);
    return mfr_allreduce(MPI_IN_PLACE, values, n, MPI_DOUBLE, MPI_SUM, g->group,
        "--gate: MPI_Allreduce", err);
}

/* WIDTH floats a token, of every rank's tokens to every rank. */
static int gather(struct gate *g, struct way *w, const float *own,
    int64_t width, float *all, struct mf_error *err)
{
    for (int r = 0; r < g->ranks; r++) {
        g->count[r] = (int)(g->token[r] * width);
        g->at[r] = (int)(g->token_at[r] * width);
    }
    w->bytes +=
        (int64_t)(g->ranks - 1) * g->count[g->rank] * (int64_t)sizeof(float);
    return mfr_allgatherv(own, g->count[g->rank], all, g->count, g->at,
        MPI_FLOAT, g->group, "--gate: MPI_Allgatherv", err);
}

/* Own tokens with all columns (TOKENS) to all tokens with own columns (PART),
 * or with BACK the other way round.
 */
static int turn(struct gate *g, struct way *w, float *tokens, float *part,
    bool back, struct mf_error *err)
{
    const int64_t h = g->shape.hidden, mine = g->token[g->rank];
    const int64_t from = column_of(g, g->rank);
    const int64_t width = column_of(g, g->rank + 1) - from;
    float *at = g->swap;

    for (int r = 0; r < g->ranks; r++) {
        const int64_t first = column_of(g, r);
        const int64_t n = column_of(g, r + 1) - first;

        /* By columns: what goes to, or comes from, rank R. */
        g->count[r] = (int)(mine * n);
        g->at[r] = (int)(at - g->swap);
        for (int64_t t = 0; !back && t < mine; t++)
            memcpy(at + t * n, tokens + t * h + first, (size_t)n * sizeof *at);
        at += mine * n;
        g->count2[r] = (int)(g->token[r] * width);
        g->at2[r] = (int)(g->token_at[r] * width);
    }
    count_bytes(g, w, back ? g->count2 : g->count);
    if (back ? mfr_alltoallv(part, g->count2, g->at2, g->swap, g->count, g->at,
                   MPI_FLOAT, g->group, "--gate: MPI_Alltoallv", err)
             : mfr_alltoallv(g->swap, g->count, g->at, part, g->count2, g->at2,
                   MPI_FLOAT, g->group, "--gate: MPI_Alltoallv", err))
        return -1;
    for (int r = 0; back && r < g->ranks; r++) {
        const int64_t first = column_of(g, r);
        const int64_t n = column_of(g, r + 1) - first;

        for (int64_t t = 0; t < mine; t++)
            memcpy(tokens + t * h + first, g->swap + g->at[r] + t * n,
                (size_t)n * sizeof *tokens);
    }
    return 0;
}

/* ---- losses ---- */

static double log_sum_exp(const float *v, int64_t n)
{
    double most = v[0], sum = 0;

    for (int64_t i = 1; i < n; i++)
        most = fmax(most, v[i]);
    for (int64_t i = 0; i < n; i++)
        sum += exp(v[i] - most);
    return most + log(sum);
}

/* E / (K T^2) * sum of count_e * sum of p_e, and the mean of logsumexp^2, over
 * TOKENS of ROUTER; SHARED: over those of all ranks of the group.
 */
static int losses(struct gate *g, struct way *w, const struct mfr_router *r,
    bool shared, struct mf_error *err)
{
    const int64_t e = r->experts;
    double *sum = calloc((size_t)(2 * e + 2), sizeof *sum), aux = 0, tokens;
    int rc = sum ? 0 : mf_error_set(err, MF_FAILED, "out of memory");

    for (int64_t t = 0; rc == 0 && t < r->tokens; t++) {
        const double lse = log_sum_exp(r->logits + t * e, e);

        for (int64_t i = 0; i < e; i++)
            sum[e + i] += r->probs[t * e + i];
        sum[2 * e] += lse * lse;
    }
    for (int64_t i = 0; rc == 0 && i < e; i++)
        sum[i] = (double)r->counts[i];
    if (rc == 0)
        sum[2 * e + 1] = (double)r->tokens;
    if (rc == 0 && shared)
        rc = sum_doubles(g, w, (int)(2 * e + 2), sum, err);
    tokens = rc == 0 ? sum[2 * e + 1] : 1;
    for (int64_t i = 0; rc == 0 && i < e; i++)
        aux += sum[i] * sum[e + i];
    if (rc == 0) {
        w->aux = (double)e * aux / ((double)r->topk * tokens * tokens);
        w->z = sum[2 * e] / tokens;
    }
    free(sum);
    return rc;
}

/* ---- the three ways ---- */

/* Of ROUTER's tokens those from FIRST on are this rank's. */
static void keep(
    struct gate *g, struct way *w, const struct mfr_router *r, int64_t first)
{
    const size_t n = (size_t)(g->shard.tokens * r->topk);

    memcpy(w->ids, r->ids + first * r->topk, n * sizeof *w->ids);
    memcpy(w->weights, r->weights + first * r->topk, n * sizeof *w->weights);
}

static int way_local(struct gate *g, struct way *w, struct mf_error *err)
{
    struct mfr_router *r = &g->router[0];
    struct mfr_tensors gradient = {.router = w->dw};

    mfr_router_forward(r, &g->weights, g->x);
    keep(g, w, r, 0);
    if (losses(g, w, r, true, err))
        return -1;
    memcpy(r->dweights, g->pick,
        (size_t)(r->tokens * r->topk) * sizeof *r->dweights);
    mfr_router_backward(r, MFK_EXACT, &g->weights, g->x, w->dx, &gradient);
    return sum_floats(g, w, g->shape.experts * g->shape.hidden, w->dw, err);
}

static int way_gathered(struct gate *g, struct way *w, struct mf_error *err)
{
    struct mfr_router *r = &g->router[1];
    struct mfr_tensors gradient = {.router = w->dw};
    const int64_t h = g->shape.hidden, first = g->token_at[g->rank];

    if (gather(g, w, g->x, h, g->x_all, err))
        return -1;
    mfr_router_forward(r, &g->weights, g->x_all);
    keep(g, w, r, first);
    if (losses(g, w, r, false, err))
        return -1;
    memcpy(r->dweights, g->pick_all,
        (size_t)(r->tokens * r->topk) * sizeof *r->dweights);
    memset(g->swap, 0, (size_t)(g->all * h) * sizeof *g->swap);
    mfr_router_backward(
        r, MFK_EXACT, &g->weights, g->x_all, g->swap, &gradient);
    memcpy(w->dx, g->swap + first * h,
        (size_t)(g->shard.tokens * h) * sizeof *w->dx);
    return 0;
}

/* Columns of this rank of the router's gradient, from all ranks to all. */
static int join_columns(struct gate *g, struct way *w, struct mf_error *err)
{
    const int64_t h = g->shape.hidden, e = g->shape.experts;
    float *all = g->swap;

    for (int r = 0; r < g->ranks; r++) {
        g->count[r] = (int)((column_of(g, r + 1) - column_of(g, r)) * e);
        g->at[r] = (int)(column_of(g, r) * e);
    }
    w->bytes +=
        (int64_t)(g->ranks - 1) * g->count[g->rank] * (int64_t)sizeof(float);
    if (mfr_allgatherv(g->part_w, g->count[g->rank], all, g->count, g->at,
            MPI_FLOAT, g->group, "--gate: MPI_Allgatherv", err))
        return -1;
    for (int r = 0; r < g->ranks; r++) {
        const int64_t first = column_of(g, r);
        const int64_t n = column_of(g, r + 1) - first;

        for (int64_t i = 0; i < e; i++)
            memcpy(w->dw + i * h + first, all + g->at[r] + i * n,
                (size_t)n * sizeof *w->dw);
    }
    return 0;
}

static int way_split(struct gate *g, struct way *w, struct mf_error *err)
{
    struct mfr_router *r = &g->router[1];
    const int64_t h = g->shape.hidden, e = g->shape.experts;
    const int64_t first = column_of(g, g->rank);
    const int64_t n = column_of(g, g->rank + 1) - first;
    struct mfk_router how = r->how;

    if (turn(g, w, g->x, g->part, false, err))
        return -1;
    for (int64_t i = 0; i < e; i++)
        memcpy(g->part_w + i * n, g->weights.router + i * h + first,
            (size_t)n * sizeof *g->part_w);
    mfk_gemm_nt(
        MFK_EXACT, r->tokens, e, n, g->part, g->part_w, false, r->logits);
    if (sum_floats(g, w, r->tokens * e, r->logits, err))
        return -1;
    if (g->weights.router_bias)
        mfk_bias(r->tokens, e, g->weights.router_bias, r->logits);
    how.bias = g->weights.select_bias;
    mfk_route(&how, r->logits, r->probs, r->ids, r->weights);
    mfk_count(r->tokens * r->topk, e, r->ids, r->counts);
    keep(g, w, r, g->token_at[g->rank]);
    if (losses(g, w, r, false, err))
        return -1;
    mfk_route_backward(&how, r->probs, r->ids, g->pick_all, r->dlogits);
    /* The columns of dX take the place of those of the weight, used up. */
    memset(g->x_all, 0, (size_t)(g->all * h) * sizeof *g->x_all);
    mfk_gemm_nn(
        MFK_EXACT, r->tokens, n, e, r->dlogits, g->part_w, false, g->x_all);
    memset(g->part_w, 0, (size_t)(e * n) * sizeof *g->part_w);
    mfk_gemm_tn(
        MFK_EXACT, e, n, r->tokens, r->dlogits, g->part, true, g->part_w);
    return turn(g, w, w->dx, g->x_all, true, err) || join_columns(g, w, err)
               ? -1
               : 0;
}

/* ---- output ---- */

/* y = sum of w_k E_k(x), each token by itself, with all experts here. */
static int output(struct gate *g, struct way *w, struct mf_error *err)
{
    const int64_t h = g->shape.hidden, f = g->shape.ffn;
    float *gate = mfr_room(3, f, sizeof *gate, err), *up, *act;
    float *out = mfr_room(h, 1, sizeof *out, err);

    if (!gate || !out) {
        free(gate);
        free(out);
        return -1;
    }
    up = gate + f;
    act = up + f;
    for (int64_t i = 0; i < g->shard.tokens * g->shape.topk; i++) {
        const int64_t t = i / g->shape.topk, m = w->ids[i] * f * h;

        mfk_gemm_nt(
            MFK_EXACT, 1, f, h, g->x + t * h, g->weights.gate + m, false, gate);
        mfk_gemm_nt(
            MFK_EXACT, 1, f, h, g->x + t * h, g->weights.up + m, false, up);
        mfk_activate(g->shape.activation, f, gate, up, act);
        mfk_gemm_nt(MFK_EXACT, 1, h, f, act, g->weights.down + m, false, out);
        for (int64_t k = 0; k < h; k++)
            w->y[t * h + k] += w->weights[i] * out[k];
    }
    free(gate);
    free(out);
    return 0;
}

/* ---- all of it ---- */

static int arrays(struct gate *g, struct mf_error *err)
{
    const int64_t h = g->shape.hidden, e = g->shape.experts;
    const int64_t mine = g->shard.tokens, k = g->shape.topk;

    g->x = mfr_room(mine, h, sizeof *g->x, err);
    g->pick = mfr_room(mine, k, sizeof *g->pick, err);
    g->x_all = mfr_room(g->all, h, sizeof *g->x_all, err);
    g->pick_all = mfr_room(g->all, k, sizeof *g->pick_all, err);
    g->part = mfr_room(g->all, h, sizeof *g->part, err);
    g->part_w = mfr_room(e, h, sizeof *g->part_w, err);
    g->swap = mfr_room(g->all + e, h, sizeof *g->swap, err);
    g->sum = mfr_room(mfr_sum_scratch(g->ranks), 1, sizeof *g->sum, err);
    if (!g->x || !g->pick || !g->x_all || !g->pick_all || !g->part ||
        !g->part_w || !g->swap || !g->sum ||
        mfr_router_init(&g->router[0], &g->shape, mine, err) ||
        mfr_router_init(&g->router[1], &g->shape, g->all, err))
        return -1;
    for (int i = 0; i < WAYS; i++) {
        struct way *w = &g->way[i];

        w->ids = mfr_room(mine, k, sizeof *w->ids, err);
        w->weights = mfr_room(mine, k, sizeof *w->weights, err);
        w->dx = mfr_room(mine, h, sizeof *w->dx, err);
        w->dw = mfr_room(e, h, sizeof *w->dw, err);
        w->y = mfr_room(mine, h, sizeof *w->y, err);
        w->seconds = INFINITY;
        if (!w->ids || !w->weights || !w->dx || !w->dw || !w->y)
            return -1;
    }
    return 0;
}

/* Tokens of each rank of the group, in its order. */
static int places(struct gate *g, struct mf_error *err)
{
    int32_t *member = mfr_room(g->ranks, 1, sizeof *member, err);

    g->token = mfr_room(6 * g->ranks, 1, sizeof *g->token, err);
    if (!member || !g->token) {
        free(member);
        return -1;
    }
    g->token_at = g->token + g->ranks;
    g->count = g->token + 2 * g->ranks;
    g->at = g->token + 3 * g->ranks;
    g->count2 = g->token + 4 * g->ranks;
    g->at2 = g->token + 5 * g->ranks;
    mf_group_members(&g->layout, MF_GROUP_TP_CP, g->comms.rank, member);
    for (int r = 0; r < g->ranks; r++) {
        struct mfr_shard shard;

        mfr_shard_of(&g->shape, &g->layout, member[r], &shard);
        g->token[r] = (int)shard.tokens;
        g->token_at[r] = (int)g->all;
        g->all += shard.tokens;
    }
    free(member);
    return 0;
}

static int fill(struct gate *g, uint64_t seed, struct mf_error *err)
{
    const struct mf_coords none = {0};
    const int64_t stage = g->comms.coords.pp, h = g->shape.hidden;
    const int64_t first = g->shard.first * g->shape.batch;
    struct way free_way = {0};

    g->weights.experts = g->shape.experts;
    g->weights.ffn = g->shape.ffn;
    g->weights.shared_ffn = g->shape.shared_ffn;
    if (mfr_tensors_alloc(&g->shape, false, &g->weights, err))
        return -1;
    mfr_tensors_seed(&g->shape, seed, stage, &none, &g->weights);
    for (int64_t t = 0; t < g->shard.tokens; t++) {
        mfr_data_row(&g->shape, seed, MFR_INPUT, stage, g->shard.micro_batch,
            first + t, 0, h, g->x + t * h);
        mfr_data_row(&g->shape, seed, MFR_OUTPUT_GRAD, stage,
            g->shard.micro_batch, first + t, 0, g->shape.topk,
            g->pick + t * g->shape.topk);
    }
    return gather(g, &free_way, g->pick, g->shape.topk, g->pick_all, err);
}

static int run_way(struct gate *g, enum way_kind kind, struct mf_error *err)
{
    static int (*const run[WAYS])(
        struct gate *, struct way *, struct mf_error *) = {
        [LOCAL] = way_local, [GATHERED] = way_gathered, [SPLIT] = way_split};
    struct way *w = &g->way[kind];
    const size_t router =
        (size_t)(g->shape.experts * g->shape.hidden) * sizeof *w->dw;

    for (int i = 0; i < ROUNDS; i++) {
        double start;

        w->bytes = 0;
        memset(w->dw, 0, router);
        memset(w->dx, 0,
            (size_t)(g->shard.tokens * g->shape.hidden) * sizeof *w->dx);
        if (mfr_barrier(g->comms.base, "--gate: MPI_Barrier", err))
            return -1;
        start = mfr_now();
        if (run[kind](g, w, err))
            return -1;
        w->seconds = fmin(w->seconds, mfr_now() - start);
    }
    return output(g, w, err);
}

/* WAY against the local one; BITS: routes and what follows are the same. */
static void compare(
    struct gate *g, const char *const name[6], const struct way *w, bool bits)
{
    const struct way *a = &g->way[LOCAL];
    const int64_t k = g->shard.tokens * g->shape.topk;
    const int64_t h = g->shard.tokens * g->shape.hidden;
    struct mfr_check *routes = mfr_checks_add(&g->checks, name[0], 0, bits);

    mfr_check_equal(routes,
        mfr_same(a->ids, w->ids, k, sizeof *a->ids) &&
            (!bits || mfr_same(a->weights, w->weights, k, sizeof *a->weights)));
    mfr_check_floats(mfr_checks_add(&g->checks, name[1], MFR_BOUND_FP32, bits),
        w->y, a->y, h);
    mfr_check_double(mfr_checks_add(&g->checks, name[2], MFR_BOUND_FP32, false),
        w->aux, a->aux);
    mfr_check_double(
        mfr_checks_add(&g->checks, name[3], MFR_BOUND_FP32, false), w->z, a->z);
    mfr_check_floats(mfr_checks_add(&g->checks, name[4], MFR_BOUND_FP32, bits),
        w->dx, a->dx, h);
    mfr_check_floats(mfr_checks_add(&g->checks, name[5], MFR_BOUND_FP32, false),
        w->dw, a->dw, g->shape.experts * g->shape.hidden);
}

static int work(struct gate *g, uint64_t seed, struct mf_error *err)
{
    static const char *const gathered[] = {
        "routes", "output", "aux_loss", "z_loss", "dx", "router_grad"};
    static const char *const split[] = {"hidden_split_routes",
        "hidden_split_output", "hidden_split_aux_loss", "hidden_split_z_loss",
        "hidden_split_dx", "hidden_split_router_grad"};
    int rc;

    g->group = g->comms.comm[MF_GROUP_TP_CP];
    g->ranks = g->comms.group_size[MF_GROUP_TP_CP];
    g->rank = g->comms.group_rank[MF_GROUP_TP_CP];
    mfr_shard_of(&g->shape, &g->layout, g->comms.rank, &g->shard);
    rc = places(g, err) || arrays(g, err) ? -1 : 0;
    if (mfr_agree(g->comms.base, rc, err) || fill(g, seed, err))
        return -1;
    for (int i = 0; i < WAYS; i++)
        if (run_way(g, (enum way_kind)i, err))
            return -1;
    compare(g, gathered, &g->way[GATHERED], true);
    compare(g, split, &g->way[SPLIT], false);
    return mfr_checks_settle(
        &g->checks, g->comms.comm[MF_GROUP_TP_DP_CP], g->comms.base, err);
}

/* Most bytes and the longest time over ranks. */
static int slowest(struct gate *g, struct mf_error *err)
{
    double v[2 * WAYS];

    for (int i = 0; i < WAYS; i++) {
        v[2 * i] = (double)g->way[i].bytes;
        v[2 * i + 1] = g->way[i].seconds;
    }
    if (mfr_allreduce(MPI_IN_PLACE, v, 2 * WAYS, MPI_DOUBLE, MPI_MAX,
            g->comms.base, "--gate: MPI_Allreduce", err))
        return -1;
    for (int i = 0; i < WAYS; i++) {
        g->way[i].bytes = (int64_t)v[2 * i];
        g->way[i].seconds = v[2 * i + 1];
    }
    return 0;
}

static int print_json(const struct gate *g, bool held, struct mf_error *err)
{
    json_t *ways = json_array(), *json;
    char text[MF_LAYOUT_TEXT];
    int rc = 0;

    mf_layout_format(&g->layout, text, sizeof text);
    for (int i = 0; i < WAYS; i++)
        json_array_append_new(ways,
            json_pack("{s:s, s:I, s:f}", "name", way_key[i], "bytes",
                (json_int_t)g->way[i].bytes, "seconds", g->way[i].seconds));
    json = json_pack("{s:s, s:i, s:I, s:I, s:I, s:b, s:o, s:o}", "layout", text,
        "sequence_split", g->ranks, "tokens", (json_int_t)g->all, "hidden",
        (json_int_t)g->shape.hidden, "experts", (json_int_t)g->shape.experts,
        "ok", held, "ways", ways, "checks", mfr_checks_to_json(&g->checks));
    if (!json || json_dumpf(json, stdout, JSON_INDENT(2)) ||
        putchar('\n') == EOF || fflush(stdout))
        rc = mf_error_set(err, MF_FAILED,
            "verify: cannot write the result; is the disk full?");
    json_decref(json);
    return rc;
}

static int print_table(const struct gate *g, bool held, struct mf_error *err)
{
    char text[MF_LAYOUT_TEXT];

    mf_layout_format(&g->layout, text, sizeof text);
    printf("%s: %" PRId64 " tokens over %d ranks, hidden %" PRId64 ", %" PRId64
           " experts\n\n%-24s %14s %12s\n",
        text, g->all, g->ranks, g->shape.hidden, g->shape.experts, "routing",
        "bytes a rank", "ms");
    for (int i = 0; i < WAYS; i++)
        printf("%-24s %14" PRId64 " %12.3f\n", way_name[i], g->way[i].bytes,
            1e3 * g->way[i].seconds);
    putchar('\n');
    if (mfr_checks_print(&g->checks, stdout, err))
        return -1;
    printf("\n%s\n",
        held ? "The router may run before the gather: every rank holds whole "
               "hidden vectors.\nWith the hidden dimension split, logits must "
               "be summed first, in another order."
             : "A check FAILED");
    return fflush(stdout)
               ? mf_error_set(err, MF_FAILED, "verify: cannot write the result")
               : 0;
}

static void gate_free(struct gate *g)
{
    mfr_tensors_free(&g->weights);
    mfr_router_free(&g->router[0]);
    mfr_router_free(&g->router[1]);
    free(g->token);
    free(g->x);
    free(g->pick);
    free(g->x_all);
    free(g->pick_all);
    free(g->part);
    free(g->part_w);
    free(g->swap);
    free(g->sum);
    for (int i = 0; i < WAYS; i++) {
        free(g->way[i].ids);
        free(g->way[i].weights);
        free(g->way[i].dx);
        free(g->way[i].dw);
        free(g->way[i].y);
    }
}

/* The case that people ask about: the sequence split over all ranks, and as
 * much expert parallelism.
 */
static int usual(int ranks, struct gate *g, struct mf_error *err)
{
    char text[64];

    snprintf(text, sizeof text, "tp%d/ep%d", ranks, ranks);
    g->shape = (struct mfr_shape){.seq = 256,
        .batch = 2,
        .hidden = 128,
        .ffn = 32,
        .experts = 2 * (int64_t)ranks,
        .topk = 2,
        .renormalize = true,
        .scaling = 1};
    return mf_layout_parse(text, &g->layout, err) ||
                   mf_layout_resolve(&g->layout, ranks, ~0u, err)
               ? -1
               : 0;
}

static int of_plan(MPI_Comm world, const struct mfr_verify_options *options,
    int ranks, struct gate *g, struct mf_error *err)
{
    const struct mf_plan_entry *entry;
    struct mf_plan plan;
    int rc;

    if (mfr_setup_plan(world, options->plan, &plan, err))
        return -1;
    rc = mfr_setup_pick(&plan, options->pick, ranks, &entry, err) ||
                 mfr_verify_shape(&plan, entry, options->full, &g->shape, err)
             ? mf_error_prefix(err, "%s", options->plan)
             : 0;
    if (rc == 0)
        g->layout = entry->layout;
    mf_plan_free(&plan);
    return rc;
}

int mfr_gate_main(MPI_Comm world, const struct mfr_verify_options *options,
    bool *held, struct mf_error *err)
{
    struct gate g = {0};
    int ranks, rc;

    if (mfr_mpi(MPI_Comm_size(world, &ranks), "verify: MPI_Comm_size", err))
        return -1;
    rc = options->plan ? of_plan(world, options, ranks, &g, err)
                       : usual(ranks, &g, err);
    if (mfr_agree(world, rc, err) ||
        mfr_comms_create(world, &g.layout, &g.comms, err))
        return -1;
    rc = work(&g, options->seed, err);
    if (rc == 0)
        rc = slowest(&g, err);
    *held = rc == 0 && !mfr_checks_failed(&g.checks);
    if (rc == 0 && g.comms.rank == 0 &&
        (options->json || !options->quiet || !*held))
        rc = (options->json ? print_json : print_table)(&g, *held, err);
    rc = mfr_agree(world, rc, err);
    gate_free(&g);
    mfr_comms_free(&g.comms);
    return rc;
}
