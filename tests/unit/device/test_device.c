/* SPDX-License-Identifier: BSD-3-Clause
 * The device kernels against the CPU's, whole bodies, over random shapes and
 * edge cases: no rows, one of everything, widths that are no multiple of 16
 * bytes, more blocks than work and less.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/kernels.h"
#include "kernels/device/device.h"
#include "tests/opencl/plugin.h"

static struct mfk_device *device;
static uint32_t state;

/* Device memory of one round, given back at its end. */
enum { LENT_MAX = 32 };
static void *lent[LENT_MAX];
static int lent_count;

static void ok(int rc)
{
    if (rc)
        fail_msg("%s", device->error);
}

static void *lend(int64_t n, size_t size)
{
    void *memory = NULL;

    assert_true(lent_count < LENT_MAX);
    ok(device->api->alloc(device, (size_t)n * size, &memory));
    lent[lent_count++] = memory;
    return memory;
}

static void *put(const void *from, int64_t n, size_t size)
{
    void *memory = lend(n, size);

    ok(device->api->upload(device, memory, from, (size_t)n * size));
    return memory;
}

static void get(void *to, const void *from, int64_t n, size_t size)
{
    ok(device->api->download(device, to, from, (size_t)n * size));
}

static void give_back(void)
{
    while (lent_count > 0)
        device->api->free(device, lent[--lent_count]);
}

#define PUT(array, n) put(array, n, sizeof *(array))
#define LEND(like, n) lend(n, sizeof *(like))
#define GET(array, from, n) get(array, from, n, sizeof *(array))

/* Uniform in [0, 2^24); Numerical Recipes' quick generator. */
static uint32_t next(void)
{
    state = state * 1664525u + 1013904223u;
    return state >> 8;
}

/* In [-1, 1). */
static float next_float(void)
{
    return (float)next() * 0x1p-23f - 1;
}

static int64_t below(int64_t n)
{
    return next() % n;
}

static void *room(int64_t n, size_t size)
{
    void *memory = calloc((size_t)n + 1, size);

    assert_non_null(memory);
    return memory;
}

static float *floats(int64_t n)
{
    return room(n, sizeof(float));
}

static float *random_floats(int64_t n)
{
    float *values = floats(n);

    for (int64_t i = 0; i < n; i++)
        values[i] = next_float();
    return values;
}

/* fp32 rounded to bf16 and to its 16 bits, by a second way: the nearest of the
 * two neighbours, found by comparing distances; the even one of equals.
 */
static uint16_t bits_of(float value)
{
    uint32_t low, high;
    float below_value, above_value;

    memcpy(&low, &value, sizeof low);
    low &= 0xffff0000u;
    high = low + 0x10000u;
    memcpy(&below_value, &low, sizeof below_value);
    memcpy(&above_value, &high, sizeof above_value);
    if (fabs((double)value - below_value) < fabs((double)above_value - value))
        return (uint16_t)(low >> 16);
    if (fabs((double)value - below_value) > fabs((double)above_value - value))
        return (uint16_t)(high >> 16);
    return (uint16_t)((low >> 16) % 2 ? high >> 16 : low >> 16);
}

static float value_of(uint16_t bits)
{
    const uint32_t wide = (uint32_t)bits << 16;
    float value;

    memcpy(&value, &wide, sizeof value);
    return value;
}

static uint16_t *to_bits(int64_t n, float *values)
{
    uint16_t *bits = room(n, sizeof *bits);

    for (int64_t i = 0; i < n; i++) {
        bits[i] = bits_of(values[i]);
        values[i] = value_of(bits[i]);
    }
    return bits;
}

static void same_bits(
    int64_t n, const void *a, const void *b, size_t size, const char *what)
{
    if (memcmp(a, b, (size_t)n * size) != 0)
        fail_msg("%s: other bits than on the CPU", what);
}

