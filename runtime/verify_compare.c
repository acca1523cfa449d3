/* SPDX-License-Identifier: BSD-3-Clause
 * Each check of one run. Collectives are few and none of them is the layer's:
 * what differs between ranks is joined when the checks are settled.
 */
#include "runtime/verify_compare.h"

#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Doubles of expert gradients that go round at once. */
#define SHARED_MOST ((int64_t)1 << 20)

/* Room for all checks, so that only one agreement is needed. */
struct space {
    int64_t *sum;    /* [T + 2 * experts] */
    double *whole;   /* [run][3][ffn * hidden] */
    int64_t run;     /* experts that go round at once */
    float *first;    /* a rank's expert gradients, or the router's */
    bool *held;      /* [T] */
    int32_t *member; /* of an ETP x EP group */
    float *row;      /* [hidden] */
};

static int64_t tokens_of(const struct mfr_trial *trial)
{
    return mfr_layer_shard(trial->run.layer)->tokens;
}

/* Where this rank's tokens begin among the stage's. */
static int64_t first_of(const struct mfr_trial *trial)
{
    const struct mfr_shard *shard = mfr_layer_shard(trial->run.layer);

    return shard->micro_batch * trial->expected.per_batch +
           shard->first * trial->work->shape.batch;
}

static int space_create(
    const struct mfr_trial *trial, struct space *space, struct mf_error *err)
{
    const struct mfr_shape *shape = &trial->work->shape;
    struct mfr_tensors g = mfr_layer_gradients(trial->run.layer);
    int64_t tokens = trial->expected.tokens;
    int64_t expert = 3 * shape->ffn * shape->hidden;
    int64_t shard = 3 * g.experts * g.ffn * shape->hidden;
    int64_t router = shape->experts * shape->hidden;

    *space = (struct space){.run = SHARED_MOST / expert};
    if (space->run < 1)
        space->run = 1;
    if (space->run > shape->experts)
        space->run = shape->experts;
    if (tokens + 2 * shape->experts > INT_MAX)
        return mf_error_set(err, MF_INVALID,
            "verify: more tokens than a count holds; take a smaller shape");
    space->sum =
        mfr_room(tokens + 2 * shape->experts, 1, sizeof *space->sum, err);
    space->whole = mfr_room(space->run, expert, sizeof *space->whole, err);
    space->first =
        mfr_room(shard > router ? shard : router, 1, sizeof *space->first, err);
    space->held = mfr_room(tokens, 1, sizeof *space->held, err);
    space->member =
        mfr_room(mf_group_size(&trial->verifier->layout, MF_GROUP_ETP_EP), 1,
            sizeof *space->member, err);
    space->row = mfr_room(shape->hidden, 1, sizeof *space->row, err);
    return space->sum && space->whole && space->first && space->held &&
                   space->member && space->row
               ? 0
               : -1;
}

