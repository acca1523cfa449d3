/* SPDX-License-Identifier: BSD-3-Clause
 * Run the layer of a plan, time it, record it.
 */
#include "runtime/run.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "runtime/clock.h"
#include "runtime/collective.h"
#include "runtime/run_state.h"
#include "runtime/setup.h"

/* What a file says of the tokens stands above what the plan says. */
static int load_shape(struct mfr_run *run, struct mf_error *err)
{
    const int64_t dp = run->entry->layout.dp;

    if (run->entry->layout.pp > 1)
        return mf_error_set(err, MF_INVALID,
            "--load and --dump are of one layer; take a layout with pp 1");
    if (!run->options->load)
        return 0;
    if (mfr_checkpoint_open(run->options->load, &run->shape, &run->from, err))
        return -1;
    if (run->from.batch % dp)
        return mf_error_set(err, MF_INVALID,
            "%s: %" PRId64 " sequences do not divide over dp %" PRId64,
            run->options->load, run->from.batch, dp);
    run->shape.seq = run->from.seq;
    run->shape.batch = run->from.batch / dp;
    return mfr_layer_check(&run->shape, &run->entry->layout, err);
}

static int setup_plan(struct mfr_run *run, struct mf_error *err)
{
    const struct mfr_options *o = run->options;

    if (mfr_setup_plan(run->world, o->plan, &run->plan, err))
        return -1;
    run->have_plan = true;
    /* From here to the communicators all ranks see the same and agree. */
    if (mfr_setup_pick(&run->plan, o->pick, run->ranks, &run->entry, err))
        return mf_error_prefix(err, "%s", o->plan);
    if (o->dispatcher != MF_DISPATCHER_AUTO)
        run->plan.entry[o->pick - 1].settings.dispatcher = o->dispatcher;
    if (mfr_setup_shape(&run->plan, run->entry, &run->shape, err))
        return mf_error_prefix(err, "%s", o->plan);
    if (o->load || o->dump)
        return mfr_agree(run->world, load_shape(run, err), err);
    return 0;
}

static int load_tensors(struct mfr_run *run, struct mf_error *err)
{
    const struct mfr_shard *shard = mfr_layer_shard(run->layer);

    return mfr_checkpoint_weights(
               &run->from, run->layer, &run->shape, &run->comms.coords, err) ||
                   mfr_checkpoint_tokens(&run->from, "hidden_states",
                       &run->shape, shard, run->x, err) ||
                   mfr_checkpoint_tokens(&run->from, "grad_output", &run->shape,
                       shard, run->dy, err)
               ? -1
               : 0;
}

/* Input, output and their gradients. */
static int setup_tensors(struct mfr_run *run, struct mf_error *err)
{
    const struct mfr_shard *shard = mfr_layer_shard(run->layer);
    const size_t n = (size_t)(shard->tokens * run->shape.hidden) + 1;
    const uint64_t seed = (uint64_t)run->options->seed;

    run->x = calloc(n, sizeof *run->x);
    run->y = calloc(n, sizeof *run->y);
    run->dy = calloc(n, sizeof *run->dy);
    run->dx = calloc(n, sizeof *run->dx);
    if (!run->x || !run->y || !run->dy || !run->dx)
        return mf_error_set(err, MF_FAILED, "out of memory for the tokens");
    if (run->options->load)
        return load_tensors(run, err);
    mfr_layer_seed(run->layer, seed);
    mfr_layer_seed_input(run->layer, seed, run->x);
    mfr_layer_seed_output_grad(run->layer, seed, run->dy);
    return 0;
}

/* The layer; and with --pipeline its layers, the micro batches that go in and
 * out, and what is in flight, beside it.
 */
static int64_t bytes_needed(const struct mfr_run *run)
{
    const struct mfr_options *o = run->options;
    const struct mf_layout *layout = &run->entry->layout;
    const int64_t layers = o->layers ? o->layers : 1;
    const int64_t bytes = mfr_layer_copies_bytes(
        &run->shape, layout, run->rank, run->entry->settings.dispatcher);
    struct mfr_shard shard;
    double all;

    if (bytes < 0 || !o->pipeline)
        return bytes;
    mfr_shard_of(&run->shape, layout, run->rank, &shard);
    all = (double)bytes * (double)(1 + layers) +
          (double)shard.tokens * (double)run->shape.hidden * sizeof(float) *
              (double)(4 * o->pipeline + layout->pp + layers + 6);
    return all < 0x1p62 ? (int64_t)all : INT64_MAX;
}

