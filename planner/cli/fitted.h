/* SPDX-License-Identifier: BSD-3-Clause
 * The coefficients that a command line asks for.
 */
#ifndef MF_FITTED_H
#define MF_FITTED_H

#include "db/db.h"
#include "planner/cli/cli.h"
#include "planner/cost.h"

/* --coefficients from --db; without it the newest set that was fitted to
 * CLUSTER, else the prior of its devices, which is also called "prior". A
 * database that is not there is no error unless a set of it is asked for.
 */
int mf_inputs_coefficients(const struct mf_cli *cli,
    const struct mf_cluster *cluster, struct mf_coefficients *set,
    struct mf_error *err);

/* SAVED over the prior of CLUSTER; names that are not known are refused. */
int mf_coefficients_restore(const struct mfdb_coefficients *saved,
    const struct mf_cluster *cluster, struct mf_coefficients *set,
    struct mf_error *err);

/* The path of --db or the default one; malloc'd, NULL with ERR filled. */
char *mf_inputs_db(const struct mf_cli *cli, struct mf_error *err);

#endif
