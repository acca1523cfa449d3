/* SPDX-License-Identifier: BSD-3-Clause
 * Layouts that a search did not rank, kept and shown.
 */
#include "config.h"

#include "planner/cli/rejects.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool reason_suits(const struct mf_rejects *r, const char *reason)
{
    return !strcmp(r->wanted, "all") || strstr(reason, r->wanted);
}

void mf_rejects_add(
    void *arg, const struct mf_layout *layout, const char *reason)
{
    struct mf_rejects *r = arg;

    if (!reason_suits(r, reason))
        return;
    r->all++;
    if (r->rejects == MF_REJECTS_MAX || r->failed)
        return;
    if (r->rejects == r->room) {
        size_t room = r->room ? 2 * r->room : 64;
        struct mf_reject *more = realloc(r->reject, room * sizeof *more);

        if (!more) {
            r->failed = true;
            return;
        }
        r->reject = more;
        r->room = room;
    }
    r->reject[r->rejects++] = (struct mf_reject){*layout, reason};
}

void mf_rejects_free(struct mf_rejects *r)
{
    if (!r)
        return;
    free(r->reject);
    r->reject = NULL;
    r->rejects = r->room = 0;
}

static json_t *reject_json(const struct mf_reject *reject,
    const struct mf_model *model, const struct mf_search *search)
{
    char text[MF_LAYOUT_TEXT], order[MF_LAYOUT_TEXT];
    struct mf_error err = {0};
    bool broken = mf_cost_check(model, &reject->layout, &search->settings,
                      search->scope, &err) != 0;

    mf_layout_format(&reject->layout, text, sizeof text);
    mf_order_format(&reject->layout.order, order, sizeof order);
    return json_pack("{s:s, s:s, s:s, s:o}", "layout", text, "order", order,
        "reason", reject->reason, "message",
        broken ? json_string(err.text) : json_null());
}

json_t *mf_rejects_to_json(const struct mf_rejects *r,
    const struct mf_model *model, const struct mf_search *search)
{
    json_t *list = json_array();

    for (size_t i = 0; i < r->rejects; i++)
        json_array_append_new(list, reject_json(&r->reject[i], model, search));
    return list;
}

void mf_rejects_print(const struct mf_rejects *r)
{
    printf("\nnot ranked for '%s': %" PRId64 "\n", r->wanted, r->all);
    for (size_t i = 0; i < r->rejects; i++) {
        char text[MF_LAYOUT_TEXT];

        mf_layout_format(&r->reject[i].layout, text, sizeof text);
        printf("  %-36s %s\n", text, r->reject[i].reason);
    }
    if (r->all > (int64_t)r->rejects)
        printf("  and %" PRId64 " more\n", r->all - (int64_t)r->rejects);
}
