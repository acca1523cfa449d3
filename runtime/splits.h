/* SPDX-License-Identifier: BSD-3-Clause
 * How many rows go where: worked out of one exchange of counts over the
 * ETP x EP group, the same on all of its ranks.
 */
#ifndef MFR_SPLITS_H
#define MFR_SPLITS_H

#include "runtime/comm.h"
#include "runtime/shard.h"

struct mfr_member {
    int64_t etp, ep; /* place in its etp and ep group */
    int64_t block;   /* micro batch * shards + shard: order of its tokens */
    int64_t tokens;
};

/* Rows of one source rank for one local expert. */
struct mfr_chunk {
    int64_t from; /* first row where rows lie source by source */
    int64_t to;   /* first row where they lie expert by expert */
    int64_t rows;
};

struct mfr_splits {
    int members, etp, ep; /* members = etp * ep */
    int my_etp, my_ep;
    int64_t experts, local; /* all, and here */
    int64_t topk;
    struct mfr_member *member;
    int *by_source;          /* [ep * etp] member at [etp * EP + ep] */
    int *by_block;           /* members by ascending block of tokens */
    int64_t *counts;         /* [members][experts] */
    int64_t most_rows;       /* of any rank of the group, after the gather */
    int64_t most_part;       /* of any rank of the group, before it */
    int *send, *send_at;     /* [ep] rows to each ep peer */
    int *take, *take_at;     /* [ep] rows from each ep peer; at 0 the first */
    int *part, *part_at;     /* [etp] rows that each etp peer dispatched */
    int *own, *own_at;       /* [etp] my part, from each etp peer */
    int64_t rows;            /* after the gather */
    int64_t *first;          /* [local + 1] by expert */
    struct mfr_chunk *chunk; /* [members * local] */
    bool sorted;             /* by source is by expert: nothing to move */
};

/* Collective over the ETP x EP group. */
int mfr_splits_init(struct mfr_splits *splits, const struct mfr_shape *shape,
    const struct mfr_comms *comms, const struct mfr_shard *shard,
    int64_t shards, struct mf_error *err);
void mfr_splits_free(struct mfr_splits *splits);

/* Exchange counts[experts] and fill the rest. Collective over the ETP x EP
 * group; counts that do not add up are an error on all of its ranks.
 */
int mfr_splits_exchange(struct mfr_splits *splits,
    const struct mfr_comms *comms, const int64_t *counts, struct mf_error *err);

/* Does each peer send what this rank waits for? Before rows move over numbers
 * of rows that are new. Collective over EP; a peer that does not is an error
 * here alone.
 */
int mfr_splits_symmetric(const struct mfr_splits *splits,
    const struct mfr_comms *comms, struct mf_error *err);

#endif
