/* SPDX-License-Identifier: BSD-3-Clause
 * Slurm's host list expressions.
 */
#include "config.h"

#include "launcher/hostlist.h"

#include <limits.h>
#include <string.h>

#define DIGITS_MAX 18 /* of a number that surely fits 64 bits */

bool mfl_hostlist_is_name(const char *name)
{
    return mf_host_is_plain(name);
}

static int host_add(void *arg, const char *name, struct mf_error *err)
{
    if (name[0] == '-')
        return mf_error_set(err, MF_INVALID,
            "host list: '%.100s' begins with a dash; give the node's name",
            name);
    if (!mf_host_is_plain(name))
        return mf_error_set(err, MF_INVALID,
            "host list at '%.100s': a name holds letters, digits, '.', '_' "
            "and '-' only",
            name);
    return mfl_list_add(arg, name, err);
}

int mfl_hostlist_parse(
    const char *text, struct mfl_list *hosts, struct mf_error *err)
{
    size_t left = MFL_HOSTS_MAX - hosts->count;

    if (hosts->count >= MFL_HOSTS_MAX)
        return mf_error_set(err, MF_INVALID,
            "host list: more than %zu hosts; name fewer", MFL_HOSTS_MAX);
    return mf_hostlist_each(text, left, host_add, hosts, err);
}

static int read_number(const char **text, long long *value)
{
    const char *p = *text;

    *value = 0;
    while (*p >= '0' && *p <= '9' && p - *text <= DIGITS_MAX) {
        if (p - *text < DIGITS_MAX)
            *value = 10 * *value + (*p - '0');
        p++;
    }
    if (p == *text || p - *text > DIGITS_MAX)
        return -1;
    *text = p;
    return 0;
}

/* "8" or "8(x4)", up to the ',' or the end. */
static int read_count(const char **text, long long *value, long long *times)
{
    *times = 1;
    if (read_number(text, value) < 0 || *value > INT_MAX)
        return -1;
    if (strncmp(*text, "(x", 2) == 0) {
        *text += 2;
        if (read_number(text, times) < 0 || **text != ')')
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
