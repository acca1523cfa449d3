/* SPDX-License-Identifier: BSD-3-Clause
 * The history that --db names, else the user's own, opened for a command.
 */
#ifndef MF_DATABASE_H
#define MF_DATABASE_H

#include "db/db.h"
#include "planner/cli/cli.h"

/* To write: made when it is not there. NULL with ERR filled: MF_FAILED when it
 * can't be written, MF_INVALID when it is damaged or not ours.
 */
mfdb *mf_database_update(const struct mf_cli *cli, struct mf_error *err);

/* To ask: leftover spools are merged where that is possible, else it is opened
 * read only. *DB is NULL when there is no history yet; nothing is made then.
 */
int mf_database_query(
    const struct mf_cli *cli, mfdb **db, struct mf_error *err);

/* Tell on standard error what DB had to leave as it was. */
void mf_database_warn(const mfdb *db, const char *command);

#endif
