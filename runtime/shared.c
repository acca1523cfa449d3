/* SPDX-License-Identifier: BSD-3-Clause
 * Moving rows through windows of shared memory, and by MPI to other nodes.
 */
#include "runtime/shared.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>

#include "kernels/kernels.h"
#include "runtime/collective.h"

enum { TAG_THERE = 11, TAG_BACK = 12 };

/* Each counter on a cache line of its own; MPI aligns windows less than that.
 */
struct slot {
    _Atomic uint64_t count;
    char rest[64 - sizeof(uint64_t)];
};

static int alloc_lists(struct mfr_shared *s)
{
    const size_t members = (size_t)s->splits->members;
    const size_t experts = (size_t)s->splits->experts;

    s->at = calloc(members, sizeof *s->at);
    s->x = calloc(members, sizeof *s->x);
    s->y = calloc(members, sizeof *s->y);
    s->arrived = calloc(members, sizeof *s->arrived);
    s->request = calloc(2 * members, sizeof *s->request);
    s->first = calloc(experts, sizeof *s->first);
    s->to = calloc(experts, sizeof *s->to);
    s->shift = calloc(experts, sizeof *s->shift);
    s->line = calloc((size_t)s->hidden, sizeof *s->line);
    s->base = calloc(experts, sizeof *s->base);
    return s->at && s->x && s->y && s->arrived && s->request && s->first &&
                   s->to && s->shift && s->base && s->line
               ? 0
               : -1;
}

/* Those of the group on this node, or as if it held fewer. */
static int split_node(struct mfr_shared *s, const struct mfr_comms *comms,
    const struct mfr_transport *how, struct mf_error *err)
{
    MPI_Comm real;
    int rc;

    if (mfr_comm_split_node(s->group, s->me, "node", &real, err))
        return -1;
    rc = mfr_comm_split(real,
        how->mpi_only         ? s->me
        : how->node_ranks > 0 ? comms->rank / (int)how->node_ranks
                              : 0,
        s->me, "node", &s->node, err);
    if (mfr_mpi(MPI_Comm_free(&real), "MPI_Comm_free", rc ? NULL : err))
        return -1;
    return rc;
}

static int find_neighbours(struct mfr_shared *s, struct mf_error *err)
{
    const int members = s->splits->members;
    MPI_Group all, near;
    int *rank = malloc((size_t)members * sizeof *rank);
    int rc = -1;

    if (!rank)
        return mf_error_set(err, MF_FAILED, "out of memory");
    for (int m = 0; m < members; m++)
        rank[m] = m;
    if (mfr_mpi(MPI_Comm_group(s->group, &all), "MPI_Comm_group", err) == 0 &&
        mfr_mpi(MPI_Comm_group(s->node, &near), "MPI_Comm_group", err) == 0) {
        rc = mfr_mpi(MPI_Group_translate_ranks(all, members, rank, near, s->at),
            "MPI_Group_translate_ranks", err);
        MPI_Group_free(&all);
        MPI_Group_free(&near);
    }
    for (int m = 0; rc == 0 && m < members; m++) {
        if (s->at[m] == MPI_UNDEFINED)
            s->at[m] = -1;
        s->distant |= s->at[m] < 0;
    }
    free(rank);
    return rc;
}

/* BYTES of each rank of the node; not contiguous, so that each lies near its
 * own rank.
 */
static int open_window(
    MPI_Comm node, int64_t bytes, MPI_Win *win, struct mf_error *err)
{
    MPI_Info info;
    void *mine;
    int rc;

    if (mfr_mpi(MPI_Info_create(&info), "MPI_Info_create", err))
        return -1;
    rc = mfr_mpi(MPI_Info_set(info, "alloc_shared_noncontig", "true"),
        "MPI_Info_set", err);
    if (rc == 0)
        rc = mfr_block_begin(node, "MPI_Win_allocate_shared", err);
    if (rc == 0) {
        rc = mfr_mpi(
            MPI_Win_allocate_shared((MPI_Aint)bytes, 1, info, node, &mine, win),
            "MPI_Win_allocate_shared", err);
        mfr_block_end(node);
    }
    if (mfr_mpi(MPI_Info_free(&info), "MPI_Info_free", rc ? NULL : err))
        return -1;
    if (rc)
        return -1;
    return mfr_mpi(
        MPI_Win_lock_all(MPI_MODE_NOCHECK, *win), "MPI_Win_lock_all", err);
}

