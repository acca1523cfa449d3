/* SPDX-License-Identifier: BSD-3-Clause
 * Verify a plan's layout and say what was found.
 */
#include "runtime/verify.h"

#include <inttypes.h>
#include <stdio.h>

#include "runtime/verify_case.h"

#define COMM_TIMEOUT_S 60.0

/* What keeps the reference, one plain loop on one core, within seconds. */
#define EXPERTS_MOST 1024
#define WIDTH_MOST 128                  /* hidden and ffn */
#define WEIGHTS_MOST ((int64_t)3 << 20) /* experts * 3 * hidden * ffn */
#define TOKENS_MOST 1024                /* of all micro batches */
#define BATCH_MOST 2

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* N, or the multiple of STEP just under MOST, and at least STEP. */
static int64_t cut_multiple(int64_t n, int64_t most, int64_t step)
{
    if (n <= most)
        return n;
    return most > step ? most - most % step : step;
}

static void cut(const struct mf_layout *layout, struct mfr_shape *shape)
{
    int64_t tokens = TOKENS_MOST / least(layout->dp, TOKENS_MOST);

    shape->experts = cut_multiple(shape->experts, EXPERTS_MOST, layout->ep);
    shape->topk = least(shape->topk, shape->experts);
    shape->hidden = least(shape->hidden, WIDTH_MOST);
    while (shape->hidden > 16 &&
           shape->experts * 3 * shape->hidden * least(shape->ffn, WIDTH_MOST) >
               WEIGHTS_MOST)
        shape->hidden /= 2;
    shape->ffn = cut_multiple(shape->ffn, WIDTH_MOST, layout->etp);
    shape->batch = least(shape->batch, BATCH_MOST);
    shape->seq =
        least(shape->seq, tokens > shape->batch ? tokens / shape->batch : 1);
}

int mfr_verify_shape(const struct mf_plan *plan,
    const struct mf_plan_entry *entry, bool full, struct mfr_shape *shape,
    struct mf_error *err)
{
    const struct mf_model *model = &plan->model;

    if (model->experts < 1)
        return mf_error_set(err, MF_INVALID,
            "verify: model %s has no experts; plan for one that has",
            model->name);
    *shape = (struct mfr_shape){
        .seq = entry->settings.seq,
        .batch = entry->settings.micro_batch,
        .hidden = model->hidden,
        .ffn = model->moe_ffn,
        .experts = model->experts,
        .topk = model->topk,
        .renormalize = model->router.renormalize,
        .scaling = model->router.scaling,
    };
    if (!full)
        cut(&entry->layout, shape);
    return mfr_layer_check(shape, &entry->layout, err);
}

static json_t *shape_json(const struct mfr_shape *shape)
{
    return json_pack("{s:I, s:I, s:I, s:I, s:I, s:I, s:b, s:f}", "seq",
        (json_int_t)shape->seq, "micro_batch", (json_int_t)shape->batch,
        "hidden", (json_int_t)shape->hidden, "ffn", (json_int_t)shape->ffn,
        "experts", (json_int_t)shape->experts, "topk", (json_int_t)shape->topk,
        "renormalize", shape->renormalize, "scaling", shape->scaling);
}

static int print_json(const struct mfr_verify_case *work, int64_t world,
    const struct mfr_verify_result *result, bool held)
{
    char layout[MF_LAYOUT_TEXT];
    json_t *shape = shape_json(&work->shape);
    json_t *checks = mfr_checks_to_json(&result->checks);
    json_t *json = NULL;
    int rc = -1;

    mf_layout_format(&work->layout, layout, sizeof layout);
    if (shape && checks)
        json = json_pack("{s:s, s:I, s:O, s:s, s:s, s:b, s:I, s:O}", "layout",
            layout, "world", (json_int_t)world, "shape", shape, "experts",
            work->kernel == MFK_EXACT ? "exact" : "blas", "fault",
            mfr_fault_name(work->fault), "ok", held, "near_ties",
            (json_int_t)result->near_ties, "checks", checks);
    if (json && !json_dumpf(json, stdout, JSON_INDENT(2)) &&
        putchar('\n') != EOF && !fflush(stdout))
        rc = 0;
    json_decref(shape);
    json_decref(checks);
    json_decref(json);
    return rc;
}

