/* SPDX-License-Identifier: BSD-3-Clause
 * Times each device kernel against the device's own copy rate, and the expert
 * product against one dense product of the same FLOPs.
 *
 *   bench PLUGIN.so [--small]
 *
 * Random data, the device's clock, the median of the rounds, and buffers that
 * take turns, so that no round finds its data in a cache. --small is for trying
 * the program itself.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/device/device.h"

enum { TURNS = 4, ROUNDS = 21 };

struct bench {
    struct mfk_device *device;
    int64_t tokens, topk, hidden, ffn, experts;
    void *x[TURNS], *rows[TURNS], *gate[TURNS], *up[TURNS], *act[TURNS];
    void *weight, *product;
    float *logits, *scores, *weights, *dweights;
    int32_t *ids;
    int64_t *place, *part, *counts;
};

static void die(const char *what)
{
    fprintf(stderr, "bench: %s\n", what);
    exit(1);
}

static void ok(const struct bench *b, int rc)
{
    if (rc)
        die(b->device->error);
}

static void *take(const struct bench *b, int64_t bytes)
{
    void *memory = NULL;

    ok(b, b->device->api->alloc(b->device, (size_t)bytes, &memory));
    return memory;
}

/* Random bf16 values in [-1, 1), as they come from a generator on the host. */
static void *random_values(const struct bench *b, int64_t n)
{
    uint16_t *host = malloc((size_t)n * sizeof *host);
    void *memory = take(b, n * (int64_t)sizeof *host);
    uint32_t state = 12345;

    if (!host)
        die("out of memory");
    for (int64_t i = 0; i < n; i++) {
        float value;
        uint32_t bits;

        state = state * 1664525u + 1013904223u;
        value = (float)(state >> 8) * 0x1p-23f - 1;
        memcpy(&bits, &value, sizeof bits);
        host[i] = (uint16_t)(bits >> 16);
    }
    ok(b, b->device->api->upload(
              b->device, memory, host, (size_t)n * sizeof *host));
    ok(b, b->device->api->wait(b->device));
    free(host);
    return memory;
}

typedef int step(struct bench *b, int turn);

static int step_copy(struct bench *b, int turn)
{
    return b->device->api->upload(b->device, b->rows[turn],
        b->rows[(turn + 1) % TURNS],
        (size_t)(b->tokens * b->topk * b->hidden) * 2);
}

static int step_permute(struct bench *b, int turn)
{
    return mfk_device_permute(b->device, MFK_BF16, b->tokens, b->topk,
        b->hidden, b->x[turn], b->place, b->rows[turn]);
}

static int step_unpermute(struct bench *b, int turn)
{
    return mfk_device_unpermute(b->device, MFK_BF16, b->tokens, b->topk,
        b->hidden, b->rows[turn], b->place, b->weights, b->x[turn]);
}

static int step_unpermute_back(struct bench *b, int turn)
{
    return mfk_device_unpermute_backward(b->device, MFK_BF16, b->tokens,
        b->topk, b->hidden, b->rows[turn], b->place, b->weights, b->x[turn],
        b->rows[(turn + 1) % TURNS], b->dweights);
}

static int step_swiglu(struct bench *b, int turn)
{
    return mfk_device_swiglu(b->device, MFK_BF16, b->tokens * b->topk, b->ffn,
        b->gate[turn], b->up[turn], b->weights, b->act[turn]);
}

static int step_route(struct bench *b, int turn)
{
    const struct mfk_device_router router = {
        .tokens = b->tokens,
        .experts = b->experts,
        .topk = b->topk,
        .groups = 1,
        .topk_groups = 1,
        .renormalize = true,
        .scaling = 1,
    };

    (void)turn;
    return mfk_device_route(
        b->device, &router, b->logits, b->scores, b->ids, b->weights);
}

static int step_group(struct bench *b, int turn)
{
    (void)turn;
    return mfk_device_group(b->device, b->tokens * b->topk, b->experts, b->ids,
        b->part, b->counts, b->place);
}

/* All rows by one weight, and by each expert's. */
static int multiply(struct bench *b, int turn, int64_t pieces, bool grouped)
{
    struct mfk_product list[1024];
    const int64_t rows = b->tokens * b->topk;

    for (int64_t e = 0; e < pieces; e++) {
        const int64_t first = rows * e / pieces;

        list[e] = (struct mfk_product){
            .form = MFK_NT,
            .in = MFK_BF16,
            .out = MFK_BF16,
            .m = rows * (e + 1) / pieces - first,
            .n = b->ffn,
            .k = b->hidden,
            .a = (uint16_t *)b->rows[turn] + first * b->hidden,
            .b = (uint16_t *)b->weight +
                 (pieces > 1 ? e * b->ffn * b->hidden : 0),
            .c = (uint16_t *)b->act[turn] + first * b->ffn,
        };
    }
    return b->device->api->multiply(b->device, list, (int)pieces, grouped);
}

static int step_dense(struct bench *b, int turn)
{
    return multiply(b, turn, 1, false);
}

static int step_experts(struct bench *b, int turn)
{
    return multiply(b, turn, b->experts, false);
}

static int step_grouped(struct bench *b, int turn)
{
    return multiply(b, turn, b->experts, true);
}

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

