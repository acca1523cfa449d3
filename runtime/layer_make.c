/* SPDX-License-Identifier: BSD-3-Clause
 * Making, filling and reading a layer.
 */
#include "runtime/layer_state.h"

#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/data.h"

static const char *const fault_names[] = {
    [MFR_FAULT_NONE] = "none",
    [MFR_FAULT_WRONG_GROUP] = "wrong-group",
    [MFR_FAULT_SKIP_EDP_SUM] = "skip-edp-sum",
    [MFR_FAULT_DROP_LAST_ROW] = "drop-last-row",
};

enum { FAULTS = sizeof fault_names / sizeof *fault_names };

const char *mfr_fault_name(enum mfr_fault fault)
{
    return fault_names[fault];
}

int mfr_fault_find(const char *name)
{
    for (int i = 0; i < FAULTS; i++)
        if (strcmp(name, fault_names[i]) == 0)
            return i;
    return -1;
}

static int check_range(
    const char *what, int64_t value, int64_t most, struct mf_error *err)
{
    if (value >= 1 && value <= most)
        return 0;
    return mf_error_set(err, MF_INVALID,
        "%s is %" PRId64 ", it must be 1 to %" PRId64, what, value, most);
}

static int check_groups(const struct mfr_shape *shape, struct mf_error *err)
{
    if (shape->groups < 2)
        return 0;
    if (shape->groups <= MFK_GROUPS_MOST && shape->topk_groups > 0 &&
        shape->topk_groups <= shape->groups && shape->group_best > 0 &&
        shape->experts % shape->groups == 0 &&
        shape->topk <= shape->experts / shape->groups * shape->topk_groups)
        return 0;
    return mf_error_set(err, MF_INVALID,
        "%" PRId64 " experts in %" PRId64 " router groups, of which %" PRId64
        " hold the %" PRId64 " chosen: that cannot be",
        shape->experts, shape->groups, shape->topk_groups, shape->topk);
}

int mfr_layer_check(const struct mfr_shape *shape,
    const struct mf_layout *layout, struct mf_error *err)
{
    int64_t tokens, choices;

    if (check_range("seq", shape->seq, INT_MAX, err) ||
        check_range("micro batch", shape->batch, INT_MAX, err) ||
        check_range("hidden", shape->hidden, INT_MAX, err) ||
        check_range("expert ffn", shape->ffn, INT_MAX, err) ||
        check_range("experts", shape->experts, INT_MAX, err) ||
        check_range("topk", shape->topk, shape->experts, err))
        return -1;
    if (shape->experts % layout->ep != 0)
        return mf_error_set(err, MF_INVALID,
            "%" PRId64 " experts do not divide over ep %" PRId64,
            shape->experts, layout->ep);
    if (shape->ffn % layout->etp != 0)
        return mf_error_set(err, MF_INVALID,
            "expert ffn %" PRId64 " does not divide over etp %" PRId64,
            shape->ffn, layout->etp);
    if (shape->shared_ffn < 0 || shape->shared_ffn > INT_MAX ||
        shape->shared_ffn % layout->tp != 0)
        return mf_error_set(err, MF_INVALID,
            "shared expert ffn %" PRId64 " does not divide over tp %" PRId64,
            shape->shared_ffn, layout->tp);
    if (check_groups(shape, err))
        return -1;
    if (!isfinite(shape->scaling))
        return mf_error_set(err, MF_INVALID, "router scaling is not a number");
    if (__builtin_mul_overflow(shape->seq, shape->batch, &tokens) ||
        __builtin_mul_overflow(tokens, shape->topk, &choices) ||
        choices > INT_MAX || mfr_layer_bytes(shape, layout, 0) < 0)
        return mf_error_set(err, MF_INVALID,
            "a micro batch of %" PRId64 " sequences of %" PRId64
            " tokens is too large",
            shape->batch, shape->seq);
    return 0;
}

int64_t mfr_layer_copies_bytes(const struct mfr_shape *shape,
    const struct mf_layout *layout, int64_t rank, enum mf_dispatcher dispatcher)
{
    const int64_t most = layout->tp * layout->cp * layout->dp;
    const int64_t members =
        layout->etp * layout->ep < most ? layout->etp * layout->ep : most;
    const int64_t bytes = mfr_layer_bytes(shape, layout, rank);
    struct mfr_shard shard;
    double more, tokens;

    if (bytes < 0 || dispatcher == MF_ALLTOALL)
        return bytes;
    mfr_shard_of(shape, layout, rank, &shard);
    tokens = (double)shard.tokens;
    more = mfr_copies_bytes(shape, members, tokens, tokens * (double)members,
        tokens * (double)(shape->topk * layout->etp));
    return more < 0x1p61 ? bytes + (int64_t)more : -1;
}

