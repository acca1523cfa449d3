/* SPDX-License-Identifier: BSD-3-Clause
 * What differs between versions of Slurm, in one table.
 */
#include "config.h"

#include <stddef.h>

#ifdef HAVE_SLURM
#include <slurm/slurm.h>
#endif
#include <stdio.h>
#include <string.h>

#include "launcher/job.h"
#include "planner/layout/number.h"

#define OLDEST 2205
#define USUAL 2311

/* From which version on; of its news, NEWS of Slurm's sources. */
static const struct row {
    int since; /* 100 major + minor */
    bool srun_cpus_per_task, segments;
} table[] = {
    {2205, true, false},
    {2311, false, true},
};

static int version_here(void)
{
#ifdef SLURM_VERSION_NUMBER
    return (int)SLURM_VERSION_MAJOR(SLURM_VERSION_NUMBER) * 100 +
           (int)SLURM_VERSION_MINOR(SLURM_VERSION_NUMBER);
#else
    return USUAL;
#endif
}

static int read_part(const char *text, size_t length, int64_t *value)
{
    char part[4];
    struct mf_error err;

    if (length == 0 || length >= sizeof part)
        return -1;
    memcpy(part, text, length);
    part[length] = '\0';
    return mf_number_parse(part, "version", 0, 99, value, &err);
}

static int read_version(const char *text, int *version)
{
    const size_t major = strspn(text, "0123456789");
    const char *rest = text + major + (text[major] == '.');
    const size_t minor = strspn(rest, "0123456789");
    int64_t a, b;

    if (text[major] != '.' || read_part(text, major, &a) ||
        read_part(rest, minor, &b) || (rest[minor] && rest[minor] != '.'))
        return -1;
    *version = (int)(100 * a + b);
    return 0;
}

int mfl_slurm_find(
    const char *version, struct mfl_slurm *slurm, struct mf_error *err)
{
    int number = version_here();

    if (version && read_version(version, &number))
        return mf_error_set(err, MF_INVALID,
            "--slurm-version: '%.40s' is not like 23.11", version);
    if (number < OLDEST)
        return mf_error_set(err, MF_INVALID,
            "--slurm-version: Slurm %d.%02d is older than 22.05, and what its "
            "srun takes is not known here",
            number / 100, number % 100);
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        if (number >= table[i].since)
            *slurm = (struct mfl_slurm){number / 100, number % 100,
                table[i].srun_cpus_per_task, table[i].segments};
    return 0;
}
