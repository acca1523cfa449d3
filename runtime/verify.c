/* SPDX-License-Identifier: BSD-3-Clause
 * Verify a plan's layout and say what was found.
 */
#include "runtime/verify.h"

#include <inttypes.h>
#include <stdio.h>

#include "runtime/comm_device.h"
#include "runtime/setup.h"
#include "runtime/verify_case.h"

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

static void cut_shape(const struct mf_layout *layout, struct mfr_shape *shape)
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
    shape->shared_ffn = cut_multiple(shape->shared_ffn, WIDTH_MOST, layout->tp);
    shape->batch = least(shape->batch, BATCH_MOST);
    shape->seq =
        least(shape->seq, tokens > shape->batch ? tokens / shape->batch : 1);
}

int mfr_verify_shape(const struct mf_plan *plan,
    const struct mf_plan_entry *entry, bool full, struct mfr_shape *shape,
    struct mf_error *err)
{
    if (mfr_setup_shape(plan, entry, shape, err))
        return -1;
    if (!full)
        cut_shape(&entry->layout, shape);
    return mfr_layer_check(shape, &entry->layout, err);
}

static json_t *shape_json(const struct mfr_shape *shape)
{
    return json_pack(
        "{s:I, s:I, s:I, s:I, s:I, s:I, s:b, s:f, s:s, s:I, s:I, s:b}", "seq",
        (json_int_t)shape->seq, "micro_batch", (json_int_t)shape->batch,
        "hidden", (json_int_t)shape->hidden, "ffn", (json_int_t)shape->ffn,
        "experts", (json_int_t)shape->experts, "topk", (json_int_t)shape->topk,
        "renormalize", shape->renormalize, "scaling", shape->scaling, "score",
        shape->sigmoid ? "sigmoid" : "softmax", "groups",
        (json_int_t)shape->groups, "shared_ffn", (json_int_t)shape->shared_ffn,
        "shared_gate", shape->shared_gate);
}

