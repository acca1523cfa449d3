# SPDX-License-Identifier: BSD-3-Clause
db_test_libs = libmoefold-db.a $(SQLITE_LIBS) $(UNIT_LIBS)
db_test_cflags = $(UNIT_CFLAGS) $(SQLITE_CFLAGS)
db_test_help = tests/unit/db/help.c tests/unit/db/help.h

unit_tests += tests/unit/db/test_spool
tests_unit_db_test_spool_SOURCES = tests/unit/db/test_spool.c $(db_test_help)
tests_unit_db_test_spool_CFLAGS = $(db_test_cflags)
tests_unit_db_test_spool_LDADD = $(db_test_libs)

unit_tests += tests/unit/db/test_open
tests_unit_db_test_open_SOURCES = tests/unit/db/test_open.c $(db_test_help)
tests_unit_db_test_open_CFLAGS = $(db_test_cflags)
tests_unit_db_test_open_LDADD = $(db_test_libs)

unit_tests += tests/unit/db/test_query
tests_unit_db_test_query_SOURCES = tests/unit/db/test_query.c $(db_test_help)
tests_unit_db_test_query_CFLAGS = $(db_test_cflags)
tests_unit_db_test_query_LDADD = $(db_test_libs)

unit_tests += tests/unit/db/test_crash
tests_unit_db_test_crash_SOURCES = tests/unit/db/test_crash.c $(db_test_help)
tests_unit_db_test_crash_CFLAGS = $(db_test_cflags)
tests_unit_db_test_crash_LDADD = $(db_test_libs)

check_PROGRAMS += tests/unit/db/write_spool
tests_unit_db_write_spool_SOURCES = tests/unit/db/write_spool.c
tests_unit_db_write_spool_CFLAGS = $(AM_CFLAGS)
tests_unit_db_write_spool_LDADD = libmoefold-db.a $(SQLITE_LIBS)

command_tests += tests/command/t0501-history.t \
    tests/command/t0503-history-past.t
EXTRA_DIST += tests/data/db/README.md tests/data/db/schema-1.db
EXTRA_DIST += tests/data/nccl-tests/README.md tests/data/nccl-tests/all-reduce.txt
