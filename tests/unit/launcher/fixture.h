/* SPDX-License-Identifier: BSD-3-Clause
 * Plans for the launcher's tests, made by hand.
 */
#ifndef TEST_LAUNCHER_FIXTURE_H
#define TEST_LAUNCHER_FIXTURE_H

#include "launcher/map.h"
#include "planner/layout/plan.h"

/* 32 ranks on four nodes of eight H100, in the order NODES (comma-joined
 * names); three layouts, the third coupled:
 *   1 tp2.cp1.dp4.pp4/etp1.ep8.edp1, 4 + 6 ms a layer
 *   2 tp1.cp1.dp8.pp4/etp1.ep4.edp2, 5 + 7 ms
 *   3 tp2.cp1.dp4.pp4/etp2.ep4.edp1, 7 + 9 ms
 */
void fixture_plan(const char *nodes, struct mf_plan *plan);

/* Eight CPU ranks on one node called "here", one layout ep8. */
void fixture_cpu_plan(struct mf_plan *plan);

/* What mfl_map_print_json prints, read back; the test fails when it is not
 * JSON.
 */
json_t *fixture_map_json(
    const struct mfl_map *map, const struct mf_layout *layout);

/* The file's text, malloc'd; the test fails when it cannot be read. */
char *fixture_read(const char *file);

#endif