static int print_json(const struct mf_layout *layout,
    const struct mfr_verify_case *work, int64_t world,
    const struct mfr_verify_result *result, bool held)
{
    char text[MF_LAYOUT_TEXT];
    json_t *shape = shape_json(&work->shape);
    json_t *checks = mfr_checks_to_json(&result->checks);
    json_t *json = NULL;
    int rc = -1;

    mf_layout_format(layout, text, sizeof text);
    if (shape && checks)
        json = json_pack("{s:s, s:I, s:O, s:s, s:s, s:s, s:b, s:I, s:O}",
            "layout", text, "world", (json_int_t)world, "shape", shape,
            "experts", work->kernel == MFK_EXACT ? "exact" : "blas",
            "dispatcher", mf_dispatcher_name(work->dispatcher), "fault",
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

static int print_table(const struct mf_layout *layout,
    const struct mfr_verify_case *work, int64_t world,
    const struct mfr_verify_result *result, bool held)
{
    const struct mfr_shape *s = &work->shape;
    char text[MF_LAYOUT_TEXT];

    mf_layout_format(layout, text, sizeof text);
    if (printf("layout  %s, %" PRId64 " ranks\n"
               "shape   seq %" PRId64 ", micro batch %" PRId64
               ", hidden %" PRId64 ", ffn %" PRId64 ", experts %" PRId64
               ", topk %" PRId64 "\n\n",
            text, world, s->seq, s->batch, s->hidden, s->ffn, s->experts,
            s->topk) < 0 ||
        mfr_checks_print(&result->checks, stdout, NULL) ||
        printf("\n%s; %" PRId64 " near ties\n",
            held ? "All checks hold" : "A check FAILED", result->near_ties) < 0)
        return -1;
    return fflush(stdout) ? -1 : 0;
}

/* Bytes of the reference on the first rank of a stage besides the layer's: two
 * weights in double precision and two in single.
 */
static int64_t reference_bytes(const struct mfr_shape *shape)
{
    int64_t bytes;

    if (__builtin_mul_overflow(shape->experts, 3 * (8 + 8 + 4 + 4), &bytes) ||
        __builtin_mul_overflow(bytes, shape->hidden, &bytes) ||
        __builtin_mul_overflow(bytes, shape->ffn, &bytes))
        return INT64_MAX;
    return bytes;
}

static int check_memory(MPI_Comm world, const struct mf_layout *layout,
    const struct mfr_shape *shape, struct mf_error *err)
{
    struct mf_coords c;
    int64_t bytes;
    int rank;

    if (mfr_mpi(MPI_Comm_rank(world, &rank), "verify: MPI_Comm_rank", err))
        return -1;
    mf_layout_coords(layout, rank, &c);
    bytes = mfr_layer_bytes(shape, layout, rank);
    if (bytes < 0 ||
        (c.tp == 0 && c.cp == 0 && c.dp == 0 &&
            __builtin_add_overflow(bytes, reference_bytes(shape), &bytes)))
        bytes = INT64_MAX;
    return mfr_setup_memory(world, bytes, err);
}

static int verify_layout(const struct mfr_verify_options *options,
    const struct mf_layout *layout, const struct mfr_comms *comms,
    const struct mfr_verify_case *work, bool *held, struct mf_error *err)
{
    struct mfr_verifier verifier;
    struct mfr_verify_result result;
    int rc = 0;

    if (mfr_verifier_create(comms, layout, &verifier, err))
        return -1;
    if (mfr_verify_case_run(&verifier, work, &result, err)) {
        rc = -1;
        goto out;
    }
    *held = !mfr_checks_failed(&result.checks);
    if (comms->rank == 0 && (options->json || !options->quiet || !*held))
        rc = (options->json ? print_json : print_table)(
            layout, work, comms->size, &result, *held);
    if (rc)
        mf_error_set(err, MF_FAILED,
            "verify: cannot write the result; is the disk full?");
    rc = mfr_agree(comms->base, rc, err);
out:
    mfr_verifier_free(&verifier);
    return rc;
}

static int verify_entry(MPI_Comm world,
    const struct mfr_verify_options *options, const struct mf_plan *plan,
    bool *held, struct mf_error *err)
{
    const struct mf_plan_entry *entry;
    struct mfr_verify_case work = {
        .seed = options->seed,
        .kernel = options->kernel,
        .fault = options->fault,
    };
    struct mfr_device device = {0};
    struct mfr_device_comms device_comms;
    struct mfr_comms comms;
    int size, rc;

    if (mfr_mpi(MPI_Comm_size(world, &size), "verify: MPI_Comm_size", err))
        return -1;
    rc = mfr_setup_pick(plan, options->pick, size, &entry, err) ||
                 mfr_verify_shape(plan, entry, options->full, &work.shape, err)
             ? mf_error_prefix(err, "%s", options->plan)
             : 0;
    if (mfr_agree(world, rc, err) ||
        check_memory(world, &entry->layout, &work.shape, err) ||
        mfr_device_choose(world, options->backend, plan, &device, err))
        return -1;
    work.device = device.device;
    work.transport = options->transport;
    work.pipeline = entry->layout.pp > 1 && !options->full && !device.device;
    work.dispatcher = options->dispatcher == MF_DISPATCHER_AUTO
                          ? entry->settings.dispatcher
                          : options->dispatcher;
    if (mfr_comms_create(world, &entry->layout, &comms, err)) {
        mfr_device_close(&device);
        return -1;
    }
    rc = mfr_device_comms_choose(&comms, &device, options->comm,
        options->padded, &device_comms, &work.device_comms, err);
    if (rc == 0)
        rc = verify_layout(options, &entry->layout, &comms, &work, held, err);
    mfr_device_comms_free(&device_comms);
    mfr_comms_free(&comms);
    mfr_device_close(&device);
    return rc;
}

int mfr_verify_main(MPI_Comm world, const struct mfr_verify_options *options,
    bool *held, struct mf_error *err)
{
    struct mf_plan plan;
    int rc;

    if (mfr_setup_plan(world, options->plan, &plan, err))
        return -1;
    rc = verify_entry(world, options, &plan, held, err);
    mf_plan_free(&plan);
    return rc;
}
