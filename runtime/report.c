/* SPDX-License-Identifier: BSD-3-Clause
 * What a run prints.
 */
#include "runtime/report.h"

#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/machine.h"

static json_t *number(double value)
{
    return isfinite(value) ? json_real(value) : json_null();
}

static json_t *text(const char *value)
{
    return *value ? json_string(value) : json_null();
}

/* Slurm's are numbers, and `moefold history` gives them so. */
static json_t *job_json(const char *id)
{
    const size_t length = strlen(id);

    if (length > 0 && length < 19 && strspn(id, "0123456789") == length)
        return json_integer((json_int_t)strtoll(id, NULL, 10));
    return text(id);
}

static bool executed(const struct mfr_report *report, int phase)
{
    return !isnan(report->times.phase[phase][MF_FORWARD].max_s) ||
           !isnan(report->times.phase[phase][MF_BACKWARD].max_s);
}

/* Over ranks; null where it was not executed. */
static json_t *summary_json(
    const struct mfr_report *report, const struct mfr_summary *sum)
{
    if (isnan(sum->max_s))
        return json_null();
    return json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:I, s:s}", "min_ms",
        number(1e3 * sum->min_s), "median_ms", number(1e3 * sum->median_s),
        "max_ms", number(1e3 * sum->max_s), "cpu_ms", number(1e3 * sum->cpu_s),
        "wait_ms", number(1e3 * sum->wait_s), "move_ms",
        number(1e3 * sum->move_s), "slowest_rank",
        (json_int_t)sum->slowest_rank, "slowest_node",
        mfr_machine_node(report->nodes, sum->slowest_rank));
}

static json_t *phase_json(const struct mfr_report *report, int phase)
{
    const struct mfr_summary *measured = report->times.phase[phase];
    const double *predicted = report->cost->phase_s[phase];

    return json_pack("{s:o, s:o, s:o, s:o, s:o, s:o}", "forward_ms",
        number(1e3 * measured[MF_FORWARD].max_s), "backward_ms",
        number(1e3 * measured[MF_BACKWARD].max_s), "predicted_forward_ms",
        number(1e3 * predicted[MF_FORWARD]), "predicted_backward_ms",
        number(1e3 * predicted[MF_BACKWARD]), "forward",
        summary_json(report, &measured[MF_FORWARD]), "backward",
        summary_json(report, &measured[MF_BACKWARD]));
}

static json_t *phases_json(const struct mfr_report *report)
{
    json_t *phases = json_object();

    for (int phase = 0; phases && phase < MF_PHASES; phase++) {
        if (!executed(report, phase))
            continue;
        if (json_object_set_new(phases, mf_phase_name((enum mf_phase)phase),
                phase_json(report, phase))) {
            json_decref(phases);
            phases = NULL;
        }
    }
    return phases;
}

static json_t *notes_json(const struct mfr_report *report)
{
    return report->note ? json_pack("[s]", report->note) : json_array();
}

static json_t *pipeline_json(const struct mfr_report *report)
{
    const struct mfr_pipeline_times *p = report->pipeline;

    if (!p)
        return json_null();
    return json_pack("{s:I, s:I, s:o, s:o, s:o}", "micro_batches",
        (json_int_t)p->batches, "layers", (json_int_t)p->layers, "step_ms",
        number(1e3 * p->step_s), "stage_send_forward_ms",
        number(1e3 * p->send_s[MF_FORWARD]), "stage_send_backward_ms",
        number(1e3 * p->send_s[MF_BACKWARD]));
}

