/* SPDX-License-Identifier: BSD-3-Clause
 * Micro batches through pipeline stages, one forward, one backward.
 */
#include "runtime/pipeline.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/kernels.h"
#include "runtime/clock.h"
#include "runtime/guard.h"

/* Messages of one direction that may be under way from a stage. */
enum { TAG_FORWARD = 41, TAG_BACKWARD = 42, SLOTS = 2 };

/* What goes to one neighbour. */
struct outbox {
    float *slot[SLOTS]; /* [values] */
    MPI_Request request[SLOTS];
};

struct mfr_pipeline {
    struct mfr_shape shape;
    const struct mfr_comms *comms;
    int64_t dp, layers, batches;
    int64_t tokens, values; /* of this rank in a micro batch; times hidden */
    int stages, stage;
    int64_t flight; /* micro batches in flight here, at most */
    mfr_layer **layer;
    float *room;
    float **in;            /* [flight] inputs of this stage */
    float **act;           /* [layers] what each layer gave */
    float *gradient, *own; /* of the layer below; of one layer's input */
    struct outbox box[MF_DIRECTIONS];
    int64_t fresh; /* whose forward pass the layers hold; -1 */
    MPI_Datatype row;
    double send_s[MF_DIRECTIONS];
};

mfr_layer *mfr_pipeline_layer(mfr_pipeline *p, int64_t l)
{
    return p->layer[l];
}

double mfr_pipeline_send_s(const mfr_pipeline *p, enum mf_direction direction)
{
    return p->send_s[direction];
}

static int alloc(mfr_pipeline *p)
{
    const int64_t buffers = p->flight + p->layers + 2 + 2 * SLOTS;
    const int64_t each = p->values + 1;
    int64_t n;
    float *at;

    p->layer = calloc((size_t)p->layers, sizeof(mfr_layer *));
    p->in = calloc((size_t)p->flight, sizeof *p->in);
    p->act = calloc((size_t)p->layers, sizeof *p->act);
    if (__builtin_mul_overflow(buffers, each, &n) ||
        n > INT64_MAX / (int64_t)sizeof *at)
        return -1;
    p->room = at = calloc((size_t)n, sizeof *at);
    if (!p->layer || !p->in || !p->act || !at)
        return -1;
    for (int64_t i = 0; i < p->flight; i++, at += each)
        p->in[i] = at;
    for (int64_t l = 0; l < p->layers; l++, at += each)
        p->act[l] = at;
    p->gradient = at;
    p->own = at + each;
    at += 2 * each;
    for (int d = 0; d < MF_DIRECTIONS; d++)
        for (int i = 0; i < SLOTS; i++, at += each)
            p->box[d].slot[i] = at;
    return 0;
}

/* Fields that need no memory. */
static void place(mfr_pipeline *p, const struct mfr_shape *shape,
    const struct mf_layout *layout, const struct mfr_comms *comms,
    int64_t layers, int64_t batches)
{
    struct mfr_shard shard;
    int64_t behind;

    mfr_shard_of(shape, layout, comms->rank, &shard);
    *p = (struct mfr_pipeline){
        .shape = *shape,
        .comms = comms,
        .dp = layout->dp,
        .layers = layers,
        .batches = batches,
        .tokens = shard.tokens,
        .values = shard.tokens * shape->hidden,
        .stages = comms->group_size[MF_GROUP_PP],
        .stage = comms->group_rank[MF_GROUP_PP],
        .fresh = -1,
        .row = MPI_DATATYPE_NULL,
    };
    behind = p->stages - p->stage;
    p->flight = behind < batches ? behind : batches;
    for (int d = 0; d < MF_DIRECTIONS; d++)
        for (int i = 0; i < SLOTS; i++)
            p->box[d].request[i] = MPI_REQUEST_NULL;
}

int mfr_pipeline_create(const struct mfr_shape *shape,
    const struct mf_layout *layout, const struct mfr_comms *comms,
    const struct mfr_layer_options *how, int64_t layers, int64_t batches,
    mfr_pipeline **pipeline, struct mf_error *err)
{
    mfr_pipeline *p = calloc(1, sizeof *p);
    int rc = -1;

    *pipeline = p;
    if (p) {
        place(p, shape, layout, comms, layers, batches);
        rc = alloc(p);
    }
    if (rc)
        mf_error_set(err, MF_FAILED, "out of memory for activations");
    if (mfr_agree(comms->base, rc, err))
        return -1;
    rc = mfr_mpi(MPI_Type_contiguous((int)shape->hidden, MPI_FLOAT, &p->row),
             "MPI_Type_contiguous", err) ||
                 mfr_mpi(MPI_Type_commit(&p->row), "MPI_Type_commit", err)
             ? -1
             : 0;
    for (int64_t l = 0; l < layers && mfr_agree(comms->base, rc, err) == 0; l++)
        rc = mfr_layer_create(shape, layout, comms, how, &p->layer[l], err);
    return mfr_agree(comms->base, rc, err);
}

