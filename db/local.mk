# SPDX-License-Identifier: BSD-3-Clause
noinst_LIBRARIES += libmoefold-db.a
libmoefold_db_a_CFLAGS = $(AM_CFLAGS) $(SQLITE_CFLAGS)
libmoefold_db_a_SOURCES = db/columns.h db/db.h \
    db/internal.h db/cache.c \
    db/coefficients.c db/compare.c db/merge.c db/open.c db/phases.c \
    db/prune.c db/query.c db/record.c db/regress.c db/samples.c \
    db/schema.c db/spool_format.c db/spool_write.c db/sql.c \
    db/util.c
