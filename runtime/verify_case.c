/* SPDX-License-Identifier: BSD-3-Clause
 * Run a layout twice and compare it with both references.
 */
#include "runtime/verify_case.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/data.h"
#include "runtime/verify_expected.h"
#include "runtime/verify_folded.h"

/* All that the comparisons look at. */
struct trial {
    const struct mfr_verify_case *work;
    int rank; /* in the layout's world */
    struct mf_coords coords;
    MPI_Comm base, stage;
    struct mfr_folded run;
    int64_t tokens, first; /* of the stage's tokens, those of this rank */
    struct mfr_expected expected;
    struct mfr_checks *checks;
};

static int check_twice(
    struct trial *trial, const struct mfr_comms *comms, struct mf_error *err)
{
    struct mfr_folded again;
    int rc = mfr_folded_run(trial->work, comms, &again, err);

    if (!rc)
        mfr_check_equal(mfr_checks_add(trial->checks, "twice", 0, true),
            mfr_folded_same(&trial->work->shape, &trial->run, &again));
    mfr_folded_free(&again);
    return rc;
}

/* Every token of the stage lies on exactly one of its ranks. */
static int check_tokens(struct trial *trial, struct mf_error *err)
{
    int64_t n = trial->expected.tokens;
    struct mfr_check *check = mfr_checks_add(trial->checks, "tokens", 0, true);
    int *held = mfr_room(n, 1, sizeof *held, err);
    int rc = held && n <= INT32_MAX ? 0 : -1;
    bool once = true;

    rc = mfr_agree(trial->base, rc, err);
    if (rc)
        goto out;
    for (int64_t t = 0; t < trial->tokens; t++)
        held[trial->first + t]++;
    rc = mfr_mpi(MPI_Allreduce(MPI_IN_PLACE, held, (int)n, MPI_INT, MPI_SUM,
                     trial->stage),
        "verify: MPI_Allreduce", err);
    for (int64_t t = 0; t < n; t++)
        once = once && held[t] == 1;
    mfr_check_equal(check, once);
out:
    free(held);
    return rc;
}

static bool chosen(
    const int32_t *ids, int64_t topk, int32_t expert, int64_t *at)
{
    for (*at = 0; *at < topk; ++*at)
        if (ids[*at] == expert)
            return true;
    return false;
}

/* Routes of one token against the double-precision reference: as sets, for
 * two chosen experts may stand in either order when their scores are close.
 */
static void check_token_routes(const int32_t *ids, const float *weights,
    const int32_t *ref_ids, const double *ref_weights, int64_t topk,
    struct mfr_check *routes, struct mfr_check *values)
{
    for (int64_t k = 0; k < topk; k++) {
        int64_t at;
        bool found = chosen(ids, topk, ref_ids[k], &at);

        mfr_check_equal(routes, found);
        if (found)
            mfr_check_double(values, (double)weights[at], ref_weights[k]);
    }
}

static void check_routes(struct trial *trial)
{
    const struct mfr_expected *e = &trial->expected;
    struct mfr_routes got = mfr_layer_routes(trial->run.layer);
    int64_t topk = trial->work->shape.topk, at = trial->first * topk;
    struct mfr_check *routes = mfr_checks_add(trial->checks, "routes", 0, true);
    struct mfr_check *weights =
        mfr_checks_add(trial->checks, "route_weights", MFR_BOUND_FP32, false);
    struct mfr_check *alone =
        mfr_checks_add(trial->checks, "routes_one_rank", 0, true);

    for (int64_t t = 0; t < trial->tokens; t++)
        check_token_routes(got.ids + t * topk, got.weights + t * topk,
            e->ref_ids + at + t * topk, e->ref_weights + at + t * topk, topk,
            routes, weights);
    mfr_check_equal(alone,
        mfr_same(got.ids, e->ids + at, trial->tokens * topk, sizeof *got.ids) &&
            mfr_same(got.weights, e->weights + at, trial->tokens * topk,
                sizeof *got.weights));
}