static void space_free(struct space *space)
{
    free(space->sum);
    free(space->whole);
    free(space->first);
    free(space->held);
    free(space->member);
    free(space->row);
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

static void check_routes(struct mfr_trial *trial)
{
    const struct mfr_expected *e = &trial->expected;
    struct mfr_routes got = mfr_layer_routes(trial->run.layer);
    int64_t topk = trial->work->shape.topk, at = first_of(trial) * topk;
    struct mfr_check *routes = mfr_checks_add(trial->checks, "routes", 0, true);
    struct mfr_check *weights =
        mfr_checks_add(trial->checks, "route_weights", MFR_BOUND_FP32, false);
    struct mfr_check *alone =
        mfr_checks_add(trial->checks, "routes_one_rank", 0, true);

    for (int64_t t = 0; t < tokens_of(trial); t++)
        check_token_routes(got.ids + t * topk, got.weights + t * topk,
            e->ref_ids + at + t * topk, e->ref_weights + at + t * topk, topk,
            routes, weights);
    mfr_check_equal(alone,
        mfr_same(
            got.ids, e->ids + at, tokens_of(trial) * topk, sizeof *got.ids) &&
            mfr_same(got.weights, e->weights + at, tokens_of(trial) * topk,
                sizeof *got.weights));
}

/* Every token of the stage lies on exactly one of its ranks; the tokens' counts
 * by expert, and the rows that experts worked on, are those of one rank.
 */
static int check_counts(
    struct mfr_trial *trial, struct space *space, struct mf_error *err)
{
    int64_t experts = trial->work->shape.experts, *sum = space->sum;
    int64_t tokens = trial->expected.tokens, *kept = sum + tokens + experts;
    struct mfr_received received = mfr_layer_received(trial->run.layer);
    struct mfr_tensors held = mfr_layer_gradients(trial->run.layer);
    struct mfr_checks *checks = trial->checks;
    bool once = true;

    for (int64_t t = 0; t < tokens_of(trial); t++)
        sum[first_of(trial) + t] = 1;
    memcpy(sum + tokens, mfr_layer_routes(trial->run.layer).counts,
        (size_t)experts * sizeof *sum);
    /* All ranks of an ETP group hold the same rows: count them once. */
    for (int64_t l = 0; l < held.experts; l++)
        if (trial->verifier->coords.etp == 0)
            kept[held.first_expert + l] =
                received.first[l + 1] - received.first[l];
    if (mfr_mpi(MPI_Allreduce(MPI_IN_PLACE, sum, (int)(tokens + 2 * experts),
                    MPI_INT64_T, MPI_SUM, trial->verifier->stage),
            "verify: MPI_Allreduce", err))
        return -1;
    for (int64_t t = 0; t < tokens; t++)
        once = once && sum[t] == 1;
    mfr_check_equal(mfr_checks_add(checks, "tokens", 0, true), once);
    mfr_check_equal(mfr_checks_add(checks, "counts_one_rank", 0, true),
        mfr_same(sum + tokens, trial->expected.counts, experts, sizeof *sum));
    mfr_check_equal(mfr_checks_add(checks, "kept_one_rank", 0, true),
        mfr_same(kept, trial->expected.counts, experts, sizeof *sum));
    return 0;
}

/* Which tokens of the stage the ranks of this rank's ETP x EP group hold. */
static void mark_group(
    const struct mfr_trial *trial, int32_t *member, bool *held)
{
    const struct mfr_shape *shape = &trial->work->shape;
    const struct mf_layout *layout = &trial->verifier->layout;
    int64_t n = mf_group_size(layout, MF_GROUP_ETP_EP);

    mf_group_members(
        layout, MF_GROUP_ETP_EP, trial->verifier->comms->rank, member);
    for (int64_t i = 0; i < n; i++) {
        struct mfr_shard shard;
        int64_t first;

        mfr_shard_of(shape, layout, member[i], &shard);
        first = shard.micro_batch * trial->expected.per_batch +
                shard.first * shape->batch;
        for (int64_t t = 0; t < shard.tokens; t++)
            held[first + t] = true;
    }
}

/* Whether the rows of local expert L are, in order and to the bit, the inputs
 * of those tokens of the group that chose it on one rank.
 */
static bool rows_same(
    const struct mfr_trial *trial, int64_t l, const bool *held, float *row)
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
        mfr_data_row(&work->shape, work->seed, MFR_INPUT,
            trial->verifier->coords.pp, t / e->per_batch, t % e->per_batch, 0,
            hidden, row);
        mfr_verify_case_bend(work, MFR_INPUT, t % e->per_batch, row);
        if (next == end ||
            !mfr_same(got.row + next * hidden, row, hidden, sizeof *row))
            return false;
        next++;
    }
    return next == end;
}

static void check_received(struct mfr_trial *trial, struct space *space)
{
    struct mfr_check *check =
        mfr_checks_add(trial->checks, "received_one_rank", 0, true);
    int64_t n = mfr_layer_gradients(trial->run.layer).experts;

    mark_group(trial, space->member, space->held);
    for (int64_t l = 0; l < n; l++)
        mfr_check_equal(check, rows_same(trial, l, space->held, space->row));
}

