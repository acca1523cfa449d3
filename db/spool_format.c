/* SPDX-License-Identifier: BSD-3-Clause
 * The bytes of a spool: a header, then records, each with its CRC.
 *
 * Header: 16 bytes of magic, the version. Record: kind, payload bytes, CRC of
 * these two and the payload. A payload holds a run's or a sample's members in
 * the order of its columns: integers and reals in 8 bytes, flags in 1, a text
 * as 2 bytes of length and its bytes. All numbers are little-endian.
 */
#include <stdlib.h>
#include <string.h>

#include "db/internal.h"

uint32_t mfdb_crc32(uint32_t crc, const void *data, size_t size)
{
    /* Remainders of the 16 nibbles for the reflected 0xedb88320. */
    static const uint32_t nibble[16] = {0x00000000, 0x1db71064, 0x3b6e20c8,
        0x26d930ac, 0x76dc4190, 0x6b6b51f4, 0x4db26158, 0x5005713c, 0xedb88320,
        0xf00f9344, 0xd6d6a3e8, 0xcb61b38c, 0x9b64c2b0, 0x86d3d2d4, 0xa00ae278,
        0xbdbdf21c};
    const unsigned char *byte = data;

    crc = ~crc;
    for (size_t i = 0; i < size; i++) {
        crc ^= byte[i];
        crc = (crc >> 4) ^ nibble[crc & 15];
        crc = (crc >> 4) ^ nibble[crc & 15];
    }
    return ~crc;
}

static void put_little(unsigned char *to, uint64_t value, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        to[i] = (unsigned char)(value >> (8 * i));
}

static uint64_t get_little(const unsigned char *from, size_t bytes)
{
    uint64_t value = 0;

    for (size_t i = 0; i < bytes; i++)
        value |= (uint64_t)from[i] << (8 * i);
    return value;
}

static int append(
    struct mfdb_buffer *buffer, const void *data, size_t size, char *err)
{
    size_t room = buffer->room ? buffer->room : 4096;
    unsigned char *byte;

    while (room - buffer->size < size) {
        if (room > SIZE_MAX / 2)
            return mfdb_error(err, "out of memory");
        room *= 2;
    }
    if (room != buffer->room) {
        byte = realloc(buffer->byte, room);
        if (!byte)
            return mfdb_error(err, "out of memory");
        buffer->byte = byte;
        buffer->room = room;
    }
    memcpy(buffer->byte + buffer->size, data, size);
    buffer->size += size;
    return 0;
}

static int append_little(
    struct mfdb_buffer *buffer, uint64_t value, size_t bytes, char *err)
{
    unsigned char byte[8];

    put_little(byte, value, bytes);
    return append(buffer, byte, bytes, err);
}

int mfdb_spool_encode_header(struct mfdb_buffer *buffer, char *err)
{
    if (append(buffer, MFDB_SPOOL_MAGIC, MFDB_SPOOL_MAGIC_BYTES, err) < 0)
        return -1;
    return append_little(buffer, MFDB_SPOOL_VERSION, 4, err);
}

static int append_member(struct mfdb_buffer *buffer,
    const struct mfdb_field *field, const void *value, char *err)
{
    const void *at = (const char *)value + field->offset;
    uint64_t bits;
    size_t length;

    switch (field->kind) {
    case MFDB_TEXT:
        length = strnlen(at, field->size - 1);
        if (append_little(buffer, length, 2, err) < 0)
            return -1;
        return append(buffer, at, length, err);
    case MFDB_BOOL:
        return append_little(buffer, *(const bool *)at, 1, err);
    case MFDB_INTEGER:
    case MFDB_REAL:
        memcpy(&bits, at, sizeof bits);
        return append_little(buffer, bits, 8, err);
    }
    return -1;
}

int mfdb_spool_encode(struct mfdb_buffer *buffer, enum mfdb_spool_kind kind,
    const struct mfdb_record *record, const void *value, char *err)
{
    static const unsigned char blank[MFDB_SPOOL_RECORD_BYTES];
    size_t start = buffer->size, payload;
    unsigned char *head;
    uint32_t crc;

    if (mfdb_record_check(record, value, err) < 0 ||
        append(buffer, blank, sizeof blank, err) < 0)
        goto fail;
    for (size_t i = 0; i < record->fields; i++)
        if (append_member(buffer, &record->field[i], value, err) < 0)
            goto fail;
    payload = buffer->size - start - MFDB_SPOOL_RECORD_BYTES;
    head = buffer->byte + start;
    put_little(head, kind, 4);
    put_little(head + 4, payload, 4);
    crc = mfdb_crc32(0, head, 8);
    crc = mfdb_crc32(crc, head + MFDB_SPOOL_RECORD_BYTES, payload);
    put_little(head + 8, crc, 4);
    return 0;
fail:
    buffer->size = start;
    return -1;
}

