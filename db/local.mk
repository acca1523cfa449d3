# SPDX-License-Identifier: BSD-3-Clause
noinst_LIBRARIES += libmoefold-db.a
libmoefold_db_a_CFLAGS = $(AM_CFLAGS) $(SQLITE_CFLAGS)
libmoefold_db_a_SOURCES = db/db.h
