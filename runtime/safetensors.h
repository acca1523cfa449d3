/* SPDX-License-Identifier: BSD-3-Clause
 * Files of tensors in the safetensors format: eight bytes that say how long the
 * JSON header is, little-endian, the header, the values. What a header says is
 * checked against the file before any value is read.
 */
#ifndef MFR_SAFETENSORS_H
#define MFR_SAFETENSORS_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "planner/layout/error.h"

#define MFR_DIMS_MOST 8

struct mfr_tensorfile {
    const char *path; /* the caller's */
    unsigned char *map;
    size_t bytes;
    const unsigned char *data; /* behind the header */
    json_t *header;
};

struct mfr_stored {
    char dtype[8]; /* "F32", "BF16", "F16", "F64" */
    int dims;
    int64_t size[MFR_DIMS_MOST];
    int64_t count;
    const unsigned char *data;
};

/* MF_INVALID names the file, and what is wrong with it. */
int mfr_tensorfile_open(
    const char *path, struct mfr_tensorfile *file, struct mf_error *err);
void mfr_tensorfile_close(struct mfr_tensorfile *file);

/* 1 and *STORED, 0 there is none of that NAME, -1 its entry is wrong. */
int mfr_tensorfile_find(const struct mfr_tensorfile *file, const char *name,
    struct mfr_stored *stored, struct mf_error *err);

/* Value I as a float; the dtype is one of the four above. */
float mfr_stored_value(const struct mfr_stored *stored, int64_t i);

/* A file that is written: header first, then each tensor's values in the order
 * in which they were added. Moved to PATH by the last call, so that it is whole
 * or not there.
 */
struct mfr_tensorwriter;

struct mfr_tensorwriter *mfr_tensorwriter_create(
    const char *path, struct mf_error *err);
/* All names before the first value; F32. */
int mfr_tensorwriter_add(struct mfr_tensorwriter *writer, const char *name,
    int dims, const int64_t *size, struct mf_error *err);
int mfr_tensorwriter_write(struct mfr_tensorwriter *writer, const float *values,
    int64_t count, struct mf_error *err);
/* Frees WRITER in any case; without KEEP nothing is left. */
int mfr_tensorwriter_close(
    struct mfr_tensorwriter *writer, bool keep, struct mf_error *err);

#endif
