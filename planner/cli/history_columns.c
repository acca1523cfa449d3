/* SPDX-License-Identifier: BSD-3-Clause
 * See history_columns.h.
 */
#include "config.h"

#include "planner/cli/history_columns.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "planner/cli/history.h"
#include "planner/layout/number.h"

static const void *member(const struct mfdb_field *f, const void *value)
{
    return (const char *)value + f->offset;
}

static json_t *field_json(const struct mfdb_field *f, const void *at)
{
    switch (f->kind) {
    case MFDB_TEXT:
        return mf_history_text(at);
    case MFDB_BOOL:
        return json_boolean(*(const bool *)at);
    case MFDB_INTEGER:
        return *(const int64_t *)at == -1 ? json_null()
                                          : json_integer(*(const int64_t *)at);
    case MFDB_REAL:
        break;
    }
    return isfinite(*(const double *)at) ? json_real(*(const double *)at)
                                         : json_null();
}

json_t *mf_columns_json(const struct mfdb_record *record, const void *value)
{
    json_t *json = json_object();

    for (size_t i = 0; json && i < record->fields; i++) {
        const struct mfdb_field *f = &record->field[i];

        if (json_object_set_new(
                json, f->column, field_json(f, member(f, value)))) {
            json_decref(json);
            return NULL;
        }
    }
    return json;
}

static int text_set(const struct mfdb_field *f, const char *text, void *at,
    struct mf_error *err)
{
    const size_t length = strlen(text);

    if (length >= f->size)
        return mf_error_set(err, MF_INVALID, "%s: %zu bytes, more than %zu",
            f->column, length, f->size - 1);
    memcpy(at, text, length + 1);
    return 0;
}

static int field_from_json(const struct mfdb_field *f, const json_t *json,
    void *at, struct mf_error *err)
{
    if (json_is_null(json))
        return 0;
    if (f->kind == MFDB_TEXT && json_is_string(json))
        return text_set(f, json_string_value(json), at, err);
    if (f->kind == MFDB_BOOL && json_is_boolean(json))
        *(bool *)at = json_is_true(json);
    else if (f->kind == MFDB_INTEGER && json_is_integer(json))
        *(int64_t *)at = json_integer_value(json);
    else if (f->kind == MFDB_REAL && json_is_number(json))
        *(double *)at = json_number_value(json);
    else
        return mf_error_set(
            err, MF_INVALID, "%s: not of the type it should be", f->column);
    return 0;
}

static int check(
    const struct mfdb_record *record, const void *value, struct mf_error *err)
{
    char text[MFDB_ERROR_TEXT];

    if (mfdb_record_check(record, value, text))
        return mf_error_set(err, MF_INVALID, "%s", text);
    return 0;
}

static int field_find(const struct mfdb_record *record, const char *name)
{
    for (size_t i = 0; i < record->fields; i++)
        if (!strcmp(record->field[i].column, name))
            return (int)i;
    return -1;
}

int mf_columns_from_json(const struct mfdb_record *record, const json_t *json,
    void *value, struct mf_error *err)
{
    const char *key;
    json_t *item;

    mfdb_record_clear(record, value);
    if (!json_is_object(json))
        return mf_error_set(err, MF_INVALID, "%s: not an object", record->what);
    /* jansson takes it without const and leaves it as it is. */
    json_object_foreach((json_t *)(uintptr_t)json, key, item)
    {
        const int i = field_find(record, key);

        if (i < 0)
            return mf_error_set(err, MF_INVALID,
                "%s: '%.40s' is no column of it", record->what, key);
        if (field_from_json(&record->field[i], item,
                (char *)value + record->field[i].offset, err))
            return -1;
    }
    return check(record, value, err);
}

void mf_columns_csv_head(const struct mfdb_record *record, FILE *file)
{
    for (size_t i = 0; i < record->fields; i++)
        fprintf(file, "%s%s", i ? "," : "", record->field[i].column);
}

static void csv_text(const char *text, FILE *file)
{
    if (!text[strcspn(text, ",\"\r\n")]) {
        fputs(text, file);
        return;
    }
    putc('"', file);
    for (; *text; text++) {
        if (*text == '"')
            putc('"', file);
        putc(*text, file);
    }
    putc('"', file);
}

void mf_columns_csv(
    const struct mfdb_record *record, const void *value, FILE *file)
{
    for (size_t i = 0; i < record->fields; i++) {
        const struct mfdb_field *f = &record->field[i];
        const void *at = member(f, value);

        if (i)
            putc(',', file);
        if (f->kind == MFDB_TEXT)
            csv_text(at, file);
        else if (f->kind == MFDB_BOOL)
            putc(*(const bool *)at ? '1' : '0', file);
        else if (f->kind == MFDB_INTEGER && *(const int64_t *)at != -1)
            fprintf(file, "%" PRId64, *(const int64_t *)at);
        else if (f->kind == MFDB_REAL && isfinite(*(const double *)at))
            fprintf(file, "%.17g", *(const double *)at);
    }
}

/* ---- reading CSV ---- */

static int csv_put(struct mf_csv *csv, size_t at, int c, struct mf_error *err)
{
    char *text;

    if (at < csv->room) {
        csv->text[at] = (char)c;
        return 0;
    }
    text = reallocarray(csv->text, csv->room * 2 + 256, 1);
    if (!text)
        return mf_error_set(err, MF_FAILED, "no memory");
    /* Cells point into it. */
    for (size_t i = 0; i < csv->cells; i++)
        csv->cell[i] = text + (csv->cell[i] - csv->text);
    csv->text = text;
    csv->room = csv->room * 2 + 256;
    csv->text[at] = (char)c;
    return 0;
}

