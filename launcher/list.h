/* SPDX-License-Identifier: BSD-3-Clause
 * A growing NULL-terminated list of strings: arguments, an environment, hosts.
 */
#ifndef MFL_LIST_H
#define MFL_LIST_H

#include <stddef.h>

#include "planner/layout/error.h"

struct mfl_list {
    char **item; /* NULL-terminated; NULL while the list is empty */
    size_t count, room;
};

/* Append a copy of TEXT, or of a printf-like text. */
int mfl_list_add(struct mfl_list *list, const char *text, struct mf_error *err);
int mfl_list_addf(struct mfl_list *list, struct mf_error *err, const char *fmt,
    ...) MF_PRINTF(3, 4);

/* As an environment: set NAME, or drop every variable whose name begins with
 * PREFIX.
 */
int mfl_list_set(struct mfl_list *list, const char *name, const char *value,
    struct mf_error *err);
/* The same, but a variable that is there already keeps its value. */
int mfl_list_default(struct mfl_list *list, const char *name, const char *value,
    struct mf_error *err);
void mfl_list_drop(struct mfl_list *list, const char *prefix);

/* A copy of the environment of this process. */
int mfl_list_environment(struct mfl_list *list, struct mf_error *err);

void mfl_list_free(struct mfl_list *list);

#endif
