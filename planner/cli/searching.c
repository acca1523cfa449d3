/* SPDX-License-Identifier: BSD-3-Clause
 * What plan and size search: options turned into a search.
 */
#include "config.h"

#include "planner/cli/searching.h"

#include <inttypes.h>
#include <string.h>

#include "planner/cli/inputs.h"
#include "planner/layout/number.h"

#define THREADS_MOST 64

static const char *const size_names[MF_SIZES] = {
    "tp", "cp", "dp", "pp", "etp", "ep", "edp"};

const struct mf_option mf_options_search[] = {
    {"order", "O", "which axis varies fastest (both of Megatron-LM's)"},
    {"free-order", NULL, "try every order of the axes"},
    {"coupled", NULL, "only coupled layouts: etp = tp and ep inside dp"},
    {"fix", "AXIS=N", "keep an axis at a size, such as tp=2; repeatable"},
    {"forbid", "WHAT=V", "tp=8, dispatcher=deepep, recompute=full"},
    {"max-pp", "N", "most of it; likewise max-tp, max-ep, max-vpp …"},
    {"max-tp", "N", NULL},
    {"max-cp", "N", NULL},
    {"max-dp", "N", NULL},
    {"max-etp", "N", NULL},
    {"max-ep", "N", NULL},
    {"max-edp", "N", NULL},
    {"max-vpp", "N", NULL},
    {"max-micro-batch", "N", NULL},
    {"threads", "N", "threads that search (1)"},
    {NULL, NULL, NULL},
};

/* "NAME=…" of a size: which one, with *VALUE after it; -1. */
static int size_find(const char *text, const char **value)
{
    const char *equal = strchr(text, '=');
    size_t length = equal ? (size_t)(equal - text) : 0;

    *value = equal ? equal + 1 : NULL;
    for (int i = 0; i < MF_SIZES; i++)
        if (length == strlen(size_names[i]) &&
            !strncmp(text, size_names[i], length))
            return i;
    return -1;
}

static int fix_read(
    const char *text, struct mf_search *search, struct mf_error *err)
{
    const char *value;
    int i = size_find(text, &value);

    if (i >= 0)
        return mf_number_parse(
            value, size_names[i], 1, MF_WORLD_MAX, &search->fix[i], err);
    return mf_error_set(err, MF_INVALID,
        "--fix '%.32s' is not like tp=2, with tp, cp, dp, pp, etp, ep or edp",
        text);
}

/* Forbid one of N names, of which none may be left out twice. */
static int forbid_name(const char *text, const char *what,
    int (*find)(const char *), unsigned *allowed, struct mf_error *err)
{
    int found = find(text);

    if (found < 0)
        return mf_error_set(err, MF_INVALID,
            "--forbid %s=%.32s: there is no such %s", what, text, what);
    *allowed = (*allowed ? *allowed : ~0u) & ~(1u << found);
    return 0;
}

static int recompute_find(const char *text)
{
    struct mf_settings settings = {0};

    if (mf_recompute_parse(text, &settings) ||
        settings.recompute == MF_RECOMPUTE_MODULES)
        return -1;
    return (int)settings.recompute;
}

static int forbid_read(
    const char *text, struct mf_search *search, struct mf_error *err)
{
    const char *value;
    int i = size_find(text, &value);

    if (!strncmp(text, "dispatcher=", 11))
        return forbid_name(value, "dispatcher", mf_dispatcher_find,
            &search->limits.dispatchers, err);
    if (!strncmp(text, "recompute=", 10))
        return forbid_name(value, "recompute", recompute_find,
            &search->limits.recomputes, err);
    if (i < 0)
        return mf_error_set(err, MF_INVALID,
            "--forbid '%.32s' is not like tp=8, dispatcher=deepep or "
            "recompute=full",
            text);
    if (search->forbids == MF_FORBIDS_MAX)
        return mf_error_set(err, MF_INVALID, "more than %d sizes are forbidden",
            MF_FORBIDS_MAX);
    search->forbid[search->forbids].size = (enum mf_size)i;
    return mf_number_parse(value, size_names[i], 1, MF_WORLD_MAX,
        &search->forbid[search->forbids++].value, err);
}

static int max_read(
    const struct mf_cli *cli, struct mf_search *search, struct mf_error *err)
{
    static const char *const names[MF_SIZES] = {
        "max-tp", "max-cp", "max-dp", "max-pp", "max-etp", "max-ep", "max-edp"};

    for (int i = 0; i < MF_SIZES; i++)
        if (mf_cli_integer(
                cli, names[i], 1, MF_WORLD_MAX, &search->max[i], err))
            return -1;
    if (mf_cli_integer(
            cli, "max-vpp", 1, 1 << 20, &search->limits.max_vpp, err) ||
        mf_cli_integer(cli, "max-micro-batch", 1, 1 << 20,
            &search->limits.max_micro_batch, err))
        return -1;
    return 0;
}

static int orders_read(
    const struct mf_cli *cli, struct mf_search *search, struct mf_error *err)
{
    const char *order = mf_cli_value(cli, "order");
    unsigned given;

    search->order = mf_order_default();
    search->orders = MF_ORDERS_MEGATRON;
    if (mf_cli_has(cli, "free-order"))
        search->orders = MF_ORDERS_FREE;
    if (!order)
        return 0;
    if (search->orders == MF_ORDERS_FREE)
        return mf_error_set(
            err, MF_INVALID, "--order and --free-order: give one of them");
    search->orders = MF_ORDERS_ONE;
    return mf_order_parse(order, &search->order, &given, err);
}

static int scope_read(
    const struct mf_cli *cli, struct mf_search *search, struct mf_error *err)
{
    const char *text = mf_cli_value(cli, "scope");
    int found = text ? mf_scope_find(text) : MF_SCOPE_STEP;

    if (found < 0)
        return mf_error_set(
            err, MF_INVALID, "--scope '%.32s' is neither step nor moe", text);
    search->scope = (enum mf_scope)found;
    return 0;
}

int mf_search_read(
    const struct mf_cli *cli, struct mf_search *search, struct mf_error *err)
{
    struct mf_settings *s = &search->settings;
    int64_t threads = 1;
    const char *text;

    mf_settings_init(s);
    s->micro_batch = s->vpp = 0;
    s->first_layers = s->last_layers = -1;
    s->recompute = MF_RECOMPUTE_AUTO;
    s->dispatcher = MF_DISPATCHER_AUTO;
    search->coupled = mf_cli_has(cli, "coupled");
    if (mf_inputs_settings(cli, s, err) || scope_read(cli, search, err) ||
        orders_read(cli, search, err) || max_read(cli, search, err) ||
        mf_cli_integer(cli, "threads", 1, THREADS_MOST, &threads, err))
        return -1;
    search->threads = (int)threads;
    for (int i = 0; (text = mf_cli_value_at(cli, "fix", i)); i++)
        if (fix_read(text, search, err))
            return -1;
    for (int i = 0; (text = mf_cli_value_at(cli, "forbid", i)); i++)
        if (forbid_read(text, search, err))
            return -1;
    return 0;
}
