/* SPDX-License-Identifier: BSD-3-Clause
 * All commands of moefold, one a file.
 */
#ifndef MF_COMMANDS_H
#define MF_COMMANDS_H

#include "planner/cli/cli.h"

extern const struct mf_command mf_command_model;
extern const struct mf_command mf_command_cluster;
extern const struct mf_command mf_command_groups;
extern const struct mf_command mf_command_predict;
extern const struct mf_command mf_command_plan;
extern const struct mf_command mf_command_explain;
extern const struct mf_command mf_command_size;
extern const struct mf_command mf_command_launch;
extern const struct mf_command mf_command_map;
extern const struct mf_command mf_command_exec;
extern const struct mf_command mf_command_export;
extern const struct mf_command mf_command_run;
extern const struct mf_command mf_command_tune;
extern const struct mf_command mf_command_verify;
extern const struct mf_command mf_command_history;
extern const struct mf_command mf_command_fit;

#endif
