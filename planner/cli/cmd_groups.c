/* SPDX-License-Identifier: BSD-3-Clause
 * moefold groups: the rank groups of a layout.
 */
#include "config.h"

#include <inttypes.h>
#include <stdio.h>

#include "planner/cli/commands.h"
#include "planner/cli/inputs.h"
#include "planner/layout/groups.h"

static void print_json_kind(const struct mf_groups *groups)
{
    putchar('[');
    for (int64_t g = 0; g < groups->count; g++) {
        const int32_t *rank = groups->rank + g * groups->size;

        printf("%s[%" PRId32, g ? "," : "", rank[0]);
        for (int64_t i = 1; i < groups->size; i++)
            printf(",%" PRId32, rank[i]);
        putchar(']');
    }
    putchar(']');
}

/* Written as it is made: as one document in memory a million ranks would take
 * gigabytes. No text in it needs escapes.
 */
static int groups_print_json(
    const struct mf_layout *layout, struct mf_error *err)
{
    char text[MF_LAYOUT_TEXT], order[MF_LAYOUT_TEXT];
    struct mf_groups groups;

    mf_layout_format(layout, text, sizeof text);
    mf_order_format(&layout->order, order, sizeof order);
    for (int kind = 0; kind < MF_GROUP_KINDS; kind++) {
        if (mf_groups_build(layout, (enum mf_group_kind)kind, &groups, err))
            return -1;
        if (kind == 0)
            printf("{\n  \"world\": %" PRId64 ",\n  \"layout\": \"%s\",\n"
                   "  \"order\": \"%s\",\n  \"coupled\": %s,\n"
                   "  \"groups\": {\n",
                mf_layout_world(layout), text, order,
                layout->coupled ? "true" : "false");
        printf("    \"%s\": ", mf_group_kind_name((enum mf_group_kind)kind));
        print_json_kind(&groups);
        puts(kind + 1 < MF_GROUP_KINDS ? "," : "");
        mf_groups_free(&groups);
        if (ferror(stdout))
            break;
    }
    puts("  }\n}");
    return 0;
}

/* The first groups of each kind; a terminal is no place for 16,384 ranks. */
static int groups_print(const struct mf_layout *layout, struct mf_error *err)
{
    enum { SHOWN = 16 };
    char text[MF_LAYOUT_TEXT], order[MF_LAYOUT_TEXT];

    mf_layout_format(layout, text, sizeof text);
    mf_order_format(&layout->order, order, sizeof order);
    printf("%s, order %s%s, world %" PRId64 "\n\n", text, order,
        layout->coupled ? ", coupled" : "", mf_layout_world(layout));
    printf("%-10s %7s %5s  %s\n", "kind", "groups", "size", "ranks");
    for (int kind = 0; kind < MF_GROUP_KINDS; kind++) {
        struct mf_groups groups;
        int64_t all, shown;

        if (mf_groups_build(layout, (enum mf_group_kind)kind, &groups, err))
            return -1;
        all = groups.count * groups.size;
        shown = all < SHOWN ? all : SHOWN;
        printf("%-10s %7" PRId64 " %5" PRId64 " ",
            mf_group_kind_name((enum mf_group_kind)kind), groups.count,
            groups.size);
        for (int64_t i = 0; i < shown; i++)
            printf("%s%" PRId32 "%s", i % groups.size ? "," : " {",
                groups.rank[i], i % groups.size == groups.size - 1 ? "}" : "");
        puts(shown < all ? " …" : "");
        mf_groups_free(&groups);
    }
    return 0;
}

static int groups_run(struct mf_cli *cli, struct mf_error *err)
{
    struct mf_layout layout;
    unsigned given;
    int64_t world;

    if (mf_inputs_layout(cli, &layout, &given, err) ||
        mf_inputs_layout_world(cli, &layout, &world, err))
        return -1;
    if (!world)
        return mf_error_set(
            err, MF_INVALID, "no world; give --world N, or dp in the layout");
    if (mf_layout_resolve(&layout, world, given, err))
        return -1;
    return mf_cli_json(cli) ? groups_print_json(&layout, err)
                            : groups_print(&layout, err);
}

static const struct mf_option groups_options[] = {
    {"world", "N", "ranks"},
    {"gpus", "N", "the same as --world"},
    {NULL, NULL, NULL},
};

static const struct mf_option *const groups_tables[] = {
    mf_options_layout, groups_options, NULL};

const struct mf_command mf_command_groups = {
    .name = "groups",
    .operands = "",
    .summary = "Show the rank groups of a layout, as Megatron-LM builds them",
    .tables = groups_tables,
    .run = groups_run,
};