void mfr_pipeline_free(mfr_pipeline *p)
{
    if (!p)
        return;
    for (int64_t l = 0; p->layer && l < p->layers; l++)
        mfr_layer_free(p->layer[l]);
    if (p->row != MPI_DATATYPE_NULL)
        MPI_Type_free(&p->row);
    free(p->layer);
    free(p->in);
    free(p->act);
    free(p->room);
    free(p);
}

void mfr_pipeline_seed_layer(const struct mfr_shape *shape, uint64_t seed,
    int64_t l, int64_t all, const struct mf_coords *coords,
    const struct mfr_tensors *weights)
{
    struct mfr_view view[MFR_VIEWS_MOST];
    const int views = mfr_tensors_views(shape, coords, weights, view);

    mfr_tensors_seed(shape, seed, l, coords, weights);
    for (int i = 0; i < views; i++)
        if (view[i].tensor == MFR_DOWN || view[i].tensor == MFR_DOWN_BIAS ||
            view[i].tensor == MFR_SHARED_DOWN)
            mfk_scale(
                mfr_view_count(&view[i]), 1.0F / (float)all, view[i].values);
}

void mfr_pipeline_seed(mfr_pipeline *p, uint64_t seed)
{
    for (int64_t l = 0; l < p->layers; l++) {
        const struct mfr_tensors weights = mfr_layer_weights(p->layer[l]);

        mfr_pipeline_seed_layer(&p->shape, seed, p->stage * p->layers + l,
            p->stages * p->layers, &p->comms->coords, &weights);
    }
}

void mfr_pipeline_seed_batches(
    const mfr_pipeline *p, uint64_t seed, enum mfr_tensor tensor, float *values)
{
    const struct mfr_shard *shard = mfr_layer_shard(p->layer[0]);
    const int64_t h = p->shape.hidden;
    const int64_t first = shard->first * p->shape.batch;

    for (int64_t b = 0; b < p->batches; b++)
        for (int64_t t = 0; t < p->tokens; t++)
            mfr_data_row(&p->shape, seed, tensor, 0,
                b * p->dp + shard->micro_batch, first + t, 0, h,
                values + b * p->values + t * h);
}

/* The neighbour that a direction comes from, and the one it goes to. */
static int source(const mfr_pipeline *p, enum mf_direction d)
{
    return d == MF_FORWARD ? p->stage - 1 : p->stage + 1;
}

static int target(const mfr_pipeline *p, enum mf_direction d)
{
    return d == MF_FORWARD ? p->stage + 1 : p->stage - 1;
}

static int tag_of(enum mf_direction d)
{
    return d == MF_FORWARD ? TAG_FORWARD : TAG_BACKWARD;
}

static const char *name_of(enum mf_direction d)
{
    return d == MF_FORWARD ? "activations between stages"
                           : "gradients between stages";
}

static int receive(
    mfr_pipeline *p, float *to, enum mf_direction d, struct mf_error *err)
{
    const MPI_Comm comm = p->comms->comm[MF_GROUP_PP];
    const double start = mfr_now();
    MPI_Request request;
    int rc;

    if (mfr_mpi(MPI_Irecv(to, (int)p->tokens, p->row, source(p, d), tag_of(d),
                    comm, &request),
            "MPI_Irecv", err))
        return -1;
    rc = mfr_wait_all(comm, source(p, d), 1, &request, name_of(d), err);
    p->send_s[d] += mfr_now() - start;
    return rc;
}

/* Not waited for here: the neighbour may be sending to this stage. */
static int send(mfr_pipeline *p, const float *from, int64_t batch,
    enum mf_direction d, struct mf_error *err)
{
    const MPI_Comm comm = p->comms->comm[MF_GROUP_PP];
    const double start = mfr_now();
    struct outbox *box = &p->box[d];
    MPI_Request *request = &box->request[batch % SLOTS];
    float *slot = box->slot[batch % SLOTS];
    int rc = mfr_wait_all(comm, target(p, d), 1, request, name_of(d), err);