/* |a - b| <= bound * max(1, |b|), and no NaN. */
static void near(
    int64_t n, const float *a, const float *b, double bound, const char *what)
{
    for (int64_t i = 0; i < n; i++) {
        const double most = fmax(1, fabs((double)b[i]));

        if (!(fabs((double)a[i] - (double)b[i]) <= bound * most))
            fail_msg("%s: element %lld is %.9g, on the CPU %.9g", what,
                (long long)i, (double)a[i], (double)b[i]);
    }
}

static void near_bits(int64_t n, const uint16_t *a, const float *b,
    double bound, const char *what)
{
    float *wide = floats(n);

    for (int64_t i = 0; i < n; i++)
        wide[i] = value_of(a[i]);
    near(n, wide, b, bound, what);
    free(wide);
}

/* One random routing problem. */
struct choices {
    int64_t tokens, experts, topk, hidden, n;
    int32_t *ids;
    int64_t *counts, *place;
    float *weights;
};

static int64_t pick(const int64_t *from, int64_t n)
{
    return from[below(n)];
}

static void choices_make(struct choices *c, int round)
{
    static const int64_t tokens[] = {0, 1, 2, 7, 63, 64, 130, 257};
    static const int64_t experts[] = {1, 2, 3, 8, 60, 64, 256, 300};
    static const int64_t hidden[] = {1, 2, 4, 6, 8, 12, 72, 128, 1028};
    int64_t *cursor;

    c->tokens = round < 2 ? round : pick(tokens, 8);
    c->experts = pick(experts, 8);
    c->topk = 1 + below(c->experts < 8 ? c->experts : 8);
    c->hidden = pick(hidden, 9);
    c->n = c->tokens * c->topk;
    c->ids = room(c->n, sizeof *c->ids);
    c->counts = room(c->experts, sizeof *c->counts);
    c->place = room(c->n, sizeof *c->place);
    c->weights = random_floats(c->n);
    cursor = room(c->experts, sizeof *cursor);
    for (int64_t i = 0; i < c->n; i++) /* round 2: all to one expert */
        c->ids[i] = (int32_t)(round == 2 ? c->experts - 1 : below(c->experts));
    mfk_count(c->n, c->experts, c->ids, c->counts);
    mfk_place(c->n, c->experts, c->ids, c->counts, cursor, c->place);
    free(cursor);
}

static void choices_free(struct choices *c)
{
    free(c->ids);
    free(c->counts);
    free(c->place);
    free(c->weights);
}

enum { ROUNDS = 24 };

static void test_place(void **unused)
{
    (void)unused;
    for (int round = 0; round < ROUNDS; round++) {
        struct choices c;
        int64_t *counts, *place, *on_counts, *on_place;

        choices_make(&c, round);
        counts = room(c.experts, sizeof *counts);
        place = room(c.n, sizeof *place);
        on_counts = LEND(counts, c.experts);
        on_place = LEND(place, c.n);
        ok(mfk_device_group(device, c.n, c.experts, PUT(c.ids, c.n),
            LEND(counts, mfk_device_group_room(c.n, c.experts)), on_counts,
            on_place));
        GET(counts, on_counts, c.experts);
        GET(place, on_place, c.n);
        same_bits(c.experts, counts, c.counts, sizeof *counts, "counts");
        same_bits(c.n, place, c.place, sizeof *place, "places");
        give_back();
        free(counts);
        free(place);
        choices_free(&c);
    }
}

/* Dropped choices are counted nowhere, the others move up. */
static void test_place_dropped(void **unused)
{
    const int32_t ids[] = {1, -1, 0, 1, -1, 1};
    const int64_t want[] = {1, -1, 0, 2, -1, 3};
    int64_t counts[2], place[6];
    int64_t *on_counts = LEND(counts, 2), *on_place = LEND(place, 6);

    (void)unused;
    ok(mfk_device_group(device, 6, 2, PUT(ids, 6),
        LEND(counts, mfk_device_group_room(6, 2)), on_counts, on_place));
    GET(counts, on_counts, 2);
    GET(place, on_place, 6);
    give_back();
    assert_int_equal(counts[0], 1);
    assert_int_equal(counts[1], 3);
    same_bits(6, place, want, sizeof *place, "places");
}

