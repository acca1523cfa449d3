/* SPDX-License-Identifier: BSD-3-Clause
 * What the tests of libmoefold-db share: a folder, runs with known members,
 * files as bytes.
 */
#ifndef TEST_DB_HELP_H
#define TEST_DB_HELP_H

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include <sqlite3.h>

#include "db/db.h"

struct bed {
    char folder[256]; /* of this test alone */
    char path[300];   /* a database that is not there yet */
    char spools[310]; /* its spool folder */
    char err[MFDB_ERROR_TEXT];
};

struct bytes {
    unsigned char *byte;
    size_t size;
};

/* cmocka's setup and teardown; *STATE is a struct bed. */
int bed_up(void **state);
int bed_down(void **state);

/* A run with a new id, every member known and different. */
void run_make(struct mfdb_run *run, const char *status);
/* A run of which only what must be is known. */
void run_make_bare(struct mfdb_run *run);
void run_assert_equal(const struct mfdb_run *a, const struct mfdb_run *b);
void sample_make(struct mfdb_sample *sample, int64_t iteration);

/* Write RUN's spool with SAMPLES samples; FINISHED: with RUN as last record. */
void spool_write(struct bed *bed, const struct mfdb_run *run, int samples,
    int finished, char path[600]);
/* Open for update, which must work. */
mfdb *open_update(struct bed *bed);
/* Spool, merge and close. */
void run_save(struct bed *bed, mfdb *db, const struct mfdb_run *run);

/* The one number that SQL answers, asked past libmoefold-db. */
int64_t ask(const char *path, const char *sql);
/* Run SQL past libmoefold-db. */
void change(const char *path, const char *sql);

struct bytes file_read(const char *path);
void file_write(const char *path, const void *byte, size_t size);
int file_exists(const char *path);
void assert_file_is(const char *path, struct bytes bytes);

#endif