/* Counts of the tokens of a stage, and rows that its experts worked on. */
static int check_counts(struct trial *trial, struct mf_error *err)
{
    int64_t experts = trial->work->shape.experts;
    struct mfr_routes got = mfr_layer_routes(trial->run.layer);
    struct mfr_received received = mfr_layer_received(trial->run.layer);
    struct mfr_tensors held = mfr_layer_gradients(trial->run.layer);
    int64_t *sum = mfr_room(2, experts, sizeof *sum, err);
    int rc = mfr_agree(trial->base, sum ? 0 : -1, err);

    if (rc)
        goto out;
    memcpy(sum, got.counts, (size_t)experts * sizeof *sum);
    /* All ranks of an ETP group hold the same rows: count them once. */
    for (int64_t l = 0; l < held.experts && trial->coords.etp == 0; l++)
        sum[experts + held.first_expert + l] =
            received.first[l + 1] - received.first[l];
    rc = mfr_mpi(MPI_Allreduce(MPI_IN_PLACE, sum, (int)(2 * experts),
                     MPI_INT64_T, MPI_SUM, trial->stage),
        "verify: MPI_Allreduce", err);
    mfr_check_equal(mfr_checks_add(trial->checks, "counts_one_rank", 0, true),
        mfr_same(sum, trial->expected.counts, experts, sizeof *sum));
    mfr_check_equal(mfr_checks_add(trial->checks, "kept_one_rank", 0, true),
        mfr_same(sum + experts, trial->expected.counts, experts, sizeof *sum));
out:
    free(sum);
    return rc;
}

/* Which tokens of the stage the ranks of this rank's ETP x EP group hold. */
static int mark_group(
    const struct trial *trial, bool *held, struct mf_error *err)
{
    const struct mfr_verify_case *work = trial->work;
    int64_t n = mf_group_size(&work->layout, MF_GROUP_ETP_EP);
    int32_t *member = mfr_room(n, 1, sizeof *member, err);

    if (!member)
        return -1;
    mf_group_members(&work->layout, MF_GROUP_ETP_EP, trial->rank, member);
    for (int64_t i = 0; i < n; i++) {
        struct mfr_shard shard;
        int64_t first;

        mfr_shard_of(&work->shape, &work->layout, member[i], &shard);
        first = shard.micro_batch * trial->expected.per_batch +
                shard.first * work->shape.batch;
        for (int64_t t = 0; t < shard.tokens; t++)
            held[first + t] = true;
    }
    free(member);
    return 0;
}

/* Whether the rows of local expert L are, in order and to the bit, the inputs
 * of those tokens of the group that chose it on one rank.
 */
static bool rows_same(
    const struct trial *trial, int64_t l, const bool *held, float *row)
{
    const struct mfr_verify_case *work = trial->work;
    const struct mfr_expected *e = &trial->expected;
    struct mfr_received got = mfr_layer_received(trial->run.layer);
    int64_t hidden = work->shape.hidden, topk = work->shape.topk, k;
    int64_t next = got.first[l], end = got.first[l + 1];
    int32_t expert =
        (int32_t)(mfr_layer_gradients(trial->run.layer).first_expert + l);

    for (int64_t t = 0; t < e->tokens; t++) {
        if (!held[t] || !chosen(e->ids + t * topk, topk, expert, &k))
            continue;
        mfr_data_row(&work->shape, work->seed, MFR_INPUT, trial->coords.pp,
            t / e->per_batch, t % e->per_batch, 0, hidden, row);
        if (next == end ||
            !mfr_same(got.row + next * hidden, row, hidden, sizeof *row))
            return false;
        next++;
    }
    return next == end;
}

