/* SPDX-License-Identifier: BSD-3-Clause
 * How fast rows move, as ratios to what the machine gives in the same run:
 * permute to memcpy, and the way through shared memory to permute and then
 * MPI_Alltoallv. Run on 2 ranks by make bench.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/kernels.h"
#include "runtime/clock.h"
#include "runtime/shared.h"
#include "runtime/stats.h"

enum { REPEATS = 9, HIDDEN = 1024, EXPERTS = 8, TOPK = 2 };

struct bench {
    struct mfr_shape shape;
    struct mfr_comms comms;
    struct mfr_splits splits;
    struct mfr_router router;
    struct mfr_shared *shared;
    MPI_Datatype row;
    float *x, *send, *take;
};

/* Choices that go to the ranks by turns, spread over their experts. */
static void choose(struct mfr_router *r)
{
    for (int64_t i = 0; i < r->tokens * TOPK; i++)
        r->ids[i] = (int32_t)((i / TOPK + i % TOPK * (EXPERTS / 2)) % EXPERTS);
    mfk_count(r->tokens * TOPK, EXPERTS, r->ids, r->counts);
    mfk_place(
        r->tokens * TOPK, EXPERTS, r->ids, r->counts, r->cursor, r->place);
}

static int bench_make(struct bench *b, const struct mf_layout *layout,
    int64_t tokens, struct mf_error *err)
{
    const struct mfr_transport how = {0};
    const size_t values = (size_t)(tokens * TOPK * HIDDEN);
    struct mfr_shard shard;

    b->shape = (struct mfr_shape){.seq = tokens,
        .batch = 1,
        .hidden = HIDDEN,
        .ffn = 1,
        .experts = EXPERTS,
        .topk = TOPK,
        .scaling = 1};
    mfr_shard_of(&b->shape, layout, b->comms.rank, &shard);
    if (mfr_splits_init(&b->splits, &b->shape, &b->comms, &shard, 1, err) ||
        mfr_router_init(&b->router, &b->shape, tokens, err))
        return -1;
    choose(&b->router);
    if (mfr_shared_create(
            &b->shape, &b->comms, &b->splits, &how, &b->shared, err) ||
        mfr_splits_exchange(&b->splits, &b->comms, b->router.counts, err) ||
        mfr_shared_room(b->shared, true, err) ||
        mfr_mpi(MPI_Type_contiguous(HIDDEN, MPI_FLOAT, &b->row),
            "MPI_Type_contiguous", err) ||
        mfr_mpi(MPI_Type_commit(&b->row), "MPI_Type_commit", err))
        return -1;
    b->x = calloc(values, sizeof *b->x);
    b->send = calloc(values, sizeof *b->send);
    b->take = calloc(values, sizeof *b->take);
    if (b->x && b->send && b->take && b->shared->on)
        return 0;
    return mf_error_set(err, MF_FAILED, "no memory to share");
}

static void bench_free(struct bench *b)
{
    mfr_shared_free(b->shared);
    mfr_router_free(&b->router);
    mfr_splits_free(&b->splits);
    MPI_Type_free(&b->row);
    free(b->x);
    free(b->send);
    free(b->take);
}

static int by_memory(struct bench *b, struct mf_error *err)
{
    return mfr_shared_push_tokens(b->shared, &b->router, b->x, b->send, err) ||
                   mfr_shared_arrive(b->shared, true, "bench", err)
               ? -1
               : 0;
}

static int by_mpi(struct bench *b, struct mf_error *err)
{
    const struct mfr_splits *s = &b->splits;

    mfk_permute(b->router.tokens, TOPK, HIDDEN, b->x, b->router.place, b->send);
    return mfr_mpi(MPI_Alltoallv(b->send, s->send, s->send_at, b->row, b->take,
                       s->take, s->take_at, b->row, b->comms.comm[MF_GROUP_EP]),
        "MPI_Alltoallv", err);
}