static int setup_layer(struct mfr_run *run, struct mf_error *err)
{
    const struct mf_layout *layout = &run->entry->layout;
    struct mfr_layer_options how = {
        .kernel = run->options->kernel,
        .transport = &run->options->transport,
        .dispatcher = run->entry->settings.dispatcher,
        .observed = run->options->dump,
    };
    int rc;

    if (mfr_setup_memory(run->world, bytes_needed(run), err))
        return -1;
    /* After all refusals, so that what it says of the CPU stands. */
    if (mfr_device_choose(
            run->world, run->options->backend, &run->plan, &run->device, err))
        return -1;
    how.device = run->device.device;
    run->have_comms = true;
    if (mfr_comms_create(run->world, layout, &run->comms, err))
        return -1;
    if (mfr_device_comms_choose(&run->comms, &run->device, run->options->comm,
            run->options->padded, &run->device_comms, &how.device_comms, err))
        return -1;
    rc = mfr_layer_create(
        &run->shape, layout, &run->comms, &how, &run->layer, err);
    if (mfr_agree(run->world, rc, err))
        return -1;
    return mfr_agree(run->world, setup_tensors(run, err), err);
}

/* One iteration; a barrier before it, so that no rank waits for another's
 * last one. Nobody waits beyond its ETP x EP group before the gradients.
 */
static int iterate(struct mfr_run *run, bool first, struct mfr_record *record,
    struct mf_error *err)
{
    double start;
    int rc;

    mfr_layer_zero_gradients(run->layer);
    if (mfr_barrier(run->world, "MPI_Barrier (before an iteration)", err))
        return -1;
    start = mfr_now();
    rc = mfr_layer_forward(run->layer, run->x, run->y, err);
    if (rc == 0)
        rc = mfr_layer_backward(run->layer, run->dy, run->dx, err);
    record->layer_s = mfr_now() - start;
    if (run->device_comms.device) {
        const struct mfr_times *times = mfr_layer_times(run->layer);

        /* Without handing tokens to and from the host, which a model's next
         * layer would not do.
         */
        record->layer_s =
            times->pass_s[MF_FORWARD] + times->pass_s[MF_BACKWARD];
    }
    if (first) {
        rc = mfr_agree(run->world, rc, err);
        *run->alone = false;
    }
    if (rc || mfr_layer_reduce_gradients(run->layer, 1, err))
        return -1;
    record->times = *mfr_layer_times(run->layer);
    return 0;
}

static int iterations(struct mfr_run *run, struct mf_error *err)
{
    const int64_t warmup = run->options->warmup;
    const int64_t last = run->options->iterations;
    struct mfr_record record;

    for (int64_t i = -warmup; i < last; i++) {
        const int64_t before = run->timing.gathered;

        run->trace.iteration = i;
        mfr_guard_iteration(run->world, i);
        mfr_layer_meet(run->layer, i % MFR_MEET == MFR_MEET - 1);
        if (i == 0 && run->options->trace)
            mfr_layer_trace(run->layer, &run->trace);
        if (iterate(run, i == -warmup, &record, err)) {
            *run->alone = i != -warmup;
            return -1;
        }
        if (i < 0)
            continue;
        *run->alone = true;
        if (mfr_timing_add(&run->timing, &record, i + 1 == last, err))
            return -1;
        *run->alone = false;
        if (run->rank == 0)
            mfr_history_append(&run->history, &run->timing, before,
                run->timing.gathered, &run->entry->cost);
    }
    return 0;
}

static int run_all(
    struct mfr_run *run, const char *command, struct mf_error *err)
{
    double imbalance = NAN;
    int rc = 0;

    if (run->options->trace &&
        mfr_trace_open(&run->trace, run->world, run->options->trace, err))
        return -1;
    if (setup_plan(run, err) || setup_layer(run, err) ||
        mfr_timing_init(
            &run->timing, run->world, run->options->iterations, err) ||
        mfr_run_record_begin(run, command, err) || iterations(run, err) ||
        mfr_run_imbalance(run, &imbalance, err) || mfr_run_pipeline(run, err))
        return -1;
    if (run->options->trace && mfr_trace_write(&run->trace, run->world, err))
        return -1;
    if (run->options->dump &&
        mfr_checkpoint_dump(run->options->dump,
            run->options->load ? &run->from : NULL, run->layer, &run->shape,
            run->entry->layout.dp, &run->comms, run->y, run->dx, err))
        return -1;
    if (run->rank == 0)
        rc = mfr_run_record_end(run, imbalance, err);
    return mfr_agree(run->world, rc, err);
}

int mfr_run_main(MPI_Comm world, const struct mfr_options *options,
    const char *command, bool *alone, struct mf_error *err)
{
    struct mfr_run run = {.world = world, .options = options, .alone = alone};
    int rc;

    if (mfr_mpi(MPI_Comm_rank(world, &run.rank), "MPI_Comm_rank", err) ||
        mfr_mpi(MPI_Comm_size(world, &run.ranks), "MPI_Comm_size", err))
        return -1;
    rc = run_all(&run, command, err);
    free(run.x);
    free(run.y);
    free(run.dy);
    free(run.dx);
    free(run.nodes);
    mfr_checkpoint_close(&run.from);
    mfr_history_free(&run.history);
    mfr_timing_free(&run.timing);
    mfr_trace_close(&run.trace);
    if (!*alone) {
        mfr_layer_free(run.layer);
        if (run.have_comms)
            mfr_comms_free(&run.comms);
        mfr_device_comms_free(&run.device_comms);
        mfr_device_close(&run.device);
    }
    if (run.have_plan)
        mf_plan_free(&run.plan);
    return rc;
}
