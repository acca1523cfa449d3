/* SPDX-License-Identifier: BSD-3-Clause
 * The rank map drawn: a block of lines a node, and which group each rank is in.
 */
#include "config.h"

#include <inttypes.h>
#include <stdlib.h>

#include "launcher/map.h"
#include "planner/layout/groups.h"

static const enum mf_group_kind kinds[] = {MF_GROUP_TP, MF_GROUP_CP,
    MF_GROUP_DP, MF_GROUP_ETP, MF_GROUP_EP, MF_GROUP_EDP, MF_GROUP_PP};

enum { KINDS = sizeof kinds / sizeof *kinds };

/* A group is named by its first rank. */
static int64_t first_of(const struct mf_layout *layout, enum mf_group_kind kind,
    int64_t rank, int32_t *member)
{
    mf_group_members(layout, kind, rank, member);
    return member[0];
}

/* Nodes that the group of RANK lies on; ranks ascend, and so do their nodes. */
static int64_t nodes_of(
    const struct mfl_map *map, const int32_t *member, int64_t size)
{
    int64_t nodes = 1;

    for (int64_t i = 1; i < size; i++)
        nodes += map->seat[member[i]].node != map->seat[member[i - 1]].node;
    return nodes;
}

static void show_ranks(
    const struct mfl_map *map, int64_t first, int64_t end, FILE *out)
{
    fprintf(out, "%s\n  %-5s", mfl_map_node(map, first), "rank");
    for (int64_t r = first; r < end; r++)
        fprintf(out, " %6" PRId64, r);
    fputc('\n', out);
}

static void show_kind(const struct mf_layout *layout, enum mf_group_kind kind,
    int64_t first, int64_t end, int32_t *member, FILE *out)
{
    if (mf_group_size(layout, kind) < 2)
        return;
    fprintf(out, "  %-5s", mf_group_kind_name(kind));
    for (int64_t r = first; r < end; r++)
        fprintf(out, " %6" PRId64, first_of(layout, kind, r, member));
    fputc('\n', out);
}

/* How far the widest group of each kind reaches. */
static void show_reach(const struct mfl_map *map,
    const struct mf_layout *layout, int32_t *member, FILE *out)
{
    fputs("\ngroup  ranks  nodes of the widest\n", out);
    for (int k = 0; k < KINDS; k++) {
        const int64_t size = mf_group_size(layout, kinds[k]);
        int64_t widest = 0;

        if (size < 2)
            continue;
        for (int64_t r = 0; r < map->world; r++) {
            int64_t nodes;

            if (first_of(layout, kinds[k], r, member) != r)
                continue;
            nodes = nodes_of(map, member, size);
            widest = nodes > widest ? nodes : widest;
        }
        fprintf(out, "%-5s  %5" PRId64 "  %5" PRId64 "\n",
            mf_group_kind_name(kinds[k]), size, widest);
    }
}

int mfl_map_draw(
    const struct mfl_map *map, const struct mf_layout *layout, FILE *out)
{
    int32_t *member = calloc((size_t)map->world, sizeof *member);
    int64_t end;

    if (!member)
        return -1;
    for (int64_t first = 0; first < map->world; first = end) {
        for (end = first;
             end < map->world && map->seat[end].node == map->seat[first].node;)
            end++;
        show_ranks(map, first, end, out);
        for (int k = 0; k < KINDS; k++)
            show_kind(layout, kinds[k], first, end, member, out);
    }
    show_reach(map, layout, member, out);
    free(member);
    return 0;
}
