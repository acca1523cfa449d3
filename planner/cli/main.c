/* SPDX-License-Identifier: BSD-3-Clause
 * moefold: plans, launches, runs and remembers folded MoE layouts.
 */
#include <stddef.h>

#include "planner/cli/commands.h"

int main(int argc, char **argv)
{
    static const struct mf_command *const commands[] = {
        &mf_command_model,
        &mf_command_cluster,
        &mf_command_groups,
        &mf_command_predict,
        &mf_command_plan,
        &mf_command_explain,
        &mf_command_size,
        &mf_command_launch,
        &mf_command_map,
        &mf_command_exec,
        &mf_command_export,
        &mf_command_run,
        &mf_command_verify,
        &mf_command_tune,
        &mf_command_history,
        &mf_command_fit,
        NULL,
    };

    return mf_cli_main(argc, argv, commands);
}
