/* SPDX-License-Identifier: BSD-3-Clause
 * What the files of libmoefold-db share: the handle, columns as tables, SQL
 * steps and the spool's records.
 */
#ifndef MFDB_INTERNAL_H
#define MFDB_INTERNAL_H

#include <sqlite3.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "db/columns.h"
#include "db/db.h"

#define MFDB_APPLICATION_ID 0x4d4f4546 /* "MOEF" */
#define MFDB_WAIT_MS 10000

struct mfdb {
    sqlite3 *sql;
    char *path;
    char warning[MFDB_ERROR_TEXT];
};

/* What makes two runs the same thing measured again. */
#define MFDB_KEY                                                               \
    " model, cluster, layout, rank_order, coupled, ranks, hidden, ffn,"        \
    " experts, topk, seq_tokens, micro_batch_sequences, vocab, gated,"         \
    " backend, comm, experts_kernel, dispatcher, device"

#define MFDB_PRINTF(fmt, args) __attribute__((format(printf, fmt, args)))

/* Fill ERR (may be NULL) and return -1. */
int mfdb_error(char *err, const char *fmt, ...) MFDB_PRINTF(2, 3);

/* Seconds since 1970, UTC. */
double mfdb_now(void);

/* Make FOLDER and its parents. */
int mfdb_make_folders(const char *folder, char *err);

/* 36 characters of the form of a run id: safe as a file name. */
bool mfdb_uuid_ok(const char *text);

/* Of COUNT values, which it sorts; NAN of none. */
double mfdb_median(double *value, size_t count);

/* Does layer_s add PHASE up? */
bool mfdb_phase_in_layer(const char *phase);

/* --- a struct's members as columns --- */

/* Bind the members of VALUE to parameters FIRST, FIRST + 1, ... Texts are
 * bound in place: VALUE must live until the statement is reset.
 */
int mfdb_record_bind(const struct mfdb_record *record, const void *value,
    sqlite3_stmt *statement, int first);
/* Read columns FIRST, FIRST + 1, ... of a row into VALUE; what does not fit
 * is cut, what is NULL becomes unknown.
 */
void mfdb_record_read(const struct mfdb_record *record, sqlite3_stmt *statement,
    int first, void *value);
/* "a, b, c", or with UPSERT "a = excluded.a, ...". */
void mfdb_record_columns(
    const struct mfdb_record *record, sqlite3_str *text, bool upsert);

/* --- SQL --- */

/* Fill ERR from the handle's last error; returns -1. */
int mfdb_sql_fail(const mfdb *db, char *err);
int mfdb_sql_exec(mfdb *db, const char *sql, char *err);
sqlite3_stmt *mfdb_sql_prepare(mfdb *db, const char *sql, char *err);
/* The same for a text that is built; TEXT is freed. */
sqlite3_stmt *mfdb_sql_prepare_str(mfdb *db, sqlite3_str *text, char *err);
/* 1 a row, 0 done, -1 failed. */
int mfdb_sql_step(mfdb *db, sqlite3_stmt *statement, char *err);
/* The first column of SQL's one row. */
int mfdb_sql_integer(mfdb *db, const char *sql, int64_t *value, char *err);
/* Roll back, leaving ERR as it is. */
void mfdb_sql_rollback(mfdb *db);

/* Bring the schema from its version to MFDB_SCHEMA in one transaction. */
int mfdb_schema_update(mfdb *db, char *err);

/* --- spool --- */

#define MFDB_SPOOL_MAGIC "moefold-spool\r\n\032"
#define MFDB_SPOOL_MAGIC_BYTES 16
#define MFDB_SPOOL_VERSION 1
#define MFDB_SPOOL_HEADER_BYTES (MFDB_SPOOL_MAGIC_BYTES + 4)
#define MFDB_SPOOL_RECORD_BYTES 12 /* kind, payload bytes, CRC */
#define MFDB_SPOOL_PAYLOAD_MAX 65536

enum mfdb_spool_kind {
    MFDB_SPOOL_RUN = 1,
    MFDB_SPOOL_SAMPLE = 2,
    MFDB_SPOOL_END = 3,
};

struct mfdb_buffer {
    unsigned char *byte;
    size_t size, room;
};

/* CRC-32 of IEEE 802.3, going on from CRC (0 at the start). */
uint32_t mfdb_crc32(uint32_t crc, const void *data, size_t size);

/* Append a whole record to BUFFER. */
int mfdb_spool_encode(struct mfdb_buffer *buffer, enum mfdb_spool_kind kind,
    const struct mfdb_record *record, const void *value, char *err);
int mfdb_spool_encode_header(struct mfdb_buffer *buffer, char *err);
/* -1 when the payload is not exactly one RECORD within its rules. */
int mfdb_spool_decode(const struct mfdb_record *record,
    const unsigned char *payload, size_t size, void *value);

struct mfdb_reader {
    FILE *file;
    const char *path;
    unsigned char payload[MFDB_SPOOL_PAYLOAD_MAX];
    size_t size;
    enum mfdb_spool_kind kind;
};

/* Take over FD and check the spool's header. */
int mfdb_reader_open(
    struct mfdb_reader *reader, int fd, const char *path, char *err);
/* 1 a whole record, 0 none left (the rest is cut or damaged), -1 failed. */
int mfdb_reader_next(struct mfdb_reader *reader, char *err);
void mfdb_reader_close(struct mfdb_reader *reader);

/* Merge the spools in the database's spool folder whose writers are gone;
 * what can't be merged is left and told in db->warning.
 */
void mfdb_merge_leftovers(mfdb *db);

#endif
