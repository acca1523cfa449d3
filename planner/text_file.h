/* SPDX-License-Identifier: BSD-3-Clause
 * A whole file of bounded size in memory.
 */
#ifndef MF_TEXT_FILE_H
#define MF_TEXT_FILE_H

#include <stddef.h>

#include "planner/layout/error.h"

#define MF_TEXT_FILE_MAX ((size_t)64 << 20)

struct mf_text {
    char *data; /* `length` bytes and a final 0; no 0 among them */
    size_t length;
};

/* Read the file or pipe at PATH. MF_INVALID, naming it and the mend: it can't
 * be read, is no file, holds a byte 0, is larger than MF_TEXT_FILE_MAX, or a
 * pipe whose writer rests for 10 s. Free `data`.
 */
int mf_text_read(const char *path, struct mf_text *text, struct mf_error *err);

#endif
