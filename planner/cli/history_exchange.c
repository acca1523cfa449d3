/* SPDX-License-Identifier: BSD-3-Clause
 * moefold history export and import.
 */
#include "config.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "planner/cli/database.h"
#include "planner/cli/history.h"
#include "planner/cli/history_columns.h"
#include "planner/cli/history_nccl.h"
#include "planner/cli/history_verbs.h"

/* ---- export ---- */

static json_t *samples_json(const struct mfdb_samples *samples)
{
    json_t *list = json_array();

    for (size_t i = 0; i < samples->count; i++)
        json_array_append_new(
            list, mf_columns_json(&mfdb_sample_record, &samples->sample[i]));
    return list;
}

/* The keys of `history list` for those who read it, and all columns for those
 * who take it in again.
 */
static json_t *run_json(
    const struct mfdb_run *run, const struct mfdb_samples *samples)
{
    json_t *json = mf_history_run_json(run);

    if (json_object_set_new(
            json, "columns", mf_columns_json(&mfdb_run_record, run)) ||
        json_object_set_new(json, "samples", samples_json(samples))) {
        json_decref(json);
        return NULL;
    }
    return json;
}

static void samples_csv(
    const struct mfdb_run *run, const struct mfdb_samples *samples, FILE *file)
{
    for (size_t i = 0; i < samples->count; i++) {
        fprintf(file, "%s,%zu,", run->run_id, i);
        mf_columns_csv(&mfdb_sample_record, &samples->sample[i], file);
        fputs("\r\n", file);
    }
}

enum form { FORM_JSON, FORM_RUNS, FORM_SAMPLES };

static int export_run(mfdb *db, const struct mfdb_run *run, enum form form,
    bool first, FILE *file, struct mf_error *err)
{
    struct mfdb_samples samples = {0};
    char text[MFDB_ERROR_TEXT];
    json_t *json;
    int rc = 0;

    if (form == FORM_RUNS) {
        mf_columns_csv(&mfdb_run_record, run, file);
        fputs("\r\n", file);
        return 0;
    }
    if (mfdb_samples_of(db, run->run_id, &samples, text))
        return mf_error_set(err, MF_FAILED, "%s", text);
    if (form == FORM_SAMPLES) {
        samples_csv(run, &samples, file);
    } else {
        json = run_json(run, &samples);
        fputs(first ? "\n" : ",\n", file);
        if (!json || json_dumpf(json, file, JSON_COMPACT))
            rc = mf_error_set(err, MF_FAILED,
                "no memory, or it can't be "
                "written");
        json_decref(json);
    }
    mfdb_samples_free(&samples);
    return rc;
}

static int export_runs(mfdb *db, const struct mfdb_runs *runs, enum form form,
    FILE *file, struct mf_error *err)
{
    if (form == FORM_JSON)
        fputs("{\"moefold_history\": 1, \"runs\": [", file);
    else if (form == FORM_SAMPLES)
        fputs("run_id,sequence,", file);
    if (form != FORM_JSON) {
        mf_columns_csv_head(
            form == FORM_RUNS ? &mfdb_run_record : &mfdb_sample_record, file);
        fputs("\r\n", file);
    }
    for (size_t i = 0; i < runs->count; i++)
        if (export_run(db, &runs->run[i], form, i == 0, file, err))
            return -1;
    if (form == FORM_JSON)
        fputs("\n]}\n", file);
    if (fflush(file) || ferror(file))
        return mf_error_set(err, MF_FAILED, "%s", strerror(errno));
    return 0;
}