/* Weights, gradients and rows of the shared experts. */
static double shared_values(const struct mfr_shape *shape,
    const struct mf_layout *layout, double tokens)
{
    const double h = (double)shape->hidden;
    const double f = (double)shape->shared_ffn / (double)layout->tp;
    const double rows = tokens * (double)layout->tp;

    return f > 0 ? 6 * h * f + 2 * rows * (h + 3 * f) + 2 * tokens * h : 0;
}

int64_t mfr_layer_bytes(
    const struct mfr_shape *shape, const struct mf_layout *layout, int64_t rank)
{
    struct mfr_shard shard;
    const double h = (double)shape->hidden, e = (double)shape->experts;
    const double f = (double)shape->ffn / (double)layout->etp;
    double tokens, choices, rows, values;

    mfr_shard_of(shape, layout, rank, &shard);
    tokens = (double)shard.tokens;
    choices = tokens * (double)shape->topk;
    rows = choices * (double)layout->etp;
    values = 2 * (e * h + 3 * (e / (double)layout->ep) * f * h);
    values += tokens * (4 * h + 3 * e) + choices * (2 * h + 5);
    values += rows * (3 * h + 3 * f) + (layout->etp > 1 ? rows * h : 0);
    values += shared_values(shape, layout, tokens);
    values *= sizeof(float);
    return values < 0x1p62 ? (int64_t)values : -1;
}

static float *zeros(int64_t a, int64_t b, int64_t c)
{
    int64_t n;

    if (__builtin_mul_overflow(a, b, &n) || __builtin_mul_overflow(n, c, &n))
        return NULL;
    return calloc((size_t)n + 1, sizeof(float));
}

static int layer_alloc(mfr_layer *layer, struct mf_error *err)
{
    const struct mfr_shape *shape = &layer->shape;
    const int64_t choices = layer->shard.tokens * shape->topk;
    const struct mfr_comms *comms = layer->comms;

    if (mfr_tensors_alloc(shape, false, &layer->weights, err) ||
        mfr_tensors_alloc(shape, true, &layer->gradients, err) ||
        mfr_router_init(&layer->router, shape, layer->shard.tokens, err))
        return -1;
    layer->send = zeros(choices, shape->hidden, 1);
    layer->returned = zeros(choices, shape->hidden, 1);
    layer->sum_scratch =
        zeros(mfr_sum_scratch(comms->group_size[MF_GROUP_TP_DP_CP]), 1, 1);
    if (layer->send && layer->returned && layer->sum_scratch)
        return 0;
    return mf_error_set(err, MF_FAILED, "out of memory for permuted rows");
}

static void layer_place(mfr_layer *layer, const struct mf_layout *layout)
{
    struct mfr_tensors *t = &layer->weights;

    mfr_shard_of(&layer->shape, layout, layer->comms->rank, &layer->shard);
    mfr_tensors_place(&layer->shape, layout, &layer->comms->coords, t);
    layer->gradients = *t;
    layer->experts.activation = layer->shape.activation;
    layer->experts.first_part = layer->comms->group_rank[MF_GROUP_ETP] == 0;
    layer->experts.local = t->experts;
    layer->experts.hidden = layer->shape.hidden;
    layer->experts.ffn = t->ffn;
}

static int device_exchange(mfr_layer *layer,
    const struct mfr_layer_options *options, struct mf_error *err)
{
    if (!layer->device || !layer->device->moves)
        return 0;
    return mfr_dispatch_device_init(&layer->device->dispatch,
        options->device_comms, &layer->dispatch.splits, layer->shape.hidden,
        err);
}

static int make_copies(mfr_layer *layer,
    const struct mfr_layer_options *options, struct mf_error *err)
{
    if (options->dispatcher == MF_ALLTOALL)
        return 0;
    if (options->device)
        return mf_error_set(err, MF_INVALID,
            "the %s dispatcher runs on the CPU alone; use --backend cpu or "
            "--dispatcher alltoall",
            mf_dispatcher_name(options->dispatcher));
    return mfr_copies_create(&layer->shape, layer->comms,
        &layer->dispatch.splits, options->dispatcher == MF_ALLGATHER,
        &layer->copies, err);
}

static int make_shared(mfr_layer *layer,
    const struct mfr_layer_options *options, struct mf_error *err)
{
    static const struct mfr_transport usual = {0};
    const struct mfr_transport *how =
        options->transport ? options->transport : &usual;

    if (options->dispatcher != MF_ALLTOALL || options->device ||
        how->mpi_only || layer->dispatch.splits.members == 1)
        return 0;
    if (mfr_shared_create(&layer->shape, layer->comms, &layer->dispatch.splits,
            how, &layer->shared, err))
        return -1;
    layer->shared->poison = layer->observed;
    return 0;
}

