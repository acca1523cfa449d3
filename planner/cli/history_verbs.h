/* SPDX-License-Identifier: BSD-3-Clause
 * The verbs of moefold history that have files of their own.
 */
#ifndef MF_HISTORY_VERBS_H
#define MF_HISTORY_VERBS_H

#include "db/db.h"
#include "planner/cli/cli.h"
#include "planner/layout/layout.h"

typedef int mf_history_verb(const struct mf_cli *cli, struct mf_error *err);

mf_history_verb mf_history_compare, mf_history_regress;
mf_history_verb mf_history_prune, mf_history_check;
mf_history_verb mf_history_export, mf_history_import;
mf_history_verb mf_history_report;

/* The options that choose runs. LAYOUT is room for the canonical text. */
int mf_history_filter(const struct mf_cli *cli, struct mfdb_filter *filter,
    char layout[MF_LAYOUT_TEXT], struct mf_error *err);

/* The time that option NAME says, in seconds since 1970: a date or time in UTC
 * (2026-12-01, 2026-12-01T08:30:00Z), or how long before now (90d, 12h, 30m).
 * *UNIX_S is left alone when it is not given.
 */
int mf_history_time(const struct mf_cli *cli, const char *name, double *unix_s,
    struct mf_error *err);

/* For verbs that need a history: MF_INVALID when there is none yet. */
int mf_history_open(const struct mf_cli *cli, mfdb **db, struct mf_error *err);

#endif
