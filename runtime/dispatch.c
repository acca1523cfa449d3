/* SPDX-License-Identifier: BSD-3-Clause
 * The five steps around the experts.
 *
 * Where rows already lie by expert (one source, or one expert here), they are
 * received in their final place and nothing is sorted.
 */
#include "runtime/dispatch.h"

#include <stdlib.h>
#include <string.h>

#include "kernels/kernels.h"
#include "runtime/collective.h"

int mfr_dispatch_init(struct mfr_dispatch *dispatch,
    const struct mfr_shape *shape, const struct mfr_comms *comms,
    const struct mfr_shard *shard, int64_t shards, struct mf_error *err)
{
    *dispatch = (struct mfr_dispatch){
        .comms = comms,
        .hidden = shape->hidden,
        .row = MPI_DATATYPE_NULL,
        .most_rows = -1,
        .most_part = -1,
    };
    if (mfr_splits_init(&dispatch->splits, shape, comms, shard, shards, err) ||
        mfr_mpi(
            MPI_Type_contiguous((int)shape->hidden, MPI_FLOAT, &dispatch->row),
            "MPI_Type_contiguous", err))
        return -1;
    return mfr_mpi(MPI_Type_commit(&dispatch->row), "MPI_Type_commit", err);
}

void mfr_dispatch_free(struct mfr_dispatch *dispatch)
{
    mfr_splits_free(&dispatch->splits);
    if (dispatch->row != MPI_DATATYPE_NULL)
        MPI_Type_free(&dispatch->row);
    free(dispatch->by_source);
    free(dispatch->parts);
}

/* Room for ROWS rows; what was in the buffer is lost. */
static int renew(float **buffer, int64_t *room, int64_t rows, int64_t hidden,
    struct mf_error *err)
{
    if (*buffer && rows <= *room)
        return 0;
    free(*buffer);
    *buffer = calloc((size_t)rows * (size_t)hidden + 1, sizeof **buffer);
    *room = *buffer ? rows : 0;
    if (*buffer)
        return 0;
    return mf_error_set(err, MF_FAILED, "out of memory for received rows");
}

bool mfr_dispatch_grew(struct mfr_dispatch *dispatch)
{
    const struct mfr_splits *s = &dispatch->splits;
    const bool grew = s->most_rows > dispatch->most_rows ||
                      s->most_part > dispatch->most_part;

    if (s->most_rows > dispatch->most_rows)
        dispatch->most_rows = s->most_rows;
    if (s->most_part > dispatch->most_part)
        dispatch->most_part = s->most_part;
    return grew;
}

int mfr_dispatch_room(struct mfr_dispatch *dispatch, struct mf_error *err)
{
    const struct mfr_splits *s = &dispatch->splits;

    if (s->members > 1 && renew(&dispatch->by_source, &dispatch->room, s->rows,
                              dispatch->hidden, err))
        return -1;
    return s->etp > 1 ? renew(&dispatch->parts, &dispatch->part_room,
                            (int64_t)s->own[0] * s->etp, dispatch->hidden, err)
                      : 0;
}

/* Where rows lie source by source. */
static float *unsorted(struct mfr_dispatch *dispatch, float *rows)
{
    return dispatch->splits.sorted ? rows : dispatch->by_source;
}

float *mfr_dispatch_source(
    struct mfr_dispatch *dispatch, float *send, float *rows)
{
    const struct mfr_splits *s = &dispatch->splits;

    if (s->ep > 1)
        return send;
    return unsorted(dispatch, rows) + s->part_at[s->my_etp] * dispatch->hidden;
}

int mfr_dispatch_there(struct mfr_dispatch *dispatch, const float *send,
    float *rows, struct mf_error *err)
{
    const struct mfr_splits *s = &dispatch->splits;
    float *to =
        unsorted(dispatch, rows) + s->part_at[s->my_etp] * dispatch->hidden;

    if (s->ep == 1)
        return 0;
    return mfr_alltoallv(send, s->send, s->send_at, to, s->take, s->take_at,
        dispatch->row, dispatch->comms->comm[MF_GROUP_EP],
        "MPI_Alltoallv (dispatch)", err);
}