static void close_window(MPI_Comm node, MPI_Win *win)
{
    if (*win == MPI_WIN_NULL || mfr_block_begin(node, "MPI_Win_free", NULL))
        return;
    MPI_Win_unlock_all(*win);
    MPI_Win_free(win);
    mfr_block_end(node);
}

static int window_of(MPI_Win win, int rank, void *address, struct mf_error *err)
{
    MPI_Aint bytes;
    int unit;

    return mfr_mpi(MPI_Win_shared_query(win, rank, &bytes, &unit, address),
        "MPI_Win_shared_query", err);
}

static int open_board(struct mfr_shared *s, struct mf_error *err)
{
    if (open_window(s->node, (int64_t)sizeof(struct slot), &s->board, err))
        return -1;
    for (int m = 0; m < s->splits->members; m++) {
        struct slot *slot = NULL;

        if (s->at[m] >= 0 && window_of(s->board, s->at[m], &slot, err))
            return -1;
        s->arrived[m] = slot ? &slot->count : NULL;
    }
    atomic_store(s->arrived[s->me], 0);
    return mfr_barrier(s->node, "MPI_Barrier", err);
}

int mfr_shared_create(const struct mfr_shape *shape,
    const struct mfr_comms *comms, const struct mfr_splits *splits,
    const struct mfr_transport *how, struct mfr_shared **shared,
    struct mf_error *err)
{
    const MPI_Comm group = comms->comm[MF_GROUP_ETP_EP];
    struct mfr_shared *s = calloc(1, sizeof *s);
    int rc = s ? 0 : mf_error_set(err, MF_FAILED, "out of memory");
    int here, least, ranks = 0;

    *shared = s;
    if (s) {
        *s = (struct mfr_shared){
            .group = group,
            .node = MPI_COMM_NULL,
            .splits = splits,
            .row = MPI_DATATYPE_NULL,
            .hidden = shape->hidden,
            .me = comms->group_rank[MF_GROUP_ETP_EP],
            .rows = MPI_WIN_NULL,
            .board = MPI_WIN_NULL,
        };
        if (alloc_lists(s))
            rc = mf_error_set(err, MF_FAILED, "out of memory for peers");
    }
    if (mfr_agree(group, rc, err) || split_node(s, comms, how, err) ||
        find_neighbours(s, err) ||
        mfr_mpi(MPI_Comm_size(s->node, &ranks), "MPI_Comm_size", err) ||
        mfr_mpi(MPI_Type_contiguous((int)s->hidden, MPI_FLOAT, &s->row),
            "MPI_Type_contiguous", err) ||
        mfr_mpi(MPI_Type_commit(&s->row), "MPI_Type_commit", err))
        return -1;
    s->node_ranks = ranks;
    /* Gather and reduce need the ETP ranks side by side; and where all are
     * alone there is nobody to share with.
     */
    here = 1;
    for (int etp = 0; etp < splits->etp; etp++)
        here &= s->at[splits->by_source[etp * splits->ep + splits->my_ep]] >= 0;
    least = ranks > 1;
    if (mfr_allreduce(MPI_IN_PLACE, &here, 1, MPI_INT, MPI_MIN, group,
            "MPI_Allreduce", err) ||
        mfr_allreduce(MPI_IN_PLACE, &least, 1, MPI_INT, MPI_MAX, group,
            "MPI_Allreduce", err))
        return -1;
    s->possible = here && least;
    return s->possible ? open_board(s, err) : 0;
}

void mfr_shared_free(struct mfr_shared *s)
{
    if (!s)
        return;
    close_window(s->node, &s->rows);
    close_window(s->node, &s->board);
    if (s->node != MPI_COMM_NULL)
        MPI_Comm_free(&s->node);
    if (s->row != MPI_DATATYPE_NULL)
        MPI_Type_free(&s->row);
    free(s->at);
    free(s->x);
    free(s->y);
    free(s->arrived);
    free(s->request);
    free(s->first);
    free(s->to);
    free(s->shift);
    free(s->base);
    free(s->line);
    free(s->by_source);
    free(s);
}