static int by_memcpy(struct bench *b, struct mf_error *err)
{
    (void)err;
    memcpy(b->send, b->x,
        (size_t)(b->router.tokens * TOPK * HIDDEN) * sizeof *b->x);
    return 0;
}

static int by_permute(struct bench *b, struct mf_error *err)
{
    (void)err;
    mfk_permute(b->router.tokens, TOPK, HIDDEN, b->x, b->router.place, b->send);
    return 0;
}

typedef int way_fn(struct bench *b, struct mf_error *err);

/* Medians and spread of two ways by turns, the slower rank of each time. */
static int compare(struct bench *b, way_fn *const way[2], double median[2],
    double spread[2], struct mf_error *err)
{
    double spent[2][REPEATS];

    for (int i = -2; i < REPEATS; i++)
        for (int w = 0; w < 2; w++) {
            double start, mine;

            if (mfr_mpi(MPI_Barrier(b->comms.base), "MPI_Barrier", err))
                return -1;
            start = mfr_now();
            if (way[w](b, err))
                return -1;
            mine = mfr_now() - start;
            if (mfr_mpi(MPI_Allreduce(MPI_IN_PLACE, &mine, 1, MPI_DOUBLE,
                            MPI_MAX, b->comms.base),
                    "MPI_Allreduce", err))
                return -1;
            if (i >= 0)
                spent[w][i] = mine;
        }
    for (int w = 0; w < 2; w++) {
        median[w] = mfr_median(REPEATS, spent[w]);
        spread[w] = spent[w][REPEATS - 1] / spent[w][0];
    }
    return 0;
}

static int measure(const char *what, way_fn *a, way_fn *b, double scale,
    const struct mf_layout *layout, const struct mfr_comms *comms,
    int64_t tokens, struct mf_error *err)
{
    struct bench bench = {.comms = *comms};
    way_fn *const way[2] = {a, b};
    double median[2], spread[2];

    if (bench_make(&bench, layout, tokens, err) ||
        compare(&bench, way, median, spread, err))
        return -1;
    if (comms->rank == 0)
        printf("%-34s %8lld KiB a pair: ratio %5.2f (%.3f and %.3f ms, "
               "slowest/quickest %.2f and %.2f)\n",
            what, (long long)(tokens * TOPK * HIDDEN * 4 / 2 / 1024),
            scale * median[1] / median[0], 1e3 * median[0], 1e3 * median[1],
            spread[0], spread[1]);
    bench_free(&bench);
    return 0;
}

static int bench_all(struct mf_error *err)
{
    struct mf_layout layout;
    struct mfr_comms comms;
    int rc;

    if (mf_layout_parse("dp2/ep2", &layout, err) ||
        mf_layout_resolve(&layout, 2, ~0u, err) ||
        mfr_comms_create(MPI_COMM_WORLD, &layout, &comms, err))
        return -1;
    /* Permute reads a row once for its TOPK copies: 3 of memcpy's 4 bytes. */
    rc = measure("permute to memcpy, bytes a second", by_permute, by_memcpy,
        (1.0 + TOPK) / (2.0 * TOPK), &layout, &comms, 1 << 14, err);
    for (int64_t tokens = 16; rc == 0 && tokens <= 2048; tokens *= 2)
        rc = measure("shared memory to permute+Alltoallv", by_memory, by_mpi, 1,
            &layout, &comms, tokens, err);
    mfr_comms_free(&comms);
    return rc;
}

int main(void)
{
    struct mf_error err = {MF_FAILED, ""};
    int ranks = 0;

    if (MPI_Init(NULL, NULL) != MPI_SUCCESS ||
        MPI_Comm_size(MPI_COMM_WORLD, &ranks) != MPI_SUCCESS)
        return 1;
    if (ranks != 2 || bench_all(&err)) {
        fprintf(stderr, "moves: %s\n", ranks == 2 ? err.text : "needs 2 ranks");
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    return MPI_Finalize() == MPI_SUCCESS ? 0 : 1;
}