static json_t *report_json(const struct mfr_report *report)
{
    const struct mfdb_run *run = report->run;

    return json_pack("{s:s, s:s, s:s, s:s, s:s, s:I, s:I, s:o, s:o, s:o, s:o, "
                     "s:I, s:o, s:s, s:s, s:s, s:o, s:o, s:o, s:o, s:o, s:o}",
        "run_id", run->run_id, "status", run->status, "model", run->model,
        "layout", run->layout, "order", run->rank_order, "ranks",
        (json_int_t)run->ranks, "nodes", (json_int_t)run->nodes, "job_id",
        job_json(run->job_id), "layer_ms", number(1e3 * run->layer_s),
        "predicted_ms", number(1e3 * run->predicted_s), "tokens_per_s",
        number(run->tokens_per_s), "iterations", (json_int_t)run->iterations,
        "imbalance", number(run->imbalance), "dispatcher", run->dispatcher,
        "transport", report->transport, "history", report->history->state,
        "spool",
        report->history->spool_path && report->history->state[0] == 's'
            ? json_string(report->history->spool_path)
            : json_null(),
        "phases", phases_json(report), "notes", notes_json(report), "layer",
        summary_json(report, &report->times.layer), "timing_overhead",
        number(report->times.overhead), "pipeline", pipeline_json(report));
}

static int write_failed(struct mf_error *err)
{
    return mf_error_set(err, MF_FAILED, "cannot write the result");
}

int mfr_report_json(const struct mfr_report *report, struct mf_error *err)
{
    json_t *json = report_json(report);
    int rc = 0;

    if (!json)
        return mf_error_set(err, MF_FAILED, "out of memory for the result");
    if (json_dumpf(json, stdout, JSON_INDENT(2)) || putchar('\n') == EOF ||
        fflush(stdout))
        rc = write_failed(err);
    json_decref(json);
    return rc;
}

/* A time in milliseconds, or a dash. */
static void cell(double seconds)
{
    if (isnan(seconds))
        printf(" %10s", "-");
    else
        printf(" %10.3f", 1e3 * seconds);
}

static void line(const char *name, const struct mfr_summary *measured,
    const double *predicted)
{
    printf("%-20s", name);
    for (int d = 0; d < MF_DIRECTIONS; d++) {
        cell(measured[d].max_s);
        cell(predicted[d]);
    }
    putchar('\n');
}

static void head(const struct mfr_report *report)
{
    const struct mfdb_run *run = report->run;

    printf("run %s: %s on %" PRId64 " ranks, %s\n", run->run_id, run->layout,
        run->ranks, run->model);
    if (report->note)
        printf("note: %s\n", report->note);
    printf("\n%-20s %10s %10s %10s %10s\n", "milliseconds", "forward",
        "predicted", "backward", "predicted");
}

static void foot(const struct mfr_report *report)
{
    const struct mfdb_run *run = report->run;

    printf("\nlayer, forward and backward, slowest rank, median of %" PRId64
           ": %.3f ms",
        run->iterations, 1e3 * run->layer_s);
    if (!isnan(run->predicted_s))
        printf(", predicted %.3f ms", 1e3 * run->predicted_s);
    if (run->ranks > 1)
        printf("\nover ranks %.3f to %.3f ms, slowest most often rank %" PRId64
               " on %s",
            1e3 * report->times.layer.min_s, 1e3 * report->times.layer.max_s,
            report->times.layer.slowest_rank,
            mfr_machine_node(report->nodes, report->times.layer.slowest_rank));
    if (report->pipeline)
        printf("\n%" PRId64 " micro batches through all stages, %" PRId64
               " layers each: %.3f ms",
            report->pipeline->batches, report->pipeline->layers,
            1e3 * report->pipeline->step_s);
    printf("\n%.0f tokens/s, imbalance (Gini) %.3f, history %s\n",
        run->tokens_per_s, run->imbalance, report->history->state);
}

int mfr_report_table(const struct mfr_report *report, struct mf_error *err)
{
    head(report);
    for (int phase = 0; phase < MF_PHASES; phase++)
        if (executed(report, phase))
            line(mf_phase_name((enum mf_phase)phase),
                report->times.phase[phase], report->cost->phase_s[phase]);
    foot(report);
    return fflush(stdout) || ferror(stdout) ? write_failed(err) : 0;
}
