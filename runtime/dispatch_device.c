/* SPDX-License-Identifier: BSD-3-Clause
 * The five steps from device to device.
 */
#include "runtime/dispatch_device.h"

#include <stdlib.h>

#include "kernels/device/device.h"
#include "runtime/device.h"

static struct mfk_device *device_of(const struct mfr_dispatch_device *d)
{
    return d->comms->device;
}

static int done(
    const struct mfr_dispatch_device *d, int rc, struct mf_error *err)
{
    return rc ? mfr_device_failed(device_of(d), err) : 0;
}

int mfr_dispatch_device_init(struct mfr_dispatch_device *d,
    const struct mfr_device_comms *comms, const struct mfr_splits *splits,
    int64_t hidden, struct mf_error *err)
{
    const size_t ranks = (size_t)splits->members;

    *d = (struct mfr_dispatch_device){
        .comms = comms,
        .splits = splits,
        .hidden = hidden,
        .zeros = calloc(ranks, sizeof *d->zeros),
        .counts = calloc(2 * ranks, sizeof *d->counts),
    };
    if (d->zeros && d->counts)
        return 0;
    return mf_error_set(err, MF_FAILED, "out of memory");
}

static void give(struct mfr_dispatch_device *d, void *memory)
{
    device_of(d)->api->free(device_of(d), memory);
}

void mfr_dispatch_device_free(struct mfr_dispatch_device *d)
{
    if (!d->comms)
        return;
    give(d, d->by_source);
    give(d, d->parts);
    give(d, d->scratch);
    give(d, d->sort);
    give(d, d->unsort);
    free(d->index);
    free(d->zeros);
    free(d->counts);
    *d = (struct mfr_dispatch_device){0};
}

/* MEMORY of N items, when there is less; what was in it is lost. */
static int renew(struct mfr_dispatch_device *d, void *memory, int64_t n,
    size_t size, struct mf_error *err)
{
    void **at = memory;

    give(d, *at);
    *at = NULL;
    return done(
        d, device_of(d)->api->alloc(device_of(d), (size_t)n * size, at), err);
}

static int room_rows(struct mfr_dispatch_device *d, struct mf_error *err)
{
    const int64_t rows = d->splits->rows;

    if (d->by_source && rows <= d->room)
        return 0;
    free(d->index);
    d->index = malloc(((size_t)rows + 1) * sizeof *d->index);
    if (!d->index)
        return mf_error_set(err, MF_FAILED, "out of memory");
    if (renew(d, &d->by_source, rows * d->hidden, sizeof(float), err) ||
        renew(d, &d->sort, rows, sizeof(int64_t), err) ||
        renew(d, &d->unsort, rows, sizeof(int64_t), err))
        return -1;
    d->room = rows;
    return 0;
}

/* Rows between the two ranks that exchange most: the same on all ranks. */
static int64_t most_pair(const struct mfr_splits *s)
{
    int64_t most = s->most_part;

    for (int m = 0; m < s->members; m++)
        for (int ep = 0; ep < s->ep; ep++) {
            int64_t rows = 0;

            for (int64_t l = 0; l < s->local; l++)
                rows += s->counts[m * s->experts + ep * s->local + l];
            most = rows > most ? rows : most;
        }
    return most;
}

static int room_scratch(struct mfr_dispatch_device *d, struct mf_error *err)
{
    const struct mfk_exchange largest = {
        .type = MFK_F32, .width = d->hidden, .most = d->most_pair};
    const int ranks =
        d->splits->ep > d->splits->etp ? d->splits->ep : d->splits->etp;
    const size_t bytes = mfk_exchange_scratch(&largest, ranks);

    if (!d->comms->padded || (int64_t)bytes <= d->scratch_room)
        return 0;
    if (renew(d, &d->scratch, (int64_t)bytes, 1, err))
        return -1;
    d->scratch_room = (int64_t)bytes;
    return 0;
}

/* Where each row of TO comes from: chunks by expert, or back by source. */
static int upload_index(
    struct mfr_dispatch_device *d, bool back, int64_t *to, struct mf_error *err)
{
    const struct mfr_splits *s = d->splits;

    for (int64_t i = 0; i < s->members * s->local; i++) {
        const struct mfr_chunk *chunk = &s->chunk[i];

        for (int64_t r = 0; r < chunk->rows; r++)
            d->index[(back ? chunk->from : chunk->to) + r] =
                (back ? chunk->to : chunk->from) + r;
    }
    return done(d,
        device_of(d)->api->upload(
            device_of(d), to, d->index, (size_t)s->rows * sizeof *d->index),
        err);
}

int mfr_dispatch_device_room(
    struct mfr_dispatch_device *d, struct mf_error *err)
{
    const struct mfr_splits *s = d->splits;
    const int64_t part = (int64_t)s->own[0] * s->etp;