    if (rc)
        return -1;
    memcpy(slot, from, (size_t)p->values * sizeof *slot);
    rc = mfr_mpi(MPI_Isend(slot, (int)p->tokens, p->row, target(p, d),
                     tag_of(d), comm, request),
        "MPI_Isend", err);
    p->send_s[d] += mfr_now() - start;
    return rc;
}

static int finish_sends(mfr_pipeline *p, struct mf_error *err)
{
    const MPI_Comm comm = p->comms->comm[MF_GROUP_PP];

    for (int d = 0; d < MF_DIRECTIONS; d++) {
        const enum mf_direction way = (enum mf_direction)d;
        const double start = mfr_now();
        const int to = target(p, way);

        if (to < 0 || to >= p->stages)
            continue;
        if (mfr_wait_all(comm, to, SLOTS, p->box[d].request, name_of(way), err))
            return -1;
        p->send_s[d] += mfr_now() - start;
    }
    return 0;
}

static int forward_layers(mfr_pipeline *p, int64_t batch, struct mf_error *err)
{
    const float *x = p->in[batch % p->flight];

    for (int64_t l = 0; l < p->layers; l++) {
        if (mfr_layer_forward(p->layer[l], x, p->act[l], err))
            return -1;
        mfk_add(p->values, x, p->act[l]);
        x = p->act[l];
    }
    p->fresh = batch;
    return 0;
}

static int forward(mfr_pipeline *p, int64_t batch, const float *x, float *y,
    struct mf_error *err)
{
    const size_t bytes = (size_t)p->values * sizeof *x;
    float *in = p->in[batch % p->flight];
    const float *out = p->act[p->layers - 1];

    if (p->stage > 0) {
        if (receive(p, in, MF_FORWARD, err))
            return -1;
    } else {
        memcpy(in, x + batch * p->values, bytes);
    }
    if (forward_layers(p, batch, err))
        return -1;
    if (p->stage + 1 < p->stages)
        return send(p, out, batch, MF_FORWARD, err);
    memcpy(y + batch * p->values, out, bytes);
    return 0;
}

static int backward(mfr_pipeline *p, int64_t batch, const float *dy, float *dx,
    struct mf_error *err)
{
    const size_t bytes = (size_t)p->values * sizeof *dy;

    if (p->stage + 1 < p->stages) {
        if (receive(p, p->gradient, MF_BACKWARD, err))
            return -1;
    } else {
        memcpy(p->gradient, dy + batch * p->values, bytes);
    }
    if (p->fresh != batch && forward_layers(p, batch, err))
        return -1;
    p->fresh = -1;
    for (int64_t l = p->layers; l-- > 0;) {
        if (mfr_layer_backward(p->layer[l], p->gradient, p->own, err))
            return -1;
        mfk_add(p->values, p->own, p->gradient);
    }
    if (p->stage > 0)
        return send(p, p->gradient, batch, MF_BACKWARD, err);
    memcpy(dx + batch * p->values, p->gradient, bytes);
    return 0;
}

int mfr_pipeline_step(mfr_pipeline *p, const float *x, float *y,
    const float *dy, float *dx, struct mf_error *err)
{
    const int64_t ahead = p->flight - 1;

    p->send_s[MF_FORWARD] = p->send_s[MF_BACKWARD] = 0;
    for (int64_t b = 0; b < ahead; b++)
        if (forward(p, b, x, y, err))
            return -1;
    for (int64_t b = ahead; b < p->batches; b++)
        if (forward(p, b, x, y, err) || backward(p, b - ahead, dy, dx, err))
            return -1;
    for (int64_t b = p->batches - ahead; b < p->batches; b++)
        if (backward(p, b, dy, dx, err))
            return -1;
    return finish_sends(p, err);
}

void mfr_pipeline_zero_gradients(mfr_pipeline *p)
{
    for (int64_t l = 0; l < p->layers; l++)
        mfr_layer_zero_gradients(p->layer[l]);
}

int mfr_pipeline_reduce_gradients(
    mfr_pipeline *p, double scale, struct mf_error *err)
{
    for (int64_t l = 0; l < p->layers; l++)
        if (mfr_layer_reduce_gradients(p->layer[l], scale, err))
            return -1;
    return 0;
}
