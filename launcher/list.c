/* SPDX-License-Identifier: BSD-3-Clause
 * A growing NULL-terminated list of strings.
 */
#include "config.h"

#include "launcher/list.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Takes TEXT over, also when it fails; TEXT may be NULL (no memory). */
static int list_take(struct mfl_list *list, char *text, struct mf_error *err)
{
    if (text && list->count + 1 >= list->room) {
        size_t room = list->room ? 2 * list->room : 16;
        char **item = realloc(list->item, room * sizeof *item);

        if (!item) {
            free(text);
            text = NULL;
        } else {
            list->item = item;
            list->room = room;
        }
    }
    if (!text)
        return mf_error_set(err, MF_FAILED, "out of memory");
    list->item[list->count++] = text;
    list->item[list->count] = NULL;
    return 0;
}

int mfl_list_add(struct mfl_list *list, const char *text, struct mf_error *err)
{
    return list_take(list, strdup(text), err);
}

int mfl_list_addf(
    struct mfl_list *list, struct mf_error *err, const char *fmt, ...)
{
    char *text = NULL;
    va_list args;

    va_start(args, fmt);
    if (vasprintf(&text, fmt, args) < 0)
        text = NULL;
    va_end(args);
    return list_take(list, text, err);
}

void mfl_list_drop(struct mfl_list *list, const char *prefix)
{
    size_t kept = 0, length = strlen(prefix);

    if (!list->item)
        return;
    for (size_t i = 0; i < list->count; i++) {
        if (strncmp(list->item[i], prefix, length) == 0)
            free(list->item[i]);
        else
            list->item[kept++] = list->item[i];
    }
    list->count = kept;
    list->item[kept] = NULL;
}

int mfl_list_set(struct mfl_list *list, const char *name, const char *value,
    struct mf_error *err)
{
    char prefix[256];

    snprintf(prefix, sizeof prefix, "%s=", name);
    mfl_list_drop(list, prefix);
    return mfl_list_addf(list, err, "%s=%s", name, value);
}

int mfl_list_default(struct mfl_list *list, const char *name, const char *value,
    struct mf_error *err)
{
    size_t length = strlen(name);

    for (size_t i = 0; i < list->count; i++)
        if (strncmp(list->item[i], name, length) == 0 &&
            list->item[i][length] == '=')
            return 0;
    return mfl_list_addf(list, err, "%s=%s", name, value);
}

int mfl_list_environment(struct mfl_list *list, struct mf_error *err)
{
    for (char **entry = environ; entry && *entry; entry++)
        if (mfl_list_add(list, *entry, err) < 0)
            return -1;
    return 0;
}

void mfl_list_free(struct mfl_list *list)
{
    if (!list)
        return;
    for (size_t i = 0; i < list->count; i++)
        free(list->item[i]);
    free(list->item);
    *list = (struct mfl_list){0};
}
