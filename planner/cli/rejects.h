/* SPDX-License-Identifier: BSD-3-Clause
 * Layouts that a search did not rank, and why.
 */
#ifndef MF_REJECTS_H
#define MF_REJECTS_H

#include <jansson.h>

#include "planner/search.h"

#define MF_REJECTS_MAX 10000

struct mf_reject {
    struct mf_layout layout;
    const char *reason; /* a literal */
};

/* At most MF_REJECTS_MAX of those whose reason holds WANTED ("all": any). */
struct mf_rejects {
    const char *wanted;
    struct mf_reject *reject;
    size_t rejects, room;
    int64_t all; /* that WANTED suits */
    bool failed; /* for want of memory */
};

mf_search_told mf_rejects_add; /* ARG is a struct mf_rejects */
void mf_rejects_free(struct mf_rejects *rejects);

/* [{layout, order, reason, message}]: the message of the rule that is broken,
 * with the mend.
 */
json_t *mf_rejects_to_json(const struct mf_rejects *rejects,
    const struct mf_model *model, const struct mf_search *search);
void mf_rejects_print(const struct mf_rejects *rejects);

#endif
