/* SPDX-License-Identifier: BSD-3-Clause
 * Texts to files, whole or not at all.
 */
#ifndef MFL_FILE_H
#define MFL_FILE_H

#include <stdbool.h>

#include "planner/layout/error.h"

/* Write TEXT to PATH with MODE (less the umask). Without REPLACE a file that
 * is there is MF_INVALID and left alone; with it a regular file is replaced by
 * renaming a finished one over it, anything else is refused.
 */
int mfl_file_write(const char *path, const char *text, unsigned mode,
    bool replace, struct mf_error *err);

#endif
