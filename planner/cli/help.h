/* SPDX-License-Identifier: BSD-3-Clause
 * --help and --version, printed from the tables of options.
 */
#ifndef MF_HELP_H
#define MF_HELP_H

#include "planner/cli/cli.h"

/* All commands. */
void mf_help_program(const struct mf_command *const *commands);

/* One command with its options; UNIVERSAL are those every command has. */
void mf_help_command(
    const struct mf_command *command, const struct mf_option *universal);

void mf_help_version(void);

#endif
