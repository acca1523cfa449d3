/* SPDX-License-Identifier: BSD-3-Clause
 * See safetensors.h.
 */
#include "runtime/safetensors.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* The format's own bound. */
#define HEADER_MOST 100000000

/* ---- reading ---- */

static uint64_t little_endian(const unsigned char *byte, int n)
{
    uint64_t value = 0;

    for (int i = n - 1; i >= 0; i--)
        value = value << 8 | byte[i];
    return value;
}

static int map_file(struct mfr_tensorfile *file, struct mf_error *err)
{
    struct stat info;
    int fd = open(file->path, O_RDONLY | O_CLOEXEC), rc = -1;
    void *map;

    if (fd < 0 || fstat(fd, &info) != 0) {
        mf_error_set(err, MF_INVALID, "%s: %s", file->path, strerror(errno));
        goto out;
    }
    if (!S_ISREG(info.st_mode) || info.st_size < 10) {
        mf_error_set(
            err, MF_INVALID, "%s: is no file of safetensors", file->path);
        goto out;
    }
    map = mmap(NULL, (size_t)info.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (map == MAP_FAILED) {
        mf_error_set(err, MF_FAILED, "%s: %s", file->path, strerror(errno));
        goto out;
    }
    file->map = map;
    file->bytes = (size_t)info.st_size;
    rc = 0;
out:
    if (fd >= 0)
        close(fd);
    return rc;
}

int mfr_tensorfile_open(
    const char *path, struct mfr_tensorfile *file, struct mf_error *err)
{
    json_error_t where;
    uint64_t length;

    *file = (struct mfr_tensorfile){.path = path};
    if (map_file(file, err))
        return -1;
    length = little_endian(file->map, 8);
    if (length > HEADER_MOST || length > file->bytes - 8) {
        mf_error_set(err, MF_INVALID,
            "%s: is no file of safetensors: its header would be %" PRIu64
            " bytes long",
            path, length);
        goto fail;
    }
    file->data = file->map + 8 + length;
    file->header = json_loadb((const char *)file->map + 8, (size_t)length,
        JSON_REJECT_DUPLICATES, &where);
    if (json_is_object(file->header))
        return 0;
    mf_error_set(err, MF_INVALID, "%s: its header is not JSON: %.200s", path,
        file->header ? "no object" : where.text);
fail:
    mfr_tensorfile_close(file);
    return -1;
}

void mfr_tensorfile_close(struct mfr_tensorfile *file)
{
    json_decref(file->header);
    if (file->map)
        munmap(file->map, file->bytes);
    *file = (struct mfr_tensorfile){0};
}

static size_t item_bytes(const char *dtype)
{
    static const struct {
        const char *name;
        size_t bytes;
    } types[] = {{"F32", 4}, {"BF16", 2}, {"F16", 2}, {"F64", 8}};

    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (!strcmp(types[i].name, dtype))
            return types[i].bytes;
    return 0;
}

static int read_shape(const json_t *shape, struct mfr_stored *stored)
{
    if (!json_is_array(shape) || json_array_size(shape) > MFR_DIMS_MOST)
        return -1;
    stored->dims = (int)json_array_size(shape);
    stored->count = 1;
    for (int i = 0; i < stored->dims; i++) {
        const json_t *size = json_array_get(shape, (size_t)i);

        if (!json_is_integer(size) || json_integer_value(size) < 0 ||
            __builtin_mul_overflow(stored->count,
                (int64_t)json_integer_value(size), &stored->count))
            return -1;
        stored->size[i] = json_integer_value(size);
    }
    return 0;
}

static bool lies_inside(const struct mfr_tensorfile *file, const json_t *at,
    const struct mfr_stored *stored, size_t bytes)
{
    const json_t *begin = json_array_get(at, 0), *end = json_array_get(at, 1);
    const int64_t room =
        (int64_t)(file->bytes - (size_t)(file->data - file->map));
    int64_t needed;

    return json_array_size(at) == 2 && json_is_integer(begin) &&
           json_is_integer(end) && json_integer_value(begin) >= 0 &&
           json_integer_value(end) >= json_integer_value(begin) &&
           json_integer_value(end) <= room &&
           !__builtin_mul_overflow(stored->count, (int64_t)bytes, &needed) &&
           json_integer_value(end) - json_integer_value(begin) == needed;
}

int mfr_tensorfile_find(const struct mfr_tensorfile *file, const char *name,
    struct mfr_stored *stored, struct mf_error *err)
{
    const json_t *entry = json_object_get(file->header, name);
    const json_t *at = json_object_get(entry, "data_offsets");
    const char *dtype = json_string_value(json_object_get(entry, "dtype"));

    *stored = (struct mfr_stored){0};
    if (!entry)
        return 0;
    if (!dtype || !item_bytes(dtype))
        return mf_error_set(err, MF_INVALID,
            "%s: %s has dtype %.16s, not F32, BF16, F16 or F64", file->path,
            name, dtype ? dtype : "none");
    snprintf(stored->dtype, sizeof stored->dtype, "%s", dtype);
    if (read_shape(json_object_get(entry, "shape"), stored) ||
        !lies_inside(file, at, stored, item_bytes(dtype)))
        return mf_error_set(err, MF_INVALID,
            "%s: %s: its shape and its place in the file do not agree",
            file->path, name);
    stored->data = file->data + json_integer_value(json_array_get(at, 0));
    return 1;
}

static float from_bits(uint32_t bits)
{
    float value;

    memcpy(&value, &bits, sizeof value);
    return value;
}

/* IEEE 754 binary16: 1 sign, 5 exponent and 10 fraction bits. */
static float from_half(uint32_t half)
{
    const uint32_t sign = (half & 0x8000) << 16, fraction = half & 0x3ff;
    const uint32_t exponent = half >> 10 & 0x1f;

    if (exponent == 0) {
        const float small = (float)fraction * 0x1p-24f;

        return sign ? -small : small;
    }
    if (exponent == 31)
        return from_bits(sign | 0x7f800000 | fraction << 13);
    return from_bits(sign | (exponent + 112) << 23 | fraction << 13);
}

float mfr_stored_value(const struct mfr_stored *stored, int64_t i)
{
    const size_t bytes = item_bytes(stored->dtype);
    const uint64_t bits =
        little_endian(stored->data + (size_t)i * bytes, (int)bytes);
    double value;

    if (bytes == 4)
        return from_bits((uint32_t)bits);
    if (bytes == 2)
        return stored->dtype[0] == 'B' ? from_bits((uint32_t)bits << 16)
                                       : from_half((uint32_t)bits);
    memcpy(&value, &bits, sizeof value);
    return (float)value;
}

/* ---- writing ---- */

struct mfr_tensorwriter {
    char *path, *temp;
    FILE *file;
    json_t *header;
    int64_t bytes, written; /* of values: promised, and done */
    bool begun;
};

struct mfr_tensorwriter *mfr_tensorwriter_create(
    const char *path, struct mf_error *err)
{
    struct mfr_tensorwriter *w = calloc(1, sizeof *w);
    int fd = -1;

    if (w) {
        w->path = strdup(path);
        w->temp = malloc(strlen(path) + 8);
        w->header = json_object();
    }
    if (!w || !w->path || !w->temp || !w->header) {
        mf_error_set(err, MF_FAILED, "%s: out of memory", path);
        goto fail;
    }
    snprintf(w->temp, strlen(path) + 8, "%s.XXXXXX", path);
    fd = mkstemp(w->temp);
    w->file = fd < 0 ? NULL : fdopen(fd, "wb");
    if (w->file)
        return w;
    mf_error_set(err, MF_FAILED, "%s: %s", path, strerror(errno));
fail:
    if (fd >= 0) {
        close(fd);
        unlink(w->temp);
    }
    if (w) {
        free(w->path);
        free(w->temp);
        json_decref(w->header);
    }
    free(w);
    return NULL;
}

int mfr_tensorwriter_add(struct mfr_tensorwriter *w, const char *name, int dims,
    const int64_t *size, struct mf_error *err)
{
    json_t *shape = json_array();
    int64_t bytes = sizeof(float), end;

    for (int i = 0; i < dims; i++) {
        json_array_append_new(shape, json_integer(size[i]));
        bytes *= size[i];
    }
    end = w->bytes + bytes;
    if (json_object_set_new(w->header, name,
            json_pack("{s:s, s:o, s:[I, I]}", "dtype", "F32", "shape", shape,
                "data_offsets", (json_int_t)w->bytes, (json_int_t)end)))
        return mf_error_set(
            err, MF_FAILED, "%s: %s: out of memory", w->path, name);
    w->bytes = end;
    return 0;
}

static int failed(const struct mfr_tensorwriter *w, struct mf_error *err)
{
    return mf_error_set(err, MF_FAILED, "%s: %s", w->path, strerror(errno));
}

static int begin(struct mfr_tensorwriter *w, struct mf_error *err)
{
    char *text = json_dumps(w->header, JSON_COMPACT);
    const size_t length = text ? strlen(text) : 0;
    /* Values begin at a multiple of eight, as the format wants. */
    const size_t padded = (length + 7) / 8 * 8;
    unsigned char head[8];
    int rc = 0;

    if (!text)
        return mf_error_set(err, MF_FAILED, "%s: out of memory", w->path);
    for (int i = 0; i < 8; i++)
        head[i] = (unsigned char)((uint64_t)padded >> 8 * i);
    if (fwrite(head, 1, 8, w->file) != 8 ||
        fwrite(text, 1, length, w->file) != length ||
        fprintf(w->file, "%*s", (int)(padded - length), "") < 0)
        rc = failed(w, err);
    free(text);
    w->begun = true;
    return rc;
}

int mfr_tensorwriter_write(struct mfr_tensorwriter *w, const float *values,
    int64_t count, struct mf_error *err)
{
    if (!w->begun && begin(w, err))
        return -1;
    for (int64_t i = 0; i < count; i++) {
        unsigned char byte[4];
        uint32_t bits;

        memcpy(&bits, &values[i], sizeof bits);
        for (int b = 0; b < 4; b++)
            byte[b] = (unsigned char)(bits >> 8 * b);
        if (fwrite(byte, 1, 4, w->file) != 4)
            return failed(w, err);
    }
    w->written += count * (int64_t)sizeof(float);
    return 0;
}

int mfr_tensorwriter_close(
    struct mfr_tensorwriter *w, bool keep, struct mf_error *err)
{
    int rc = 0;

    if (!w)
        return 0;
    if (keep && w->written != w->bytes)
        rc = mf_error_set(err, MF_FAILED,
            "%s: %" PRId64 " bytes of values, not %" PRId64, w->path,
            w->written, w->bytes);
    if (fclose(w->file) && rc == 0)
        rc = failed(w, err);
    if (keep && rc == 0 && rename(w->temp, w->path))
        rc = failed(w, err);
    if (!keep || rc)
        unlink(w->temp);
    free(w->path);
    free(w->temp);
    json_decref(w->header);
    free(w);
    return rc;
}