static void test_permute(void **unused)
{
    (void)unused;
    for (int round = 0; round < ROUNDS; round++) {
        struct choices c;
        float *x, *want, *rows;
        uint16_t *x16, *want16, *rows16;
        int64_t all;
        void *on;

        choices_make(&c, round);
        all = c.n * c.hidden;
        x = random_floats(c.tokens * c.hidden);
        x16 = to_bits(c.tokens * c.hidden, x);
        want = floats(all);
        rows = floats(all);
        rows16 = room(all, sizeof *rows16);
        mfk_permute(c.tokens, c.topk, c.hidden, x, c.place, want);
        want16 = to_bits(all, want);
        on = LEND(rows, all);
        ok(mfk_device_permute(device, MFK_F32, c.tokens, c.topk, c.hidden,
            PUT(x, c.tokens * c.hidden), PUT(c.place, c.n), on));
        GET(rows, on, all);
        on = LEND(rows16, all);
        ok(mfk_device_permute(device, MFK_BF16, c.tokens, c.topk, c.hidden,
            PUT(x16, c.tokens * c.hidden), PUT(c.place, c.n), on));
        GET(rows16, on, all);
        give_back();
        same_bits(all, rows, want, sizeof *rows, "rows");
        same_bits(all, rows16, want16, sizeof *rows16, "bf16 rows");
        free(x);
        free(x16);
        free(want);
        free(want16);
        free(rows);
        free(rows16);
        choices_free(&c);
    }
}

static void test_collect(void **unused)
{
    (void)unused;
    for (int round = 0; round < ROUNDS; round++) {
        const int64_t from_rows = 1 + below(40), rows = below(60);
        const int64_t hidden = 1 + below(24);
        float *from = random_floats(from_rows * hidden);
        float *to = floats(rows * hidden);
        int64_t *index = room(rows, sizeof *index);
        void *on;

        for (int64_t r = 0; r < rows; r++)
            index[r] = below(from_rows + 1) - 1;
        on = LEND(to, rows * hidden);
        ok(mfk_device_collect(device, MFK_F32, rows, hidden,
            PUT(from, from_rows * hidden), PUT(index, rows), on));
        GET(to, on, rows * hidden);
        give_back();
        for (int64_t i = 0; i < rows * hidden; i++) {
            const int64_t at = index[i / hidden];

            assert_true(to[i] == (at < 0 ? 0 : from[at * hidden + i % hidden]));
        }
        free(from);
        free(to);
        free(index);
    }
}

static void test_unpermute(void **unused)
{
    (void)unused;
    for (int round = 0; round < ROUNDS; round++) {
        struct choices c;
        float *rows, *want, *y;
        uint16_t *rows16, *y16;
        const bool weighted = round % 2;
        int64_t all;
        void *on;
        float *on_weights;

        choices_make(&c, round);
        all = c.tokens * c.hidden;
        rows = random_floats(c.n * c.hidden);
        rows16 = to_bits(c.n * c.hidden, rows);
        want = floats(all);
        y = floats(all);
        y16 = room(all, sizeof *y16);
        mfk_unpermute(c.tokens, c.topk, c.hidden, rows, c.place,
            weighted ? c.weights : NULL, want);
        on = LEND(y, all);
        on_weights = weighted ? PUT(c.weights, c.n) : NULL;
        ok(mfk_device_unpermute(device, MFK_F32, c.tokens, c.topk, c.hidden,
            PUT(rows, c.n * c.hidden), PUT(c.place, c.n), on_weights, on));
        GET(y, on, all);
        on = LEND(y16, all);
        ok(mfk_device_unpermute(device, MFK_BF16, c.tokens, c.topk, c.hidden,
            PUT(rows16, c.n * c.hidden), PUT(c.place, c.n), on_weights, on));
        GET(y16, on, all);
        give_back();
        same_bits(all, y, want, sizeof *y, "y");
        near_bits(all, y16, want, 0x1p-8, "bf16 y");
        free(rows);
        free(rows16);
        free(want);
        free(y);
        free(y16);
        choices_free(&c);
    }
}

