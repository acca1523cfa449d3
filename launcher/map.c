/* SPDX-License-Identifier: BSD-3-Clause
 * The rank map: which rank sits on which node.
 */
#include "config.h"

#include "launcher/map.h"

#include <stdlib.h>

int mfl_map_make(const struct mf_plan *plan, const char *list,
    struct mfl_map *map, struct mf_error *err)
{
    int64_t rank = 0;

    *map = (struct mfl_map){
        .world = plan->world, .gpus = !plan->cluster.cpu_ranks};
    if (mfl_places_find(plan, list, &map->places, err) < 0)
        return -1;
    map->seat = calloc((size_t)plan->world, sizeof *map->seat);
    if (!map->seat) {
        mfl_map_free(map);
        return mf_error_set(err, MF_FAILED, "out of memory");
    }
    for (size_t i = 0; i < map->places.node.count; i++)
        for (int64_t k = 0; k < map->places.ranks[i] && rank < map->world; k++)
            map->seat[rank++] = (struct mfl_seat){(uint32_t)i, (uint32_t)k};
    return 0;
}

void mfl_map_free(struct mfl_map *map)
{
    if (!map)
        return;
    mfl_places_free(&map->places);
    free(map->seat);
    *map = (struct mfl_map){0};
}

const char *mfl_map_node(const struct mfl_map *map, int64_t rank)
{
    return map->places.node.item[map->seat[rank].node];
}

static void print_rank(const struct mfl_map *map,
    const struct mf_layout *layout, int64_t rank, FILE *out)
{
    char gpu[16] = "null";
    struct mf_coords c;

    if (map->gpus)
        snprintf(gpu, sizeof gpu, "%u", map->seat[rank].local);
    mf_layout_coords(layout, rank, &c);
    fprintf(out,
        "    {\"rank\": %lld, \"node\": \"%s\", \"local\": %u, \"gpu\": %s, "
        "\"coords\": {\"tp\": %lld, \"cp\": %lld, \"dp\": %lld, \"pp\": %lld, "
        "\"etp\": %lld, \"ep\": %lld, \"edp\": %lld}}%s\n",
        (long long)rank, mfl_map_node(map, rank), map->seat[rank].local, gpu,
        (long long)c.tp, (long long)c.cp, (long long)c.dp, (long long)c.pp,
        (long long)c.etp, (long long)c.ep, (long long)c.edp,
        rank + 1 < map->world ? "," : "");
}

/* Written as it is made: as one document in memory a million ranks would take
 * gigabytes. No text in it needs escapes: nodes are host names.
 */
void mfl_map_print_json(
    const struct mfl_map *map, const struct mf_layout *layout, FILE *out)
{
    char text[MF_LAYOUT_TEXT], order[64];
    size_t nodes = map->seat[map->world - 1].node + (size_t)1;

    mf_layout_format(layout, text, sizeof text);
    mf_order_format(&layout->order, order, sizeof order);
    fprintf(out,
        "{\n  \"world\": %lld,\n  \"layout\": \"%s\",\n"
        "  \"order\": \"%s\",\n  \"coupled\": %s,\n  \"from\": \"%s\",\n"
        "  \"nodes\": %zu,\n  \"ranks\": [\n",
        (long long)map->world, text, order, layout->coupled ? "true" : "false",
        map->places.from, nodes);
    for (int64_t rank = 0; rank < map->world && !ferror(out); rank++)
        print_rank(map, layout, rank, out);
    fputs("  ]\n}\n", out);
}

void mfl_map_print(
    const struct mfl_map *map, const struct mf_layout *layout, FILE *out)
{
    char text[MF_LAYOUT_TEXT];
    struct mf_coords c;

    mf_layout_format(layout, text, sizeof text);
    fprintf(out, "%lld ranks of %s%s, nodes from the %s\n\n",
        (long long)map->world, text, layout->coupled ? " (coupled)" : "",
        map->places.from);
    fprintf(out, "%6s  %-20s %5s %4s %4s %4s %4s %4s %4s %4s %4s\n", "rank",
        "node", "local", "gpu", "tp", "cp", "dp", "pp", "etp", "ep", "edp");
    for (int64_t rank = 0; rank < map->world; rank++) {
        char gpu[16] = "-";

        if (map->gpus)
            snprintf(gpu, sizeof gpu, "%u", map->seat[rank].local);
        mf_layout_coords(layout, rank, &c);
        fprintf(out,
            "%6lld  %-20s %5u %4s %4lld %4lld %4lld %4lld %4lld %4lld %4lld\n",
            (long long)rank, mfl_map_node(map, rank), map->seat[rank].local,
            gpu, (long long)c.tp, (long long)c.cp, (long long)c.dp,
            (long long)c.pp, (long long)c.etp, (long long)c.ep,
            (long long)c.edp);
    }
}

void mfl_map_print_hostfile(const struct mfl_map *map, FILE *out)
{
    for (int64_t rank = 0; rank < map->world; rank++)
        fprintf(out, "%s\n", mfl_map_node(map, rank));
}

void mfl_map_print_counts(const struct mfl_map *map, FILE *out)
{
    int64_t end;

    for (int64_t first = 0; first < map->world; first = end) {
        for (end = first + 1;
             end < map->world && map->seat[end].node == map->seat[first].node;)
            end++;
        fprintf(out, "%s%s*%lld", first > 0 ? "," : "",
            mfl_map_node(map, first), (long long)(end - first));
    }
}

void mfl_map_print_rankfile(const struct mfl_map *map, FILE *out)
{
    for (int64_t rank = 0; rank < map->world; rank++)
        fprintf(out, "rank %lld=%s slot=%u\n", (long long)rank,
            mfl_map_node(map, rank), map->seat[rank].local);
}
