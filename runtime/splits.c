/* SPDX-License-Identifier: BSD-3-Clause
 * How many rows go where.
 */
#include "runtime/splits.h"

#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>

#include "runtime/collective.h"

static int splits_alloc(struct mfr_splits *s)
{
    const size_t ep = (size_t)s->ep, etp = (size_t)s->etp;
    const size_t members = (size_t)s->members, local = (size_t)s->local;
    int *room = calloc(4 * ep + 4 * etp + 2 * members, sizeof *room);

    s->send = room;
    s->member = calloc(members, sizeof *s->member);
    s->counts = calloc(members * (size_t)s->experts, sizeof *s->counts);
    s->first = calloc(local + 1, sizeof *s->first);
    s->chunk = calloc(members * local, sizeof *s->chunk);
    if (!room || !s->member || !s->counts || !s->first || !s->chunk)
        return -1;
    s->send_at = room + ep;
    s->take = room + 2 * ep;
    s->take_at = room + 3 * ep;
    s->part = room + 4 * ep;
    s->part_at = s->part + etp;
    s->own = s->part + 2 * etp;
    s->own_at = s->part + 3 * etp;
    s->by_source = s->part + 4 * etp;
    s->by_block = s->by_source + members;
    return 0;
}

/* Insertion sort: once a layer, and groups are small. */
static void order_members(struct mfr_splits *s)
{
    for (int m = 0; m < s->members; m++) {
        const struct mfr_member *new = &s->member[m];
        int at = m;

        s->by_source[new->etp * s->ep + new->ep] = m;
        for (; at > 0 && s->member[s->by_block[at - 1]].block > new->block;
             at--)
            s->by_block[at] = s->by_block[at - 1];
        s->by_block[at] = m;
    }
}

int mfr_splits_init(struct mfr_splits *splits, const struct mfr_shape *shape,
    const struct mfr_comms *comms, const struct mfr_shard *shard,
    int64_t shards, struct mf_error *err)
{
    const MPI_Comm group = comms->comm[MF_GROUP_ETP_EP];
    const struct mfr_member mine = {
        .etp = comms->group_rank[MF_GROUP_ETP],
        .ep = comms->group_rank[MF_GROUP_EP],
        .block = shard->micro_batch * shards + shard->shard,
        .tokens = shard->tokens,
    };
    int rc;

    *splits = (struct mfr_splits){
        .members = comms->group_size[MF_GROUP_ETP_EP],
        .etp = comms->group_size[MF_GROUP_ETP],
        .ep = comms->group_size[MF_GROUP_EP],
        .my_etp = comms->group_rank[MF_GROUP_ETP],
        .my_ep = comms->group_rank[MF_GROUP_EP],
        .experts = shape->experts,
        .local = shape->experts / comms->group_size[MF_GROUP_EP],
        .topk = shape->topk,
    };
    rc = splits_alloc(splits);
    if (rc)
        mf_error_set(err, MF_FAILED, "out of memory for the split matrix");
    if (mfr_agree(group, rc, err))
        return -1;
    if (mfr_allgather(&mine, splits->member, (int)sizeof mine, MPI_BYTE, group,
            "MPI_Allgather", err))
        return -1;
    order_members(splits);
    return 0;
}

void mfr_splits_free(struct mfr_splits *splits)
{
    free(splits->send);
    free(splits->member);
    free(splits->counts);
    free(splits->first);
    free(splits->chunk);
}

static const int64_t *row_of(const struct mfr_splits *s, int64_t member)
{
    return s->counts + member * s->experts;
}

/* Rows of MEMBER for the experts of ep place EP. */
static int64_t rows_for(const struct mfr_splits *s, int64_t member, int64_t ep)
{
    const int64_t *count = row_of(s, member) + ep * s->local;
    int64_t rows = 0;

    for (int64_t e = 0; e < s->local; e++)
        rows += count[e];
    return rows;
}

/* Each member sends its tokens topk times, no more and no less, and no rank
 * gets more rows than MPI can count. All members see the same matrix, so all
 * come to the same end.
 */
