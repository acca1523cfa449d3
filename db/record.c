/* SPDX-License-Identifier: BSD-3-Clause
 * The columns of a run and of a sample, and moving them in and out of SQL.
 */
#include <math.h>
#include <string.h>

#include "db/internal.h"

#define COLUMN(type, member, column, kind, ...)                                \
    {                                                                          \
        column, kind, offsetof(type, member), sizeof(((type *)0)->member),     \
            __VA_ARGS__                                                        \
    }
#define RUN(member, kind, ...)                                                 \
    COLUMN(struct mfdb_run, member, #member, kind, __VA_ARGS__)
#define RUN_AS(member, column, kind, ...)                                      \
    COLUMN(struct mfdb_run, member, column, kind, __VA_ARGS__)
#define SAMPLE(member, kind, ...)                                              \
    COLUMN(struct mfdb_sample, member, #member, kind, __VA_ARGS__)

static const char *const statuses[] = {
    "running", "done", "failed", "lost", NULL};
static const char *const directions[] = {"forward", "backward", NULL};

static const struct mfdb_field run_field[] = {
    RUN(run_id, MFDB_TEXT, true, 0, NULL),
    RUN_AS(started_at, "started_unix_s", MFDB_REAL, true, 0, NULL),
    RUN_AS(ended_at, "ended_unix_s", MFDB_REAL, false, 0, NULL),
    RUN(status, MFDB_TEXT, true, 0, statuses),
    RUN(version, MFDB_TEXT, false, 0, NULL),
    RUN_AS(user, "user_name", MFDB_TEXT, false, 0, NULL),
    RUN(command, MFDB_TEXT, false, 0, NULL),
    RUN(model, MFDB_TEXT, false, 0, NULL),
    RUN(cluster, MFDB_TEXT, false, 0, NULL),
    RUN(layout, MFDB_TEXT, false, 0, NULL),
    RUN(rank_order, MFDB_TEXT, false, 0, NULL),
    RUN(coupled, MFDB_BOOL, true, 0, NULL),
    RUN(ranks, MFDB_INTEGER, false, 1, NULL),
    RUN(nodes, MFDB_INTEGER, false, 1, NULL),
    RUN(node_list, MFDB_TEXT, false, 0, NULL),
    RUN(job_id, MFDB_TEXT, false, 0, NULL),
    RUN(backend, MFDB_TEXT, false, 0, NULL),
    RUN(comm, MFDB_TEXT, false, 0, NULL),
    RUN(experts_kernel, MFDB_TEXT, false, 0, NULL),
    RUN(dispatcher, MFDB_TEXT, false, 0, NULL),
    RUN(device, MFDB_TEXT, false, 0, NULL),
    RUN(libraries, MFDB_TEXT, false, 0, NULL),
    RUN(hidden, MFDB_INTEGER, false, 0, NULL),
    RUN(ffn, MFDB_INTEGER, false, 0, NULL),
    RUN(experts, MFDB_INTEGER, false, 0, NULL),
    RUN(topk, MFDB_INTEGER, false, 0, NULL),
    RUN_AS(seq, "seq_tokens", MFDB_INTEGER, false, 0, NULL),
    RUN_AS(micro_batch, "micro_batch_sequences", MFDB_INTEGER, false, 0, NULL),
    RUN(vocab, MFDB_INTEGER, false, 0, NULL),
    RUN(gated, MFDB_BOOL, true, 0, NULL),
    RUN_AS(imbalance, "imbalance_gini", MFDB_REAL, false, 0, NULL),
    RUN(iterations, MFDB_INTEGER, false, 0, NULL),
    RUN(layer_s, MFDB_REAL, false, 0, NULL),
    RUN(tokens_per_s, MFDB_REAL, false, 0, NULL),
    RUN(predicted_s, MFDB_REAL, false, 0, NULL),
    RUN(coefficients, MFDB_TEXT, false, 0, NULL),
};

static const struct mfdb_field sample_field[] = {
    SAMPLE(iteration, MFDB_INTEGER, true, 0, NULL),
    SAMPLE(phase, MFDB_TEXT, true, 0, NULL),
    SAMPLE(direction, MFDB_TEXT, true, 0, directions),
    SAMPLE(min_s, MFDB_REAL, false, 0, NULL),
    SAMPLE(median_s, MFDB_REAL, false, 0, NULL),
    SAMPLE(max_s, MFDB_REAL, false, 0, NULL),
    SAMPLE(slowest_rank, MFDB_INTEGER, false, 0, NULL),
    SAMPLE(bytes, MFDB_REAL, false, 0, NULL),
    SAMPLE(flops, MFDB_REAL, false, 0, NULL),
    SAMPLE(predicted_s, MFDB_REAL, false, 0, NULL),
};

const struct mfdb_record mfdb_run_record = {
    "run", run_field, sizeof run_field / sizeof run_field[0]};
const struct mfdb_record mfdb_sample_record = {
    "sample", sample_field, sizeof sample_field / sizeof sample_field[0]};

static const void *member(const struct mfdb_field *field, const void *value)
{
    return (const char *)value + field->offset;
}

static int check_text(const struct mfdb_record *record,
    const struct mfdb_field *f, const char *text, char *err)
{
    if (!memchr(text, '\0', f->size))
        return mfdb_error(err, "%s: %s has no end", record->what, f->column);
    if (f->required && !*text)
        return mfdb_error(err, "%s: %s is empty", record->what, f->column);
    if (!f->words)
        return 0;
    for (const char *const *word = f->words; *word; word++)
        if (strcmp(*word, text) == 0)
            return 0;
    return mfdb_error(
        err, "%s: %s can't be '%s'", record->what, f->column, text);
}

static int check_real(const struct mfdb_record *record,
    const struct mfdb_field *f, double real, char *err)
{
    if (isnan(real) && !f->required)
        return 0;
    if (isfinite(real) && real >= (double)f->least)
        return 0;
    return mfdb_error(err, "%s: %s can't be %g", record->what, f->column, real);
}

static int check_integer(const struct mfdb_record *record,
    const struct mfdb_field *f, int64_t integer, char *err)
{
    if (integer >= f->least || (integer == -1 && !f->required))
        return 0;
    return mfdb_error(err, "%s: %s can't be %lld", record->what, f->column,
        (long long)integer);
}

void mfdb_record_clear(const struct mfdb_record *record, void *value)
{
    for (size_t i = 0; i < record->fields; i++) {
        const struct mfdb_field *f = &record->field[i];
        void *at = (char *)value + f->offset;

        if (f->kind == MFDB_TEXT)
            memset(at, 0, f->size);
        else if (f->kind == MFDB_BOOL)
            *(bool *)at = false;
        else if (f->kind == MFDB_INTEGER)
            *(int64_t *)at = -1;
        else
            *(double *)at = (double)NAN;
    }
}

int mfdb_record_check(const struct mfdb_record *record, const void *value,
    char err[MFDB_ERROR_TEXT])
{
    for (size_t i = 0; i < record->fields; i++) {
        const struct mfdb_field *f = &record->field[i];
        const void *at = member(f, value);
        int rc = 0;

        if (f->kind == MFDB_TEXT)
            rc = check_text(record, f, at, err);
        else if (f->kind == MFDB_REAL)
            rc = check_real(record, f, *(const double *)at, err);
        else if (f->kind == MFDB_INTEGER)
            rc = check_integer(record, f, *(const int64_t *)at, err);
        if (rc < 0)
            return -1;
    }
    return 0;
}

static int bind(
    const struct mfdb_field *f, const void *at, sqlite3_stmt *s, int place)
{
    if (f->kind == MFDB_TEXT)
        return sqlite3_bind_text(s, place, at, -1, SQLITE_STATIC);
    if (f->kind == MFDB_BOOL)
        return sqlite3_bind_int(s, place, *(const bool *)at);
    if (f->kind == MFDB_INTEGER)
        return *(const int64_t *)at == -1
                   ? sqlite3_bind_null(s, place)
                   : sqlite3_bind_int64(s, place, *(const int64_t *)at);
    return isnan(*(const double *)at)
               ? sqlite3_bind_null(s, place)
               : sqlite3_bind_double(s, place, *(const double *)at);
}

int mfdb_record_bind(const struct mfdb_record *record, const void *value,
    sqlite3_stmt *statement, int first)
{
    for (size_t i = 0; i < record->fields; i++) {
        const struct mfdb_field *f = &record->field[i];
        int rc = bind(f, member(f, value), statement, first + (int)i);

        if (rc != SQLITE_OK)
            return -1;
    }
    return 0;
}

static void read_text(sqlite3_stmt *s, int column, char *text, size_t size)
{
    const void *from = sqlite3_column_text(s, column);
    size_t bytes = (size_t)sqlite3_column_bytes(s, column);

    if (!from)
        bytes = 0;
    if (bytes > size - 1)
        bytes = size - 1;
    if (bytes > 0)
        memcpy(text, from, bytes);
    text[bytes] = '\0';
}

static void read_member(
    const struct mfdb_field *f, sqlite3_stmt *s, int column, void *at)
{
    bool null = sqlite3_column_type(s, column) == SQLITE_NULL;

    switch (f->kind) {
    case MFDB_TEXT:
        read_text(s, column, at, f->size);
        break;
    case MFDB_BOOL:
        *(bool *)at = sqlite3_column_int(s, column) != 0;
        break;
    case MFDB_INTEGER:
        *(int64_t *)at = null ? -1 : sqlite3_column_int64(s, column);
        break;
    case MFDB_REAL:
        *(double *)at = null ? (double)NAN : sqlite3_column_double(s, column);
        break;
    }
}

void mfdb_record_read(const struct mfdb_record *record, sqlite3_stmt *statement,
    int first, void *value)
{
    for (size_t i = 0; i < record->fields; i++) {
        const struct mfdb_field *f = &record->field[i];

        read_member(f, statement, first + (int)i, (char *)value + f->offset);
    }
}

void mfdb_record_columns(
    const struct mfdb_record *record, sqlite3_str *text, bool upsert)
{
    for (size_t i = 0; i < record->fields; i++) {
        const char *column = record->field[i].column;

        sqlite3_str_appendf(text, "%s%s", i ? ", " : "", column);
        if (upsert)
            sqlite3_str_appendf(text, " = excluded.%s", column);
    }
}