/* Touching a page that the file system has no room for would kill the rank. */
static bool fits(int64_t bytes, int ranks)
{
    struct statvfs fs;

    if (statvfs("/dev/shm", &fs))
        return false;
    return 1.05 * (double)bytes * ranks <
           (double)fs.f_bavail * (double)fs.f_frsize;
}

static int64_t padded(int64_t rows, int64_t hidden)
{
    const int64_t page = 4096 / (int64_t)sizeof(float);

    return (rows * hidden + page) / page * page;
}

static int open_rows(struct mfr_shared *s, int64_t rows, struct mf_error *err)
{
    const int64_t values = padded(rows, s->hidden);

    if (open_window(
            s->node, 2 * values * (int64_t)sizeof(float), &s->rows, err))
        return -1;
    for (int m = 0; m < s->splits->members; m++) {
        float *base = NULL;

        if (s->at[m] < 0)
            continue;
        if (window_of(s->rows, s->at[m], &base, err))
            return -1;
        s->x[m] = base;
        s->y[m] = base + values;
    }
    s->room = rows;
    for (int64_t i = 0; s->poison && i < 2 * values; i++)
        s->x[s->me][i] = NAN;
    return s->poison ? mfr_barrier(s->node, "MPI_Barrier (poison)", err) : 0;
}

/* The windows anew; the old ones hold nothing that is still needed. */
static int grow(struct mfr_shared *s, struct mf_error *err)
{
    int64_t rows = s->splits->most_rows;
    int ok;

    /* A little more, so that a drift of the routes seldom comes here again. */
    if (s->on)
        rows += rows / 8;
    close_window(s->node, &s->rows);
    ok = fits(
        2 * padded(rows, s->hidden) * (int64_t)sizeof(float), s->node_ranks);
    if (mfr_allreduce(MPI_IN_PLACE, &ok, 1, MPI_INT, MPI_MIN, s->group,
            "MPI_Allreduce", err))
        return -1;
    s->on = ok;
    s->room = 0;
    return ok ? open_rows(s, rows, err) : 0;
}

/* Who gets the rows of expert E from here. */
static int expert_rank(const struct mfr_splits *p, int64_t e)
{
    return p->by_source[p->my_etp * p->ep + e / p->local];
}

/* Where the rows of this source stand: at the expert after those of the
 * experts before it and of the blocks of tokens before its own.
 */
static void find_targets(struct mfr_shared *s)
{
    const struct mfr_splits *p = s->splits;
    int64_t sent = 0, at = 0;

    for (int64_t e = 0; e < p->experts; e++) {
        at = e % p->local == 0 ? 0 : at;
        s->first[e] = sent;
        sent += p->counts[s->me * p->experts + e];
        for (int m = 0; m < p->members; m++) {
            if (p->by_block[m] == s->me)
                s->to[e] = at;
            at += p->counts[p->by_block[m] * p->experts + e];
        }
        s->shift[e] = s->x[expert_rank(p, e)] ? s->to[e] - s->first[e] : 0;
    }
}

int mfr_shared_room(struct mfr_shared *s, bool grew, struct mf_error *err)
{
    const int64_t rows = s->splits->rows;

    if (!s->possible)
        return 0;
    if (grew && s->splits->most_rows > s->room && grow(s, err))
        return -1;
    if (!s->on)
        return 0;
    if (s->distant && (!s->by_source || rows > s->source_room)) {
        free(s->by_source);
        s->by_source =
            calloc((size_t)(rows * s->hidden) + 1, sizeof *s->by_source);
        s->source_room = s->by_source ? rows : 0;
        if (!s->by_source)
            return mf_error_set(
                err, MF_FAILED, "out of memory for received rows");
    }
    find_targets(s);
    return 0;
}

float *mfr_shared_x(const struct mfr_shared *s)
{
    return s->x[s->me];
}

float *mfr_shared_y(const struct mfr_shared *s)
{
    return s->y[s->me];
}

/* Rows that this rank gets before the gather, source by source. */
static float *my_part(const struct mfr_shared *s)
{
    const struct mfr_splits *p = s->splits;

    return s->by_source ? s->by_source + p->part_at[p->my_etp] * s->hidden
                        : NULL;
}

