/* SPDX-License-Identifier: BSD-3-Clause
 * Files of Key=Value lines as Slurm writes them.
 */
#include "config.h"

#include "planner/conf_lines.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#define DEPTH_MAX 8
#define INCLUDES_MAX 1000
#define LINE_MAX_BYTES ((size_t)4 << 20)
#define ALL_MAX_BYTES (4 * MF_TEXT_FILE_MAX)

struct reading {
    mf_conf_function each;
    void *arg;
    struct mf_error *err;
    int includes, depth;
    size_t bytes; /* of all files */
    dev_t dev[DEPTH_MAX + 1];
    ino_t ino[DEPTH_MAX + 1];
};

/* The record that is being gathered from physical lines. */
struct record {
    char *text;
    size_t length, room;
    int number;
    bool open; /* further indented lines may belong to it */
};

static const char blanks[] = " \t\r\f\v";

const char *mf_conf_value(const struct mf_conf_line *line, const char *key)
{
    for (int i = 0; i < line->pairs; i++)
        if (!strcasecmp(line->pair[i].key, key))
            return line->pair[i].value;
    return NULL;
}

/* Cut a comment: a '#' that no backslash stands before. scontrol writes a node
 * on one line, with such signs in it, and no comments.
 */
static void comment_cut(char *line)
{
    if (strstr(line, " CPUTot="))
        return;
    for (char *at = line; (at = strchr(at, '#')); at++)
        if (at == line || at[-1] != '\\') {
            *at = 0;
            return;
        }
}

/* Names go on to messages and JSON. */
static void controls_replace(char *line)
{
    for (; *line; line++)
        if (strchr(blanks, *line))
            *line = ' ';
        else if ((unsigned char)*line < ' ' || *line == 127)
            *line = '?';
}

static void end_trim(char *line)
{
    size_t n = strlen(line);

    while (n > 0 && strchr(blanks, line[n - 1]))
        line[--n] = 0;
}

static int record_add(
    struct record *record, const char *text, struct mf_error *err)
{
    size_t n = strlen(text), need = record->length + n + 2;

    if (need > LINE_MAX_BYTES)
        return mf_error_set(err, MF_INVALID, "a line is too long");
    if (need > record->room) {
        size_t room = need * 2;
        char *grown = realloc(record->text, room);

        if (!grown)
            return mf_error_set(err, MF_FAILED, "out of memory");
        record->text = grown;
        record->room = room;
    }
    memcpy(record->text + record->length, text, n);
    record->length += n;
    record->text[record->length++] = ' ';
    record->text[record->length] = 0;
    return 0;
}

/* The value at AT; *NEXT is what follows it. */
static char *value_cut(char *at, char **next)
{
    char *end;

    if (*at == '"' && (end = strchr(at + 1, '"'))) {
        *end = 0;
        *next = end + 1;
        return at + 1;
    }
    end = at + strcspn(at, blanks);
    *next = *end ? end + 1 : end;
    *end = 0;
    return at;
}

static void pairs_cut(char *text, struct mf_conf_line *line)
{
    char *at = text + strspn(text, blanks);

    line->pairs = 0;
    while (*at && line->pairs < MF_CONF_PAIRS_MAX) {
        size_t word = strcspn(at, blanks);
        char *sign = memchr(at, '=', word), *key = at;

        if (!sign) {
            at += word;
            at += strspn(at, blanks);
            continue;
        }
        *sign = 0;
        if (sign > key && (sign[-1] == '+' || sign[-1] == '-'))
            sign[-1] = 0;
        line->pair[line->pairs].key = key;
        line->pair[line->pairs++].value = value_cut(sign + 1, &at);
        at += strspn(at, blanks);
    }
}

static int file_each(struct reading *r, const char *path, struct mf_text *text);

static int include(struct reading *r, const char *path, const char *name)
{
    const char *slash = strrchr(path, '/');
    struct mf_text text;
    char file[4096];
    int n, rc;

    if (name[0] == '/' || !slash)
        n = snprintf(file, sizeof file, "%s", name);
    else
        n = snprintf(
            file, sizeof file, "%.*s/%s", (int)(slash - path), path, name);
    if (n < 0 || (size_t)n >= sizeof file)
        return mf_error_set(r->err, MF_INVALID, "the path is too long");
    if (++r->includes > INCLUDES_MAX)
        return mf_error_set(
            r->err, MF_INVALID, "more than %d files included", INCLUDES_MAX);
    if (mf_text_read(file, &text, r->err) < 0)
        return -1;
    rc = file_each(r, file, &text);
    free(text.data);
    return rc;
}

