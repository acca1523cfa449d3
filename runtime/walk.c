/* SPDX-License-Identifier: BSD-3-Clause
 * Walk the layouts of a world, rebuilding communicators for each.
 */
#include "runtime/walk.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "runtime/comm_device.h"
#include "runtime/verify.h"
#include "runtime/verify_case.h"

#define WALK_CASES 5

/* Ways to cut N ranks into three ordered factors, one after another: start
 * with {0, 0, 0}; false: no more.
 */
static bool next_factors(int64_t n, int64_t f[3])
{
    int64_t a = f[0] ? f[0] : 1, b = f[0] ? f[1] + 1 : 1;

    for (; a <= n; a++, b = 1) {
        if (n % a)
            continue;
        for (; b <= n / a; b++)
            if (n / a % b == 0) {
                f[0] = a;
                f[1] = b;
                f[2] = n / a / b;
                return true;
            }
    }
    return false;
}

static int walk_stage(int64_t n, struct mf_layout *layout,
    int (*visit)(const struct mf_layout *layout, void *data), void *data)
{
    int64_t attention[3] = {0};

    while (next_factors(n, attention)) {
        int64_t expert[3] = {0};

        layout->tp = attention[0];
        layout->cp = attention[1];
        layout->dp = attention[2];
        while (next_factors(n, expert)) {
            int rc;

            layout->etp = expert[0];
            layout->ep = expert[1];
            layout->edp = expert[2];
            rc = visit(layout, data);
            if (rc)
                return rc;
        }
    }
    return 0;
}

int mfr_walk_layouts(int64_t world,
    int (*visit)(const struct mf_layout *layout, void *data), void *data)
{
    struct mf_layout layout = {.order = mf_order_default()};

    for (int64_t pp = 1; pp <= world; pp++) {
        int rc;

        if (world % pp)
            continue;
        layout.pp = pp;
        rc = walk_stage(world / pp, &layout, visit, data);
        if (rc)
            return rc;
    }
    return 0;
}

struct walk {
    MPI_Comm world;
    int rank;
    const struct mfr_walk_options *options;
    struct mfr_verify_case work[WALK_CASES];
    int64_t seen, layouts, failed, near_ties;
    json_t *failures; /* rank 0 with --json */
    struct mfr_device device;
    struct mf_error *err;
};

/* Small shapes that any layout of the world divides. The first has shards of
 * unequal length; the second fewer tokens than ranks, so that some hold none
 * and most experts get no row, weights that do not sum to 1, and K = 1; in
 * the third one expert draws nearly all, and K is over 2, so that the order in
 * which the rows of a token are added shows in the bits. The fourth is a small
 * DeepSeek-V3: sigmoid scores with a bias to choose by, groups, shared experts;
 * the fifth has every bias and the activation of gpt-oss, and the shared
 * experts' gate of Qwen2-MoE.
 */
static void walk_cases(const struct mfr_walk_options *options, int64_t world,
    struct mfk_device *device, struct mfr_verify_case work[WALK_CASES])
{
    static const struct mfr_shape shape[WALK_CASES] = {
        {.seq = 13,
            .batch = 2,
            .hidden = 10,
            .ffn = 2,
            .experts = 2,
            .topk = 2,
            .renormalize = true,
            .scaling = 1},
        {.seq = 3,
            .batch = 1,
            .hidden = 7,
            .ffn = 1,
            .experts = 3,
            .topk = 1,
            .scaling = 2.5},
        {.seq = 17,
            .batch = 1,
            .hidden = 33,
            .ffn = 3,
            .experts = 4,
            .topk = 4,
            .renormalize = true,
            .scaling = 1},
        {.seq = 9,
            .batch = 2,
            .hidden = 12,
            .ffn = 2,
            .experts = 4,
            .topk = 2,
            .renormalize = true,
            .scaling = 2.5,
            .sigmoid = true,
            .groups = 2,
            .topk_groups = 1,
            .group_best = 2,
            .select_bias = true,
            .shared_ffn = 2},
        {.seq = 11,
            .batch = 1,
            .hidden = 9,
            .ffn = 1,
            .experts = 3,
            .topk = 2,
            .scaling = 1,
            .router_bias = true,
            .expert_bias = true,
            .activation = MFK_CLAMPED,
            .shared_ffn = 1,
            .shared_gate = true},
    };

    for (int i = 0; i < WALK_CASES; i++) {
        work[i] = (struct mfr_verify_case){.shape = shape[i],
            .seed = options->seed,
            .kernel = options->kernel,
            .fault = options->fault,
            .dispatcher = options->dispatcher,
            .transport = options->transport,
            .device = device,
            .pipeline = i == 1 && !device,
            .lopsided = i == 2};
        work[i].shape.ffn *= world;
        work[i].shape.experts *= world;
        work[i].shape.shared_ffn *= world;
        /* No shared experts on devices, and no fifth case. */
        if (device)
            work[i].shape.shared_ffn = 0;
    }
}

static int report_json(struct walk *walk, const char *layout,
    const struct mfr_checks *checks, int number)
{
    json_t *list = mfr_checks_to_json(checks);
    json_t *item = list ? json_pack("{s:s, s:i, s:o}", "layout", layout, "case",
                              number, "checks", list)
                        : NULL;

    if (!item || json_array_append_new(walk->failures, item))
        return mf_error_set(walk->err, MF_FAILED, "verify: out of memory");
    return 0;
}

