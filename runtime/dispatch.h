/* SPDX-License-Identifier: BSD-3-Clause
 * The five steps around the experts, there and back.
 *
 *   send    [tokens*topk]  rows of this rank, by expert
 *   rows    [splits.rows]  rows of the local experts, by expert
 *
 * Both ways a buffer of "send" goes to "rows" (dispatch, gather, sort), and
 * "rows" comes back to "send" (unsort, reduce, combine); forward and backward
 * are the same two moves.
 */
#ifndef MFR_DISPATCH_H
#define MFR_DISPATCH_H

#include "runtime/splits.h"

struct mfr_dispatch {
    const struct mfr_comms *comms;
    struct mfr_splits splits;
    int64_t hidden;
    MPI_Datatype row;
    int64_t most_rows, most_part; /* the hottest rank of the group so far */
    int64_t room, part_room;      /* rows that there is room for here */
    float *by_source;             /* [room] rows, source by source */
    float *parts;                 /* [part_room] rows to be summed */
};

/* Collective over the ETP x EP group. */
int mfr_dispatch_init(struct mfr_dispatch *dispatch,
    const struct mfr_shape *shape, const struct mfr_comms *comms,
    const struct mfr_shard *shard, int64_t shards, struct mf_error *err);
void mfr_dispatch_free(struct mfr_dispatch *dispatch);

/* After the counts: does the hottest rank of the group now need more than
 * before? The same on all its ranks. Not collective.
 */
bool mfr_dispatch_grew(struct mfr_dispatch *dispatch);
/* Make room. Not collective. */
int mfr_dispatch_room(struct mfr_dispatch *dispatch, struct mf_error *err);

/* Where to put the rows that go there: their final place when EP is 1, so that
 * nothing is copied, else SEND.
 */
float *mfr_dispatch_source(
    struct mfr_dispatch *dispatch, float *send, float *rows);
/* Rows to the ep place of their expert. ROWS is where the sorted rows will
 * lie. Collective over EP; nothing to do when EP is 1.
 */
int mfr_dispatch_there(struct mfr_dispatch *dispatch, const float *send,
    float *rows, struct mf_error *err);
/* Rows of all ETP peers. Collective over ETP. */
int mfr_dispatch_gather(
    struct mfr_dispatch *dispatch, float *rows, struct mf_error *err);
void mfr_dispatch_sort(struct mfr_dispatch *dispatch, float *rows);

/* The way back: ROWS may be overwritten. */
void mfr_dispatch_unsort(struct mfr_dispatch *dispatch, const float *rows);
/* Sums the partial results of all ETP peers, in their order. */
int mfr_dispatch_reduce(
    struct mfr_dispatch *dispatch, const float *rows, struct mf_error *err);
int mfr_dispatch_back(struct mfr_dispatch *dispatch, const float *rows,
    float *send, struct mf_error *err);

/* Bytes that this rank sends to or gets from others, whichever is more. */
double mfr_dispatch_ep_bytes(const struct mfr_dispatch *dispatch);
double mfr_dispatch_etp_bytes(const struct mfr_dispatch *dispatch);

#endif