static int csv_cell(struct mf_csv *csv, size_t at, struct mf_error *err)
{
    char **cell;

    if (csv->cells == csv->cell_room) {
        cell =
            reallocarray(csv->cell, csv->cell_room * 2 + 16, sizeof *csv->cell);
        if (!cell)
            return mf_error_set(err, MF_FAILED, "no memory");
        csv->cell = cell;
        csv->cell_room = csv->cell_room * 2 + 16;
    }
    csv->cell[csv->cells++] = csv->text + at;
    return 0;
}

/* One cell from AT on; what ended it, or -2. */
static int csv_read_cell(
    struct mf_csv *csv, FILE *file, size_t *at, struct mf_error *err)
{
    const size_t start = *at;
    int c = getc(file), quoted = c == '"';

    if (quoted)
        c = getc(file);
    for (;; c = getc(file)) {
        if (quoted && c == '"') {
            c = getc(file);
            quoted = c == '"';
        } else if (quoted && c == EOF)
            return mf_error_set(err, MF_INVALID,
                       "line %" PRId64 ": a quote without its end", csv->line),
                   -2;
        if (!quoted && c == '\r')
            continue;
        if (!quoted && (c == ',' || c == '\n' || c == EOF))
            break;
        csv->next += c == '\n';
        if (csv_put(csv, (*at)++, c, err))
            return -2;
    }
    if (csv_put(csv, (*at)++, '\0', err) || csv_cell(csv, start, err))
        return -2;
    return c;
}

int mf_csv_next(struct mf_csv *csv, FILE *file, struct mf_error *err)
{
    size_t at = 0;
    int end;

    csv->line = csv->next ? csv->next : 1;
    csv->next = csv->line;
    csv->cells = 0;
    do {
        end = csv_read_cell(csv, file, &at, err);
        if (end == -2)
            return -1;
    } while (end == ',');
    csv->next++;
    if (ferror(file))
        return mf_error_set(err, MF_FAILED, "it can't be read");
    /* An empty last line is none. */
    return end != EOF || csv->cells > 1 || csv->cell[0][0];
}

void mf_csv_free(struct mf_csv *csv)
{
    free(csv->text);
    free(csv->cell);
    *csv = (struct mf_csv){0};
}

int mf_csv_head_read(const struct mf_csv *csv, const struct mfdb_record *record,
    struct mf_csv_head *head, struct mf_error *err)
{
    *head = (struct mf_csv_head){
        .field = calloc(csv->cells + 1, sizeof *head->field),
        .cells = csv->cells,
        .run_id = -1,
        .sequence = -1,
    };
    if (!head->field)
        return mf_error_set(err, MF_FAILED, "no memory");
    for (size_t i = 0; i < csv->cells; i++) {
        const char *name = csv->cell[i];

        head->field[i] = field_find(record, name);
        for (size_t k = 0; k < i; k++)
            if (!strcmp(csv->cell[k], name))
                return mf_error_set(
                    err, MF_INVALID, "column '%.40s' stands twice", name);
        if (head->field[i] >= 0)
            continue;
        if (record == &mfdb_sample_record && !strcmp(name, "run_id"))
            head->run_id = (int)i;
        else if (record == &mfdb_sample_record && !strcmp(name, "sequence"))
            head->sequence = (int)i;
        else
            return mf_error_set(err, MF_INVALID,
                "column '%.40s' is none of a %s", name, record->what);
    }
    return 0;
}

/* Exactly what was written; the programs keep the "C" locale. */
static int real_from_text(const struct mfdb_field *f, const char *text,
    double *value, struct mf_error *err)
{
    char *end;

    *value = strtod(text, &end);
    if (text[strspn(text, "0123456789.eE+-")] || *end || !isfinite(*value))
        return mf_error_set(
            err, MF_INVALID, "%s: '%.40s' is no number", f->column, text);
    return 0;
}

static int field_from_text(const struct mfdb_field *f, const char *text,
    void *at, struct mf_error *err)
{
    int64_t integer;

    if (!*text)
        return 0;
    switch (f->kind) {
    case MFDB_TEXT:
        return text_set(f, text, at, err);
    case MFDB_REAL:
        return real_from_text(f, text, at, err);
    case MFDB_BOOL:
        if (mf_number_parse(text, f->column, 0, 1, &integer, err))
            return -1;
        *(bool *)at = integer == 1;
        return 0;
    case MFDB_INTEGER:
        break;
    }
    return mf_number_parse(text, f->column, -1, INT64_MAX, at, err);
}

int mf_csv_integer(const struct mf_csv *csv, int cell, const char *what,
    int64_t *value, struct mf_error *err)
{
    if (cell < 0 || (size_t)cell >= csv->cells)
        return mf_error_set(err, MF_INVALID, "no %s", what);
    return mf_number_parse(csv->cell[cell], what, 0, INT64_MAX, value, err);
}

int mf_columns_from_csv(const struct mfdb_record *record,
    const struct mf_csv_head *head, const struct mf_csv *csv, void *value,
    struct mf_error *err)
{
    mfdb_record_clear(record, value);
    if (csv->cells != head->cells)
        return mf_error_set(err, MF_INVALID, "%zu cells, and the head has %zu",
            csv->cells, head->cells);
    for (size_t i = 0; i < csv->cells; i++) {
        const struct mfdb_field *f;

        if (head->field[i] < 0)
            continue;
        f = &record->field[head->field[i]];
        if (field_from_text(f, csv->cell[i], (char *)value + f->offset, err))
            return -1;
    }
    return check(record, value, err);
}
