/* SPDX-License-Identifier: BSD-3-Clause
 * Past runs as JSON: what is not known is null.
 */
#include "config.h"

#include "planner/cli/history.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

double mf_history_error(double predicted_s, double measured_s)
{
    return measured_s > 0 ? predicted_s / measured_s - 1 : (double)NAN;
}

json_t *mf_history_real(double value)
{
    return isfinite(value) ? json_real(value) : json_null();
}

static json_t *integer(int64_t value)
{
    return value < 0 ? json_null() : json_integer(value);
}

/* A file may hold bytes that are no UTF-8, which JSON can't carry. */
static json_t *text_of_length(const char *text, size_t length)
{
    json_t *json;
    char plain[2048];

    if (length == 0)
        return json_null();
    json = json_stringn(text, length);
    if (json || length >= sizeof plain)
        return json;
    for (size_t i = 0; i < length; i++)
        plain[i] = (char)((unsigned char)text[i] < 0x80 ? text[i] : '?');
    return json_stringn(plain, length);
}

json_t *mf_history_text(const char *value)
{
    return text_of_length(value, strlen(value));
}

/* Seconds since 1970 as 2025-12-01T00:00:00Z. */
static json_t *iso_time(double unix_s)
{
    const double year_10000_s = 253402300800.0;
    char line[32];
    struct tm utc;
    time_t seconds;

    if (!(unix_s >= 0 && unix_s < year_10000_s))
        return json_null();
    seconds = (time_t)unix_s;
    if (!gmtime_r(&seconds, &utc) ||
        !strftime(line, sizeof line, "%Y-%m-%dT%H:%M:%SZ", &utc))
        return json_null();
    return json_string(line);
}

/* A number, as `launch` gives it; what Slurm writes otherwise is a text. */
static json_t *job(const char *id)
{
    int64_t number;
    int read = 0;

    if (strlen(id) < 19 && strspn(id, "0123456789") == strlen(id) &&
        sscanf(id, "%" SCNd64 "%n", &number, &read) == 1 && !id[read])
        return json_integer(number);
    return mf_history_text(id);
}

static json_t *names(const char *list)
{
    json_t *array;

    if (!*list)
        return json_null();
    array = json_array();
    while (array && *list) {
        size_t length = strcspn(list, ",");

        if (length > 0)
            json_array_append_new(array, text_of_length(list, length));
        list += length + (list[length] == ',');
    }
    return array;
}

static json_t *shape_json(const struct mfdb_run *run)
{
    return json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:b}", "hidden",
        integer(run->hidden), "ffn", integer(run->ffn), "experts",
        integer(run->experts), "topk", integer(run->topk), "seq",
        integer(run->seq), "micro_batch", integer(run->micro_batch), "vocab",
        integer(run->vocab), "gated", run->gated);
}

static json_t *what_ran(const struct mfdb_run *run)
{
    return json_pack("{s:o, s:o, s:o, s:o, s:o, s:b, s:o, s:o, s:o, s:o}",
        "run_id", mf_history_text(run->run_id), "started_at",
        iso_time(run->started_at), "model", mf_history_text(run->model),
        "cluster", mf_history_text(run->cluster), "layout",
        mf_history_text(run->layout), "coupled", run->coupled, "order",
        mf_history_text(run->rank_order), "ranks", integer(run->ranks),
        "job_id", job(run->job_id), "status", mf_history_text(run->status));
}

static json_t *what_came_out(const struct mfdb_run *run)
{
    return json_pack("{s:o, s:o, s:o, s:o, s:o, s:o}", "layer_ms",
        mf_history_real(run->layer_s * 1e3), "tokens_per_s",
        mf_history_real(run->tokens_per_s), "predicted_ms",
        mf_history_real(run->predicted_s * 1e3), "error",
        mf_history_real(mf_history_error(run->predicted_s, run->layer_s)),
        "iterations", integer(run->iterations), "imbalance",
        mf_history_real(run->imbalance));
}

static json_t *where_it_ran(const struct mfdb_run *run)
{
    return json_pack(
        "{s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, "
        "s:o}",
        "ended_at", iso_time(run->ended_at), "nodes", integer(run->nodes),
        "node_list", names(run->node_list), "user", mf_history_text(run->user),
        "command", mf_history_text(run->command), "version",
        mf_history_text(run->version), "backend", mf_history_text(run->backend),
        "comm", mf_history_text(run->comm), "experts_kernel",
        mf_history_text(run->experts_kernel), "dispatcher",
        mf_history_text(run->dispatcher), "device",
        mf_history_text(run->device), "libraries",
        mf_history_text(run->libraries), "coefficients",
        mf_history_text(run->coefficients), "shape", shape_json(run));
}

json_t *mf_history_run_json(const struct mfdb_run *run)
{
    json_t *json = what_ran(run);
    json_t *result = what_came_out(run), *place = where_it_ran(run);

    if (json && (!result || !place || json_object_update(json, result) ||
                    json_object_update(json, place))) {
        json_decref(json);
        json = NULL;
    }
    json_decref(result);
    json_decref(place);
    return json;
}

/* How many runs stand behind this one, and how far they lie apart. */
static void spread_set(json_t *run, const struct mfdb_spread *spread)
{
    json_object_set_new(run, "runs", json_integer(spread->runs));
    json_object_set_new(
        run, "layer_ms_low", mf_history_real(spread->least_s * 1e3));
    json_object_set_new(
        run, "layer_ms_high", mf_history_real(spread->most_s * 1e3));
}

json_t *mf_history_runs_json(const struct mfdb_runs *runs)
{
    json_t *list = json_array();

    for (size_t i = 0; list && i < runs->count; i++) {
        json_t *run = mf_history_run_json(&runs->run[i]);

        if (run && runs->spread)
            spread_set(run, &runs->spread[i]);
        if (json_array_append_new(list, run)) {
            json_decref(list);
            return NULL;
        }
    }
    return json_pack("{s:o}", "runs", list);
}

json_t *mf_history_phases_json(const struct mfdb_phases *phases)
{
    json_t *list = json_array();

    for (size_t i = 0; list && i < phases->count; i++) {
        const struct mfdb_phase *p = &phases->phase[i];
        json_t *json =
            json_pack("{s:o, s:o, s:I, s:o, s:o, s:o, s:o, s:o, s:o, s:o}",
                "phase", mf_history_text(p->phase), "direction",
                mf_history_text(p->direction), "samples",
                (json_int_t)p->samples, "min_s", mf_history_real(p->min_s),
                "median_s", mf_history_real(p->median_s), "max_s",
                mf_history_real(p->max_s), "bytes", mf_history_real(p->bytes),
                "flops", mf_history_real(p->flops), "predicted_s",
                mf_history_real(p->predicted_s), "error",
                mf_history_real(mf_history_error(p->predicted_s, p->max_s)));

        if (json_array_append_new(list, json)) {
            json_decref(list);
            return NULL;
        }
    }
    return list;
}
