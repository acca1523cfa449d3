/* SPDX-License-Identifier: BSD-3-Clause
 * What machine this is.
 */
#include "config.h"

#include "runtime/machine.h"

#include <math.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "kernels/kernels.h"
#include "runtime/collective.h"

/* The text behind "KEY:" on the first line of FILE that begins so; false when
 * there is none.
 */
static bool file_field(
    const char *file, const char *key, char *text, size_t size)
{
    FILE *stream = fopen(file, "re");
    char line[512];
    bool found = false;

    if (!stream)
        return false;
    while (!found && fgets(line, sizeof line, stream)) {
        const char *colon = strchr(line, ':');

        if (!colon || strncmp(line, key, strlen(key)) != 0)
            continue;
        colon += 1 + strspn(colon + 1, " \t");
        snprintf(text, size, "%.*s", (int)strcspn(colon, "\n"), colon);
        found = true;
    }
    if (fclose(stream))
        return false;
    return found;
}

double mfr_machine_memory(void)
{
    char text[64], *end;
    double kib;

    if (!file_field("/proc/meminfo", "MemAvailable", text, sizeof text))
        return NAN;
    kib = strtod(text, &end);
    return end != text ? 1024 * kib : NAN;
}

void mfr_machine_cpu(char *text, size_t size)
{
    text[0] = 0;
    file_field("/proc/cpuinfo", "model name", text, size);
}

void mfr_machine_libraries(char *text, size_t size)
{
    char mpi[MPI_MAX_LIBRARY_VERSION_STRING] = "MPI";
    int length = 0;

    if (MPI_Get_library_version(mpi, &length) != MPI_SUCCESS)
        snprintf(mpi, sizeof mpi, "MPI");
    mpi[strcspn(mpi, ",\n")] = 0;
    snprintf(text, size, "%.100s; %.140s", mpi, mfk_blas_version());
}

void mfr_machine_user(char *text, size_t size)
{
    const struct passwd *entry = getpwuid(geteuid());

    snprintf(text, size, "%s", entry && entry->pw_name ? entry->pw_name : "");
}

/* Is NAME one of the names in LIST, joined by commas? */
static bool listed(const char *list, const char *name)
{
    const size_t length = strlen(name);

    while (*list) {
        const size_t n = strcspn(list, ",");

        if (n == length && !strncmp(list, name, n))
            return true;
        list += n + (list[n] == ',');
    }
    return false;
}

/* The names of SIZE ranks to their list; quadratic in nodes, once a run. */
static void join(
    const char *names, int ranks, char *text, size_t size, int64_t *count)
{
    size_t used = 0;

    *count = 0;
    text[0] = 0;
    for (int r = 0; r < ranks; r++) {
        const char *name = names + (size_t)r * MPI_MAX_PROCESSOR_NAME;
        const size_t length = strlen(name);

        if (r > 0 && !strcmp(name, name - MPI_MAX_PROCESSOR_NAME))
            continue;
        if (listed(text, name))
            continue;
        ++*count;
        if (used + length + 5 < size)
            used += (size_t)snprintf(
                text + used, size - used, "%s%s", used > 0 ? "," : "", name);
        else if (used + 4 < size && !listed(text, "..."))
            used += (size_t)snprintf(text + used, size - used, ",...");
    }
}

int mfr_machine_nodes(MPI_Comm world, char *text, size_t size, int64_t *count,
    char **all, struct mf_error *err)
{
    char name[MPI_MAX_PROCESSOR_NAME] = "", *names = NULL;
    int rank, ranks, length = 0, rc = 0;

    if (mfr_mpi(MPI_Comm_rank(world, &rank), "MPI_Comm_rank", err) ||
        mfr_mpi(MPI_Comm_size(world, &ranks), "MPI_Comm_size", err) ||
        mfr_mpi(MPI_Get_processor_name(name, &length), "MPI_Get_processor_name",
            err))
        return -1;
    if (rank == 0) {
        names = malloc((size_t)ranks * sizeof name);
        if (!names)
            rc = mf_error_set(err, MF_FAILED, "out of memory");
    }
    rc = mfr_agree(world, rc, err);
    if (rc == 0)
        rc = mfr_gather(name, names, (int)sizeof name, MPI_CHAR, 0, world,
            "MPI_Gather (names)", err);
    if (rc == 0 && rank == 0)
        join(names, ranks, text, size, count);
    *all = names;
    return rc;
}

const char *mfr_machine_node(const char *names, int64_t rank)
{
    return names + rank * MPI_MAX_PROCESSOR_NAME;
}