int mfr_dispatch_gather(
    struct mfr_dispatch *dispatch, float *rows, struct mf_error *err)
{
    const struct mfr_splits *s = &dispatch->splits;

    if (s->etp == 1)
        return 0;
    return mfr_allgatherv(MPI_IN_PLACE, 0, unsorted(dispatch, rows), s->part,
        s->part_at, dispatch->row, dispatch->comms->comm[MF_GROUP_ETP],
        "MPI_Allgatherv (gather)", err);
}

/* Move the chunks between by-source and by-expert order. */
static void move_chunks(const struct mfr_splits *s, int64_t hidden,
    const float *from, float *to, bool back)
{
    for (int64_t i = 0; i < s->members * s->local; i++) {
        const struct mfr_chunk *chunk = &s->chunk[i];
        const size_t bytes = (size_t)chunk->rows * (size_t)hidden * sizeof *to;

        memcpy(to + (back ? chunk->from : chunk->to) * hidden,
            from + (back ? chunk->to : chunk->from) * hidden, bytes);
    }
}

void mfr_dispatch_sort(struct mfr_dispatch *dispatch, float *rows)
{
    if (!dispatch->splits.sorted)
        move_chunks(&dispatch->splits, dispatch->hidden, dispatch->by_source,
            rows, false);
}

void mfr_dispatch_unsort(struct mfr_dispatch *dispatch, const float *rows)
{
    if (!dispatch->splits.sorted)
        move_chunks(&dispatch->splits, dispatch->hidden, rows,
            dispatch->by_source, true);
}

static const float *unsorted_back(
    const struct mfr_dispatch *dispatch, const float *rows)
{
    return dispatch->splits.sorted ? rows : dispatch->by_source;
}

int mfr_dispatch_reduce(
    struct mfr_dispatch *dispatch, const float *rows, struct mf_error *err)
{
    const struct mfr_splits *s = &dispatch->splits;
    const int64_t mine = s->own[0] * dispatch->hidden;

    if (s->etp == 1)
        return 0;
    /* Not MPI_Reduce_scatter: the sum has one order, that of the peers. */
    if (mfr_alltoallv(unsorted_back(dispatch, rows), s->part, s->part_at,
            dispatch->parts, s->own, s->own_at, dispatch->row,
            dispatch->comms->comm[MF_GROUP_ETP], "MPI_Alltoallv (reduce)", err))
        return -1;
    for (int peer = 1; peer < s->etp; peer++)
        mfk_add(mine, dispatch->parts + peer * mine, dispatch->parts);
    return 0;
}

int mfr_dispatch_back(struct mfr_dispatch *dispatch, const float *rows,
    float *send, struct mf_error *err)
{
    const struct mfr_splits *s = &dispatch->splits;
    const float *from =
        s->etp > 1 ? dispatch->parts : unsorted_back(dispatch, rows);

    if (s->ep == 1) {
        memcpy(send, from,
            (size_t)s->send[0] * (size_t)dispatch->hidden * sizeof *send);
        return 0;
    }
    return mfr_alltoallv(from, s->take, s->take_at, send, s->send, s->send_at,
        dispatch->row, dispatch->comms->comm[MF_GROUP_EP],
        "MPI_Alltoallv (combine)", err);
}

double mfr_dispatch_ep_bytes(const struct mfr_dispatch *dispatch)
{
    const struct mfr_splits *s = &dispatch->splits;
    double out = 0, in = 0;

    for (int ep = 0; ep < s->ep; ep++) {
        out += ep == s->my_ep ? 0 : s->send[ep];
        in += ep == s->my_ep ? 0 : s->take[ep];
    }
    return (out > in ? out : in) * (double)dispatch->hidden * sizeof(float);
}

double mfr_dispatch_etp_bytes(const struct mfr_dispatch *dispatch)
{
    const struct mfr_splits *s = &dispatch->splits;
    const double out = (double)s->part[s->my_etp] * (s->etp - 1);
    const double in = (double)s->rows - s->part[s->my_etp];

    return (out > in ? out : in) * (double)dispatch->hidden * sizeof(float);
}
