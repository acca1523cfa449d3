/* SPDX-License-Identifier: BSD-3-Clause
 * One copy of a token for each destination rank.
 */
#include "runtime/copies.h"

#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/kernels.h"
#include "runtime/collective.h"

/* Of one token at most. */
static int64_t most_copies(
    const struct mfr_shape *shape, int64_t members, int64_t etp, bool all)
{
    const int64_t chosen = shape->topk * etp;

    return all || chosen > members ? members : chosen;
}

double mfr_copies_bytes(const struct mfr_shape *shape, int64_t members,
    double tokens, double group_tokens, double rows)
{
    const double h = (double)shape->hidden, k = (double)shape->topk;
    const double sent = tokens * (double)members;

    return sizeof(float) *
           (sent * (h + 3 * k + 2) + group_tokens * (h + 8 * k + 2) + rows * h);
}

static void *zeros(int64_t n, int64_t each, size_t size)
{
    int64_t all;

    if (__builtin_mul_overflow(n, each, &all) || all == INT64_MAX)
        return NULL;
    return calloc((size_t)all + 1, size);
}

static int alloc_sent(struct mfr_copies *c, int64_t most)
{
    const int members = c->splits->members;

    c->send = zeros(4, members, sizeof *c->send);
    c->token = zeros(most, 1, sizeof *c->token);
    c->ids_out = zeros(most, c->topk, sizeof *c->ids_out);
    c->weights_out = zeros(most, c->topk, sizeof *c->weights_out);
    c->dweights_out = zeros(most, c->topk, sizeof *c->dweights_out);
    c->out = zeros(most, c->hidden, sizeof *c->out);
    if (!c->send || !c->token || !c->ids_out || !c->weights_out ||
        !c->dweights_out || !c->out)
        return -1;
    c->send_at = c->send + members;
    c->take = c->send + 2 * members;
    c->take_at = c->send + 3 * members;
    return 0;
}

static int alloc_taken(struct mfr_copies *c, int64_t most)
{
    c->ids = zeros(most, c->topk, sizeof *c->ids);
    c->weights = zeros(most, c->topk, sizeof *c->weights);
    c->dweights = zeros(most, c->topk, sizeof *c->dweights);
    c->cursor = zeros(c->splits->members, c->splits->local, sizeof *c->cursor);
    c->here = zeros(most, 1, sizeof *c->here);
    c->slot = zeros(most, c->topk, sizeof *c->slot);
    c->place = zeros(most, c->topk, sizeof *c->place);
    c->chosen = zeros(most, c->topk, sizeof *c->chosen);
    c->in = zeros(most, c->hidden, sizeof *c->in);
    return c->ids && c->weights && c->dweights && c->cursor && c->here &&
                   c->slot && c->place && c->chosen && c->in
               ? 0
               : -1;
}

static int make_types(struct mfr_copies *c, struct mf_error *err)
{
    /* Choices and weights alike: four bytes each. */
    if (mfr_mpi(MPI_Type_contiguous((int)c->hidden, MPI_FLOAT, &c->row),
            "MPI_Type_contiguous", err) ||
        mfr_mpi(MPI_Type_commit(&c->row), "MPI_Type_commit", err) ||
        mfr_mpi(MPI_Type_contiguous((int)(c->topk * (int64_t)sizeof(float)),
                    MPI_BYTE, &c->choices),
            "MPI_Type_contiguous", err))
        return -1;
    return mfr_mpi(MPI_Type_commit(&c->choices), "MPI_Type_commit", err);
}

int mfr_copies_create(const struct mfr_shape *shape,
    const struct mfr_comms *comms, const struct mfr_splits *splits, bool all,
    struct mfr_copies **copies, struct mf_error *err)
{
    const int me = comms->group_rank[MF_GROUP_ETP_EP];
    int64_t group_tokens = 0, copied;
    struct mfr_copies *c = calloc(1, sizeof *c);

    *copies = NULL;
    if (!c)
        return mf_error_set(err, MF_FAILED, "out of memory");
    *c = (struct mfr_copies){
        .group = comms->comm[MF_GROUP_ETP_EP],
        .splits = splits,
        .all = all,
        .hidden = shape->hidden,
        .topk = shape->topk,
        .tokens = splits->member[me].tokens,
        .row = MPI_DATATYPE_NULL,
        .choices = MPI_DATATYPE_NULL,
    };
    for (int m = 0; m < splits->members; m++)
        group_tokens += splits->member[m].tokens;
    c->most_in = group_tokens;
    copied = c->tokens * most_copies(shape, splits->members, splits->etp, all);
    c->most_out = copied;
    *copies = c;
    if (group_tokens > INT_MAX || copied > INT_MAX)
        return mf_error_set(err, MF_INVALID,
            "the group's copies of tokens are more than MPI can count");
    if (alloc_sent(c, copied) || alloc_taken(c, group_tokens))
        return mf_error_set(
            err, MF_FAILED, "out of memory for copies of tokens");
    return make_types(c, err);
}

