/* SPDX-License-Identifier: BSD-3-Clause
 * --help and --version.
 */
#include "config.h"

#include "planner/cli/help.h"

#include <stdio.h>

void mf_help_version(void)
{
    puts("moefold " PACKAGE_VERSION);
}

void mf_help_program(const struct mf_command *const *commands)
{
    fputs(
        "usage: moefold COMMAND [OPTION]…\n"
        "Plans, launches, runs and remembers Mixture-of-Experts layers whose\n"
        "attention and expert parts use different parallel layouts.\n\n",
        stdout);
    for (; *commands; commands++)
        printf("  %-9s %s\n", (*commands)->name, (*commands)->summary);
    fputs("\nmoefold COMMAND --help shows a command's options.\n"
          "Exit status: 0 done, 1 it failed, 2 wrong usage or input, "
          "3 the answer is no.\n",
        stdout);
}

static void help_table(const struct mf_option *table)
{
    for (; table->name; table++) {
        char text[64];

        /* One of a family of which another row shows the help. */
        if (!table->help)
            continue;
        snprintf(text, sizeof text, "--%s%s%s", table->name,
            table->value ? " " : "", table->value ? table->value : "");
        printf("  %-24s %s\n", text, table->help);
    }
}

void mf_help_command(
    const struct mf_command *command, const struct mf_option *universal)
{
    printf("usage: moefold %s%s%s [OPTION]…\n%s.\n\n", command->name,
        *command->operands ? " " : "", command->operands, command->summary);
    for (int i = 0; command->tables && command->tables[i]; i++)
        help_table(command->tables[i]);
    help_table(universal);
}
