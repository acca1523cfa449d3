/* SPDX-License-Identifier: BSD-3-Clause
 * Words of a command line or shell script into arguments, without a shell:
 * quotes, comments, continuations and plain variables, nothing else.
 */
#include "planner/model_read_megatron.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#define WORD_MAX 4096
#define WORDS_MAX 20000

struct words {
    const char *at, *end;
    int line;
    json_t *variables, *arguments;
    char *key; /* that waits for its value */
    char word[WORD_MAX];
    size_t n;
    bool quoted; /* some of the word stood in quotes */
    bool array;  /* between the brackets of NAME=( ) */
    struct mf_error *err;
};

static int word_add(struct words *w, const char *text, size_t n)
{
    if (n >= sizeof w->word - w->n)
        return mf_error_set(w->err, MF_INVALID,
            "line %d: a word of more than %zu bytes", w->line,
            sizeof w->word - 1);
    memcpy(w->word + w->n, text, n);
    w->n += n;
    w->word[w->n] = 0;
    return 0;
}

/* The length of a name at TEXT. */
static size_t name_length(const char *text, const char *end)
{
    size_t n = 0;

    while (
        text + n < end && (isalnum((unsigned char)text[n]) || text[n] == '_'))
        n++;
    return n;
}

static const char *variable_get(
    const struct words *w, const char *name, size_t n)
{
    char key[128];

    if (!n || n >= sizeof key)
        return NULL;
    memcpy(key, name, n);
    key[n] = 0;
    return json_string_value(json_object_get(w->variables, key));
}

/* ${NAME}, ${NAME:-DEFAULT} or $NAME at W->at; what has no value stays. */
static int variable_put(struct words *w)
{
    const char *start = w->at++, *name = w->at, *value, *close;
    bool brace = w->at < w->end && *w->at == '{';
    size_t n;

    if (brace)
        name = ++w->at;
    n = name_length(name, w->end);
    value = variable_get(w, name, n);
    w->at = name + n;
    if (!brace)
        return value ? word_add(w, value, strlen(value))
                     : word_add(w, start, (size_t)(w->at - start));
    close = memchr(w->at, '}', (size_t)(w->end - w->at));
    if (!close)
        return mf_error_set(
            w->err, MF_INVALID, "line %d: ${ without }", w->line);
    name = w->at;
    w->at = close + 1;
    if (value)
        return word_add(w, value, strlen(value));
    if (close - name > 2 && name[0] == ':' && name[1] == '-' &&
        !memchr(name, '$', (size_t)(close - name)))
        return word_add(w, name + 2, (size_t)(close - name - 2));
    return word_add(w, start, (size_t)(w->at - start));
}

static int quote_take(struct words *w)
{
    char quote = *w->at++;

    w->quoted = true;
    for (; w->at < w->end && *w->at != quote; w->at++) {
        if (*w->at == '\n')
            w->line++;
        if (quote == '"' && *w->at == '$') {
            if (variable_put(w))
                return -1;
            w->at--;
            continue;
        }
        if (quote == '"' && *w->at == '\\' && w->at + 1 < w->end)
            w->at++;
        if (word_add(w, w->at, 1))
            return -1;
    }
    if (w->at == w->end)
        return mf_error_set(
            w->err, MF_INVALID, "line %d: a quote without its end", w->line);
    w->at++;
    return 0;
}

/* NAME=VALUE at the start of a word: its length up to the sign, else 0. */
static size_t assignment(const char *word)
{
    size_t n = name_length(word, word + strlen(word));

    return n > 0 && word[n] == '=' && !isdigit((unsigned char)word[0]) ? n : 0;
}

static int argument_set(struct words *w, const char *key, const char *value)
{
    if (json_object_size(w->arguments) > WORDS_MAX ||
        json_object_set_new(w->arguments, key, json_string(value)))
        return mf_error_set(w->err, MF_INVALID,
            "line %d: %.64s: not UTF-8, or too many arguments", w->line, key);
    return 0;
}

/* A key whose value did not come is a flag. */
static int key_flush(struct words *w, const char *value)
{
    int status = 0;

    if (w->key)
        status = argument_set(w, w->key, value);
    free(w->key);
    w->key = NULL;
    return status;
}

static int key_take(struct words *w, char *name)
{
    char *equals = strchr(name, '=');

    if (key_flush(w, "true"))
        return -1;
    if (equals)
        *equals = 0;
    for (char *p = name; *p; p++)
        if (*p == '_')
            *p = '-';
    w->key = strdup(name);
    if (!w->key)
        return mf_error_set(w->err, MF_FAILED, "out of memory");
    return equals ? key_flush(w, equals + 1) : 0;
}

static int word_take(struct words *w)
{
    size_t name = assignment(w->word);
    int status = 0;

    if (!strncmp(w->word, "--", 2) && isalpha((unsigned char)w->word[2]))
        return key_take(w, w->word + 2);
    if (w->key)
        return key_flush(w, w->word);
    if (name > 0) {
        w->word[name] = 0;
        if (json_object_size(w->variables) > WORDS_MAX ||
            json_object_set_new(
                w->variables, w->word, json_string(w->word + name + 1)))
            status = mf_error_set(w->err, MF_INVALID,
                "line %d: a variable is not UTF-8, or too many", w->line);
    }
    return status;
}