static void test_unpermute_backward(void **unused)
{
    (void)unused;
    for (int round = 0; round < ROUNDS; round++) {
        struct choices c;
        float *rows, *dy, *want, *want_dw, *drows, *dw;
        uint16_t *rows16, *dy16, *drows16;
        int64_t all, tokens;
        void *on;
        float *on_dw;

        choices_make(&c, round);
        all = c.n * c.hidden;
        tokens = c.tokens * c.hidden;
        rows = random_floats(all);
        rows16 = to_bits(all, rows);
        dy = random_floats(tokens);
        dy16 = to_bits(tokens, dy);
        want = floats(all);
        want_dw = floats(c.n);
        drows = floats(all);
        drows16 = room(all, sizeof *drows16);
        dw = floats(c.n);
        mfk_unpermute_backward(c.tokens, c.topk, c.hidden, rows, c.place,
            c.weights, dy, want, want_dw);
        on = LEND(drows, all);
        on_dw = LEND(dw, c.n);
        ok(mfk_device_unpermute_backward(device, MFK_F32, c.tokens, c.topk,
            c.hidden, PUT(rows, all), PUT(c.place, c.n), PUT(c.weights, c.n),
            PUT(dy, tokens), on, on_dw));
        GET(drows, on, all);
        GET(dw, on_dw, c.n);
        same_bits(all, drows, want, sizeof *drows, "drows");
        near(c.n, dw, want_dw, 1e-5, "dweights");
        on = LEND(drows16, all);
        ok(mfk_device_unpermute_backward(device, MFK_BF16, c.tokens, c.topk,
            c.hidden, PUT(rows16, all), PUT(c.place, c.n), PUT(c.weights, c.n),
            PUT(dy16, tokens), on, on_dw));
        GET(drows16, on, all);
        GET(dw, on_dw, c.n);
        give_back();
        near_bits(all, drows16, want, 0x1p-8, "bf16 drows");
        near(c.n, dw, want_dw, 1e-5, "dweights of bf16 rows");
        free(rows);
        free(rows16);
        free(dy);
        free(dy16);
        free(want);
        free(want_dw);
        free(drows);
        free(drows16);
        free(dw);
        choices_free(&c);
    }
}

static void test_swiglu(void **unused)
{
    static const int64_t widths[] = {1, 3, 4, 8, 24, 520, 1030};

    (void)unused;
    for (int round = 0; round < ROUNDS; round++) {
        const int64_t rows = round == 0 ? 0 : below(20);
        const int64_t width = pick(widths, 7), n = rows * width;
        float *gate = random_floats(n), *up = random_floats(n);
        uint16_t *gate16 = to_bits(n, gate), *up16 = to_bits(n, up);
        float *weights = random_floats(rows), *want = floats(n);
        float *out = floats(n);
        uint16_t *out16 = room(n, sizeof *out16);
        const bool weighted = round % 2;
        float *on_weights;
        void *on;

        mfk_activate(MFK_SWIGLU, n, gate, up, want);
        for (int64_t i = 0; weighted && i < n; i++)
            want[i] *= weights[i / width];
        on = LEND(out, n);
        on_weights = weighted ? PUT(weights, rows) : NULL;
        ok(mfk_device_swiglu(device, MFK_F32, rows, width, PUT(gate, n),
            PUT(up, n), on_weights, on));
        GET(out, on, n);
        on = LEND(out16, n);
        ok(mfk_device_swiglu(device, MFK_BF16, rows, width, PUT(gate16, n),
            PUT(up16, n), on_weights, on));
        GET(out16, on, n);
        give_back();
        near(n, out, want, 1e-6, "activation");
        near_bits(n, out16, want, 0x1p-8, "bf16 activation");
        free(gate);
        free(gate16);
        free(up);
        free(up16);
        free(weights);
        free(want);
        free(out);
        free(out16);
    }
}

