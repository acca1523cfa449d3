/* SPDX-License-Identifier: BSD-3-Clause
 * Where moefold-run is.
 */
#include "config.h"

#include "launcher/runner.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char *runner_check(const char *path)
{
    return path && *path && !access(path, X_OK) ? strdup(path) : NULL;
}

static char *runner_beside(void)
{
    char path[PATH_MAX + sizeof "/moefold-run"];
    ssize_t length = readlink("/proc/self/exe", path, PATH_MAX);
    char *slash;

    if (length < 0 || length == PATH_MAX)
        return NULL;
    path[length] = 0;
    slash = strrchr(path, '/');
    if (!slash)
        return NULL;
    memcpy(slash, "/moefold-run", sizeof "/moefold-run");
    return runner_check(path);
}

char *mfl_runner_find(void)
{
    const char *given = getenv("MOEFOLD_RUN");
    char *path;

    if (given && *given)
        return runner_check(given);
    path = runner_beside();
    return path ? path : runner_check(MF_BINDIR "/moefold-run");
}
