/* SPDX-License-Identifier: BSD-3-Clause
 * moefold export: a plan for other frameworks.
 */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "launcher/export.h"
#include "launcher/quote.h"
#include "planner/cli/commands.h"
#include "planner/layout/plan.h"

static json_t *flags_json(const struct mfl_list *flags)
{
    json_t *list = json_array();

    for (size_t i = 0; i < flags->count; i++)
        json_array_append_new(list, json_string(flags->item[i]));
    return json_pack("{s:o}", "flags", list);
}

static bool is_plain(const char *text)
{
    return *text && !text[strspn(text, "abcdefghijklmnopqrstuvwxyz"
                                       "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                       "0123456789._-")];
}

/* A line a flag, ready for a shell script. */
static void flags_print(const struct mfl_list *flags)
{
    for (size_t i = 0; i < flags->count; i++) {
        const bool is_flag = !strncmp(flags->item[i], "--", 2);

        if (i > 0)
            fputs(is_flag ? " \\\n" : " ", stdout);
        if (is_flag || is_plain(flags->item[i]))
            fputs(flags->item[i], stdout);
        else
            mfl_quote_shell(flags->item[i], stdout);
    }
    putchar('\n');
}

static int export_megatron(const struct mf_cli *cli, const struct mf_plan *plan,
    const struct mf_plan_entry *entry, struct mf_error *err)
{
    struct mfl_list flags = {0};
    int rc = mfl_export_megatron(plan, entry, &flags, err);

    if (rc == 0 && mf_cli_json(cli))
        rc = mf_cli_print_json(flags_json(&flags), err);
    else if (rc == 0)
        flags_print(&flags);
    mfl_list_free(&flags);
    return rc;
}

/* There is no other form than JSON. */
static int export_jax(const struct mf_plan_entry *entry, struct mf_error *err)
{
    json_t *json;

    return mfl_export_jax(entry, &json, err) ? -1
                                             : mf_cli_print_json(json, err);
}

static int export_run(struct mf_cli *cli, struct mf_error *err)
{
    const char *to = mf_cli_value(cli, "to");
    struct mf_plan plan;
    int64_t pick = 1;
    int rc = -1;

    if (!to || (strcmp(to, "megatron") && strcmp(to, "jax")))
        return mf_error_set(err, MF_INVALID, "--to %s: it is megatron or jax",
            to ? to : "is missing");
    if (mf_plan_read(mf_cli_operand(cli, 0), &plan, err) < 0)
        return -1;
    if (mf_cli_integer(cli, "pick", 1, (int64_t)plan.entries, &pick, err) < 0)
        goto out;
    if (pick > (int64_t)plan.entries)
        mf_error_set(
            err, MF_INVALID, "%s: it holds no layout", mf_cli_operand(cli, 0));
    else if (!strcmp(to, "jax"))
        rc = export_jax(&plan.entry[pick - 1], err);
    else
        rc = export_megatron(cli, &plan, &plan.entry[pick - 1], err);
out:
    mf_plan_free(&plan);
    return rc;
}

static const struct mf_option export_options[] = {
    {"to", "NAME", "megatron (its flags) or jax (a mesh)"},
    {"pick", "K", "the plan's Kth layout (1)"},
    {NULL, NULL, NULL},
};

static const struct mf_option *const export_tables[] = {export_options, NULL};

const struct mf_command mf_command_export = {
    .name = "export",
    .operands = "PLAN",
    .summary = "Write a plan for Megatron-LM or JAX",
    .tables = export_tables,
    .least = 1,
    .most = 1,
    .run = export_run,
};
