/* SPDX-License-Identifier: BSD-3-Clause
 * Run the layer of a plan, time it, record it.
 */
#include "config.h"

#include "runtime/run.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "runtime/clock.h"
#include "runtime/machine.h"
#include "runtime/record.h"
#include "runtime/report.h"
#include "runtime/setup.h"
#include "runtime/timing.h"

#define COMM_TIMEOUT_S 60.0

struct run {
    MPI_Comm world;
    int rank, ranks;
    const struct mfr_options *options;
    bool *alone;
    struct mf_plan plan;
    bool have_plan;
    const struct mf_plan_entry *entry;
    struct mfr_shape shape;
    struct mfr_comms comms;
    bool have_comms;
    mfr_layer *layer;
    float *x, *y, *dy, *dx; /* [tokens][hidden] */
    struct mfr_timing timing;
    struct mfr_history history;
    struct mfdb_run record; /* rank 0 */
};

static int setup_plan(struct run *run, struct mf_error *err)
{
    const struct mfr_options *o = run->options;

    if (mfr_setup_plan(run->world, o->plan, &run->plan, err))
        return -1;
    run->have_plan = true;
    /* From here to the communicators all ranks see the same and agree. */
    if (mfr_setup_pick(&run->plan, o->pick, run->ranks, &run->entry, err) ||
        mfr_setup_shape(&run->plan, run->entry, &run->shape, err))
        return mf_error_prefix(err, "%s", o->plan);
    return 0;
}

/* Input, output and their gradients. */
static int setup_tensors(struct run *run, struct mf_error *err)
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
    mfr_layer_seed(run->layer, seed);
    mfr_layer_seed_input(run->layer, seed, run->x);
    mfr_layer_seed_output_grad(run->layer, seed, run->dy);
    return 0;
}

static int setup_layer(struct run *run, struct mf_error *err)
{
    const struct mf_layout *layout = &run->entry->layout;
    int rc;

    if (mfr_setup_memory(
            run->world, mfr_layer_bytes(&run->shape, layout, run->rank), err))
        return -1;
    run->have_comms = true;
    if (mfr_comms_create(
            run->world, layout, COMM_TIMEOUT_S, &run->comms, err)) {
        *run->alone = run->comms.hung;
        return -1;
    }
    rc = mfr_layer_create(&run->shape, layout, &run->comms,
        run->options->kernel, MFR_FAULT_NONE, &run->layer, err);
    if (mfr_agree(run->world, rc, err))
        return -1;
    return mfr_agree(run->world, setup_tensors(run, err), err);
}

/* One iteration; a barrier before it, so that no rank waits for another's
 * last one. Nobody waits beyond its ETP x EP group before the gradients.
 */
static int iterate(struct run *run, bool first, struct mfr_record *record,
    struct mf_error *err)
{
    double start;
    int rc;

    mfr_layer_zero_gradients(run->layer);
    if (mfr_mpi(MPI_Barrier(run->world), "MPI_Barrier", err))
        return -1;
    start = mfr_now();
    rc = mfr_layer_forward(run->layer, run->x, run->y, err);
    if (rc == 0)
        rc = mfr_layer_backward(run->layer, run->dy, run->dx, err);
    record->layer_s = mfr_now() - start;
    if (first) {
        rc = mfr_agree(run->world, rc, err);
        *run->alone = false;
    }
    if (rc || mfr_layer_reduce_gradients(run->layer, 1, err))
        return -1;
    record->times = *mfr_layer_times(run->layer);
    return 0;
}

