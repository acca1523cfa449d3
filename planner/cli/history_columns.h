/* SPDX-License-Identifier: BSD-3-Clause
 * Runs and samples as JSON objects and as lines of CSV (RFC 4180), by the names
 * of their columns in the database. What is not known is null, or empty.
 */
#ifndef MF_HISTORY_COLUMNS_H
#define MF_HISTORY_COLUMNS_H

#include <jansson.h>
#include <stdio.h>

#include "db/columns.h"
#include "planner/layout/error.h"

/* NULL: no memory. Bytes that are no UTF-8 become '?'. */
json_t *mf_columns_json(const struct mfdb_record *record, const void *value);
/* All members of VALUE; what JSON leaves out is unknown. MF_INVALID names the
 * column that is of another type, out of its bounds or not known here.
 */
int mf_columns_from_json(const struct mfdb_record *record, const json_t *json,
    void *value, struct mf_error *err);

/* "a,b,c" without an end of line. */
void mf_columns_csv_head(const struct mfdb_record *record, FILE *file);
void mf_columns_csv(
    const struct mfdb_record *record, const void *value, FILE *file);

/* One line of CSV, its quotes undone; cells are NUL-terminated. */
struct mf_csv {
    char *text;
    size_t room;
    char **cell;
    size_t cells, cell_room;
    int64_t line; /* where it begins, from 1 */
    int64_t next;
};

/* 1 a line, 0 no more, -1 MF_INVALID: a quote without its end. */
int mf_csv_next(struct mf_csv *csv, FILE *file, struct mf_error *err);
void mf_csv_free(struct mf_csv *csv);
/* Which field of a record each cell is. */
struct mf_csv_head {
    int *field; /* [cells]; -1: none of the record */
    size_t cells;
    int run_id, sequence; /* cells that samples have beside, -1: none */
};

/* From the first line; free FIELD. MF_INVALID names a column that is not known
 * or stands twice.
 */
int mf_csv_head_read(const struct mf_csv *csv, const struct mfdb_record *record,
    struct mf_csv_head *head, struct mf_error *err);
/* Cell CELL (-1: there is none) as a count. */
int mf_csv_integer(const struct mf_csv *csv, int cell, const char *what,
    int64_t *value, struct mf_error *err);
int mf_columns_from_csv(const struct mfdb_record *record,
    const struct mf_csv_head *head, const struct mf_csv *csv, void *value,
    struct mf_error *err);

#endif
