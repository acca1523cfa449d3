/* SPDX-License-Identifier: BSD-3-Clause
 * Files of Key=Value lines as Slurm writes them: slurm.conf, topology.conf,
 * gres.conf, and what scontrol prints.
 */
#ifndef MF_CONF_LINES_H
#define MF_CONF_LINES_H

#include "planner/text_file.h"

#define MF_CONF_PAIRS_MAX 256

struct mf_conf_pair {
    const char *key, *value;
};

struct mf_conf_line {
    const char *file;
    int number; /* of the line it begins on */
    struct mf_conf_pair pair[MF_CONF_PAIRS_MAX];
    int pairs; /* at least 1; words without '=' are left out */
};

/* -1 with ERR set ends the reading; file and line are put in front. */
typedef int (*mf_conf_function)(
    void *arg, const struct mf_conf_line *line, struct mf_error *err);

/* Call EACH for the lines of TEXT, which was read from PATH and is changed:
 * comments cut, lines that end in a backslash joined, values unquoted, files
 * of Include lines read in their place (from PATH's folder where they are
 * relative; 8 deep, no circles, 1,000 in all). An indented line that begins
 * no record continues the NodeName or PartitionName of scontrol before it.
 */
int mf_conf_each(const char *path, struct mf_text *text, mf_conf_function each,
    void *arg, struct mf_error *err);

/* The value of KEY (any case) in LINE, or NULL. */
const char *mf_conf_value(const struct mf_conf_line *line, const char *key);

#endif