static int iterations(struct run *run, struct mf_error *err)
{
    const int64_t warmup = run->options->warmup;
    const int64_t last = run->options->iterations;
    struct mfr_record record;

    for (int64_t i = -warmup; i < last; i++) {
        const int64_t before = run->timing.gathered;

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

static int compare(const void *a, const void *b)
{
    const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

    return (x > y) - (x < y);
}

/* Gini coefficient of n loads, sorted in place: 0 all equal, near 1 one has
 * all. G = 2 sum i*x_i / (n sum x_i) - (n + 1) / n, x ascending, i from 1.
 */
static double gini(int64_t n, int64_t *loads)
{
    double sum = 0, weighted = 0;

    qsort(loads, (size_t)n, sizeof *loads, compare);
    for (int64_t i = 0; i < n; i++) {
        sum += (double)loads[i];
        weighted += (double)(i + 1) * (double)loads[i];
    }
    if (sum <= 0)
        return 0;
    return 2 * weighted / ((double)n * sum) - (double)(n + 1) / (double)n;
}

/* Of the expert loads in a stage, the largest over stages. */
static int measure_imbalance(
    struct run *run, double *imbalance, struct mf_error *err)
{
    const int64_t n = run->shape.experts;
    const struct mfr_routes routes = mfr_layer_routes(run->layer);
    int64_t *loads = calloc((size_t)n, sizeof *loads);
    double mine = 0;
    int rc = loads ? 0 : mf_error_set(err, MF_FAILED, "out of memory");

    rc = mfr_agree(run->world, rc, err);
    if (rc == 0)
        rc = mfr_mpi(MPI_Allreduce(routes.counts, loads, (int)n, MPI_INT64_T,
                         MPI_SUM, run->comms.comm[MF_GROUP_TP_DP_CP]),
            "MPI_Allreduce", err);
    if (rc == 0) {
        mine = gini(n, loads);
        rc = mfr_mpi(
            MPI_Allreduce(&mine, imbalance, 1, MPI_DOUBLE, MPI_MAX, run->world),
            "MPI_Allreduce", err);
    }
    free(loads);
    return rc;
}

static void copy(char *to, size_t size, const char *from)
{
    snprintf(to, size, "%s", from);
}

static double seconds_since_1970(void)
{
    struct timespec t = {0, 0};

    clock_gettime(CLOCK_REALTIME, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void record_shape(struct run *run)
{
    struct mfdb_run *r = &run->record;

    r->hidden = run->shape.hidden;
    r->ffn = run->shape.ffn;
    r->experts = run->shape.experts;
    r->topk = run->shape.topk;
    r->seq = run->shape.seq;
    r->micro_batch = run->shape.batch;
    r->vocab = run->plan.model.vocab;
    r->gated = true;
    r->imbalance = r->layer_s = r->tokens_per_s = NAN;
    r->predicted_s =
        run->entry->cost.layer_forward_s + run->entry->cost.layer_backward_s;
}

static void record_texts(struct run *run, const char *command)
{
    struct mfdb_run *r = &run->record;
    const struct mf_layout *layout = &run->entry->layout;
    const char *job = getenv("SLURM_JOB_ID");

    copy(r->status, sizeof r->status, "running");
    copy(r->version, sizeof r->version, PACKAGE_VERSION);
    copy(r->command, sizeof r->command, command);
    copy(r->model, sizeof r->model, run->plan.model.name);
    copy(r->cluster, sizeof r->cluster, run->plan.cluster.name);
    copy(r->job_id, sizeof r->job_id, job ? job : "");
    copy(r->backend, sizeof r->backend, "cpu");
    copy(r->comm, sizeof r->comm, "mpi");
    copy(r->experts_kernel, sizeof r->experts_kernel,
        run->options->kernel == MFK_EXACT ? "exact" : "blas");
    copy(r->dispatcher, sizeof r->dispatcher,
        mf_dispatcher_name(run->entry->settings.dispatcher));
    copy(r->coefficients, sizeof r->coefficients, run->plan.coefficients);
    mf_layout_format(layout, r->layout, sizeof r->layout);
    mf_order_format(&layout->order, r->rank_order, sizeof r->rank_order);
    r->coupled = layout->coupled;
    mfr_machine_user(r->user, sizeof r->user);
    mfr_machine_cpu(r->device, sizeof r->device);
    mfr_machine_libraries(r->libraries, sizeof r->libraries);
}

static int record_begin(
    struct run *run, const char *command, struct mf_error *err)
{
    struct mfdb_run *r = &run->record;
    int rc = 0;

    if (mfr_machine_nodes(
            run->world, r->node_list, sizeof r->node_list, &r->nodes, err))
        return -1;
    if (run->rank == 0) {
        if (mfdb_uuid(r->run_id))
            rc = mf_error_set(err, MF_FAILED, "no run id can be made");
        r->started_at = seconds_since_1970();
        r->ended_at = NAN;
        r->ranks = run->ranks;
        record_shape(run);
        record_texts(run, command);
        run->history.wanted = !run->options->no_history;
        run->history.db_option = run->options->db;
        run->history.run_dir = run->options->run_dir;
        if (rc == 0)
            mfr_history_begin(&run->history, r);
    }
    return mfr_agree(run->world, rc, err);
}

/* What was measured, into the record and onto standard output. Rank 0. */
static int record_end(struct run *run, double imbalance, struct mf_error *err)
{
    struct mfdb_run *r = &run->record;
    struct mfr_report report = {
        .run = r,
        .cost = &run->entry->cost,
        .history = &run->history,
        .note = run->entry->settings.precision == MF_BF16
                    ? "the plan's precision is bf16; the CPU backend "
                      "computes in fp32"
                    : NULL,
    };

    if (mfr_timing_medians(&run->timing, &r->layer_s, report.phase_s))
        return mf_error_set(err, MF_FAILED, "out of memory");
    r->ended_at = seconds_since_1970();
    r->iterations = run->timing.gathered;
    r->imbalance = imbalance;
    r->tokens_per_s = (double)run->shape.seq * (double)run->shape.batch *
                      (double)run->entry->layout.dp / r->layer_s;
    copy(r->status, sizeof r->status, "done");
    mfr_history_end(&run->history, r);
    if (run->history.warning[0])
        fprintf(stderr, "moefold-run: warning: history: %s%s%s\n",
            run->history.warning,
            !strcmp(run->history.state, "spooled") ? "; the spool stays in "
                                                   : "",
            !strcmp(run->history.state, "spooled") ? run->history.spool_path
                                                   : "");
    if (run->options->json)
        return mfr_report_json(&report, err);
    return run->options->quiet ? 0 : mfr_report_table(&report, err);
}

static int run_all(struct run *run, const char *command, struct mf_error *err)
{
    double imbalance = NAN;
    int rc = 0;

    if (setup_plan(run, err) || setup_layer(run, err) ||
        mfr_timing_init(
            &run->timing, run->world, run->options->iterations, err) ||
        record_begin(run, command, err) || iterations(run, err) ||
        measure_imbalance(run, &imbalance, err))
        return -1;
    if (run->rank == 0)
        rc = record_end(run, imbalance, err);
    return mfr_agree(run->world, rc, err);
}

int mfr_run_main(MPI_Comm world, const struct mfr_options *options,
    const char *command, bool *alone, struct mf_error *err)
{
    struct run run = {.world = world, .options = options, .alone = alone};
    int rc;

    if (!getenv("OPENBLAS_NUM_THREADS"))
        mfk_set_threads(1);
    if (mfr_mpi(MPI_Comm_rank(world, &run.rank), "MPI_Comm_rank", err) ||
        mfr_mpi(MPI_Comm_size(world, &run.ranks), "MPI_Comm_size", err))
        return -1;
    rc = run_all(&run, command, err);
    free(run.x);
    free(run.y);
    free(run.dy);
    free(run.dx);
    mfr_history_free(&run.history);
    mfr_timing_free(&run.timing);
    if (!*alone) {
        mfr_layer_free(run.layer);
        if (run.have_comms)
            mfr_comms_free(&run.comms);
    }
    if (run.have_plan)
        mf_plan_free(&run.plan);
    return rc;
}
