/* SPDX-License-Identifier: BSD-3-Clause
 * Slurm's host list expressions.
 */
#include "config.h"

#include "launcher/hostlist.h"

#include <ctype.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DIGITS_MAX 18 /* of a number that surely fits 64 bits */

/* The name built so far and where the results go. */
struct expansion {
    char name[MFL_HOST_TEXT];
    struct mfl_list *hosts;
    struct mf_error *err;
};

struct range {
    long long first, last;
    int width; /* digits, zeros in front kept */
};

static int expand(
    struct expansion *e, size_t used, const char *text, const char *end);

static int refuse(
    struct expansion *e, const char *text, const char *end, const char *why)
{
    return mf_error_set(e->err, MF_INVALID, "host list at '%.*s': %s",
        (int)(end - text > 100 ? 100 : end - text), text, why);
}

static bool is_host_char(char c)
{
    return isalnum((unsigned char)c) || c == '.' || c == '_' || c == '-';
}

bool mfl_hostlist_is_name(const char *name)
{
    size_t length = 0;

    while (is_host_char(name[length]))
        length++;
    return length > 0 && !name[length] && length < MFL_HOST_TEXT &&
           name[0] != '-';
}

static int read_number(
    const char **text, const char *end, long long *value, int *width)
{
    const char *p = *text;

    *value = 0;
    while (p < end && *p >= '0' && *p <= '9' && p - *text <= DIGITS_MAX)
        *value = 10 * *value + (*p++ - '0');
    *width = (int)(p - *text);
    *text = p;
    return *width >= 1 && *width <= DIGITS_MAX ? 0 : -1;
}

/* "7" or "01-12", up to the ',' or END. */
static int read_range(const char **text, const char *end, struct range *range)
{
    int width;

    if (read_number(text, end, &range->first, &range->width) < 0)
        return -1;
    range->last = range->first;
    if (*text < end && **text == '-') {
        ++*text;
        if (read_number(text, end, &range->last, &width) < 0)
            return -1;
    }
    if (range->last < range->first)
        return -1;
    if (*text < end)
        return *(*text)++ == ',' && *text < end ? 0 : -1;
    return 0;
}

static int emit(struct expansion *e, size_t used)
{
    if (e->hosts->count >= MFL_HOSTS_MAX)
        return mf_error_set(e->err, MF_INVALID,
            "host list: more than %zu hosts; name fewer", MFL_HOSTS_MAX);
    if (used == 0)
        return mf_error_set(e->err, MF_INVALID,
            "host list: a name is empty; write names joined by single commas");
    if (e->name[0] == '-')
        return mf_error_set(e->err, MF_INVALID,
            "host list: '%.100s' begins with a dash; give the node's name",
            e->name);
    return mfl_list_add(e->hosts, e->name, e->err);
}

/* The ranges in [OPEN, CLOSE), then what follows the bracket. */
static int expand_bracket(struct expansion *e, size_t used, const char *open,
    const char *close, const char *end)
{
    const char *p = open;
    struct range range;

    if (open == close)
        return refuse(e, open - 1, end, "nothing in the brackets");
    while (p < close) {
        if (read_range(&p, close, &range) < 0)
            return refuse(e, open - 1, end,
                "brackets hold numbers and rising ranges, such as [01-04,7]");
        for (long long i = range.first; i <= range.last; i++) {
            int n = snprintf(e->name + used, sizeof e->name - used, "%0*lld",
                range.width, i);

            if (n < 0 || (size_t)n >= sizeof e->name - used)
                return refuse(e, open - 1, end, "a name is too long");
            if (expand(e, used + (size_t)n, close + 1, end) < 0)
                return -1;
        }
    }
    return 0;
}

/* The name in e->name[0, USED), to be followed by what is in [TEXT, END). The
 * depth is bounded by the length of a name: each bracket adds a digit.
 */
static int expand(
    struct expansion *e, size_t used, const char *text, const char *end)
{
    const char *close;

    while (text < end && *text != '[') {
        if (!is_host_char(*text))
            return refuse(e, text, end,
                "a name holds letters, digits, '.', '_' and '-' only");
        if (used + 1 >= sizeof e->name)
            return refuse(e, text, end, "a name is too long");
        e->name[used++] = *text++;
    }
    e->name[used] = 0;
    if (text == end)
        return emit(e, used);
    close = memchr(text, ']', (size_t)(end - text));
    if (!close)
        return refuse(e, text, end, "a bracket is not closed");
    return expand_bracket(e, used, text + 1, close, end);
}

/* The end of the item at TEXT: a comma outside brackets, or the end. */
static const char *item_end(const char *text)
{
    bool inside = false;

    for (; *text && (inside || *text != ','); text++) {
        if (*text == '[')
            inside = true;
        else if (*text == ']')
            inside = false;
    }
    return text;
}

int mfl_hostlist_parse(
    const char *text, struct mfl_list *hosts, struct mf_error *err)
{
    struct expansion e = {.hosts = hosts, .err = err};

    for (;;) {
        const char *end = item_end(text);

        if (expand(&e, 0, text, end) < 0)
            return -1;
        if (!*end)
            return 0;
        text = end + 1;
    }
}

/* "8" or "8(x4)", up to the ',' or the end. */
static int read_count(const char **text, long long *value, long long *times)
{
    const char *end = *text + strlen(*text);
    int width;

    *times = 1;
    if (read_number(text, end, value, &width) < 0 || *value > INT_MAX)
        return -1;
    if (strncmp(*text, "(x", 2) == 0) {
        *text += 2;
        if (read_number(text, end, times, &width) < 0 || **text != ')')
            return -1;
        ++*text;
    }
    return 0;
}

int mfl_hostlist_counts(
    const char *text, size_t count, long *value, struct mf_error *err)
{
    const char *p = text;
    size_t done = 0;

    for (;;) {
        long long n, times;

        if (read_count(&p, &n, &times) < 0 || times > (long long)(count - done))
            break;
        while (times-- > 0)
            value[done++] = (long)n;
        if (!*p && done == count)
            return 0;
        if (*p++ != ',')
            break;
    }
    return mf_error_set(err, MF_INVALID,
        "'%.100s' is not a number for each of %zu nodes, such as 8(x4)", text,
        count);
}
