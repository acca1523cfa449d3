/* SPDX-License-Identifier: BSD-3-Clause
 * Errors as values.
 */
#include "planner/layout/error.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static void error_clean(char *text)
{
    for (; *text; text++)
        if ((unsigned char)*text < ' ' || *text == 127)
            *text = '?';
}

int mf_error_set(
    struct mf_error *err, enum mf_status status, const char *fmt, ...)
{
    va_list args;

    if (!err)
        return -1;
    err->status = status;
    va_start(args, fmt);
    if (vsnprintf(err->text, sizeof err->text, fmt, args) < 0)
        err->text[0] = 0;
    va_end(args);
    error_clean(err->text);
    return -1;
}

int mf_error_prefix(struct mf_error *err, const char *fmt, ...)
{
    char text[sizeof err->text], context[256];
    va_list args;

    if (!err)
        return -1;
    va_start(args, fmt);
    if (vsnprintf(context, sizeof context, fmt, args) < 0)
        context[0] = 0;
    va_end(args);
    memcpy(text, err->text, sizeof text);
    snprintf(err->text, sizeof err->text, "%s: %.*s", context,
        (int)(sizeof text - sizeof context - 3), text);
    error_clean(err->text);
    return -1;
}