static int print_table(const struct mfr_verify_case *work, int64_t world,
    const struct mfr_verify_result *result, bool held)
{
    const struct mfr_shape *s = &work->shape;
    char layout[MF_LAYOUT_TEXT];

    mf_layout_format(&work->layout, layout, sizeof layout);
    if (printf("layout  %s, %" PRId64 " ranks\n"
               "shape   seq %" PRId64 ", micro batch %" PRId64
               ", hidden %" PRId64 ", ffn %" PRId64 ", experts %" PRId64
               ", topk %" PRId64 "\n\n",
            layout, world, s->seq, s->batch, s->hidden, s->ffn, s->experts,
            s->topk) < 0 ||
        mfr_checks_print(&result->checks, stdout, NULL) ||
        printf("\n%s; %" PRId64 " near ties\n",
            held ? "All checks hold" : "A check FAILED", result->near_ties) < 0)
        return -1;
    return fflush(stdout) ? -1 : 0;
}

static int verify_entry(MPI_Comm world,
    const struct mfr_verify_options *options, struct mfr_verify_case *work,
    bool *held, struct mf_error *err)
{
    struct mfr_verify_result result;
    struct mfr_comms comms;
    int rc;

    if (mfr_comms_create(world, &work->layout, COMM_TIMEOUT_S, &comms, err))
        return -1;
    rc = mfr_verify_case_run(work, &comms, &result, err);
    if (!rc) {
        *held = !mfr_checks_failed(&result.checks);
        if (comms.rank == 0)
            rc = (options->json ? print_json : print_table)(
                work, comms.size, &result, *held);
        if (rc)
            mf_error_set(err, MF_FAILED,
                "verify: cannot write the result; is the disk full?");
        rc = mfr_agree(world, rc, err);
    }
    mfr_comms_free(&comms);
    return rc;
}

static int pick(const struct mfr_verify_options *options,
    const struct mf_plan *plan, int size, struct mfr_verify_case *work,
    struct mf_error *err)
{
    const struct mf_plan_entry *entry;

    if (options->pick < 1 || (uint64_t)options->pick > plan->entries)
        return mf_error_set(err, MF_INVALID,
            "verify: %s: --pick %" PRId64 ", but it holds %zu layouts",
            options->plan, options->pick, plan->entries);
    entry = &plan->entry[options->pick - 1];
    if (mf_layout_world(&entry->layout) != size)
        return mf_error_set(err, MF_INVALID,
            "verify: %s is for %" PRId64 " ranks, but this job has %d",
            options->plan, mf_layout_world(&entry->layout), size);
    *work = (struct mfr_verify_case){.layout = entry->layout,
        .seed = options->seed,
        .kernel = options->kernel,
        .fault = options->fault};
    if (mfr_verify_shape(plan, entry, options->full, &work->shape, err))
        return mf_error_prefix(err, "%s", options->plan);
    return 0;
}

int mfr_verify_main(MPI_Comm world, const struct mfr_verify_options *options,
    bool *held, struct mf_error *err)
{
    struct mfr_verify_case work;
    struct mf_plan plan = {0};
    bool read = false;
    int size, rc;

    if (mfr_mpi(MPI_Comm_size(world, &size), "verify: MPI_Comm_size", err))
        return -1;
    rc = mf_plan_read(options->plan, &plan, err);
    read = !rc;
    if (!rc)
        rc = pick(options, &plan, size, &work, err);
    rc = mfr_agree(world, rc, err);
    if (!rc)
        rc = verify_entry(world, options, &work, held, err);
    if (read)
        mf_plan_free(&plan);
    return rc;
}
