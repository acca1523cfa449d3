/* SPDX-License-Identifier: BSD-3-Clause
 * The dispatchers that move hidden vectors of tokens, one copy a destination
 * rank, in place of one row a choice: dedup sends a token to the ranks that
 * hold an expert it chose, allgather to all ranks of the ETP x EP group.
 *
 * A destination makes the rows of its experts out of the copy, and adds what
 * they give, times their weights, before one sum a token goes back. So weights
 * travel there, and gradients of weights back. With etp > 1 each of its ranks
 * gets a copy and sends the sum of its own part: no gather, no reduce.
 *
 * Sums follow the order of the group's ranks, and inside a rank that of the
 * choices: the same bits in each run, not those of the alltoall dispatcher.
 */
#ifndef MFR_COPIES_H
#define MFR_COPIES_H

#include "runtime/route.h"
#include "runtime/splits.h"

struct mfr_copies {
    MPI_Comm group;
    const struct mfr_splits *splits;
    bool all; /* to every rank */
    int64_t hidden, topk, tokens;
    int *send, *send_at; /* [members] tokens to each */
    int *take, *take_at; /* [members] tokens from each */
    int64_t sent, taken;
    int64_t *token;               /* [sent] which of this rank's tokens */
    int32_t *ids_out, *ids;       /* [sent], [taken] by [topk]; -1: none */
    float *weights_out, *weights; /* the same */
    float *dweights_out, *dweights;
    int64_t *cursor; /* [members * local] scratch */
    int64_t *here;   /* [taken] choices that are experts of this rank */
    int64_t *slot;   /* [taken][topk] which choices, the first here */
    int64_t *place;  /* [taken][topk] their rows */
    float *chosen;   /* [taken][topk] their weights */
    float *out;      /* [sent][hidden] */
    float *in;       /* [taken][hidden] */
    int64_t most_out, most_in; /* rows that there is room for */
    float *kept;               /* [kept_room][hidden] what the experts gave */
    int64_t kept_room;
    MPI_Datatype row, choices;
};

/* SPLITS must outlive it. Not collective. */
int mfr_copies_create(const struct mfr_shape *shape,
    const struct mfr_comms *comms, const struct mfr_splits *splits, bool all,
    struct mfr_copies **copies, struct mf_error *err);
void mfr_copies_free(struct mfr_copies *copies);

/* Bytes beside what the alltoall dispatcher needs, for a rank that holds
 * TOKENS of the GROUP_TOKENS in its group, and works on ROWS rows.
 */
double mfr_copies_bytes(const struct mfr_shape *shape, int64_t members,
    double tokens, double group_tokens, double rows);

/* After the counts: room for splits->rows. Not collective. */
int mfr_copies_room(struct mfr_copies *copies, struct mf_error *err);

/* Who gets which token, and its choices. Collective over the group, as are the
 * moves.
 */
int mfr_copies_routes(struct mfr_copies *copies,
    const struct mfr_router *router, struct mf_error *err);

/* x[tokens][hidden], packed and sent. */
/* Fill what the next pass has to write with NaN. */
void mfr_copies_poison(struct mfr_copies *copies, bool forward);
void mfr_copies_pack(struct mfr_copies *copies, const float *x);
int mfr_copies_there(
    struct mfr_copies *copies, const float *x, struct mf_error *err);
/* Forward: the rows of the local experts. */
void mfr_copies_expand(const struct mfr_copies *copies, float *rows);
/* Backward: the same times the weights; the gradients of these. */
void mfr_copies_expand_back(struct mfr_copies *copies, float *rows);

/* Keep what the experts gave, for the backward pass. */
void mfr_copies_keep(struct mfr_copies *copies, const float *rows);
/* One sum a token; forward with WEIGHTED. */
void mfr_copies_sum(
    struct mfr_copies *copies, const float *rows, bool weighted);
int mfr_copies_back(struct mfr_copies *copies, struct mf_error *err);
/* y[tokens][hidden]: the sums of all destinations. */
void mfr_copies_unpack(const struct mfr_copies *copies, float *y);
/* dweights[tokens][topk] from those of all destinations. */
int mfr_copies_dweights(
    struct mfr_copies *copies, float *dweights, struct mf_error *err);

/* Bytes that this rank sends to others or gets from them, whichever is more.
 */
double mfr_copies_moved(const struct mfr_copies *copies);

#endif