void mfr_copies_free(struct mfr_copies *c)
{
    if (!c)
        return;
    if (c->row != MPI_DATATYPE_NULL)
        MPI_Type_free(&c->row);
    if (c->choices != MPI_DATATYPE_NULL)
        MPI_Type_free(&c->choices);
    free(c->send);
    free(c->token);
    free(c->ids_out);
    free(c->weights_out);
    free(c->dweights_out);
    free(c->out);
    free(c->ids);
    free(c->weights);
    free(c->dweights);
    free(c->cursor);
    free(c->here);
    free(c->slot);
    free(c->place);
    free(c->chosen);
    free(c->in);
    free(c->kept);
    free(c);
}

int mfr_copies_room(struct mfr_copies *c, struct mf_error *err)
{
    const int64_t rows = c->splits->rows;

    if (c->kept && rows <= c->kept_room)
        return 0;
    free(c->kept);
    c->kept = zeros(rows, c->hidden, sizeof *c->kept);
    c->kept_room = c->kept ? rows : 0;
    return c->kept ? 0
                   : mf_error_set(
                         err, MF_FAILED, "out of memory for the experts' rows");
}

/* Does token T go to the ranks at ep place EP? */
static bool goes_to(const struct mfr_copies *c, const struct mfr_router *r,
    int64_t t, int64_t ep)
{
    for (int64_t i = t * c->topk; i < (t + 1) * c->topk; i++)
        if (r->place[i] >= 0 && r->ids[i] / c->splits->local == ep)
            return true;
    return c->all;
}

static void choose(struct mfr_copies *c, const struct mfr_router *r)
{
    int64_t n = 0;

    for (int m = 0; m < c->splits->members; m++) {
        const int64_t ep = c->splits->member[m].ep;

        c->send_at[m] = (int)n;
        for (int64_t t = 0; t < c->tokens; t++)
            if (goes_to(c, r, t, ep))
                c->token[n++] = t;
        c->send[m] = (int)n - c->send_at[m];
    }
    c->sent = n;
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < c->topk; j++) {
            const int64_t from = c->token[i] * c->topk + j;

            c->ids_out[i * c->topk + j] =
                r->place[from] >= 0 ? r->ids[from] : -1;
            c->weights_out[i * c->topk + j] = r->weights[from];
        }
}

/* Rows of an expert from one source ascend by token, as its tokens do here. */
static int find_places(struct mfr_copies *c, struct mf_error *err)
{
    const struct mfr_splits *s = c->splits;
    const int64_t base = s->my_ep * s->local;

    for (int64_t i = 0; i < s->members * s->local; i++)
        c->cursor[i] = s->chunk[i].to;
    for (int m = 0; m < s->members; m++)
        for (int64_t t = c->take_at[m]; t < c->take_at[m] + c->take[m]; t++) {
            int64_t n = 0;

            for (int64_t j = 0; j < c->topk; j++) {
                const int64_t at = t * c->topk;
                const int64_t e = c->ids[at + j] - base;

                if (c->ids[at + j] < 0 || e < 0 || e >= s->local)
                    continue;
                c->slot[at + n] = j;
                c->chosen[at + n] = c->weights[at + j];
                c->place[at + n++] = c->cursor[m * s->local + e]++;
            }
            c->here[t] = n;
        }
    for (int64_t i = 0; i < s->members * s->local; i++)
        if (c->cursor[i] != s->chunk[i].to + s->chunk[i].rows)
            return mf_error_set(err, MF_FAILED,
                "the choices that came from place %d of the etp_ep group are "
                "not those it counted",
                (int)(i / s->local));
    return 0;
}

/* OUT is [sent], IN is [taken] of TYPE. */
static int forth(const struct mfr_copies *c, const void *out, void *in,
    MPI_Datatype type, struct mf_error *err)
{
    return mfr_alltoallv(out, c->send, c->send_at, in, c->take, c->take_at,
        type, c->group, "MPI_Alltoallv (copies)", err);
}

static int hand_back(const struct mfr_copies *c, const void *in, void *out,
    MPI_Datatype type, struct mf_error *err)
{
    return mfr_alltoallv(in, c->take, c->take_at, out, c->send, c->send_at,
        type, c->group, "MPI_Alltoallv (sums)", err);
}

int mfr_copies_routes(
    struct mfr_copies *c, const struct mfr_router *router, struct mf_error *err)
{
    int64_t n = 0;

