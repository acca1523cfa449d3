/* SPDX-License-Identifier: BSD-3-Clause
 * Reads the file of a model: its bytes, its form, its name.
 */
#include "planner/model_read.h"

#include "planner/model_read_dialect.h"
#include "planner/model_read_megatron.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Real files hold a few kilobytes; a parsed one takes many times its size. */
#define SIZE_MAX_BYTES ((size_t)16 << 20)
#define TWICE_MAX 16

int mf_file_load(
    const char *file, char **text, size_t *size, struct mf_error *err)
{
    size_t room = 0, n = 0;
    FILE *in = fopen(file, "r");
    int status = -1;

    if (!in)
        return mf_error_set(err, MF_INVALID, "%s", strerror(errno));
    do {
        char *more;
        room = room ? room * 2 : 65536;
        more = realloc(*text, room);
        if (!more) {
            mf_error_set(err, MF_FAILED, "out of memory");
            goto out;
        }
        *text = more;
        n += fread(*text + n, 1, room - n, in);
    } while (n == room && n <= SIZE_MAX_BYTES);
    if (ferror(in)) {
        mf_error_set(err, MF_INVALID, "%s%s", strerror(errno),
            errno == EISDIR ? "; name the config.json in it" : "");
        goto out;
    }
    if (n > SIZE_MAX_BYTES) {
        mf_error_set(err, MF_INVALID,
            "more than %zu MiB; a model's config.json is far smaller",
            SIZE_MAX_BYTES >> 20);
        goto out;
    }
    *size = n;
    status = 0;
out:
    if (fclose(in) && !status)
        status = mf_error_set(err, MF_INVALID, "%s", strerror(errno));
    return status;
}

static bool harmless(const char *key)
{
    for (const char *const *name = mf_harmless; *name; name++)
        if (!strcmp(*name, key))
            return true;
    return false;
}

/* The name whose closing quote is the last byte before END, in KEY. */
static char *name_before(char *text, size_t end, char *key, size_t size)
{
    size_t first = end, n;

    if (end < 2 || text[end - 1] != '"')
        return NULL;
    for (first = end - 1; first > 0 && text[first - 1] != '"'; first--)
        ;
    n = end - 1 - first;
    if (!first || !n || n >= size)
        return NULL;
    memcpy(key, text + first, n);
    key[n] = 0;
    return text + first;
}

/* A key that stands twice means the last one to most readers, and who wrote
 * it may have meant the first: refused, unless the shape does not hang on it.
 * The first byte of its second name becomes MARK for the next attempt.
 */
static int twice_take(char *text, const json_error_t *where, char mark,
    struct mf_model *model, struct mf_error *err)
{
    char key[80];
    char *name =
        where->position > 0
            ? name_before(text, (size_t)where->position, key, sizeof key)
            : NULL;

    if (!name || !harmless(key))
        return mf_error_set(err, MF_INVALID,
            "line %d: %s stands twice; keep the one that holds", where->line,
            name ? key : "a key");
    *name = mark;
    return mf_model_warn(model, err,
        "line %d: %s stands twice; the shape does not depend on it",
        where->line, key);
}

/* Python writes Infinity where JSON has no word, as a limit of Mamba's steps;
 * null has the same length and is refused where a figure counts.
 */
static void infinity_drop(char *text, size_t size)
{
    static const char word[] = "Infinity";
    const size_t n = sizeof word - 1;
    bool quoted = false;

    for (size_t i = 0; i < size; i++) {
        if (quoted && text[i] == '\\')
            i++;
        else if (text[i] == '"')
            quoted = !quoted;
        else if (!quoted && size - i >= n && !memcmp(text + i, word, n)) {
            memcpy(text + i, "null    ", n);
            if (i > 0 && text[i - 1] == '-')
                text[i - 1] = ' ';
        }
    }
}

static json_t *text_parse(
    char *text, size_t size, struct mf_model *model, struct mf_error *err)
{
    const size_t flags = JSON_DECODE_ANY | JSON_REJECT_DUPLICATES;
    json_error_t where;

    for (int i = 0; i <= TWICE_MAX; i++) {
        json_t *root = json_loadb(text, size, flags, &where);

        if (root)
            return root;
        if (json_error_code(&where) != json_error_duplicate_key)
            break;
        if (twice_take(text, &where, (char)('#' + i), model, err))
            return NULL;
    }
    mf_error_set(err, MF_INVALID, "line %d, column %d: not JSON: %s",
        where.line, where.column, where.text);
    return NULL;
}

