/* SPDX-License-Identifier: BSD-3-Clause
 * Each check of one run. Collectives are few and none of them is the layer's:
 * what differs between ranks is joined when the checks are settled.
 */
#include "runtime/verify_compare.h"

#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/collective.h"

/* Doubles of expert gradients that go round at once. */
#define SHARED_MOST ((int64_t)1 << 20)

/* Room for all checks, so that only one agreement is needed. */
struct space {
    int64_t *sum;    /* [T + 2 * experts] */
    double *whole;   /* blocks of one reference gradient */
    int64_t most;    /* values that WHOLE has room for */
    float *first;    /* one of a rank's gradients */
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

static int gradients_of(
    const struct mfr_trial *trial, struct mfr_view view[MFR_VIEWS_MOST])
{
    const struct mfr_tensors g = mfr_layer_gradients(trial->run.layer);

    return mfr_tensors_views(
        &trial->work->shape, &trial->verifier->coords, &g, view);
}

static int space_create(
    const struct mfr_trial *trial, struct space *space, struct mf_error *err)
{
    const struct mfr_shape *shape = &trial->work->shape;
    struct mfr_view view[MFR_VIEWS_MOST];
    const int views = gradients_of(trial, view);
    int64_t tokens = trial->expected.tokens, largest = 0;

    *space = (struct space){.most = SHARED_MOST};
    for (int i = 0; i < views; i++) {
        const int64_t block = view[i].all_rows * view[i].all_columns;
        const int64_t mine = mfr_view_count(&view[i]);

        space->most = block > space->most ? block : space->most;
        largest = mine > largest ? mine : largest;
    }
    if (tokens + 2 * shape->experts > INT_MAX)
        return mf_error_set(err, MF_INVALID,
            "verify: more tokens than a count holds; take a smaller shape");
    space->sum =
        mfr_room(tokens + 2 * shape->experts, 1, sizeof *space->sum, err);
    space->whole = mfr_room(space->most, 1, sizeof *space->whole, err);
    space->first = mfr_room(largest, 1, sizeof *space->first, err);
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
    if (mfr_allreduce(MPI_IN_PLACE, sum, (int)(tokens + 2 * experts),
            MPI_INT64_T, MPI_SUM, trial->verifier->stage,
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

bool mfr_trial_bits(const struct mfr_trial *trial)
{
    const struct mfr_verify_case *work = trial->work;
    const struct mf_layout *layout = &trial->verifier->layout;

    return work->kernel == MFK_EXACT && layout->etp == 1 &&
           work->dispatcher == MF_ALLTOALL &&
           (work->shape.shared_ffn == 0 || layout->tp == 1);
}

static void check_values(struct mfr_trial *trial)
{
    const struct mfr_verify_case *work = trial->work;
    const struct mfr_expected *e = &trial->expected;
    int64_t at = first_of(trial) * work->shape.hidden;
    int64_t n = tokens_of(trial) * work->shape.hidden;
    const bool bits = mfr_trial_bits(trial);
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

/* Loss and gradient norm of the stage. Each parameter is counted once. */
static int check_sums(struct mfr_trial *trial, struct mf_error *err)
{
    const struct mfr_shape *shape = &trial->work->shape;
    struct mfr_view view[MFR_VIEWS_MOST];
    const int views = gradients_of(trial, view);
    double sum[2] = {0, 0};

    for (int64_t i = 0; i < tokens_of(trial) * shape->hidden; i++)
        sum[0] += (double)trial->run.y[i] * (double)trial->run.dy[i];
    for (int i = 0; i < views; i++)
        if (view[i].once)
            sum[1] += squares(view[i].values, mfr_view_count(&view[i]));
    if (mfr_allreduce(MPI_IN_PLACE, sum, 2, MPI_DOUBLE, MPI_SUM,
            trial->verifier->stage, "verify: MPI_Allreduce", err))
        return -1;
    mfr_check_sum(mfr_checks_add(trial->checks, "loss", MFR_BOUND_FP32, false),
        sum[0], trial->expected.sums->loss, trial->expected.sums->loss_scale);
    mfr_check_double(
        mfr_checks_add(trial->checks, "grad_norm", MFR_BOUND_FP32, false),
        sqrt(sum[1]), trial->expected.sums->grad_norm);
    return 0;
}

static const char *grad_name(enum mfr_tensor tensor)
{
    static const char *const name[] = {
        [MFR_ROUTER] = "router_grad",
        [MFR_ROUTER_BIAS] = "router_bias_grad",
        [MFR_GATE] = "gate_grad",
        [MFR_UP] = "up_grad",
        [MFR_DOWN] = "down_grad",
        [MFR_GATE_BIAS] = "gate_bias_grad",
        [MFR_UP_BIAS] = "up_bias_grad",
        [MFR_DOWN_BIAS] = "down_bias_grad",
        [MFR_SHARED_GATE] = "shared_gate_grad",
        [MFR_SHARED_UP] = "shared_up_grad",
        [MFR_SHARED_DOWN] = "shared_down_grad",
        [MFR_SHARED_ROUTER] = "shared_router_grad",
    };

    return name[tensor];
}

/* This rank's part of block B of the whole parameter. */
static void check_block(const struct mfr_view *view, int64_t b,
    const double *whole, struct mfr_check *check)
{
    if (b < view->first_block || b >= view->first_block + view->blocks)
        return;
    for (int64_t r = 0; r < view->rows; r++)
        mfr_check_doubles(check, mfr_view_row(view, b - view->first_block, r),
            whole + (view->first_row + r) * view->all_columns +
                view->first_column,
            view->columns);
}

/* The stage's first rank holds the reference's gradient; a few blocks go round
 * at a time, so that no other rank needs room for all.
 */
static int check_gradient(struct mfr_trial *trial, struct space *space,
    const struct mfr_view *view, struct mf_error *err)
{
    struct mfr_check *check = mfr_checks_add(
        trial->checks, grad_name(view->tensor), MFR_BOUND_FP32, false);
    const double *ref =
        *mfr_expected_member(&trial->expected.reference.gradient, view->tensor);
    const int64_t size = view->all_rows * view->all_columns;
    const int64_t run = space->most / size;

    for (int64_t b = 0; b < view->all_blocks; b += run) {
        const int64_t left = view->all_blocks - b, n = left < run ? left : run;
        const size_t bytes = (size_t)(n * size) * sizeof(double);

        if (ref)
            memcpy(space->whole, ref + b * size, bytes);
        if (mfr_share(
                trial->verifier->stage, space->whole, (int64_t)bytes, err))
            return -1;
        for (int64_t i = 0; i < n; i++)
            check_block(view, b + i, space->whole + i * size, check);
    }
    /* A rank without a value of it has nothing that could be wrong. */
    if (view->rows == 0 || view->columns == 0)
        mfr_check_equal(check, true);
    return 0;
}

static int check_gradients(
    struct mfr_trial *trial, struct space *space, struct mf_error *err)
{
    struct mfr_view view[MFR_VIEWS_MOST];
    const int views = gradients_of(trial, view);

    for (int i = 0; i < views; i++)
        if (check_gradient(trial, space, &view[i], err))
            return -1;
    return 0;
}

/* MINE against that of COMM's first rank. */
static int check_same(MPI_Comm comm, const struct mfr_view *mine, float *first,
    struct mfr_check *check, struct mf_error *err)
{
    const int64_t n = mfr_view_count(mine);

    memcpy(first, mine->values, (size_t)n * sizeof *first);
    if (mfr_share(comm, first, n * (int64_t)sizeof *first, err))
        return -1;
    mfr_check_equal(check, mfr_same(mine->values, first, n, sizeof *first));
    return 0;
}

/* Whoever holds the same part of a parameter holds the same gradient. */
static int check_kind(struct mfr_trial *trial, struct space *space,
    enum mf_group_kind kind, MPI_Comm replicas, struct mfr_check *check,
    struct mf_error *err)
{
    struct mfr_view view[MFR_VIEWS_MOST];
    const int views = gradients_of(trial, view);

    for (int i = 0; i < views; i++)
        if (view[i].sum == kind &&
            check_same(replicas, &view[i], space->first, check, err))
            return -1;
    return 0;
}

static int check_replicas(
    struct mfr_trial *trial, struct space *space, struct mf_error *err)
{
    const struct mfr_verifier *v = trial->verifier;
    struct mfr_checks *checks = trial->checks;

    if (check_kind(trial, space, MF_GROUP_TP_DP_CP, v->stage,
            mfr_checks_add(checks, "router_grad_replicas", 0, true), err) ||
        check_kind(trial, space, MF_GROUP_EDP, v->replicas,
            mfr_checks_add(checks, "expert_grad_replicas", 0, true), err))
        return -1;
    if (trial->work->shape.shared_ffn == 0)
        return 0;
    return check_kind(trial, space, MF_GROUP_DP_CP, v->shared_replicas,
        mfr_checks_add(checks, "shared_grad_replicas", 0, true), err);
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
    check_received(trial, &space);
    if (check_gradients(trial, &space, err) || check_sums(trial, err) ||
        check_counts(trial, &space, err) || check_replicas(trial, &space, err))
        rc = -1;
out:
    space_free(&space);
    return rc;
}