int mf_history_export(const struct mf_cli *cli, struct mf_error *err)
{
    const enum form form = !mf_cli_has(cli, "csv")      ? FORM_JSON
                           : mf_cli_has(cli, "samples") ? FORM_SAMPLES
                                                        : FORM_RUNS;
    char layout[MF_LAYOUT_TEXT], text[MFDB_ERROR_TEXT];
    struct mfdb_filter filter;
    struct mfdb_runs runs = {0};
    mfdb *db = NULL;
    int rc = 0;

    if (mf_cli_has(cli, "csv") && mf_cli_json(cli))
        return mf_error_set(err, MF_INVALID, "--csv or --json, not both");
    if (mf_history_filter(cli, &filter, layout, err) ||
        mf_database_query(cli, &db, err))
        return -1;
    if (db && mfdb_list(db, &filter, &runs, text))
        rc = mf_error_set(err, MF_FAILED, "%s", text);
    if (rc == 0)
        rc = export_runs(db, &runs, form, stdout, err);
    mfdb_runs_free(&runs);
    mfdb_close(db);
    return rc;
}

/* ---- import ---- */

struct taken {
    int64_t runs, samples;
};

static int put_run(mfdb *db, const struct mfdb_run *run, struct taken *taken,
    struct mf_error *err)
{
    char text[MFDB_ERROR_TEXT];

    if (mfdb_put_run(db, run, text))
        return mf_error_set(err, MF_INVALID, "%s", text);
    taken->runs++;
    return 0;
}

static int put_sample(mfdb *db, const char *run_id, int64_t sequence,
    const struct mfdb_sample *sample, struct taken *taken, struct mf_error *err)
{
    char text[MFDB_ERROR_TEXT];

    if (mfdb_put_sample(db, run_id, sequence, sample, text))
        return mf_error_set(err, MF_INVALID, "%s", text);
    taken->samples++;
    return 0;
}

static int import_run(
    mfdb *db, const json_t *json, struct taken *taken, struct mf_error *err)
{
    const json_t *samples = json_object_get(json, "samples"), *item;
    struct mfdb_run run;
    size_t i;

    if (mf_columns_from_json(
            &mfdb_run_record, json_object_get(json, "columns"), &run, err) ||
        put_run(db, &run, taken, err))
        return -1;
    json_array_foreach(samples, i, item)
    {
        struct mfdb_sample sample;

        if (mf_columns_from_json(&mfdb_sample_record, item, &sample, err) ||
            put_sample(db, run.run_id, (int64_t)i, &sample, taken, err))
            return mf_error_prefix(err, "sample %zu", i);
    }
    return 0;
}

static int import_json(
    mfdb *db, FILE *file, struct taken *taken, struct mf_error *err)
{
    json_error_t where;
    json_t *json = json_loadf(file, 0, &where);
    const json_t *runs = json_object_get(json, "runs"), *item;
    size_t i;
    int rc = 0;

    if (!json)
        return mf_error_set(
            err, MF_INVALID, "line %d: %.200s", where.line, where.text);
    if (!json_is_array(runs))
        rc = mf_error_set(err, MF_INVALID,
            "it has no runs; history export writes such a file");
    for (i = 0; rc == 0 && i < json_array_size(runs); i++) {
        item = json_array_get(runs, i);
        rc = import_run(db, item, taken, err);
        if (rc)
            mf_error_prefix(err, "run %zu", i);
    }
    json_decref(json);
    return rc;
}

static int import_line(mfdb *db, const struct mfdb_record *record,
    const struct mf_csv_head *head, const struct mf_csv *csv,
    struct taken *taken, struct mf_error *err)
{
    struct mfdb_sample sample;
    struct mfdb_run run;
    int64_t sequence;

    if (record == &mfdb_run_record)
        return mf_columns_from_csv(record, head, csv, &run, err) ||
                       put_run(db, &run, taken, err)
                   ? -1
                   : 0;
    if (mf_columns_from_csv(record, head, csv, &sample, err) ||
        mf_csv_integer(csv, head->sequence, "sequence", &sequence, err))
        return -1;
    return put_sample(
        db, csv->cell[head->run_id], sequence, &sample, taken, err);
}