/* JSON that says how the model is built, or arguments in another form. */
static int text_read(const char *file, char *text, size_t size,
    struct mf_model *model, struct mf_arguments *out, struct mf_error *err)
{
    enum mf_form form;
    json_t *root;
    int status = -1;

    /* A byte order mark, which editors of Windows leave. */
    if (size >= 3 && !memcmp(text, "\xef\xbb\xbf", 3))
        memset(text, ' ', 3);
    form = mf_form_find(text, size);
    if (form == MF_FORM_JSON) {
        infinity_drop(text, size);
        root = text_parse(text, size, model, err);
    } else if (form == MF_FORM_YAML) {
        root = mf_yaml_read(file, text, size, err);
    } else {
        root = mf_words_read(text, size, err);
    }
    if (root)
        status = form == MF_FORM_JSON
                     ? mf_model_config(root, model, err)
                     : mf_megatron_model(root, model, out, err);
    json_decref(root);
    return status;
}

/* The folder that FILE lies in, without following FILE itself: caches keep
 * files as links into a store of nameless blobs.
 */
static char *folder_of(const char *file)
{
    const char *slash = strrchr(file, '/');
    char *folder, *path;

    folder = slash ? strndup(file, (size_t)(slash - file) + 1) : strdup(".");
    if (!folder)
        return NULL;
    path = realpath(folder, NULL);
    free(folder);
    return path;
}

/* The download cache of Hugging Face keeps a revision of ORGANISATION/MODEL in
 * models--ORGANISATION--MODEL/snapshots/REVISION: the revision is no name.
 */
static const char *folder_name(char *folder)
{
    char *name = strrchr(folder, '/'), *above, *mark;

    if (!name)
        return folder;
    *name = 0;
    above = strrchr(folder, '/');
    if (above && above > folder && !strcmp(above, "/snapshots")) {
        *above = 0;
        above = strrchr(folder, '/');
        mark = above ? strstr(above + 1, "--") : NULL;
        while (mark && strstr(mark + 2, "--"))
            mark = strstr(mark + 2, "--");
        if (mark)
            return mark + 2;
    }
    return name + 1;
}

static void name_set(struct mf_model *model, const char *file)
{
    static const char *const ending[] = {
        ".json", ".yaml", ".yml", ".args", ".sh"};
    const char *base = strrchr(file, '/');
    char *folder = NULL;
    size_t n;

    base = base ? base + 1 : file;
    if (!strcmp(base, "config.json") || !strcmp(base, "params.json")) {
        folder = folder_of(file);
        base = folder ? folder_name(folder) : "model";
    }
    n = strlen(base);
    for (size_t i = 0; !folder && i < sizeof ending / sizeof *ending; i++) {
        size_t k = strlen(ending[i]);

        if (n > k && !strcmp(base + n - k, ending[i])) {
            n -= k;
            break;
        }
    }
    if (!n)
        snprintf(model->name, sizeof model->name, "model");
    else
        snprintf(model->name, sizeof model->name, "%.*s",
            n < INT_MAX ? (int)n : INT_MAX, base);
    mf_model_clean_text(model->name);
    free(folder);
}

int mf_model_read_text(const char *file, char *text, size_t size,
    struct mf_model *model, struct mf_arguments *out, struct mf_error *err)
{
    memset(model, 0, sizeof *model);
    memset(out, 0, sizeof *out);
    name_set(model, file);
    if (!text_read(file, text, size, model, out, err))
        return 0;
    mf_error_prefix(err, "%s", file);
    mf_model_free(model);
    memset(model, 0, sizeof *model);
    return -1;
}

int mf_model_read_arguments(const char *file, struct mf_model *model,
    struct mf_arguments *out, struct mf_error *err)
{
    char *text = NULL;
    size_t size = 0;
    int status;

    memset(model, 0, sizeof *model);
    memset(out, 0, sizeof *out);
    if (mf_file_load(file, &text, &size, err))
        status = mf_error_prefix(err, "%s", file);
    else
        status = mf_model_read_text(file, text, size, model, out, err);
    free(text);
    return status;
}

int mf_model_read(
    const char *file, struct mf_model *model, struct mf_error *err)
{
    struct mf_arguments out;

    return mf_model_read_arguments(file, model, &out, err);
}