static int splits_check(struct mfr_splits *s, struct mf_error *err)
{
    for (int m = 0; m < s->members; m++) {
        int64_t sum = 0;

        for (int64_t e = 0; e < s->experts; e++) {
            if (row_of(s, m)[e] < 0 || row_of(s, m)[e] > INT_MAX)
                sum = INT64_MIN / 2;
            else
                sum += row_of(s, m)[e];
        }
        if (sum != s->member[m].tokens * s->topk)
            return mf_error_set(err, MF_FAILED,
                "split matrix: place %d of the etp_ep group counts %" PRId64
                " rows, it holds %" PRId64 " tokens of %" PRId64 " choices",
                m, sum, s->member[m].tokens, s->topk);
    }
    s->most_rows = s->most_part = 0;
    for (int64_t ep = 0; ep < s->ep; ep++) {
        int64_t all = 0;

        for (int64_t etp = 0; etp < s->etp; etp++) {
            int64_t part = 0;

            for (int64_t from = 0; from < s->ep; from++)
                part += rows_for(s, s->by_source[etp * s->ep + from], ep);
            s->most_part = part > s->most_part ? part : s->most_part;
            all += part;
        }
        s->most_rows = all > s->most_rows ? all : s->most_rows;
    }
    if (s->most_rows > INT_MAX || s->most_part > INT_MAX / s->etp)
        return mf_error_set(err, MF_FAILED,
            "a rank would get %" PRId64 " rows, more than MPI can count",
            s->most_rows);
    return 0;
}

static int place_after(const int *count, int *at, int n)
{
    int sum = 0;

    for (int i = 0; i < n; i++) {
        at[i] = sum;
        sum += count[i];
    }
    return sum;
}

static void fill_exchanges(struct mfr_splits *s)
{
    const int64_t me = s->by_source[s->my_etp * s->ep + s->my_ep];

    for (int ep = 0; ep < s->ep; ep++) {
        const int64_t from = s->by_source[s->my_etp * s->ep + ep];
        s->send[ep] = (int)rows_for(s, me, ep);
        s->take[ep] = (int)rows_for(s, from, s->my_ep);
    }
    place_after(s->send, s->send_at, s->ep);
    place_after(s->take, s->take_at, s->ep);
    for (int etp = 0; etp < s->etp; etp++) {
        s->part[etp] = 0;
        for (int ep = 0; ep < s->ep; ep++)
            s->part[etp] +=
                (int)rows_for(s, s->by_source[etp * s->ep + ep], s->my_ep);
    }
    s->rows = place_after(s->part, s->part_at, s->etp);
    for (int etp = 0; etp < s->etp; etp++)
        s->own[etp] = s->part[s->my_etp];
    place_after(s->own, s->own_at, s->etp);
}

/* Rows arrive etp source by etp source, in each ep source by ep source, in
 * each expert by expert. The experts want them by expert, in each by block of
 * tokens, as one rank with all tokens would have them.
 */
static void fill_chunks(struct mfr_splits *s)
{
    const int64_t base = s->my_ep * s->local;
    int64_t from = 0, to = 0;

    for (int m = 0; m < s->members; m++) {
        const int member = s->by_source[m];

        for (int64_t e = 0; e < s->local; e++) {
            struct mfr_chunk *chunk = &s->chunk[member * s->local + e];
            chunk->from = from;
            chunk->rows = row_of(s, member)[base + e];
            from += chunk->rows;
        }
    }
    s->sorted = true;
    for (int64_t e = 0; e < s->local; e++) {
        s->first[e] = to;
        for (int m = 0; m < s->members; m++) {
            struct mfr_chunk *chunk = &s->chunk[s->by_block[m] * s->local + e];
            chunk->to = to;
            to += chunk->rows;
            if (chunk->rows > 0 && chunk->from != chunk->to)
                s->sorted = false;
        }
    }
    s->first[s->local] = to;
}

int mfr_splits_exchange(struct mfr_splits *splits,
    const struct mfr_comms *comms, const int64_t *counts, struct mf_error *err)
{
    if (mfr_allgather(counts, splits->counts, (int)splits->experts, MPI_INT64_T,
            comms->comm[MF_GROUP_ETP_EP], "MPI_Allgather (counts)", err) ||
        splits_check(splits, err))
        return -1;
    fill_exchanges(splits);
    fill_chunks(splits);
    return 0;
}

int mfr_splits_symmetric(const struct mfr_splits *splits,
    const struct mfr_comms *comms, struct mf_error *err)
{
    int *announced = malloc((size_t)splits->ep * sizeof *announced);
    int rc = announced ? 0
                       : mf_error_set(err, MF_FAILED,
                             "out of memory for the split matrix");

    if (mfr_agree(comms->comm[MF_GROUP_EP], rc, err)) {
        free(announced);
        return -1;
    }
    rc = mfr_alltoall(splits->send, announced, 1, MPI_INT,
        comms->comm[MF_GROUP_EP], "MPI_Alltoall (symmetry)", err);
    for (int ep = 0; rc == 0 && ep < splits->ep; ep++)
        if (announced[ep] != splits->take[ep])
            rc = mf_error_set(err, MF_FAILED,
                "split matrix: rank %d waits for %d rows of place %d of its ep "
                "group, which sends %d",
                comms->rank, splits->take[ep], ep, announced[ep]);
    free(announced);
    return rc;
}