static int report(struct walk *walk, const struct mf_layout *layout,
    const struct mfr_checks *checks, int number)
{
    const struct mfr_check *first = mfr_checks_failed(checks);
    char text[MF_LAYOUT_TEXT];

    if (walk->rank != 0)
        return 0;
    mf_layout_format(layout, text, sizeof text);
    if (walk->options->json)
        return report_json(walk, text, checks, number);
    if (printf("%s case %d: %s is wrong (max rel %.3g)\n", text, number,
            first->name, first->max_rel) < 0)
        return mf_error_set(walk->err, MF_FAILED,
            "verify: cannot write the result; is the disk full?");
    return 0;
}

static int walk_cases_of(struct walk *walk, const struct mf_layout *layout,
    const struct mfr_verifier *verifier)
{
    bool held = true;
    const int cases = walk->device.device ? WALK_CASES - 1 : WALK_CASES;

    for (int i = 0; i < cases; i++) {
        struct mfr_verify_result result;

        if (mfr_verify_case_run(verifier, &walk->work[i], &result, walk->err))
            return -1;
        walk->near_ties += result.near_ties;
        if (!mfr_checks_failed(&result.checks))
            continue;
        held = false;
        if (mfr_agree(walk->world, report(walk, layout, &result.checks, i),
                walk->err))
            return -1;
    }
    walk->layouts++;
    walk->failed += !held;
    return 0;
}

/* One of each ONE_IN layouts in a row, so that all kinds are drawn from. */
static bool drawn(struct walk *walk)
{
    const int64_t n = walk->options->one_in, i = walk->seen++;
    uint64_t z;

    if (n <= 1)
        return true;
    /* SplitMix64 of the seed and the number of the row of layouts. */
    z = walk->options->seed + (uint64_t)(i / n + 1) * 0x9e3779b97f4a7c15ULL;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
    return (int64_t)((z ^ (z >> 31)) % (uint64_t)n) == i % n;
}

static int walk_layout(const struct mf_layout *layout, void *data)
{
    struct walk *walk = data;
    const struct mfr_device_comms *used;
    struct mfr_device_comms device_comms;
    struct mfr_verifier verifier;
    struct mfr_comms comms;
    int rc;

    if (!drawn(walk))
        return 0;
    if (mfr_comms_create(walk->world, layout, &comms, walk->err))
        return -1;
    rc = mfr_device_comms_choose(&comms, &walk->device, walk->options->comm,
        walk->options->padded, &device_comms, &used, walk->err);
    for (int i = 0; i < WALK_CASES; i++)
        walk->work[i].device_comms = used;
    if (!rc)
        rc = mfr_verifier_create(&comms, layout, &verifier, walk->err);
    if (!rc) {
        rc = walk_cases_of(walk, layout, &verifier);
        mfr_verifier_free(&verifier);
    }
    mfr_device_comms_free(&device_comms);
    mfr_comms_free(&comms);
    return rc;
}

static int print_count(const struct walk *walk, int size)
{
    if (printf("world %d: %" PRId64 " layouts, %" PRId64 " failed, %" PRId64
               " near ties\n",
            size, walk->layouts, walk->failed, walk->near_ties) < 0 ||
        fflush(stdout))
        return mf_error_set(walk->err, MF_FAILED,
            "verify: cannot write the result; is the disk full?");
    return 0;
}

static int print_json(struct walk *walk, int size)
{
    json_t *json = json_pack("{s:i, s:I, s:I, s:I, s:O}", "world", size,
        "layouts", (json_int_t)walk->layouts, "failed",
        (json_int_t)walk->failed, "near_ties", (json_int_t)walk->near_ties,
        "failures", walk->failures);
    int rc = 0;

    if (!json || json_dumpf(json, stdout, JSON_INDENT(2)) ||
        putchar('\n') == EOF || fflush(stdout))
        rc = mf_error_set(walk->err, MF_FAILED,
            "verify: cannot write the result; is the disk full?");
    json_decref(json);
    return rc;
}

int mfr_walk_main(MPI_Comm world, const struct mfr_walk_options *options,
    bool *held, struct mf_error *err)
{
    struct walk walk = {.world = world, .options = options, .err = err};
    int size, rc = 0;

    if (mfr_mpi(
            MPI_Comm_rank(world, &walk.rank), "verify: MPI_Comm_rank", err) ||
        mfr_mpi(MPI_Comm_size(world, &size), "verify: MPI_Comm_size", err))
        return -1;
    if (mfr_device_choose(world, options->backend, NULL, &walk.device, err))
        return -1;
    walk_cases(options, size, walk.device.device, walk.work);
    walk.failures = json_array();
    if (!walk.failures)
        rc = mf_error_set(err, MF_FAILED, "verify: out of memory");
    if (mfr_agree(world, rc, err) ||
        mfr_walk_layouts(size, walk_layout, &walk)) {
        rc = -1;
        goto out;
    }
    *held = walk.failed == 0;
    if (walk.rank == 0 && options->json)
        rc = print_json(&walk, size);
    else if (walk.rank == 0 && (!options->quiet || !*held))
        rc = print_count(&walk, size);
    rc = mfr_agree(world, rc, err);
out:
    json_decref(walk.failures);
    mfr_device_close(&walk.device);
    return rc;
}