static int start_receives(struct mfr_shared *s, float *rows, const int *count,
    const int *at, int tag, struct mf_error *err)
{
    s->requests = 0;
    for (int ep = 0; s->distant && ep < s->splits->ep; ep++) {
        const int peer =
            s->splits->by_source[s->splits->my_etp * s->splits->ep + ep];

        if (s->at[peer] >= 0 || count[ep] == 0)
            continue;
        if (mfr_mpi(MPI_Irecv(rows + (int64_t)at[ep] * s->hidden, count[ep],
                        s->row, peer, tag, s->group, &s->request[s->requests]),
                "MPI_Irecv", err))
            return -1;
        s->requests++;
    }
    return 0;
}

static int start_sends(struct mfr_shared *s, const float *rows,
    const int *count, const int *at, int tag, struct mf_error *err)
{
    for (int ep = 0; s->distant && ep < s->splits->ep; ep++) {
        const int peer =
            s->splits->by_source[s->splits->my_etp * s->splits->ep + ep];

        if (s->at[peer] >= 0 || count[ep] == 0)
            continue;
        if (mfr_mpi(MPI_Isend(rows + (int64_t)at[ep] * s->hidden, count[ep],
                        s->row, peer, tag, s->group, &s->request[s->requests]),
                "MPI_Isend", err))
            return -1;
        s->requests++;
    }
    return 0;
}

/* All of the group come here, whether they have requests or not. */
static int finish_requests(
    struct mfr_shared *s, const char *step, struct mf_error *err)
{
    const int n = s->requests;

    s->requests = 0;
    return s->distant ? mfr_wait_all(s->group, -1, n, s->request, step, err)
                      : 0;
}

/* All of the node at the same meeting; the acquire makes what they wrote
 * visible.
 */
static int meet(struct mfr_shared *s, const char *step, struct mf_error *err)
{
    const uint64_t mine = ++s->meetings;
    struct mfr_wait wait;
    int rc = 0;

    atomic_store_explicit(s->arrived[s->me], mine, memory_order_release);
    mfr_wait_begin(&wait, s->group, -1, step);
    for (int m = 0; rc == 0 && m < s->splits->members; m++)
        while (rc == 0 && s->arrived[m] &&
               atomic_load_explicit(s->arrived[m], memory_order_acquire) < mine)
            rc = mfr_wait_poll(&wait, err);
    mfr_wait_end(&wait);
    return rc;
}

/* Rows of the experts on other nodes to SEND, or, SEND NULL, of the others. */
static void write_tokens(struct mfr_shared *s, const struct mfr_router *r,
    const float *x, float *send)
{
    const struct mfr_splits *p = s->splits;

    for (int64_t e = 0; e < p->experts; e++) {
        float *window = s->x[expert_rank(p, e)];

        s->base[e] = send ? (window ? NULL : send) : window;
    }
    mfk_permute_to(
        r->tokens, r->topk, r->hidden, x, r->ids, r->place, s->shift, s->base);
}

int mfr_shared_push_tokens(struct mfr_shared *s,
    const struct mfr_router *router, const float *x, float *send,
    struct mf_error *err)
{
    const struct mfr_splits *p = s->splits;

    if (start_receives(s, my_part(s), p->take, p->take_at, TAG_THERE, err))
        return -1;
    /* First what has the longest way. */
    if (s->distant)
        write_tokens(s, router, x, send);
    if (start_sends(s, send, p->send, p->send_at, TAG_THERE, err))
        return -1;
    write_tokens(s, router, x, NULL);
    return 0;
}

int mfr_shared_push_rows(
    struct mfr_shared *s, const float *send, struct mf_error *err)
{
    const struct mfr_splits *p = s->splits;

    if (start_receives(s, my_part(s), p->take, p->take_at, TAG_THERE, err) ||
        start_sends(s, send, p->send, p->send_at, TAG_THERE, err))
        return -1;
    for (int64_t e = 0; e < p->experts; e++) {
        const size_t bytes =
            (size_t)(p->counts[s->me * p->experts + e] * s->hidden) *
            sizeof *send;

        float *y = s->y[expert_rank(p, e)];

        if (y)
            memcpy(y + s->to[e] * s->hidden, send + s->first[e] * s->hidden,
                bytes);
    }
    return 0;
}