static void check_values(struct mfr_trial *trial)
{
    const struct mfr_verify_case *work = trial->work;
    const struct mfr_expected *e = &trial->expected;
    int64_t at = first_of(trial) * work->shape.hidden;
    int64_t n = tokens_of(trial) * work->shape.hidden;
    bool bits = work->kernel == MFK_EXACT && trial->verifier->layout.etp == 1 &&
                work->dispatcher == MF_ALLTOALL;
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
static int check_sums(struct mfr_trial *trial, struct mf_error *err)
{
    const struct mfr_shape *shape = &trial->work->shape;
    struct mfr_tensors g = mfr_layer_gradients(trial->run.layer);
    int64_t expert = g.experts * g.ffn * shape->hidden;
    const struct mf_coords *c = &trial->verifier->coords;
    double sum[2] = {0, 0};

    for (int64_t i = 0; i < tokens_of(trial) * shape->hidden; i++)
        sum[0] += (double)trial->run.y[i] * (double)trial->run.dy[i];
    if (c->edp == 0)
        sum[1] += squares(g.gate, expert) + squares(g.up, expert) +
                  squares(g.down, expert);
    if (c->tp == 0 && c->cp == 0 && c->dp == 0)
        sum[1] += squares(g.router, shape->experts * shape->hidden);
    if (mfr_mpi(MPI_Allreduce(MPI_IN_PLACE, sum, 2, MPI_DOUBLE, MPI_SUM,
                    trial->verifier->stage),
            "verify: MPI_Allreduce", err))
        return -1;
    mfr_check_sum(mfr_checks_add(trial->checks, "loss", MFR_BOUND_FP32, false),
        sum[0], trial->expected.sums->loss, trial->expected.sums->loss_scale);
    mfr_check_double(
        mfr_checks_add(trial->checks, "grad_norm", MFR_BOUND_FP32, false),
        sqrt(sum[1]), trial->expected.sums->grad_norm);
    return 0;
}

/* Local expert L of this rank against [ffn][hidden] of gate and up, then
 * [hidden][ffn] of down, of the whole expert.
 */
static void check_expert(const struct mfr_trial *trial, int64_t l,
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

/* The stage's first rank holds the reference's gradients; a few experts go
 * round at a time, so that no other rank needs room for all.
 */
static int check_experts(
    struct mfr_trial *trial, struct space *space, struct mf_error *err)
{
    struct mfr_check *const check[3] = {
        mfr_checks_add(trial->checks, "gate_grad", MFR_BOUND_FP32, false),
        mfr_checks_add(trial->checks, "up_grad", MFR_BOUND_FP32, false),
        mfr_checks_add(trial->checks, "down_grad", MFR_BOUND_FP32, false),
    };
    const struct mfr_reference *ref = &trial->expected.reference;
    struct mfr_tensors g = mfr_layer_gradients(trial->run.layer);
    int64_t experts = trial->work->shape.experts;
    int64_t size = trial->work->shape.ffn * trial->work->shape.hidden;
    size_t bytes = (size_t)size * sizeof(double);

    for (int64_t e = 0; e < experts; e += space->run) {
        int64_t n = experts - e < space->run ? experts - e : space->run;

        for (int64_t i = 0; i < n && ref->gate; i++) {
            double *whole = space->whole + 3 * i * size;

            memcpy(whole, ref->gate + (e + i) * size, bytes);
            memcpy(whole + size, ref->up + (e + i) * size, bytes);
            memcpy(whole + 2 * size, ref->down + (e + i) * size, bytes);
        }
        if (mfr_share(trial->verifier->stage, space->whole,
                3 * n * (int64_t)bytes, err))
            return -1;
        for (int64_t i = 0; i < n; i++)
            if (e + i >= g.first_expert && e + i < g.first_expert + g.experts)
                check_expert(trial, e + i - g.first_expert,
                    space->whole + 3 * i * size, check);
    }
    return 0;
}

static void check_router(struct mfr_trial *trial)
{
    const struct mfr_shape *shape = &trial->work->shape;

    mfr_check_doubles(
        mfr_checks_add(trial->checks, "router_grad", MFR_BOUND_FP32, false),
        mfr_layer_gradients(trial->run.layer).router, trial->expected.router,
        shape->experts * shape->hidden);
}

/* The parts of MINE, of N floats each, against those of COMM's first rank;
 * FIRST is room for them.
 */
static int check_same(MPI_Comm comm, const float *const mine[], int parts,
    int64_t n, float *first, struct mfr_check *check, struct mf_error *err)
{
    for (int i = 0; i < parts; i++)
        memcpy(first + i * n, mine[i], (size_t)n * sizeof *first);
    if (mfr_share(comm, first, parts * n * (int64_t)sizeof *first, err))
        return -1;
    for (int i = 0; i < parts; i++)
        mfr_check_equal(
            check, mfr_same(mine[i], first + i * n, n, sizeof *first));
    return 0;
}

static int check_replicas(
    struct mfr_trial *trial, struct space *space, struct mf_error *err)
{
    const struct mfr_shape *shape = &trial->work->shape;
    struct mfr_tensors g = mfr_layer_gradients(trial->run.layer);
    const float *router[] = {g.router}, *expert[] = {g.gate, g.up, g.down};
    struct mfr_checks *checks = trial->checks;

    if (check_same(trial->verifier->stage, router, 1,
            shape->experts * shape->hidden, space->first,
            mfr_checks_add(checks, "router_grad_replicas", 0, true), err))
        return -1;
    return check_same(trial->verifier->replicas, expert, 3,
        g.experts * g.ffn * shape->hidden, space->first,
        mfr_checks_add(checks, "expert_grad_replicas", 0, true), err);
}

int mfr_trial_compare(struct mfr_trial *trial, struct mf_error *err)
{
    struct space space;
    int rc = space_create(trial, &space, err);

    rc = mfr_agree(trial->verifier->comms->base, rc, err);
    if (rc)
        goto out;
    check_routes(trial);
    check_values(trial);
    check_router(trial);
    check_received(trial, &space);
    if (check_experts(trial, &space, err) || check_sums(trial, err) ||
        check_counts(trial, &space, err) || check_replicas(trial, &space, err))
        rc = -1;
out:
    space_free(&space);
    return rc;
}
