/* SPDX-License-Identifier: BSD-3-Clause
 * Processes of a node, as its system sees them.
 */
#include "runtime/guard_state.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* State and start of process PID; see proc(5), /proc/PID/stat. */
static int read_stat(int64_t pid, char *state, uint64_t *began)
{
    char path[64], line[1024];
    const char *at;
    size_t n;
    FILE *file;

    snprintf(path, sizeof path, "/proc/%" PRId64 "/stat", pid);
    file = fopen(path, "r");
    if (!file)
        return -1;
    n = fread(line, 1, sizeof line - 1, file);
    fclose(file);
    line[n] = 0;
    /* The name may hold blanks and brackets; its last bracket ends it. */
    at = strrchr(line, ')');
    if (!at || at[1] != ' ' || !at[2])
        return -1;
    *state = at[2];
    /* The state is field 3, the start field 22. */
    for (int field = 2; at && field < 22; field++)
        at = strchr(at + 1, ' ');
    *began = at ? strtoull(at, NULL, 10) : 0;
    return at ? 0 : -1;
}

void mfr_place_here(struct mfr_place *place)
{
    struct stat space;
    char state;

    *place = (struct mfr_place){.pid = (int64_t)getpid()};
    if (gethostname(place->host, sizeof place->host - 1))
        place->host[0] = 0;
    if (stat("/proc/self/ns/pid", &space) == 0)
        place->pids = (uint64_t)space.st_ino;
    if (read_stat(place->pid, &state, &place->began))
        place->pids = 0;
}

char mfr_place_state(const struct mfr_place *mine, const struct mfr_place *it)
{
    uint64_t began;
    char state;

    if (!mine->pids || mine->pids != it->pids || strcmp(mine->host, it->host))
        return 0;
    if (read_stat(it->pid, &state, &began))
        return 'X';
    if (began != it->began || state == 'Z' || state == 'x')
        return 'X';
    if (state == 't')
        return 'T';
    return state == 'D' ? 'R' : state;
}