int mfr_layer_create(const struct mfr_shape *shape,
    const struct mf_layout *layout, const struct mfr_comms *comms,
    const struct mfr_layer_options *options, mfr_layer **layer,
    struct mf_error *err)
{
    const MPI_Comm group = comms->comm[MF_GROUP_ETP_EP];
    mfr_layer *new;
    int rc;

    *layer = NULL;
    if (mfr_layer_check(shape, layout, err))
        return -1;
    new = calloc(1, sizeof *new);
    rc = new ? 0 : mf_error_set(err, MF_FAILED, "out of memory");
    if (new) {
        new->shape = *shape;
        new->comms = comms;
        new->fault = options->fault;
        new->observed = options->observed;
        new->dispatch.row = MPI_DATATYPE_NULL;
        new->experts.kernel = options->kernel;
        layer_place(new, layout);
        rc = layer_alloc(new, err);
        if (rc == 0 && shape->shared_ffn > 0)
            rc = mfr_shared_experts_create(
                new, layout, &new->shared_experts, err);
        if (rc == 0 && options->device)
            rc = mfr_layer_device_create(options, shape, &new->router,
                &new->weights, comms->group_size[MF_GROUP_ETP_EP] == 1,
                &new->device, err);
    }
    if (mfr_agree(group, rc, err) ||
        mfr_dispatch_init(&new->dispatch, shape, comms, &new->shard,
            layout->tp * layout->cp, err) ||
        mfr_agree(group, make_copies(new, options, err), err) ||
        make_shared(new, options, err) || device_exchange(new, options, err)) {
        mfr_layer_free(new);
        return -1;
    }
    *layer = new;
    return 0;
}

void mfr_layer_free(mfr_layer *layer)
{
    if (!layer)
        return;
    mfr_layer_device_free(layer->device);
    mfr_tensors_free(&layer->weights);
    mfr_tensors_free(&layer->gradients);
    mfr_shared_experts_free(layer->shared_experts);
    mfr_router_free(&layer->router);
    mfr_copies_free(layer->copies);
    mfr_shared_free(layer->shared);
    mfr_dispatch_free(&layer->dispatch);
    mfr_experts_free(&layer->experts);
    free(layer->send);
    free(layer->returned);
    free(layer->sum_scratch);
    free(layer);
}

void mfr_layer_seed(mfr_layer *layer, uint64_t seed)
{
    const struct mfr_tensors t = mfr_layer_weights(layer);

    mfr_tensors_seed(&layer->shape, seed, layer->comms->coords.pp,
        &layer->comms->coords, &t);
}

static void seed_tokens(
    const mfr_layer *layer, uint64_t seed, enum mfr_tensor tensor, float *out)
{
    const int64_t h = layer->shape.hidden;
    const int64_t first = layer->shard.first * layer->shape.batch;

    for (int64_t t = 0; t < layer->shard.tokens; t++)
        mfr_data_row(&layer->shape, seed, tensor, layer->comms->coords.pp,
            layer->shard.micro_batch, first + t, 0, h, out + t * h);
}

void mfr_layer_seed_input(const mfr_layer *layer, uint64_t seed, float *x)
{
    seed_tokens(layer, seed, MFR_INPUT, x);
}

void mfr_layer_seed_output_grad(
    const mfr_layer *layer, uint64_t seed, float *dy)
{
    seed_tokens(layer, seed, MFR_OUTPUT_GRAD, dy);
}

const struct mfr_shard *mfr_layer_shard(const mfr_layer *layer)
{
    return &layer->shard;
}

struct mfr_tensors mfr_layer_weights(mfr_layer *layer)
{
    if (layer->device)
        layer->device->weights_new = true;
    return layer->weights;
}

struct mfr_tensors mfr_layer_gradients(mfr_layer *layer)
{
    return layer->gradients;
}

struct mfr_routes mfr_layer_routes(const mfr_layer *layer)
{
    return (struct mfr_routes){layer->shard.tokens, layer->router.ids,
        layer->router.weights, layer->router.counts};
}

struct mfr_received mfr_layer_received(const mfr_layer *layer)
{
    return (struct mfr_received){layer->dispatch.splits.rows,
        layer->dispatch.splits.first, layer->experts.x};
}

void mfr_layer_meet(mfr_layer *layer, bool meet)
{
    layer->times.meet = meet;
}

void mfr_layer_trace(mfr_layer *layer, struct mfr_trace *trace)
{
    layer->times.trace = trace;
}

const struct mfr_times *mfr_layer_times(const mfr_layer *layer)
{
    return &layer->times;
}

void mfr_layer_zero_gradients(mfr_layer *layer)
{
    mfr_tensors_zero(&layer->shape, &layer->comms->coords, &layer->gradients);
    if (layer->device)
        layer->device->gradients_old = true;
}
