/* SPDX-License-Identifier: BSD-3-Clause
 * Options of the commands that search: plan and size.
 */
#ifndef MF_SEARCHING_H
#define MF_SEARCHING_H

#include "planner/cli/cli.h"
#include "planner/search.h"

extern const struct mf_option mf_options_search[];

/* Fill SEARCH but for its world and top. */
int mf_search_read(
    const struct mf_cli *cli, struct mf_search *search, struct mf_error *err);

#endif