/* From another node, in the dispatch of this rank. */
static bool came_far(const struct mfr_shared *s, int m)
{
    return s->at[m] < 0 && s->splits->member[m].etp == s->splits->my_etp;
}

/* Rows of other nodes between their sources' order and that of the experts. */
static void move_distant(struct mfr_shared *s, float *rows, bool back)
{
    const struct mfr_splits *p = s->splits;

    for (int m = 0; m < p->members; m++)
        for (int64_t e = 0; came_far(s, m) && e < p->local; e++) {
            const struct mfr_chunk *chunk = &p->chunk[m * p->local + e];
            float *a = rows + chunk->to * s->hidden;
            float *b = s->by_source + chunk->from * s->hidden;

            memcpy(back ? b : a, back ? a : b,
                (size_t)(chunk->rows * s->hidden) * sizeof *rows);
        }
}

int mfr_shared_arrive(
    struct mfr_shared *s, bool forward, const char *step, struct mf_error *err)
{
    if (finish_requests(s, step, err))
        return -1;
    if (s->distant)
        move_distant(s, forward ? s->x[s->me] : s->y[s->me], false);
    return meet(s, step, err);
}

int mfr_shared_pull(
    struct mfr_shared *s, float *send, const char *step, struct mf_error *err)
{
    const struct mfr_splits *p = s->splits;

    if (start_receives(s, send, p->send, p->send_at, TAG_BACK, err))
        return -1;
    if (s->distant)
        move_distant(s, s->y[s->me], true);
    if (start_sends(s, my_part(s), p->take, p->take_at, TAG_BACK, err) ||
        meet(s, step, err))
        return -1;
    for (int64_t e = 0; e < p->experts; e++) {
        const int64_t n = p->counts[s->me * p->experts + e] * s->hidden;
        const float *y = s->y[expert_rank(p, e)];

        if (y)
            memcpy(send + s->first[e] * s->hidden, y + s->to[e] * s->hidden,
                (size_t)n * sizeof *send);
    }
    return finish_requests(s, step, err);
}

/* The peer's rows of its own dispatch, at the same place here. */
static void copy_part(struct mfr_shared *s, float *const *window)
{
    const struct mfr_splits *p = s->splits;
    float *mine = window[s->me];

    for (int m = 0; m < p->members; m++) {
        const int64_t etp = p->member[m].etp;
        const float *from = window[p->by_source[etp * p->ep + p->my_ep]];

        for (int64_t e = 0; etp != p->my_etp && e < p->local; e++) {
            const struct mfr_chunk *chunk = &p->chunk[m * p->local + e];
            const int64_t at = chunk->to * s->hidden;

            memcpy(mine + at, from + at,
                (size_t)(chunk->rows * s->hidden) * sizeof *mine);
        }
    }
}

int mfr_shared_gather(
    struct mfr_shared *s, bool forward, const char *step, struct mf_error *err)
{
    copy_part(s, forward ? s->x : s->y);
    /* Experts work on y in place: not before all have read it. */
    return forward ? 0 : meet(s, step, err);
}

/* The parts of one row, in the order of the ETP ranks. */
static void sum_row(struct mfr_shared *s, int64_t at)
{
    const struct mfr_splits *p = s->splits;
    const size_t bytes = (size_t)s->hidden * sizeof *s->line;

    for (int etp = 0; etp < p->etp; etp++) {
        const float *y = s->y[p->by_source[etp * p->ep + p->my_ep]] + at;

        if (etp == 0)
            memcpy(s->line, y, bytes);
        else
            mfk_add(s->hidden, y, s->line);
    }
    memcpy(s->y[s->me] + at, s->line, bytes);
}

int mfr_shared_reduce(
    struct mfr_shared *s, const char *step, struct mf_error *err)
{
    const struct mfr_splits *p = s->splits;

    if (meet(s, step, err))
        return -1;
    for (int m = 0; m < p->members; m++)
        for (int64_t e = 0; p->member[m].etp == p->my_etp && e < p->local; e++)
            for (int64_t i = 0; i < p->chunk[m * p->local + e].rows; i++)
                sum_row(s, (p->chunk[m * p->local + e].to + i) * s->hidden);
    return 0;
}
