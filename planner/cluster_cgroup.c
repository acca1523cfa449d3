/* SPDX-License-Identifier: BSD-3-Clause
 * What this process's control groups leave it of the machine.
 */
#include "config.h"

#include "planner/cluster_machine.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PATH_BYTES 4096

/* The first line of FOLDER/NAME; false: there is none. */
static bool line_read(
    const char *folder, const char *name, char *line, int size)
{
    char path[PATH_BYTES + 64];
    FILE *file;
    bool ok;

    snprintf(path, sizeof path, "%s/%s", folder, name);
    file = fopen(path, "re");
    ok = file && fgets(line, size, file);
    if (file)
        fclose(file);
    return ok;
}

static void least(int64_t *value, int64_t bound)
{
    if (bound > 0 && bound < *value)
        *value = bound;
}

/* "150000 100000" of cpu.max is one and a half cores: two that are not busy
 * all the time.
 */
static void folder_apply(const char *folder, struct mf_machine *machine)
{
    char line[128], period_line[128];
    int64_t quota = -1, period = 0, bytes;

    if (line_read(folder, "cpu.max", line, sizeof line)) {
        if (sscanf(line, "%" SCNd64 " %" SCNd64, &quota, &period) != 2)
            quota = -1; /* "max" */
    } else if (line_read(folder, "cpu.cfs_quota_us", line, sizeof line) &&
               line_read(folder, "cpu.cfs_period_us", period_line,
                   sizeof period_line)) {
        quota = strtoll(line, NULL, 10);
        period = strtoll(period_line, NULL, 10);
    }
    if (quota > 0 && period > 0)
        least(&machine->cores, (quota + period - 1) / period);
    if (!line_read(folder, "memory.max", line, sizeof line) &&
        !line_read(folder, "memory.limit_in_bytes", line, sizeof line))
        return;
    bytes = strtoll(line, NULL, 10);
    if (machine->memory_bytes > 0)
        least(&machine->memory_bytes, bytes);
}

/* The group itself and those over it: each may be the tightest. */
static void groups_apply(
    const char *root, const char *group, struct mf_machine *machine)
{
    char folder[PATH_BYTES];
    int n = snprintf(folder, sizeof folder, "%s%s", root, group);

    if (n < 0 || (size_t)n >= sizeof folder)
        return;
    for (;;) {
        char *slash;

        folder_apply(folder, machine);
        slash = strrchr(folder, '/');
        if (!slash || (size_t)(slash - folder) < strlen(root))
            return;
        *slash = 0;
    }
}

/* "0::/a/b" is version 2, "4:cpu,cpuacct:/a/b" version 1. */
void mf_machine_limit(
    const char *cgroup_file, const char *root, struct mf_machine *machine)
{
    FILE *file = fopen(cgroup_file, "re");
    char line[PATH_BYTES], hierarchy[PATH_BYTES + 16];

    while (file && fgets(line, sizeof line, file)) {
        char *names = strchr(line, ':'), *path;

        if (!names || !(path = strchr(names + 1, ':')))
            continue;
        *path++ = 0;
        names++;
        path[strcspn(path, "\n")] = 0;
        if (!names[0])
            snprintf(hierarchy, sizeof hierarchy, "%s", root);
        else if (!strncmp(names, "cpu,", 4) || !strcmp(names, "cpu") ||
                 !strcmp(names, "memory"))
            snprintf(hierarchy, sizeof hierarchy, "%s/%s", root, names);
        else
            continue;
        /* In a container the path is the host's and the root is its own. */
        groups_apply(hierarchy, path, machine);
        folder_apply(hierarchy, machine);
    }
    if (file)
        fclose(file);
}