static int check_received(struct trial *trial, struct mf_error *err)
{
    struct mfr_check *check =
        mfr_checks_add(trial->checks, "received_one_rank", 0, true);
    bool *held = mfr_room(trial->expected.tokens, 1, sizeof *held, err);
    float *row = mfr_room(trial->work->shape.hidden, 1, sizeof *row, err);
    int rc = held && row ? mark_group(trial, held, err) : -1;
    int64_t n = mfr_layer_gradients(trial->run.layer).experts;

    for (int64_t l = 0; l < n && !rc; l++)
        mfr_check_equal(check, rows_same(trial, l, held, row));
    free(held);
    free(row);
    return mfr_agree(trial->base, rc, err);
}

static void check_values(struct trial *trial)
{
    const struct mfr_verify_case *work = trial->work;
    const struct mfr_expected *e = &trial->expected;
    int64_t at = trial->first * work->shape.hidden;
    int64_t n = trial->tokens * work->shape.hidden;
    bool bits = work->kernel == MFK_EXACT && work->layout.etp == 1;
    struct mfr_checks *checks = trial->checks;

    mfr_check_doubles(mfr_checks_add(checks, "output", MFR_BOUND_FP32, false),
        trial->run.y, e->ref_y + at, n);
    mfr_check_doubles(mfr_checks_add(checks, "dx", MFR_BOUND_FP32, false),
        trial->run.dx, e->ref_dx + at, n);
    mfr_check_floats(
        mfr_checks_add(checks, "output_one_rank", MFR_BOUND_FP32, bits),
        trial->run.y, e->y + at, n);
    mfr_check_floats(
        mfr_checks_add(checks, "dx_one_rank", MFR_BOUND_FP32, bits),
        trial->run.dx, e->dx + at, n);
}

static double squares(const float *v, int64_t n)
{
    double sum = 0;

    for (int64_t i = 0; i < n; i++)
        sum += (double)v[i] * (double)v[i];
    return sum;
}

/* Loss and gradient norm of the stage. Each parameter is counted once: expert
 * shards by the first of their EDP replicas, the router by one rank.
 */
static int check_sums(struct trial *trial, struct mf_error *err)
{
    const struct mfr_shape *shape = &trial->work->shape;
    struct mfr_tensors g = mfr_layer_gradients(trial->run.layer);
    int64_t expert = g.experts * g.ffn * shape->hidden;
    const struct mf_coords *c = &trial->coords;
    double sum[2] = {0, 0};

    for (int64_t i = 0; i < trial->tokens * shape->hidden; i++)
        sum[0] += (double)trial->run.y[i] * (double)trial->run.dy[i];
    if (c->edp == 0)
        sum[1] += squares(g.gate, expert) + squares(g.up, expert) +
                  squares(g.down, expert);
    if (c->tp == 0 && c->cp == 0 && c->dp == 0)
        sum[1] += squares(g.router, shape->experts * shape->hidden);
    if (mfr_mpi(MPI_Allreduce(
                    MPI_IN_PLACE, sum, 2, MPI_DOUBLE, MPI_SUM, trial->stage),
            "verify: MPI_Allreduce", err))
        return -1;
    mfr_check_double(
        mfr_checks_add(trial->checks, "loss", MFR_BOUND_FP32, false), sum[0],
        trial->expected.loss);
    mfr_check_double(
        mfr_checks_add(trial->checks, "grad_norm", MFR_BOUND_FP32, false),
        sqrt(sum[1]), trial->expected.grad_norm);
    return 0;
}

/* Local expert L of this rank against [ffn][hidden] of gate and up, then
 * [hidden][ffn] of down, of the whole expert.
 */
