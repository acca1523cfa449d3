/* SPDX-License-Identifier: BSD-3-Clause
 * moefold history prune and check.
 */
#include "config.h"

#include <stdio.h>

#include "planner/cli/database.h"
#include "planner/cli/history.h"
#include "planner/cli/history_verbs.h"

static int prune_print(const struct mf_cli *cli, const struct mfdb_runs *runs,
    bool dry_run, struct mf_error *err)
{
    if (mf_cli_json(cli)) {
        json_t *json = mf_history_runs_json(runs);

        json_object_set_new(json, "dry_run", json_boolean(dry_run));
        return mf_cli_print_json(json, err);
    }
    if (runs->count > 0)
        mf_history_table(runs);
    printf("%sruns %s: %zu\n", runs->count ? "\n" : "",
        dry_run ? "that would be removed" : "removed", runs->count);
    return 0;
}

int mf_history_prune(const struct mf_cli *cli, struct mf_error *err)
{
    struct mfdb_prune_rule rule = {
        .keep_last = 1, .dry_run = mf_cli_has(cli, "dry-run")};
    char text[MFDB_ERROR_TEXT];
    struct mfdb_runs runs;
    mfdb *db;
    int rc;

    if (!mf_cli_value(cli, "older-than"))
        return mf_error_set(err, MF_INVALID,
            "prune wants --older-than (90d, or a date); the fastest and the "
            "newest run of each kind stay");
    if (mf_history_time(cli, "older-than", &rule.before_unix_s, err) ||
        mf_cli_integer(cli, "keep-last", 1, INT32_MAX, &rule.keep_last, err))
        return -1;
    db = mf_database_update(cli, err);
    if (!db)
        return -1;
    if (mfdb_prune(db, &rule, &runs, text))
        rc = mf_error_set(err, MF_FAILED, "%s", text);
    else
        rc = prune_print(cli, &runs, rule.dry_run, err);
    mf_database_warn(db, "history");
    mfdb_runs_free(&runs);
    mfdb_close(db);
    return rc;
}

static void problem(void *arg, const char *text)
{
    json_array_append_new(arg, mf_history_text(text));
}

int mf_history_check(const struct mf_cli *cli, struct mf_error *err)
{
    json_t *problems = json_array(), *line;
    char text[MFDB_ERROR_TEXT], plain[MF_HISTORY_CELL];
    mfdb *db;
    size_t i;
    int rc;

    if (mf_history_open(cli, &db, err)) {
        json_decref(problems);
        return -1;
    }
    rc = mfdb_check(db, problem, problems, text);
    mf_database_warn(db, "history");
    mfdb_close(db);
    if (rc < 0) {
        json_decref(problems);
        return mf_error_set(err, MF_FAILED, "%s", text);
    }
    if (mf_cli_json(cli)) {
        if (mf_cli_print_json(
                json_pack("{s:b, s:O}", "ok", rc == 0, "problems", problems),
                err))
            rc = -1;
    } else {
        json_array_foreach(problems, i, line)
            printf("%s\n", mf_history_plain(json_string_value(line), plain));
        if (rc == 0)
            puts("all is well");
    }
    json_decref(problems);
    if (rc == 1)
        mf_error_set(err, MF_NO,
            "the history is damaged; export what can be "
            "read and import it into a new one");
    return rc == 1 ? MF_NO : rc;
}