static void test_swiglu_backward(void **unused)
{
    static const int64_t widths[] = {1, 3, 4, 8, 24, 520, 1030};

    (void)unused;
    for (int round = 0; round < ROUNDS; round++) {
        const int64_t rows = round == 0 ? 0 : below(20);
        const int64_t width = pick(widths, 7), n = rows * width;
        float *gate = random_floats(n), *up = random_floats(n);
        float *dout = random_floats(n), *weights = random_floats(rows);
        float *dact = floats(n), *act = floats(n), *dweights = floats(rows);
        float *want_gate = floats(n), *want_up = floats(n);
        float *want_weights = floats(rows), *on_gate, *on_up, *on_dw;
        const bool weighted = round % 2;

        mfk_activate(MFK_SWIGLU, n, gate, up, act);
        for (int64_t i = 0; i < n; i++) {
            dact[i] = (weighted ? weights[i / width] : 1) * dout[i];
            want_weights[i / width] += act[i] * dout[i];
        }
        mfk_activate_backward(
            MFK_SWIGLU, n, gate, up, dact, want_gate, want_up);
        on_gate = PUT(gate, n);
        on_up = PUT(up, n);
        on_dw = LEND(dweights, rows);
        ok(mfk_device_swiglu_backward(device, MFK_F32, rows, width, on_gate,
            on_up, PUT(dout, n), weighted ? PUT(weights, rows) : NULL, on_gate,
            on_up, on_dw));
        GET(dact, on_gate, n);
        GET(act, on_up, n);
        GET(dweights, on_dw, rows);
        give_back();
        near(n, dact, want_gate, 2e-6, "dgate");
        near(n, act, want_up, 2e-6, "dup");
        if (weighted)
            near(rows, dweights, want_weights, 1e-5, "dweights");
        free(gate);
        free(up);
        free(dout);
        free(weights);
        free(dact);
        free(act);
        free(dweights);
        free(want_gate);
        free(want_up);
        free(want_weights);
    }
}

static void product(enum mfk_form form, int64_t m, int64_t n, int64_t k,
    const float *a, const float *b, bool add, float *c)
{
    const struct mfk_product p = {
        .form = form,
        .m = m,
        .n = n,
        .k = k,
        .a = PUT(a, m * k),
        .b = PUT(b, k * n),
        .c = PUT(c, m * n),
        .add = add,
    };

    ok(mfk_device_exact(device, &p));
    GET(c, p.c, m * n);
    give_back();
}

static void test_product(void **unused)
{
    static const int64_t sizes[] = {0, 1, 5, 16, 63, 64, 65, 130};

    (void)unused;
    for (int round = 0; round < ROUNDS; round++) {
        const enum mfk_form form = (enum mfk_form)(round % 3);
        const int64_t m = pick(sizes, 8), n = pick(sizes, 8);
        const int64_t k = pick(sizes, 8);
        float *a = random_floats(m * k), *b = random_floats(k * n);
        float *c = random_floats(m * n), *want = floats(m * n);
        const bool add = below(2);

        memcpy(want, c, (size_t)(m * n) * sizeof *c);
        if (form == MFK_NT)
            mfk_gemm_nt(MFK_EXACT, m, n, k, a, b, add, want);
        else if (form == MFK_NN)
            mfk_gemm_nn(MFK_EXACT, m, n, k, a, b, add, want);
        else
            mfk_gemm_tn(MFK_EXACT, m, n, k, a, b, add, want);
        product(form, m, n, k, a, b, add, c);
        near(m * n, c, want, 1e-5, "product");
        free(a);
        free(b);
        free(c);
        free(want);
    }
}

