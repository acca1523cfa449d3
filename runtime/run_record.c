/* SPDX-License-Identifier: BSD-3-Clause
 * The record of a run: what was run where, and how fast it was.
 */
#include "config.h"

#include "runtime/run_state.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "runtime/machine.h"
#include "runtime/report.h"
#include "runtime/stats.h"
#include "runtime/collective.h"

int mfr_run_imbalance(
    struct mfr_run *run, double *imbalance, struct mf_error *err)
{
    const int64_t n = run->shape.experts;
    const struct mfr_routes routes = mfr_layer_routes(run->layer);
    int64_t *loads = calloc((size_t)n, sizeof *loads);
    double mine = 0;
    int rc = loads ? 0 : mf_error_set(err, MF_FAILED, "out of memory");

    rc = mfr_agree(run->world, rc, err);
    if (rc == 0)
        rc = mfr_allreduce(routes.counts, loads, (int)n, MPI_INT64_T, MPI_SUM,
            run->comms.comm[MF_GROUP_TP_DP_CP], "MPI_Allreduce", err);
    if (rc == 0) {
        mine = mfr_gini(n, loads);
        rc = mfr_allreduce(&mine, imbalance, 1, MPI_DOUBLE, MPI_MAX, run->world,
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

static void record_shape(struct mfr_run *run)
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

static void record_texts(struct mfr_run *run, const char *command)
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
    copy(r->backend, sizeof r->backend, mfr_device_name(&run->device));
    copy(r->comm, sizeof r->comm, run->device_comms.device ? "nccl" : "mpi");
    copy(r->experts_kernel, sizeof r->experts_kernel,
        run->options->kernel == MFK_EXACT ? "exact" : "blas");
    copy(r->dispatcher, sizeof r->dispatcher,
        mf_dispatcher_name(run->entry->settings.dispatcher));
    copy(r->coefficients, sizeof r->coefficients, run->plan.coefficients);
    mf_layout_format(layout, r->layout, sizeof r->layout);
    mf_order_format(&layout->order, r->rank_order, sizeof r->rank_order);
    r->coupled = layout->coupled;
    mfr_machine_user(r->user, sizeof r->user);
    if (run->device.device) {
        copy(r->device, sizeof r->device, run->device.facts.model);
        copy(r->libraries, sizeof r->libraries, run->device.facts.library);
        return;
    }
    mfr_machine_cpu(r->device, sizeof r->device);
    mfr_machine_libraries(r->libraries, sizeof r->libraries);
}

int mfr_run_record_begin(
    struct mfr_run *run, const char *command, struct mf_error *err)
{
    struct mfdb_run *r = &run->record;
    int rc = 0;

    if (mfr_machine_nodes(run->world, r->node_list, sizeof r->node_list,
            &r->nodes, &run->nodes, err))
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

int mfr_run_record_end(
    struct mfr_run *run, double imbalance, struct mf_error *err)
{
    struct mfdb_run *r = &run->record;
    struct mfr_report report = {
        .run = r,
        .cost = &run->entry->cost,
        .history = &run->history,
        .nodes = run->nodes,
        .pipeline = run->pipeline.batches ? &run->pipeline : NULL,
        .transport = mfr_layer_transport(run->layer),
        .note = run->entry->settings.precision == MF_BF16
                    ? "the plan's precision is bf16; the layer is "
                      "computed in fp32"
                    : NULL,
    };

    if (mfr_timing_report(&run->timing, &report.times))
        return mf_error_set(err, MF_FAILED, "out of memory");
    r->layer_s = report.times.layer.max_s;
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