static int import_csv(
    mfdb *db, FILE *file, struct taken *taken, struct mf_error *err)
{
    const struct mfdb_record *record = &mfdb_run_record;
    struct mf_csv_head head = {0};
    struct mf_csv csv = {0};
    int rc = mf_csv_next(&csv, file, err);

    for (size_t i = 0; rc > 0 && i < csv.cells; i++)
        if (!strcmp(csv.cell[i], "sequence"))
            record = &mfdb_sample_record;
    if (rc > 0 && mf_csv_head_read(&csv, record, &head, err))
        rc = -1;
    if (rc > 0 && record == &mfdb_sample_record && head.run_id < 0)
        rc = mf_error_set(err, MF_INVALID, "samples without a run_id");
    while (rc > 0 && (rc = mf_csv_next(&csv, file, err)) > 0)
        if (import_line(db, record, &head, &csv, taken, err)) {
            mf_error_prefix(err, "line %" PRId64, csv.line);
            rc = -1;
        }
    free(head.field);
    mf_csv_free(&csv);
    return rc;
}

static int import_text(
    const struct mf_cli *cli, FILE *file, bool json, struct mf_error *err)
{
    const char *path = mf_cli_operand(cli, 1);
    char text[MFDB_ERROR_TEXT];
    struct taken taken = {0};
    mfdb *db = mf_database_update(cli, err);
    int rc;

    if (!db)
        return -1;
    if (mfdb_begin(db, text)) {
        mfdb_close(db);
        return mf_error_set(err, MF_FAILED, "%s", text);
    }
    rc = json ? import_json(db, file, &taken, err)
              : import_csv(db, file, &taken, err);
    if (rc)
        mf_error_prefix(err, "%s", path);
    /* All of the file or nothing of it. */
    if (mfdb_end(db, &rc, text) && !err->text[0])
        mf_error_set(err, MF_FAILED, "%s", text);
    mfdb_close(db);
    if (rc)
        return -1;
    if (mf_cli_json(cli))
        return mf_cli_print_json(
            json_pack("{s:s, s:I, s:I}", "imported", path, "runs",
                (json_int_t)taken.runs, "samples", (json_int_t)taken.samples),
            err);
    printf("%" PRId64 " runs, %" PRId64 " samples from %s\n", taken.runs,
        taken.samples, path);
    return 0;
}

/* Merged spools are removed, as those of the spool folder are. */
static int import_spool(const struct mf_cli *cli, struct mf_error *err)
{
    const char *path = mf_cli_operand(cli, 1);
    char text[MFDB_ERROR_TEXT];
    mfdb *db = mf_database_update(cli, err);
    int rc;

    if (!db)
        return -1;
    rc = mfdb_merge(db, path, text);
    mf_database_warn(db, "history");
    mfdb_close(db);
    if (rc)
        return mf_error_set(err, rc == -2 ? MF_INVALID : MF_FAILED, "%s", text);
    if (mf_cli_json(cli))
        return mf_cli_print_json(json_pack("{s:s}", "merged", path), err);
    printf("merged %s\n", path);
    return 0;
}

/* The first byte that is no blank tells what a file is. */
static int first_byte(FILE *file)
{
    int c;

    do
        c = getc(file);
    while (c != EOF && isspace(c));
    rewind(file);
    return c;
}

int mf_history_import(const struct mf_cli *cli, struct mf_error *err)
{
    const char *path = mf_cli_operand(cli, 1);
    char word[9] = "";
    FILE *file;
    int c, rc;

    if (mf_cli_operands(cli) != 2)
        return mf_error_set(err, MF_INVALID,
            "import wants one FILE: a spool, an export (JSON, CSV), or what "
            "nccl-tests printed");
    file = fopen(path, "re");
    if (!file)
        return mf_error_set(err, MF_INVALID, "%s: %s", path, strerror(errno));
    c = first_byte(file);
    if (fgets(word, sizeof word, file))
        word[strcspn(word, "\r\n")] = '\0';
    rewind(file);
    if (c == '#')
        rc = mf_history_import_nccl(cli, file, err);
    else if (c == '{' || !strncmp(word, "run_id", 6))
        rc = import_text(cli, file, c == '{', err);
    else
        rc = import_spool(cli, err);
    if (fclose(file) && rc == 0)
        rc = mf_error_set(err, MF_FAILED, "%s: %s", path, strerror(errno));
    return rc;
}
