/* SPDX-License-Identifier: BSD-3-Clause
 * moefold map: which rank of a plan sits where.
 */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "launcher/file.h"
#include "launcher/map.h"
#include "planner/cli/commands.h"
#include "planner/layout/plan.h"

/* What PRINT writes, to FILE. */
static int map_write(const struct mfl_map *map, const char *file,
    void (*print)(const struct mfl_map *map, FILE *out), struct mf_error *err)
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    int rc = -1;

    if (!out)
        return mf_error_set(err, MF_FAILED, "out of memory");
    print(map, out);
    if (fclose(out) != 0)
        mf_error_set(err, MF_FAILED, "out of memory");
    else
        rc = mfl_file_write(file, text, 0666, true, err);
    free(text);
    return rc;
}

static int map_show(const struct mf_cli *cli, const struct mfl_map *map,
    const struct mf_layout *layout, struct mf_error *err)
{
    const char *hostfile = mf_cli_value(cli, "hostfile");
    const char *rankfile = mf_cli_value(cli, "rankfile");

    if (hostfile && map_write(map, hostfile, mfl_map_print_hostfile, err) < 0)
        return -1;
    if (rankfile && map_write(map, rankfile, mfl_map_print_rankfile, err) < 0)
        return -1;
    if (mf_cli_has(cli, "show") && !mf_cli_json(cli))
        return mfl_map_draw(map, layout, stdout)
                   ? mf_error_set(err, MF_FAILED, "out of memory")
                   : 0;
    if (mf_cli_json(cli))
        mfl_map_print_json(map, layout, stdout);
    else
        mfl_map_print(map, layout, stdout);
    return 0;
}

static int map_run(struct mf_cli *cli, struct mf_error *err)
{
    struct mf_plan plan;
    struct mfl_map map;
    int64_t pick = 1;
    int rc = -1;

    if (mf_plan_read(mf_cli_operand(cli, 0), &plan, err) < 0)
        return -1;
    if (mf_cli_integer(cli, "pick", 1, (int64_t)plan.entries, &pick, err) < 0)
        goto out;
    if (pick > (int64_t)plan.entries) {
        mf_error_set(
            err, MF_INVALID, "%s: it holds no layout", mf_cli_operand(cli, 0));
        goto out;
    }
    if (mfl_map_make(&plan, mf_cli_value(cli, "nodes"), &map, err) < 0)
        goto out;
    rc = map_show(cli, &map, &plan.entry[pick - 1].layout, err);
    mfl_map_free(&map);
out:
    mf_plan_free(&plan);
    return rc;
}

static const struct mf_option map_options[] = {
    {"pick", "K", "the plan's Kth layout (1)"},
    {"nodes", "LIST", "these nodes in this order, as n[1-4,7] (the job's)"},
    {"show", NULL, "draw nodes, ranks and the groups they are in"},
    {"hostfile", "FILE", "write a node a rank, for SLURM_HOSTFILE"},
    {"rankfile", "FILE", "write rank R=NODE slot=S, for mpirun --rankfile"},
    {NULL, NULL, NULL},
};

static const struct mf_option *const map_tables[] = {map_options, NULL};

const struct mf_command mf_command_map = {
    .name = "map",
    .operands = "PLAN",
    .summary = "Show which rank sits on which node, in a job or for a list",
    .tables = map_tables,
    .least = 1,
    .most = 1,
    .run = map_run,
};
