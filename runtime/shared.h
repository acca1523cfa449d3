/* SPDX-License-Identifier: BSD-3-Clause
 * Rows that peers of one node write and read in each other's memory.
 *
 * The rows of the experts, x and y, lie in windows that all ranks of the
 * ETP x EP group on a node see. There, a source writes each row straight to
 * its final place, by expert: no send buffer, no sorting. ETP ranks copy each
 * other's rows, and sum each other's parts in the order of ranks. Back, a
 * source reads what the experts made. Rows for other nodes travel by MPI at
 * the same time.
 *
 * A row of x or y belongs to its source until all ranks arrived at the next
 * meeting, and to the expert after it. The exchange of counts, which opens
 * each forward pass, is the meeting between two iterations.
 */
#ifndef MFR_SHARED_H
#define MFR_SHARED_H

#include <stdatomic.h>

#include "runtime/layer.h"
#include "runtime/route.h"
#include "runtime/splits.h"

struct mfr_shared {
    MPI_Comm group, node; /* all, and those of this node */
    const struct mfr_splits *splits;
    MPI_Datatype row;
    int64_t hidden;
    bool on;       /* the windows are there; the same on the whole group */
    bool distant;  /* some of the group are on other nodes */
    bool poison;   /* windows begin as NaN */
    bool possible; /* the layout allows it */
    int me, node_ranks;
    int *at; /* [members] rank in node, -1: another node */
    MPI_Win rows, board;
    float **x, **y;             /* [members] windows; NULL: another node */
    _Atomic uint64_t **arrived; /* [members] meetings; NULL: another node */
    uint64_t meetings;
    int64_t room;     /* rows of each window */
    float *by_source; /* [source_room] rows from and to other nodes */
    int64_t source_room;
    float *line;          /* [hidden] scratch */
    int64_t *first;       /* [experts] of this source, in send order */
    int64_t *to;          /* [experts] of this source, at the expert */
    int64_t *shift;       /* [experts] TO less FIRST, or 0 for other nodes */
    float **base;         /* [experts] where rows of an expert go */
    MPI_Request *request; /* [2 * members] */
    int requests;
};

/* Collective over the ETP x EP group. SPLITS must outlive it. */
int mfr_shared_create(const struct mfr_shape *shape,
    const struct mfr_comms *comms, const struct mfr_splits *splits,
    const struct mfr_transport *how, struct mfr_shared **shared,
    struct mf_error *err);
/* Collective. */
void mfr_shared_free(struct mfr_shared *shared);

/* After the counts: windows for the hottest rank when it GREW, and where this
 * rank's rows go. Collective over the group when GREW. shared->on says whether
 * rows move this way; a node whose shared memory is too small says no for all.
 */
int mfr_shared_room(struct mfr_shared *shared, bool grew, struct mf_error *err);
float *mfr_shared_x(const struct mfr_shared *shared);
float *mfr_shared_y(const struct mfr_shared *shared);

/* Forward: tokens x[tokens][hidden] to the x of their experts; SEND is room for
 * the rows that go to other nodes.
 */
int mfr_shared_push_tokens(struct mfr_shared *shared,
    const struct mfr_router *router, const float *x, float *send,
    struct mf_error *err);
/* Backward: rows in SEND, in send order, to the y of their experts. */
int mfr_shared_push_rows(
    struct mfr_shared *shared, const float *send, struct mf_error *err);
/* All rows of this rank have come. STEP names it in errors. */
int mfr_shared_arrive(struct mfr_shared *shared, bool forward, const char *step,
    struct mf_error *err);
/* Rows of the ETP peers, of x forward, else of y. */
int mfr_shared_gather(struct mfr_shared *shared, bool forward, const char *step,
    struct mf_error *err);
/* Sums of the ETP peers' parts of y, when all experts are done. */
int mfr_shared_reduce(
    struct mfr_shared *shared, const char *step, struct mf_error *err);
/* The experts' y to SEND, in send order, when all experts are done. */
int mfr_shared_pull(struct mfr_shared *shared, float *send, const char *step,
    struct mf_error *err);

#endif
