/* SPDX-License-Identifier: BSD-3-Clause
 * Lists of 0 and 1 as Python writes them: ([0]*3+[1]*58).
 */
#include "planner/model_read_megatron.h"

#include <stdlib.h>

/* A Python expression of lists: sums of [0, 1] * 3, with brackets. */
struct list {
    const char *at;
    json_t *array;
    int64_t most;
    int depth;
};

static void blanks(struct list *l)
{
    while (*l->at == ' ' || *l->at == '\'' || *l->at == '"')
        l->at++;
}

static int list_sum(struct list *l);

static int list_atom(struct list *l)
{
    char close = *l->at == '[' ? ']' : ')';
    bool numbers = *l->at == '[';

    if (*l->at != '[' && *l->at != '(')
        return -1;
    l->at++;
    if (!numbers) {
        if (++l->depth > 16 || list_sum(l))
            return -1;
        l->depth--;
    }
    for (blanks(l); numbers && *l->at != close; blanks(l)) {
        if ((*l->at != '0' && *l->at != '1') ||
            (int64_t)json_array_size(l->array) >= l->most ||
            json_array_append_new(l->array, json_integer(*l->at - '0')))
            return -1;
        l->at++;
        blanks(l);
        if (*l->at == ',')
            l->at++;
    }
    if (*l->at != close)
        return -1;
    l->at++;
    return 0;
}

/* An atom, so many times over. */
static int list_product(struct list *l)
{
    size_t from = json_array_size(l->array), n;
    long long times = 1;

    blanks(l);
    if (list_atom(l))
        return -1;
    n = json_array_size(l->array) - from;
    for (blanks(l); *l->at == '*'; blanks(l)) {
        char *end;
        long long factor = strtoll(l->at + 1, &end, 10);

        if (end == l->at + 1 || factor < 0 || factor > l->most ||
            __builtin_mul_overflow(times, factor, &times) || times > l->most)
            return -1;
        l->at = end;
    }
    if (!times)
        while (json_array_size(l->array) > from)
            json_array_remove(l->array, from);
    for (long long i = 1; i < times; i++)
        for (size_t k = 0; k < n; k++)
            if ((int64_t)json_array_size(l->array) >= l->most ||
                json_array_append(l->array, json_array_get(l->array, from + k)))
                return -1;
    return 0;
}

static int list_sum(struct list *l)
{
    if (list_product(l))
        return -1;
    for (blanks(l); *l->at == '+'; blanks(l)) {
        l->at++;
        if (list_product(l))
            return -1;
    }
    return 0;
}

json_t *mf_list_read(const char *text)
{
    struct list l = {.at = text, .array = json_array(), .most = MF_LAYERS_MAX};

    if (l.array && !list_sum(&l)) {
        blanks(&l);
        if (!*l.at)
            return l.array;
    }
    json_decref(l.array);
    return NULL;
}