/* An Include line has no '='. */
static const char *include_name(char *text)
{
    size_t n = strcspn(text, blanks);

    if (n != 7 || strncasecmp(text, "include", 7) != 0 || !text[n])
        return NULL;
    text += n;
    text += strspn(text, blanks);
    end_trim(text);
    return *text ? text : NULL;
}

static int record_emit(
    struct reading *r, const char *path, struct record *record)
{
    struct mf_conf_line line = {.file = path, .number = record->number};
    char *text = record->text;
    const char *name;
    int rc = 0;

    record->open = false;
    if (record->length == 0)
        return 0;
    record->length = 0;
    text += strspn(text, blanks);
    name = include_name(text);
    if (name)
        rc = include(r, path, name);
    else {
        pairs_cut(text, &line);
        if (line.pairs > 0)
            rc = r->each(r->arg, &line, r->err);
    }
    if (rc < 0)
        mf_error_prefix(r->err, "%.150s:%d", path, record->number);
    return rc;
}

static bool begins_with(const char *text, const char *word)
{
    return !strncasecmp(text, word, strlen(word));
}

/* scontrol's further lines of a node, a partition or a job are indented. */
static bool continues(const struct record *record, const char *line)
{
    static const char *const begins[] = {"NodeName=", "PartitionName=",
        "NodeSet=", "SwitchName=", "BlockName=", "RingName=", "Include",
        "AutoDetect=", "Name="};
    const char *at = line + strspn(line, blanks);

    if (!record->open || at == line || !*at)
        return false;
    for (size_t i = 0; i < sizeof begins / sizeof *begins; i++)
        if (begins_with(at, begins[i]))
            return false;
    return true;
}

static int line_take(struct reading *r, const char *path, char *line,
    int number, struct record *record, bool *joined)
{
    size_t n;

    comment_cut(line);
    controls_replace(line);
    end_trim(line);
    n = strlen(line);
    if (!*joined && !continues(record, line)) {
        if (record_emit(r, path, record) < 0)
            return -1;
        record->number = number;
        record->open = begins_with(line, "NodeName=") ||
                       begins_with(line, "PartitionName=");
    }
    *joined = n > 0 && line[n - 1] == '\\';
    if (*joined)
        line[n - 1] = 0;
    if (!*line && !*joined) {
        record->open = false;
        return 0;
    }
    if (record_add(record, line, r->err) < 0)
        return mf_error_prefix(r->err, "%.150s:%d", path, number);
    return 0;
}

static int lines_each(struct reading *r, const char *path, char *data)
{
    struct record record = {0};
    bool joined = false;
    int number = 0, rc = 0;

    for (char *line = data; rc == 0 && line;) {
        char *end = strchr(line, '\n');

        if (end)
            *end = 0;
        rc = line_take(r, path, line, ++number, &record, &joined);
        line = end ? end + 1 : NULL;
    }
    if (rc == 0)
        rc = record_emit(r, path, &record);
    free(record.text);
    return rc;
}

static int file_each(struct reading *r, const char *path, struct mf_text *text)
{
    struct stat st;
    int rc;

    if (stat(path, &st) != 0)
        st.st_dev = 0, st.st_ino = 0;
    for (int i = 0; i < r->depth; i++)
        if (st.st_ino && r->dev[i] == st.st_dev && r->ino[i] == st.st_ino)
            return mf_error_set(
                r->err, MF_INVALID, "%.300s includes itself", path);
    if (r->depth > DEPTH_MAX)
        return mf_error_set(r->err, MF_INVALID,
            "%.300s: files include each other more than %d deep", path,
            DEPTH_MAX);
    r->bytes += text->length;
    if (r->bytes > ALL_MAX_BYTES)
        return mf_error_set(
            r->err, MF_INVALID, "the files included are over 256 MiB");
    r->dev[r->depth] = st.st_dev;
    r->ino[r->depth++] = st.st_ino;
    rc = lines_each(r, path, text->data);
    r->depth--;
    return rc;
}

int mf_conf_each(const char *path, struct mf_text *text, mf_conf_function each,
    void *arg, struct mf_error *err)
{
    struct reading r = {.each = each, .arg = arg, .err = err};

    return file_each(&r, path, text);
}
