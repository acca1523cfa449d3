/* SPDX-License-Identifier: BSD-3-Clause
 * The members of a run and of a sample as a table, for whoever moves them from
 * or to another form by their columns' names.
 */
#ifndef MFDB_COLUMNS_H
#define MFDB_COLUMNS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "db/db.h"

enum mfdb_kind { MFDB_TEXT, MFDB_INTEGER, MFDB_REAL, MFDB_BOOL };

struct mfdb_field {
    const char *column;
    enum mfdb_kind kind;
    size_t offset, size;
    bool required;            /* not unknown */
    int64_t least;            /* numbers; there is no upper bound */
    const char *const *words; /* a text must be one of these; NULL: any */
};

/* The same list orders columns in SQL and values in a spool's record. */
struct mfdb_record {
    const char *what;
    const struct mfdb_field *field;
    size_t fields;
};

extern const struct mfdb_record mfdb_run_record;    /* of struct mfdb_run */
extern const struct mfdb_record mfdb_sample_record; /* of mfdb_sample */

/* Make all members of VALUE unknown. */
void mfdb_record_clear(const struct mfdb_record *record, void *value);
/* -1 when a member of VALUE breaks its column's rule. */
int mfdb_record_check(const struct mfdb_record *record, const void *value,
    char err[MFDB_ERROR_TEXT]);

#endif