    d->most_pair = most_pair(s);
    if (room_rows(d, err) || room_scratch(d, err))
        return -1;
    if (s->etp > 1 && (!d->parts || part > d->part_room)) {
        if (renew(d, &d->parts, part * d->hidden, sizeof(float), err))
            return -1;
        d->part_room = part;
    }
    if (s->sorted)
        return 0;
    /* The host's copy is one array: the first upload must be over. */
    return upload_index(d, false, d->sort, err) ||
                   done(d, device_of(d)->api->wait(device_of(d)), err) ||
                   upload_index(d, true, d->unsort, err) ||
                   done(d, device_of(d)->api->wait(device_of(d)), err)
               ? -1
               : 0;
}

static float *unsorted(const struct mfr_dispatch_device *d, float *rows)
{
    return d->splits->sorted ? rows : d->by_source;
}

float *mfr_dispatch_device_source(
    const struct mfr_dispatch_device *d, float *send, float *rows)
{
    const struct mfr_splits *s = d->splits;

    if (s->ep > 1)
        return send;
    return unsorted(d, rows) + s->part_at[s->my_etp] * d->hidden;
}

static int exchange(struct mfr_dispatch_device *d, enum mf_group_kind kind,
    struct mfk_exchange exchange, struct mf_error *err)
{
    exchange.type = MFK_F32;
    exchange.width = d->hidden;
    exchange.most = d->most_pair;
    exchange.padded = d->comms->padded;
    exchange.scratch = d->scratch;
    return done(d,
        device_of(d)->api->comm_exchange(
            device_of(d), d->comms->comm[kind], &exchange),
        err);
}

int mfr_dispatch_device_there(struct mfr_dispatch_device *d, const float *send,
    float *rows, struct mf_error *err)
{
    const struct mfr_splits *s = d->splits;

    if (s->ep == 1)
        return 0;
    return exchange(d, MF_GROUP_EP,
        (struct mfk_exchange){
            .from = send,
            .to = unsorted(d, rows) + s->part_at[s->my_etp] * d->hidden,
            .send = s->send,
            .send_at = s->send_at,
            .take = s->take,
            .take_at = s->take_at,
        },
        err);
}

int mfr_dispatch_device_gather(
    struct mfr_dispatch_device *d, float *rows, struct mf_error *err)
{
    const struct mfr_splits *s = d->splits;
    int *send = d->counts, *take = d->counts + s->members;

    if (s->etp == 1)
        return 0;
    /* My own part is in its place already. */
    for (int p = 0; p < s->etp; p++) {
        send[p] = p == s->my_etp ? 0 : s->part[s->my_etp];
        take[p] = p == s->my_etp ? 0 : s->part[p];
    }
    return exchange(d, MF_GROUP_ETP,
        (struct mfk_exchange){
            .from = unsorted(d, rows) + s->part_at[s->my_etp] * d->hidden,
            .to = unsorted(d, rows),
            .send = send,
            .send_at = d->zeros,
            .take = take,
            .take_at = s->part_at,
        },
        err);
}

int mfr_dispatch_device_sort(
    struct mfr_dispatch_device *d, float *rows, struct mf_error *err)
{
    if (d->splits->sorted)
        return 0;
    return done(d,
        mfk_device_collect(device_of(d), MFK_F32, d->splits->rows, d->hidden,
            d->by_source, d->sort, rows),
        err);
}

int mfr_dispatch_device_unsort(
    struct mfr_dispatch_device *d, const float *rows, struct mf_error *err)
{
    if (d->splits->sorted)
        return 0;
    return done(d,
        mfk_device_collect(device_of(d), MFK_F32, d->splits->rows, d->hidden,
            rows, d->unsort, d->by_source),
        err);
}

static const float *unsorted_back(
    const struct mfr_dispatch_device *d, const float *rows)
{
    return d->splits->sorted ? rows : d->by_source;
}

int mfr_dispatch_device_reduce(
    struct mfr_dispatch_device *d, const float *rows, struct mf_error *err)
{
    const struct mfr_splits *s = d->splits;
    const int64_t mine = s->own[0] * d->hidden;

    if (s->etp == 1)
        return 0;
    if (exchange(d, MF_GROUP_ETP,
            (struct mfk_exchange){
                .from = unsorted_back(d, rows),
                .to = d->parts,
                .send = s->part,
                .send_at = s->part_at,
                .take = s->own,
                .take_at = s->own_at,
            },
            err))
        return -1;
    /* The sum has one order, that of the peers. */
    for (int peer = 1; peer < s->etp; peer++)
        if (done(d,
                mfk_device_add(device_of(d), MFK_F32, mine, 1,
                    d->parts + peer * mine, d->parts),
                err))
            return -1;
    return 0;
}

int mfr_dispatch_device_back(struct mfr_dispatch_device *d, const float *rows,
    float *send, struct mf_error *err)
{
    const struct mfr_splits *s = d->splits;
    const float *from = s->etp > 1 ? d->parts : unsorted_back(d, rows);

    if (s->ep == 1)
        return done(d,
            device_of(d)->api->upload(device_of(d), send, from,
                (size_t)s->send[0] * (size_t)d->hidden * sizeof *send),
            err);
    return exchange(d, MF_GROUP_EP,
        (struct mfk_exchange){
            .from = from,
            .to = send,
            .send = s->take,
            .send_at = s->take_at,
            .take = s->send,
            .take_at = s->send_at,
        },
        err);
}
