/* SPDX-License-Identifier: BSD-3-Clause
 * Times on the command line of history.
 */
#include "config.h"

#include <string.h>
#include <time.h>

#include "planner/cli/history_verbs.h"
#include "planner/layout/number.h"

static int64_t unit_s(char unit)
{
    switch (unit) {
    case 'd':
        return 86400;
    case 'h':
        return 3600;
    case 'm':
        return 60;
    default:
        return 0;
    }
}

static int bad(const char *name, const char *text, struct mf_error *err)
{
    return mf_error_set(err, MF_INVALID,
        "--%s %s: write a date (2026-12-01 or 2026-12-01T08:30:00Z, UTC), or "
        "how long ago (90d, 12h, 30m)",
        name, text);
}

/* 1 when TEXT is such a length, 0 not, -1 out of bounds. */
static int before_now(
    const char *name, const char *text, double *unix_s, struct mf_error *err)
{
    const size_t digits = strspn(text, "0123456789");
    char number[16];
    int64_t count;

    if (digits == 0 || digits >= sizeof number || !unit_s(text[digits]) ||
        text[digits + 1])
        return 0;
    memcpy(number, text, digits);
    number[digits] = '\0';
    if (mf_number_parse(number, name, 0, 36500LL * 1440, &count, err))
        return -1;
    *unix_s = (double)time(NULL) - (double)(count * unit_s(text[digits]));
    return 1;
}

/* strptime takes days that no month has; timegm moves those on. */
static bool is_a_day(const struct tm *read, time_t *seconds)
{
    struct tm moved = *read;

    *seconds = timegm(&moved);
    return *seconds >= 0 && moved.tm_mday == read->tm_mday &&
           moved.tm_mon == read->tm_mon;
}

int mf_history_time(const struct mf_cli *cli, const char *name, double *unix_s,
    struct mf_error *err)
{
    static const char *const forms[] = {
        "%Y-%m-%d", "%Y-%m-%dT%H:%M:%SZ", "%Y-%m-%dT%H:%M:%S"};
    const char *text = mf_cli_value(cli, name);
    int rc;

    if (!text)
        return 0;
    rc = before_now(name, text, unix_s, err);
    if (rc)
        return rc < 0 ? -1 : 0;
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        struct tm utc = {0};
        const char *end = strptime(text, forms[i], &utc);
        time_t seconds;

        if (!end || *end)
            continue;
        if (!is_a_day(&utc, &seconds))
            break;
        *unix_s = (double)seconds;
        return 0;
    }
    return bad(name, text, err);
}