/* A row has the same bits alone and among others. */
static void test_product_rows(void **unused)
{
    enum { ROWS = 70, N = 37, K = 53 };
    float *a = random_floats(ROWS * K), *b = random_floats(K * N);
    float *all = floats(ROWS * N), one[N];

    (void)unused;
    product(MFK_NT, ROWS, N, K, a, b, false, all);
    for (int64_t i = 0; i < ROWS; i++) {
        product(MFK_NT, 1, N, K, a + i * K, b, false, one);
        same_bits(N, one, all + i * N, sizeof *one, "a row alone");
    }
    free(a);
    free(b);
    free(all);
}

static void test_route(void **unused)
{
    static const int64_t experts_of[] = {1, 2, 8, 60, 128, 256, 300};

    (void)unused;
    for (int round = 0; round < ROUNDS; round++) {
        const int64_t tokens = round == 0 ? 0 : 1 + below(40);
        const int64_t experts = pick(experts_of, 7);
        const int64_t topk = 1 + below(experts < 8 ? experts : 8);
        const int64_t n = tokens * experts, chosen = tokens * topk;
        const bool renormalize = round % 2;
        float *logits = random_floats(n), *probs = floats(n);
        float *weights = floats(chosen), *got_probs = floats(n);
        float *got_weights = floats(chosen), *dw = random_floats(chosen);
        float *dlogits = floats(n), *got_dlogits = floats(n);
        float *on_scores, *on_weights, *on_dlogits;
        int32_t *ids = room(chosen, sizeof *ids);
        int32_t *got_ids = room(chosen, sizeof *got_ids), *on_ids;
        const struct mfk_router host = {
            .tokens = tokens,
            .experts = experts,
            .topk = topk,
            .renormalize = renormalize,
            .scaling = 2.5f,
        };
        const struct mfk_device_router router = {
            .tokens = tokens,
            .experts = experts,
            .topk = topk,
            .groups = 1,
            .topk_groups = 1,
            .renormalize = renormalize,
            .scaling = 2.5f,
        };

        for (int64_t i = 0; i < n; i++) /* many equal ones */
            if (round % 3 == 1)
                logits[i] = floorf(logits[i] * 4);
        mfk_route(&host, logits, probs, ids, weights);
        mfk_route_backward(&host, probs, ids, dw, dlogits);
        on_scores = LEND(probs, n);
        on_ids = LEND(ids, chosen);
        on_weights = LEND(weights, chosen);
        ok(mfk_device_route(
            device, &router, PUT(logits, n), on_scores, on_ids, on_weights));
        GET(got_probs, on_scores, n);
        GET(got_ids, on_ids, chosen);
        GET(got_weights, on_weights, chosen);
        same_bits(chosen, got_ids, ids, sizeof *ids, "choices");
        near(n, got_probs, probs, 1e-6, "probabilities");
        near(chosen, got_weights, weights, 5e-6, "weights");
        on_dlogits = LEND(dlogits, n);
        ok(mfk_device_route_backward(device, &router, on_scores, on_ids,
            PUT(dw, chosen), NULL, on_dlogits));
        GET(got_dlogits, on_dlogits, n);
        give_back();
        near(n, got_dlogits, dlogits, 1e-5, "dlogits");
        free(logits);
        free(probs);
        free(weights);
        free(got_probs);
        free(got_weights);
        free(dw);
        free(dlogits);
        free(got_dlogits);
        free(ids);
        free(got_ids);
    }
}

/* A router in double precision, by sorting: for one token. */
struct ranked {
    double value;
    int32_t id;
};

static int by_value(const void *a, const void *b)
{
    const struct ranked *x = a, *y = b;

    if (x->value != y->value)
        return x->value < y->value ? 1 : -1;
    return x->id - y->id;
}

static double score_of(
    const struct mfk_device_router *router, const double *logits, int64_t e)
{
    double sum = 0;

    if (router->sigmoid)
        return 1 / (1 + exp(-logits[e]));
    for (int64_t i = 0; i < router->experts; i++)
        sum += exp(logits[i] - logits[e]);
    return 1 / sum;
}