    choose(c, router);
    if (c->all)
        for (int m = 0; m < c->splits->members; m++)
            c->take[m] = (int)c->splits->member[m].tokens;
    else if (mfr_alltoall(c->send, c->take, 1, MPI_INT, c->group,
                 "MPI_Alltoall (copies)", err))
        return -1;
    for (int m = 0; m < c->splits->members; m++) {
        if (c->take[m] < 0 || c->take[m] > c->splits->member[m].tokens)
            return mf_error_set(err, MF_FAILED,
                "place %d of the etp_ep group announces %d copies", m,
                c->take[m]);
        c->take_at[m] = (int)n;
        n += c->take[m];
    }
    c->taken = n;
    if (forth(c, c->ids_out, c->ids, c->choices, err) ||
        forth(c, c->weights_out, c->weights, c->choices, err))
        return -1;
    return find_places(c, err);
}

void mfr_copies_poison(struct mfr_copies *c, bool forward)
{
    for (int64_t i = 0; i < c->most_out * c->hidden; i++)
        c->out[i] = NAN;
    for (int64_t i = 0; i < c->most_in * c->hidden; i++)
        c->in[i] = NAN;
    for (int64_t i = 0; forward && i < c->kept_room * c->hidden; i++)
        c->kept[i] = NAN;
}

void mfr_copies_pack(struct mfr_copies *c, const float *x)
{
    const size_t bytes = (size_t)c->hidden * sizeof *x;

    if (c->all)
        return;
    for (int64_t i = 0; i < c->sent; i++)
        memcpy(c->out + i * c->hidden, x + c->token[i] * c->hidden, bytes);
}

int mfr_copies_there(struct mfr_copies *c, const float *x, struct mf_error *err)
{
    if (!c->all)
        return forth(c, c->out, c->in, c->row, err);
    return mfr_allgatherv(x, (int)c->tokens, c->in, c->take, c->take_at, c->row,
        c->group, "MPI_Allgatherv (tokens)", err);
}

void mfr_copies_expand(const struct mfr_copies *c, float *rows)
{
    for (int64_t t = 0; t < c->taken; t++)
        mfk_permute(1, c->here[t], c->hidden, c->in + t * c->hidden,
            c->place + t * c->topk, rows);
}

void mfr_copies_expand_back(struct mfr_copies *c, float *rows)
{
    float *found = c->dweights;

    for (int64_t t = 0; t < c->taken; t++, found += c->topk) {
        const int64_t at = t * c->topk;

        mfk_unpermute_backward(1, c->here[t], c->hidden, c->kept, c->place + at,
            c->chosen + at, c->in + t * c->hidden, rows, found);
        /* From the first ones, in their order, to their slots. */
        for (int64_t j = c->topk - 1, n = c->here[t] - 1; j >= 0; j--)
            if (n >= 0 && c->slot[at + n] == j)
                found[j] = found[n--];
            else
                found[j] = 0;
    }
}

void mfr_copies_keep(struct mfr_copies *c, const float *rows)
{
    memcpy(c->kept, rows,
        (size_t)c->splits->rows * (size_t)c->hidden * sizeof *rows);
}

void mfr_copies_sum(struct mfr_copies *c, const float *rows, bool weighted)
{
    for (int64_t t = 0; t < c->taken; t++) {
        float *sum = c->in + t * c->hidden;

        if (c->here[t] == 0)
            memset(sum, 0, (size_t)c->hidden * sizeof *sum);
        mfk_unpermute(1, c->here[t], c->hidden, rows, c->place + t * c->topk,
            weighted ? c->chosen + t * c->topk : NULL, sum);
    }
}

int mfr_copies_back(struct mfr_copies *c, struct mf_error *err)
{
    return hand_back(c, c->in, c->out, c->row, err);
}

void mfr_copies_unpack(const struct mfr_copies *c, float *y)
{
    memset(y, 0, (size_t)c->tokens * (size_t)c->hidden * sizeof *y);
    for (int64_t i = 0; i < c->sent; i++)
        mfk_add(c->hidden, c->out + i * c->hidden, y + c->token[i] * c->hidden);
}

int mfr_copies_dweights(
    struct mfr_copies *c, float *dweights, struct mf_error *err)
{
    if (hand_back(c, c->dweights, c->dweights_out, c->choices, err))
        return -1;
    memset(dweights, 0, (size_t)(c->tokens * c->topk) * sizeof *dweights);
    for (int64_t i = 0; i < c->sent; i++)
        mfk_add(c->topk, c->dweights_out + i * c->topk,
            dweights + c->token[i] * c->topk);
    return 0;
}

double mfr_copies_moved(const struct mfr_copies *c)
{
    double out = 0, in = 0;

    for (int m = 0; m < c->splits->members; m++) {
        const struct mfr_member *o = &c->splits->member[m];

        if (o->ep == c->splits->my_ep && o->etp == c->splits->my_etp)
            continue;
        out += c->send[m];
        in += c->take[m];
    }
    return (out > in ? out : in) * (double)c->hidden * sizeof(float);
}