static void check_expert(const struct trial *trial, int64_t l,
    const double *whole, struct mfr_check *const check[3])
{
    int64_t hidden = trial->work->shape.hidden, ffn = trial->work->shape.ffn;
    struct mfr_tensors g = mfr_layer_gradients(trial->run.layer);
    int64_t at = l * g.ffn * hidden, skip = g.first_ffn * hidden;
    const double *down = whole + 2 * ffn * hidden + g.first_ffn;

    mfr_check_doubles(check[0], g.gate + at, whole + skip, g.ffn * hidden);
    mfr_check_doubles(
        check[1], g.up + at, whole + ffn * hidden + skip, g.ffn * hidden);
    for (int64_t i = 0; i < hidden; i++)
        mfr_check_doubles(
            check[2], g.down + at + i * g.ffn, down + i * ffn, g.ffn);
}

/* The stage's first rank holds the reference's gradients; they go round one
 * expert at a time, so that no other rank needs room for all.
 */
static int check_experts(struct trial *trial, struct mf_error *err)
{
    struct mfr_checks *checks = trial->checks;
    struct mfr_check *const check[3] = {
        mfr_checks_add(checks, "gate_grad", MFR_BOUND_FP32, false),
        mfr_checks_add(checks, "up_grad", MFR_BOUND_FP32, false),
        mfr_checks_add(checks, "down_grad", MFR_BOUND_FP32, false),
    };
    const struct mfr_reference *ref = &trial->expected.reference;
    struct mfr_tensors g = mfr_layer_gradients(trial->run.layer);
    int64_t size = trial->work->shape.ffn * trial->work->shape.hidden;
    size_t bytes = (size_t)size * sizeof(double);
    double *whole = mfr_room(3, size, sizeof *whole, err);
    int rc = mfr_agree(trial->base, whole ? 0 : -1, err);

    for (int64_t e = 0; e < trial->work->shape.experts && !rc; e++) {
        if (ref->gate) {
            memcpy(whole, ref->gate + e * size, bytes);
            memcpy(whole + size, ref->up + e * size, bytes);
            memcpy(whole + 2 * size, ref->down + e * size, bytes);
        }
        rc = mfr_share(trial->stage, whole, 3 * (int64_t)bytes, err);
        if (!rc && e >= g.first_expert && e < g.first_expert + g.experts)
            check_expert(trial, e - g.first_expert, whole, check);
    }
    free(whole);
    return rc;
}

static void check_router(struct trial *trial)
{
    const struct mfr_shape *shape = &trial->work->shape;

    mfr_check_doubles(
        mfr_checks_add(trial->checks, "router_grad", MFR_BOUND_FP32, false),
        mfr_layer_gradients(trial->run.layer).router, trial->expected.router,
        shape->experts * shape->hidden);
}

/* Whether N floats are the same on all ranks of COMM; FIRST is room for them.
 */
static int replicas(MPI_Comm comm, const float *v, int64_t n, float *first,
    struct mfr_check *check, struct mf_error *err)
{
    memcpy(first, v, (size_t)n * sizeof *v);
    if (mfr_share(comm, first, n * (int64_t)sizeof *v, err))
        return -1;
    mfr_check_equal(check, mfr_same(first, v, n, sizeof *v));
    return 0;
}

/* The ranks that hold the same shard are found from the coordinates, not from
 * the layer's own communicators.
 */
static int check_replicas(struct trial *trial, struct mf_error *err)
{
    const struct mfr_shape *shape = &trial->work->shape;
    struct mfr_tensors g = mfr_layer_gradients(trial->run.layer);
    struct mfr_check *router =
        mfr_checks_add(trial->checks, "router_grad_replicas", 0, true);
    struct mfr_check *experts =
        mfr_checks_add(trial->checks, "expert_grad_replicas", 0, true);
    int64_t n = g.experts * g.ffn * shape->hidden;
    int64_t m = shape->experts * shape->hidden;
    int shard =
        (int)(trial->coords.ep * trial->work->layout.etp + trial->coords.etp);
    float *first = mfr_room(n > m ? n : m, 1, sizeof *first, err);
    MPI_Comm comm = MPI_COMM_NULL;
    int rc = mfr_agree(trial->base, first ? 0 : -1, err);

    if (!rc)
        rc = mfr_mpi(MPI_Comm_split(trial->stage, shard, trial->rank, &comm),
            "verify: MPI_Comm_split", err);
    if (!rc && (replicas(trial->stage, g.router, m, first, router, err) ||
                   replicas(comm, g.gate, n, first, experts, err) ||
                   replicas(comm, g.up, n, first, experts, err) ||
                   replicas(comm, g.down, n, first, experts, err)))
        rc = -1;
    if (comm != MPI_COMM_NULL && MPI_Comm_free(&comm) != MPI_SUCCESS)
        rc = mf_error_set(err, MF_FAILED, "verify: MPI_Comm_free failed");
    free(first);
    return rc;
}