static void choose_sorted(const struct mfk_device_router *router,
    const double *logits, const float *bias, int32_t *ids)
{
    const int64_t size = router->experts / router->groups;
    const int64_t each = router->topk / router->topk_groups;
    struct ranked all[512], group[64];
    int64_t n = 0;

    for (int64_t g = 0; g < router->groups; g++) {
        for (int64_t i = 0; i < size; i++)
            all[i].value = score_of(router, logits, g * size + i) +
                           (bias ? (double)bias[g * size + i] : 0);
        for (int64_t i = 0; i < size; i++)
            all[i].id = (int32_t)i;
        qsort(all, (size_t)size, sizeof *all, by_value);
        group[g] = (struct ranked){0, (int32_t)g};
        for (int64_t i = 0; i < size && i < (each ? each : 1); i++)
            group[g].value += all[i].value;
    }
    qsort(group, (size_t)router->groups, sizeof *group, by_value);
    for (int64_t g = 0; g < router->topk_groups; g++)
        for (int64_t i = 0; i < size; i++) {
            const int64_t e = group[g].id * size + i;

            all[n++] = (struct ranked){
                score_of(router, logits, e) + (bias ? (double)bias[e] : 0),
                (int32_t)e};
        }
    qsort(all, (size_t)n, sizeof *all, by_value);
    for (int64_t j = 0; j < router->topk; j++)
        ids[j] = all[j].id;
}

/* What the gradient is of, with the choice held: sum over j of dw_j * w_j, and
 * over e of ds_e * score_e.
 */
static double objective(const struct mfk_device_router *router,
    const double *logits, const int32_t *ids, const float *dw, const float *ds)
{
    double chosen = 0, weighted = 0, scores = 0;

    for (int64_t j = 0; j < router->topk; j++) {
        chosen += score_of(router, logits, ids[j]);
        weighted += (double)dw[j] * score_of(router, logits, ids[j]);
    }
    for (int64_t e = 0; e < router->experts; e++)
        scores += (double)ds[e] * score_of(router, logits, e);
    return scores + (double)router->scaling * weighted /
                        (router->renormalize ? chosen : 1);
}

static void check_gradient(const struct mfk_device_router *router,
    double *logits, const int32_t *ids, const float *dw, const float *ds,
    const float *dlogits)
{
    const double step = 1e-6;

    for (int64_t e = 0; e < router->experts; e++) {
        const double at = logits[e];
        double up, down;

        logits[e] = at + step;
        up = objective(router, logits, ids, dw, ds);
        logits[e] = at - step;
        down = objective(router, logits, ids, dw, ds);
        logits[e] = at;
        assert_true(fabs((double)dlogits[e] - (up - down) / (2 * step)) < 2e-5);
    }
}

static void check_router(struct mfk_device_router *router, bool biased)
{
    const int64_t t = router->tokens, e = router->experts;
    const int64_t n = t * e, chosen = t * router->topk;
    float *logits = random_floats(n), *bias = random_floats(e);
    float *dw = random_floats(chosen), *ds = random_floats(n);
    float *dlogits = floats(n), *on_dlogits = LEND(logits, n);
    float *on_scores = LEND(logits, n), *on_weights = LEND(logits, chosen);
    int32_t *ids = room(chosen, sizeof *ids), *on_ids = LEND(ids, chosen);
    int32_t *want = room(router->topk, sizeof *want);
    double *wide = room(e, sizeof *wide);

    router->bias = biased ? PUT(bias, e) : NULL;
    ok(mfk_device_route(
        device, router, PUT(logits, n), on_scores, on_ids, on_weights));
    ok(mfk_device_route_backward(device, router, on_scores, on_ids,
        PUT(dw, chosen), PUT(ds, n), on_dlogits));
    GET(ids, on_ids, chosen);
    GET(dlogits, on_dlogits, n);
    give_back();
    for (int64_t i = 0; i < t; i++) {
        for (int64_t j = 0; j < e; j++)
            wide[j] = (double)logits[i * e + j];
        choose_sorted(router, wide, biased ? bias : NULL, want);
        same_bits(router->topk, ids + i * router->topk, want, sizeof *want,
            "choices");
        check_gradient(router, wide, want, dw + i * router->topk, ds + i * e,
            dlogits + i * e);
    }
    free(logits);
    free(bias);
    free(dw);
    free(ds);
    free(dlogits);
    free(ids);
    free(want);
    free(wide);
}

