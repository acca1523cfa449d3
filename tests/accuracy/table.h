/* SPDX-License-Identifier: BSD-3-Clause
 * CSV files as tables of texts.
 */
#ifndef MF_ACCURACY_TABLE_H
#define MF_ACCURACY_TABLE_H

#include <stdbool.h>
#include <stddef.h>

#include "planner/layout/error.h"

/* Print a message (printf style) and end the program. */
void table_fail(const char *fmt, ...) MF_PRINTF(1, 2);

/* A table of texts, as a CSV file has it. */
struct table {
    char *text;
    char **cell; /* [rows][columns] */
    size_t rows, columns;
    char **head; /* [columns] */
};

/* Ends the program with a message when FILE can't be read. */
void table_read(struct table *table, const char *folder, const char *file);
const char *table_at(const struct table *table, size_t row, const char *head);
/* NAN when the cell is empty or no number. */
double table_number(const struct table *table, size_t row, const char *head);
void table_free(struct table *table);

#endif