/* The word that has come so far; the bracket that closes an array is no part
 * of it.
 */
static int word_end(struct words *w)
{
    size_t n = w->n;
    bool quoted = w->quoted, close;

    w->n = 0;
    w->quoted = false;
    if (!n && !quoted)
        return 0;
    w->word[n] = 0;
    close =
        w->array && !quoted && w->word[n - 1] == ')' && !strchr(w->word, '(');
    if (close) {
        w->array = false;
        w->word[--n] = 0;
    }
    if (n > 0 || quoted)
        if (word_take(w))
            return -1;
    return close ? key_flush(w, "true") : 0;
}

/* The end of a command: a key that waits is a flag. */
static int command_end(struct words *w, char c)
{
    if (word_end(w))
        return -1;
    if (w->array || (c != '\n' && c != ';' && c != '|' && c != '&'))
        return 0;
    return key_flush(w, "true");
}

/* A byte outside quotes. */
static int plain_take(struct words *w)
{
    char c = *w->at;

    if (c == '$' && w->at + 1 < w->end &&
        (w->at[1] == '{' || isalpha((unsigned char)w->at[1]) ||
            w->at[1] == '_'))
        return variable_put(w);
    if (c == '\\' && w->at + 1 < w->end) {
        w->at++;
        if (*w->at == '\n') {
            w->line++;
            w->at++;
            return w->n ? word_end(w) : 0;
        }
    }
    /* NAME=( opens an array; its words are arguments like others. */
    if (c == '(' && (!w->n || w->word[w->n - 1] == '=')) {
        w->n = 0;
        w->word[0] = 0;
        w->array = true;
        w->at++;
        return 0;
    }
    return word_add(w, w->at++, 1);
}

static int words_take(struct words *w)
{
    while (w->at < w->end) {
        char c = *w->at;

        if (!c)
            return mf_error_set(
                w->err, MF_INVALID, "line %d: a zero byte", w->line);
        if (c == '#' && !w->n && !w->quoted) {
            while (w->at < w->end && *w->at != '\n')
                w->at++;
        } else if (strchr(" \t\r\n;&|", c)) {
            if (command_end(w, c))
                return -1;
            w->line += c == '\n';
            w->at++;
        } else if (c == '"' || c == '\'') {
            if (quote_take(w))
                return -1;
        } else if (plain_take(w)) {
            return -1;
        }
    }
    if (word_end(w))
        return -1;
    return key_flush(w, "true");
}

json_t *mf_words_read(const char *text, size_t size, struct mf_error *err)
{
    struct words w = {.at = text,
        .end = text + size,
        .line = 1,
        .variables = json_object(),
        .arguments = json_object(),
        .err = err};

    if (!w.variables || !w.arguments)
        mf_error_set(err, MF_FAILED, "out of memory");
    else if (!words_take(&w))
        goto out;
    json_decref(w.arguments);
    w.arguments = NULL;
out:
    json_decref(w.variables);
    free(w.key);
    return w.arguments;
}

/* A line that only a command line has, "--key" without a colon, or only YAML,
 * "key: value" or "--key: value"; 0 for others.
 */
static int line_form(const char *line, const char *end)
{
    const char *p = line;
    size_t dashes = 0, n;

    while (p < end && (*p == ' ' || *p == '\t'))
        p++;
    while (p < end && *p == '-' && dashes < 2) {
        dashes++;
        p++;
    }
    n = 0;
    while (p + n < end && (isalnum((unsigned char)p[n]) || p[n] == '_' ||
                              (dashes != 1 && p[n] == '-')))
        n++;
    if (!n || !isalpha((unsigned char)*p) || dashes == 1)
        return 0;
    if (p + n < end && p[n] == ':' &&
        (p + n + 1 == end || isspace((unsigned char)p[n + 1])))
        return 1;
    for (const char *q = line; q + 3 < end; q++)
        if (q[0] == '-' && q[1] == '-' && isalpha((unsigned char)q[2]) &&
            (q == line || isspace((unsigned char)q[-1])))
            return 2;
    return dashes == 2 && n > 0 ? 2 : 0;
}

enum mf_form mf_form_find(const char *text, size_t size)
{
    const char *end = text + size, *line = text;
    bool yaml = false;

    while (line < end && isspace((unsigned char)*line))
        line++;
    if (line == end || *line == '{' || *line == '[' || *line == '"')
        return MF_FORM_JSON;
    while (line < end) {
        const char *next = memchr(line, '\n', (size_t)(end - line));
        int form = line_form(line, next ? next : end);

        if (form == 2)
            return MF_FORM_WORDS;
        yaml = yaml || form == 1;
        if (yaml && form == 1 && line > text + 65536)
            break;
        line = next ? next + 1 : end;
    }
    return yaml ? MF_FORM_YAML : MF_FORM_JSON;
}
