/* SPDX-License-Identifier: BSD-3-Clause
 * The rank map: which rank sits on which node. Host files, rank files and
 * tables are all written from it.
 */
#ifndef MFL_MAP_H
#define MFL_MAP_H

#include <stdio.h>

#include "launcher/places.h"

struct mfl_seat {
    uint32_t node;  /* index in places.node */
    uint32_t local; /* rank within its node, and its device where there are
                       GPUs */
};

struct mfl_map {
    struct mfl_places places;
    int64_t world;
    struct mfl_seat *seat; /* [world] */
    bool gpus;
};

/* Seat the plan's ranks on LIST, the allocation or the plan's own nodes (see
 * mfl_places_find), each node filled before the next.
 */
int mfl_map_make(const struct mf_plan *plan, const char *list,
    struct mfl_map *map, struct mf_error *err);
void mfl_map_free(struct mfl_map *map);

/* The node of a rank. */
const char *mfl_map_node(const struct mfl_map *map, int64_t rank);

/* {world, layout, order, from, nodes, ranks[{rank, node, local, gpu,
 * coords{}}]}; gpu is null for CPU ranks.
 */
void mfl_map_print_json(
    const struct mfl_map *map, const struct mf_layout *layout, FILE *out);

/* The same for people. */
void mfl_map_print(
    const struct mfl_map *map, const struct mf_layout *layout, FILE *out);

/* Drawn: for each node its ranks, and under each the first rank of its group of
 * every kind; then over how many nodes the widest group of a kind lies. -1: no
 * memory.
 */
int mfl_map_draw(
    const struct mfl_map *map, const struct mf_layout *layout, FILE *out);

/* One node name a rank, for SLURM_HOSTFILE with --distribution=arbitrary. */
void mfl_map_print_hostfile(const struct mfl_map *map, FILE *out);

/* "NODE*RANKS,...", in the order of ranks: MOEFOLD_MAP, by which moefold-run
 * checks where it is.
 */
void mfl_map_print_counts(const struct mfl_map *map, FILE *out);

/* "rank R=NODE slot=LOCAL", for Open MPI 4's mpirun --rankfile: each rank is
 * bound to the core of its own number in the node.
 */
void mfl_map_print_rankfile(const struct mfl_map *map, FILE *out);

#endif
