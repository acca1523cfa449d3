/* SPDX-License-Identifier: BSD-3-Clause
 * Values from a plan or a user on their way into a job script.
 */
#ifndef MFL_QUOTE_H
#define MFL_QUOTE_H

#include <stdio.h>

#include "planner/layout/error.h"

/* TEXT as one word of a POSIX shell: in single quotes, each of its own single
 * quotes written as '\''. Nothing in it is expanded, newlines included.
 */
void mfl_quote_shell(const char *text, FILE *out);

/* TEXT as a value on an #SBATCH line, read back by sbatch as it is: plain
 * when it is plain, else in double quotes with \ before " and \ (sbatch takes
 * a backslash as an escape within either kind of quotes).
 */
void mfl_quote_sbatch(const char *text, FILE *out);

/* TEXT in a comment: control characters, which could end it, become '?'. */
void mfl_quote_comment(const char *text, FILE *out);

/* MF_INVALID, naming OPTION, when TEXT cannot stand on an #SBATCH line: empty,
 * over 1,024 bytes, a newline or another control character in it.
 */
int mfl_quote_check(const char *option, const char *text, struct mf_error *err);

#endif
