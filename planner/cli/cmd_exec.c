/* SPDX-License-Identifier: BSD-3-Clause
 * moefold exec: run another program as one rank of a plan.
 */
#include "config.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "launcher/exec.h"
#include "planner/cli/commands.h"
#include "planner/layout/plan.h"

static int exec_run(struct mf_cli *cli, struct mf_error *err)
{
    char *const *command = mf_cli_operand_vector(cli) + 1;
    struct mfl_list env = {0};
    struct mfl_rank rank;
    struct mf_plan plan;
    char host[256];
    int rc;

    if (mf_cli_operands(cli) < 2)
        return mf_error_set(err, MF_INVALID,
            "exec wants a program behind --: moefold exec PLAN -- CMD…");
    if (mf_plan_read(mf_cli_operand(cli, 0), &plan, err) < 0)
        return -1;
    rc = mfl_exec_rank(&rank, host, sizeof host, err);
    if (rc == 0)
        rc = mfl_exec_prepare(&plan, &rank, &env, err);
    mf_plan_free(&plan);
    if (rc == 0) {
        execvpe(command[0], command, env.item);
        rc =
            mf_error_set(err, MF_FAILED, "%s: %s", command[0], strerror(errno));
    }
    mfl_list_free(&env);
    return rc;
}

static const struct mf_option *const exec_tables[] = {NULL};

const struct mf_command mf_command_exec = {
    .name = "exec",
    .operands = "PLAN -- CMD…",
    .summary = "Run another program as one rank of a plan, in its place",
    .tables = exec_tables,
    .least = 1,
    .most = -1,
    .run = exec_run,
};