static int trial_compare(
    struct trial *trial, const struct mfr_comms *comms, struct mf_error *err)
{
    if (check_tokens(trial, err))
        return -1;
    check_routes(trial);
    check_values(trial);
    check_router(trial);
    return check_experts(trial, err) || check_sums(trial, err) ||
                   check_counts(trial, err) || check_received(trial, err) ||
                   check_replicas(trial, err) || check_twice(trial, comms, err)
               ? -1
               : 0;
}

static int trial_create(const struct mfr_verify_case *work,
    const struct mfr_comms *comms, struct trial *trial, struct mf_error *err)
{
    const struct mfr_shard *shard;

    mf_layout_coords(&work->layout, comms->rank, &trial->coords);
    if (mfr_mpi(MPI_Comm_split(comms->base, (int)trial->coords.pp, comms->rank,
                    &trial->stage),
            "verify: MPI_Comm_split", err) ||
        mfr_folded_run(work, comms, &trial->run, err) ||
        mfr_expected_create(work, trial->coords.pp,
            mfr_folded_scale(&work->layout), trial->stage, &trial->expected,
            err))
        return -1;
    shard = mfr_layer_shard(trial->run.layer);
    trial->tokens = shard->tokens;
    trial->first = shard->micro_batch * trial->expected.per_batch +
                   shard->first * work->shape.batch;
    return 0;
}

static int trial_settle(
    struct trial *trial, struct mfr_verify_result *result, struct mf_error *err)
{
    int rank;
    int64_t near_ties;

    if (mfr_mpi(
            MPI_Comm_rank(trial->stage, &rank), "verify: MPI_Comm_rank", err))
        return -1;
    near_ties = rank == 0 ? trial->expected.near_ties : 0;
    if (mfr_mpi(MPI_Allreduce(&near_ties, &result->near_ties, 1, MPI_INT64_T,
                    MPI_SUM, trial->base),
            "verify: MPI_Allreduce", err))
        return -1;
    return mfr_checks_settle(&result->checks, trial->stage, trial->base, err);
}

int mfr_verify_case_run(const struct mfr_verify_case *work,
    const struct mfr_comms *comms, struct mfr_verify_result *result,
    struct mf_error *err)
{
    struct trial trial = {
        .work = work,
        .rank = comms->rank,
        .base = comms->base,
        .stage = MPI_COMM_NULL,
        .checks = &result->checks,
    };
    int rc;

    *result = (struct mfr_verify_result){0};
    rc = trial_create(work, comms, &trial, err);
    if (!mfr_agree(comms->base, rc, err)) {
        rc = trial_compare(&trial, comms, err);
        rc = mfr_agree(comms->base, rc, err);
        if (!rc)
            rc = trial_settle(&trial, result, err);
    } else {
        rc = -1;
    }
    mfr_expected_free(&trial.expected);
    mfr_folded_free(&trial.run);
    if (trial.stage != MPI_COMM_NULL &&
        MPI_Comm_free(&trial.stage) != MPI_SUCCESS && !rc)
        rc = mf_error_set(err, MF_FAILED, "verify: MPI_Comm_free failed");
    return rc;
}