/* Sigmoid, groups and bias, which the fast path of softmax does not show. */
static void test_route_groups(void **unused)
{
    static const int64_t shapes[][4] = {/* experts, topk, groups, of them */
        {8, 2, 1, 1}, {16, 4, 4, 2}, {64, 8, 8, 4}, {12, 3, 6, 3},
        {256, 8, 8, 4}, {6, 1, 3, 1}};

    (void)unused;
    for (int round = 0; round < ROUNDS; round++) {
        const int64_t *shape = shapes[round % 6];
        struct mfk_device_router router = {
            .tokens = 5,
            .experts = shape[0],
            .topk = shape[1],
            .groups = shape[2],
            .topk_groups = shape[3],
            .sigmoid = round / 6 % 2 == 0,
            .renormalize = round % 2 == 0,
            .scaling = 1.5f,
        };

        check_router(&router, round / 12 == 0);
    }
}

/* bf16 by hand: every rounding case, halves to even, infinities, NaN. */
static void test_bf16(void **unused)
{
    enum { N = 4096 };
    float *values = floats(N), *back = floats(N);
    uint16_t *bits = room(N, sizeof *bits), *on_bits;
    float *on_back;

    (void)unused;
    for (int64_t i = 0; i < N; i++) {
        const uint32_t word = next() << 8 | (uint32_t)below(256);
        const uint32_t half = (word & 0xffff0000u) | 0x8000u;

        memcpy(&values[i], i % 2 ? &word : &half, sizeof word);
        if (!isfinite(values[i]) || fabsf(values[i]) > 1e38f)
            values[i] = 0.1f;
    }
    values[0] = INFINITY;
    values[1] = -INFINITY;
    values[2] = NAN;
    values[3] = -0.0f;
    on_bits = LEND(bits, N);
    on_back = LEND(back, N);
    ok(mfk_device_narrow(device, N, PUT(values, N), on_bits));
    ok(mfk_device_widen(device, N, on_bits, on_back));
    GET(bits, on_bits, N);
    GET(back, on_back, N);
    give_back();
    assert_int_equal(bits[0], 0x7f80);
    assert_int_equal(bits[1], 0xff80);
    assert_true(isnan(back[2]));
    assert_int_equal(bits[3], 0x8000);
    for (int64_t i = 4; i < N; i++) {
        assert_int_equal(bits[i], bits_of(values[i]));
        assert_true(back[i] == value_of(bits[i]));
    }
    free(values);
    free(back);
    free(bits);
}

static int open_device(void **unused)
{
    char why[256] = "";

    (void)unused;
    state = 20260401;
    device = mfk_device_plugin.open(0, why, sizeof why);
    if (!device)
        fail_msg("%s", why);
    return 0;
}

static int close_device(void **unused)
{
    (void)unused;
    mfk_device_plugin.close(device);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_place),
        cmocka_unit_test(test_place_dropped),
        cmocka_unit_test(test_permute),
        cmocka_unit_test(test_collect),
        cmocka_unit_test(test_unpermute),
        cmocka_unit_test(test_unpermute_backward),
        cmocka_unit_test(test_swiglu),
        cmocka_unit_test(test_swiglu_backward),
        cmocka_unit_test(test_product),
        cmocka_unit_test(test_product_rows),
        cmocka_unit_test(test_route),
        cmocka_unit_test(test_route_groups),
        cmocka_unit_test(test_bf16),
    };

    return cmocka_run_group_tests(tests, open_device, close_device);
}