/* Median seconds of a step; *SPREAD: the middle half over the median. */
static double measure(struct bench *b, step *run, double *spread)
{
    double seconds[ROUNDS];

    for (int i = -3; i < ROUNDS; i++) {
        ok(b, b->device->api->stamp(b->device, 0));
        ok(b, run(b, (i + 3) % TURNS));
        ok(b, b->device->api->stamp(b->device, 1));
        if (i >= 0)
            ok(b, b->device->api->elapsed(b->device, 0, 1, &seconds[i]));
    }
    qsort(seconds, ROUNDS, sizeof *seconds, by_value);
    *spread =
        (seconds[ROUNDS * 3 / 4] - seconds[ROUNDS / 4]) / seconds[ROUNDS / 2];
    return seconds[ROUNDS / 2];
}

static void setup(struct bench *b)
{
    const int64_t rows = b->tokens * b->topk;
    float *logits = malloc((size_t)(b->tokens * b->experts) * sizeof *logits);
    uint32_t state = 99;

    if (!logits)
        die("out of memory");
    for (int64_t i = 0; i < b->tokens * b->experts; i++) {
        state = state * 1664525u + 1013904223u;
        logits[i] = (float)(state >> 8) * 0x1p-23f - 1;
    }
    for (int t = 0; t < TURNS; t++) {
        b->x[t] = random_values(b, b->tokens * b->hidden);
        b->rows[t] = random_values(b, rows * b->hidden);
        b->gate[t] = random_values(b, rows * b->ffn);
        b->up[t] = random_values(b, rows * b->ffn);
        b->act[t] = take(b, rows * b->ffn * 2);
    }
    b->weight = random_values(b, b->experts * b->ffn * b->hidden);
    b->logits = take(b, b->tokens * b->experts * 4);
    b->scores = take(b, b->tokens * b->experts * 4);
    b->weights = take(b, rows * 4);
    b->dweights = take(b, rows * 4);
    b->ids = take(b, rows * 4);
    b->place = take(b, rows * 8);
    b->part = take(b, mfk_device_group_room(rows, b->experts) * 8);
    b->counts = take(b, b->experts * 8);
    ok(b, b->device->api->upload(b->device, b->logits, logits,
              (size_t)(b->tokens * b->experts) * sizeof *logits));
    ok(b, step_route(b, 0));
    ok(b, step_group(b, 0));
    ok(b, b->device->api->wait(b->device));
    free(logits);
}

static void report(struct bench *b)
{
    const double row = (double)(b->tokens * b->topk) * (double)b->hidden * 2;
    const double x = (double)b->tokens * (double)b->hidden * 2;
    const double wide = (double)(b->tokens * b->topk) * (double)b->ffn * 2;
    const double flops = 2.0 * (double)(b->tokens * b->topk) *
                         (double)b->hidden * (double)b->ffn;
    const struct {
        const char *name;
        step *run;
        double bytes, flops;
    } list[] = {
        {"copy", step_copy, 2 * row, 0},
        {"permute", step_permute, x + row, 0},
        {"unpermute", step_unpermute, x + row, 0},
        {"unpermute backward", step_unpermute_back, x + 2 * row, 0},
        {"swiglu", step_swiglu, 3 * wide, 0},
        {"route", step_route, 0, 0},
        {"group", step_group, 0, 0},
        {"dense product", step_dense, 0, flops},
        {"experts, one by one", step_experts, 0, flops},
        {"experts, grouped", step_grouped, 0, flops},
    };
    double copy = 0, dense = 0;

    printf("%-20s %10s %9s %8s %7s\n", "", "us", "GB/s", "TFLOP/s", "ratio");
    for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
        double spread, ratio = 0;
        const double s = measure(b, list[i].run, &spread);

        if (i == 0)
            copy = list[i].bytes / s;
        if (list[i].run == step_dense)
            dense = flops / s;
        if (list[i].bytes > 0)
            ratio = list[i].bytes / s / copy;
        if (list[i].flops > 0)
            ratio = list[i].flops / s / dense;
        printf("%-20s %10.1f %9.1f %8.1f %7.3f  (middle half %.1f %%)\n",
            list[i].name, s * 1e6, list[i].bytes / s / 1e9,
            list[i].flops / s / 1e12, ratio, spread * 100);
    }
}

int main(int argc, char **argv)
{
    struct bench b = {
        .tokens = 16384, .topk = 8, .hidden = 4096, .ffn = 1536, .experts = 64};
    const struct mfk_device_api *api;
    struct mfk_device_facts facts;
    char why[256] = "";
    void *plugin;

    if (argc < 2)
        die("usage: bench PLUGIN.so [--small]");
    if (argc > 2 && !strcmp(argv[2], "--small"))
        b = (struct bench){
            .tokens = 64, .topk = 2, .hidden = 64, .ffn = 32, .experts = 4};
    plugin = dlopen(argv[1], RTLD_NOW);
    if (!plugin)
        die(dlerror());
    api = dlsym(plugin, MFK_DEVICE_SYMBOL);
    if (!api || api->abi != MFK_DEVICE_ABI)
        die("a plug-in of another moefold");
    b.device = api->open(0, why, sizeof why);
    if (!b.device)
        die(why);
    ok(&b, api->describe(b.device, &facts));
    printf("%s, %s\n", facts.model, facts.library);
    printf("%lld tokens, top %lld of %lld experts, hidden %lld, ffn %lld, "
           "bf16\n",
        (long long)b.tokens, (long long)b.topk, (long long)b.experts,
        (long long)b.hidden, (long long)b.ffn);
    setup(&b);
    report(&b);
    api->close(b.device);
    return 0;
}
