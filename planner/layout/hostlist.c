/* SPDX-License-Identifier: BSD-3-Clause
 * Slurm's host list expressions.
 */
#include "planner/layout/hostlist.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#define DIGITS_MAX 18 /* of a number that surely fits 64 bits */
#define BRACKETS_MAX 16
#define ITEM_MAX ((size_t)1 << 20)

static const char separators[] = ", \t\r\n";

/* Where a bracket opens and closes. */
struct bracket {
    const char *open, *close;
};

struct walk {
    mf_host_function each;
    void *arg;
    struct mf_error *err;
    size_t most, count;
    const char *item, *end; /* the item that is being walked */
    struct bracket bracket[BRACKETS_MAX];
    int brackets;
    int64_t number[BRACKETS_MAX]; /* chosen for each bracket */
    int width[BRACKETS_MAX];
};

struct range {
    int64_t first, last;
    int width; /* digits, zeros in front kept */
};

bool mf_host_is_plain(const char *name)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyz"
                                "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
    size_t length = strlen(name);

    return length > 0 && length < MF_HOST_TEXT && name[0] != '-' &&
           strspn(name, plain) == length;
}

static int refuse(const struct walk *w, const char *at, const char *why)
{
    long length = w->end - at;

    return mf_error_set(w->err, MF_INVALID, "host list at '%.*s': %s",
        (int)(length > 100 ? 100 : length), at, why);
}

static int number_read(
    const char **text, const char *end, int64_t *value, int *width)
{
    const char *p = *text;

    *value = 0;
    while (p < end && *p >= '0' && *p <= '9' && p - *text <= DIGITS_MAX) {
        if (p - *text < DIGITS_MAX)
            *value = 10 * *value + (*p - '0');
        p++;
    }
    *width = (int)(p - *text);
    *text = p;
    return *width >= 1 && *width <= DIGITS_MAX ? 0 : -1;
}

/* "7", "01-12" or, as Slurm has it, "7-" for 7; up to a ',' or END. */
static int range_read(const char **text, const char *end, struct range *range)
{
    int width;

    if (number_read(text, end, &range->first, &range->width) < 0)
        return -1;
    range->last = range->first;
    if (*text < end && **text == '-') {
        ++*text;
        if (*text < end && **text != ',' &&
            number_read(text, end, &range->last, &width) < 0)
            return -1;
    }
    if (range->last < range->first)
        return -1;
    if (*text < end)
        return *(*text)++ == ',' && *text < end ? 0 : -1;
    return 0;
}

/* Append LENGTH bytes of TEXT to NAME. */
static int name_add(
    const struct walk *w, char *name, size_t *used, const char *text, long n)
{
    if (*used + (size_t)n >= MF_HOST_TEXT)
        return refuse(w, w->item, "a name is too long");
    memcpy(name + *used, text, (size_t)n);
    *used += (size_t)n;
    name[*used] = 0;
    return 0;
}

static int emit(struct walk *w)
{
    char name[MF_HOST_TEXT] = "", digits[32];
    const char *from = w->item;
    size_t used = 0;

    for (int i = 0; i < w->brackets; i++) {
        int n = snprintf(digits, sizeof digits, "%0*lld", w->width[i],
            (long long)w->number[i]);

        if (name_add(w, name, &used, from, w->bracket[i].open - from) < 0 ||
            name_add(w, name, &used, digits, n) < 0)
            return -1;
        from = w->bracket[i].close + 1;
    }
    if (name_add(w, name, &used, from, w->end - from) < 0)
        return -1;
    if (w->count++ >= w->most)
        return mf_error_set(w->err, MF_INVALID,
            "host list: more than %zu hosts; name fewer", w->most);
    return w->each(w->arg, name, w->err);
}

static int bracket_walk(struct walk *w, int at);

/* The bracket that turns next faster than AT: from the last but one down to
 * the first, then the last.
 */
static int bracket_next(struct walk *w, int at)
{
    if (at == w->brackets - 1)
        return emit(w);
    return bracket_walk(w, at > 0 ? at - 1 : w->brackets - 1);
}

/* Depth is bounded by BRACKETS_MAX. */
static int bracket_walk(struct walk *w, int at)
{
    const struct bracket *b = &w->bracket[at];
    const char *p = b->open + 1;
    struct range range;

    if (p == b->close)
        return refuse(w, b->open, "nothing in the brackets");
    while (p < b->close) {
        if (range_read(&p, b->close, &range) < 0)
            return refuse(w, b->open,
                "brackets hold numbers and rising ranges, such as [01-04,7]");
        w->width[at] = range.width;
        for (int64_t i = range.first; i <= range.last; i++) {
            w->number[at] = i;
            if (bracket_next(w, at) < 0)
                return -1;
        }
    }
    return 0;
}

static int brackets_find(struct walk *w)
{
    w->brackets = 0;
    for (const char *p = w->item; p < w->end; p++) {
        const char *close;

        if (*p == ']')
            return refuse(w, p, "a bracket is closed but was not opened");
        if (*p != '[')
            continue;
        close = memchr(p, ']', (size_t)(w->end - p));
        if (!close)
            return refuse(w, p, "a bracket is not closed");
        if (w->brackets == BRACKETS_MAX)
            return refuse(w, p, "too many brackets in one name");
        w->bracket[w->brackets++] = (struct bracket){.open = p, .close = close};
        p = close;
    }
    return 0;
}

static int item_walk(struct walk *w)
{
    if ((size_t)(w->end - w->item) > ITEM_MAX)
        return refuse(w, w->item, "too long");
    if (brackets_find(w) < 0)
        return -1;
    if (w->brackets == 0)
        return emit(w);
    return bracket_walk(w, w->brackets > 1 ? w->brackets - 2 : 0);
}

/* The end of the item at TEXT: a separator outside brackets, or the end. */
static const char *item_end(const char *text)
{
    bool inside = false;

    for (; *text && (inside || !strchr(separators, *text)); text++) {
        if (*text == '[')
            inside = true;
        else if (*text == ']')
            inside = false;
    }
    return text;
}

int mf_hostlist_each(const char *text, size_t most, mf_host_function each,
    void *arg, struct mf_error *err)
{
    struct walk w = {.each = each,
        .arg = arg,
        .err = err,
        .most = most ? most : MF_HOSTS_MAX};

    for (text += strspn(text, separators); *text;
         text += strspn(text, separators)) {
        w.item = text;
        w.end = text = item_end(text);
        if (item_walk(&w) < 0)
            return -1;
    }
    if (w.count == 0)
        return mf_error_set(
            err, MF_INVALID, "host list: empty; give names, such as n[01-04]");
    return 0;
}