/* The bytes taken from the SIZE at FROM, or 0 when they are not a member. */
static size_t take_member(const struct mfdb_field *field,
    const unsigned char *from, size_t size, void *at)
{
    size_t length;
    uint64_t bits;

    if (field->kind == MFDB_TEXT) {
        if (size < 2)
            return 0;
        length = get_little(from, 2);
        if (length > size - 2 || length >= field->size ||
            memchr(from + 2, '\0', length))
            return 0;
        memcpy(at, from + 2, length);
        ((char *)at)[length] = '\0';
        return length + 2;
    }
    if (field->kind == MFDB_BOOL) {
        if (size < 1 || from[0] > 1)
            return 0;
        *(bool *)at = from[0] == 1;
        return 1;
    }
    if (size < 8)
        return 0;
    bits = get_little(from, 8);
    memcpy(at, &bits, sizeof bits);
    return 8;
}

int mfdb_spool_decode(const struct mfdb_record *record,
    const unsigned char *payload, size_t size, void *value)
{
    size_t done = 0;

    for (size_t i = 0; i < record->fields; i++) {
        const struct mfdb_field *field = &record->field[i];
        size_t taken = take_member(
            field, payload + done, size - done, (char *)value + field->offset);

        if (!taken)
            return -1;
        done += taken;
    }
    return done == size && mfdb_record_check(record, value, NULL) == 0 ? 0 : -1;
}

/* --- reading --- */

/* 1 when all SIZE bytes came, 0 at the file's end, -1 on an error. */
static int read_bytes(
    struct mfdb_reader *reader, void *to, size_t size, char *err)
{
    if (fread(to, 1, size, reader->file) == size)
        return 1;
    if (ferror(reader->file))
        return mfdb_error(err, "%s: can't be read", reader->path);
    return 0;
}

int mfdb_reader_open(
    struct mfdb_reader *reader, int fd, const char *path, char *err)
{
    unsigned char head[MFDB_SPOOL_HEADER_BYTES];
    int rc;

    reader->path = path;
    reader->file = fdopen(fd, "rb");
    if (!reader->file)
        return mfdb_error(err, "out of memory");
    rc = read_bytes(reader, head, sizeof head, err);
    if (rc < 0)
        return -1;
    if (rc == 0 || memcmp(head, MFDB_SPOOL_MAGIC, MFDB_SPOOL_MAGIC_BYTES) != 0)
        return mfdb_error(err, "%s: is not a spool of a run", path);
    if (get_little(head + MFDB_SPOOL_MAGIC_BYTES, 4) != MFDB_SPOOL_VERSION)
        return mfdb_error(err,
            "%s: is a spool of version %llu, and this moefold reads %d", path,
            (unsigned long long)get_little(head + MFDB_SPOOL_MAGIC_BYTES, 4),
            MFDB_SPOOL_VERSION);
    return 0;
}

int mfdb_reader_next(struct mfdb_reader *reader, char *err)
{
    unsigned char head[MFDB_SPOOL_RECORD_BYTES];
    uint32_t crc;
    int rc = read_bytes(reader, head, sizeof head, err);

    if (rc <= 0)
        return rc;
    reader->kind = (enum mfdb_spool_kind)get_little(head, 4);
    reader->size = get_little(head + 4, 4);
    if (reader->size > sizeof reader->payload)
        return 0;
    rc = read_bytes(reader, reader->payload, reader->size, err);
    if (rc <= 0)
        return rc;
    crc = mfdb_crc32(0, head, 8);
    crc = mfdb_crc32(crc, reader->payload, reader->size);
    return crc == get_little(head + 8, 4);
}

void mfdb_reader_close(struct mfdb_reader *reader)
{
    if (reader->file)
        (void)fclose(reader->file); /* only read from */
    reader->file = NULL;
}
