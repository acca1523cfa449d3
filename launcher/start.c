/* SPDX-License-Identifier: BSD-3-Clause
 * Starts moefold-run on its ranks.
 */
#include "config.h"

#include "launcher/start.h"

#include <errno.h>
#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "launcher/list.h"
#include "launcher/map.h"
#include "launcher/process.h"
#include "launcher/runner.h"

#define RUNNER "moefold-run"
#define RANKS_A_CORE 32 /* a slip must not start thousands here */

char *mfl_start_runner(struct mf_error *err)
{
    char *runner = mfl_runner_find();

    if (!runner)
        mf_error_set(err, MF_FAILED,
            RUNNER
            " is neither in $MOEFOLD_RUN, beside moefold, nor in " MF_BINDIR
            "; build moefold with MPI");
    return runner;
}

bool mfl_in_allocation(void)
{
    const char *job = getenv("SLURM_JOB_ID");

    return job && *job;
}

/* Processors that this process may use, 0 when not known. */
static int64_t processors(void)
{
    cpu_set_t set;

    CPU_ZERO(&set);
    if (sched_getaffinity(0, sizeof set, &set) < 0)
        return sysconf(_SC_NPROCESSORS_ONLN);
    return CPU_COUNT(&set);
}

int mfl_start_check_here(int64_t ranks, struct mf_error *err)
{
    int64_t cores = processors();

    if (cores > 0 && ranks / RANKS_A_CORE > cores)
        return mf_error_set(err, MF_INVALID,
            "%lld ranks are too many for this machine's %lld cores (at most "
            "%d a core); plan for fewer, or launch it as a job",
            (long long)ranks, (long long)cores, RANKS_A_CORE);
    return 0;
}

/* What the user has set in the environment stays. */
static int mpirun_environment(
    const struct mfl_start *start, struct mfl_list *env, struct mf_error *err)
{
    /* Else mpirun would spread the ranks over the allocation's nodes. */
    mfl_list_drop(env, "SLURM_");
    mfl_list_drop(env, "PMIX_");
    mfl_list_drop(env, "PMI_");
    mfl_list_drop(env, "MOEFOLD_MAP=");
    if (mfl_list_default(env, "OMPI_MCA_rmaps_base_oversubscribe", "1", err) <
        0)
        return -1;
    if (getuid() == 0 &&
        (mfl_list_set(env, "OMPI_ALLOW_RUN_AS_ROOT", "1", err) < 0 ||
            mfl_list_set(env, "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1", err) < 0))
        return -1;
    if (start->ranks > processors() &&
        mfl_list_default(env, "OMPI_MCA_mpi_yield_when_idle", "1", err) < 0)
        return -1;
    return 0;
}

static int mpirun_arguments(
    const struct mfl_start *start, struct mfl_list *argv, struct mf_error *err)
{
    char *program = mfl_process_find(
        "mpirun", "install Open MPI (Debian: openmpi-bin)", err);
    int rc;

    if (!program)
        return -1;
    rc = mfl_list_add(argv, program, err);
    free(program);
    /* --quiet: when moefold-run ends with a status it has said why; mpirun's
     * banner would only hide that line.
     */
    if (rc < 0 || mfl_list_add(argv, "--quiet", err) < 0 ||
        mfl_list_add(argv, "-n", err) < 0)
        return -1;
    return mfl_list_addf(argv, err, "%lld", (long long)start->ranks);
}

static int srun_arguments(const struct mfl_start *start, struct mfl_list *argv,
    const char *hostfile, struct mfl_list *env, struct mf_error *err)
{
    char *program =
        mfl_process_find("srun", "install Slurm's client commands", err);
    int rc;

    if (!program)
        return -1;
    rc = mfl_list_add(argv, program, err);
    free(program);
    if (rc < 0 || mfl_list_add(argv, "--mpi=pmix", err) < 0 ||
        mfl_list_add(argv, "--kill-on-bad-exit=1", err) < 0 ||
        mfl_list_addf(argv, err, "--ntasks=%lld", (long long)start->ranks) < 0)
        return -1;
    for (char *const *a = start->srun_args; a && *a; a++)
        if (mfl_list_add(argv, *a, err) < 0)
            return -1;
    mfl_list_drop(env, "SLURM_HOSTFILE=");
    /* The tree that Slurm 22.05 takes by default lets ranks of a busy cluster
     * out of MPI_Init too early: 9 of 14 starts crashed, none by the ring.
     */
    if (mfl_list_default(env, "SLURM_PMIX_FENCE", "ring", err) < 0)
        return -1;
    if (!hostfile)
        return mfl_list_add(argv, "--distribution=block", err);
    if (mfl_list_set(env, "SLURM_HOSTFILE", hostfile, err) < 0)
        return -1;
    return mfl_list_add(argv, "--distribution=arbitrary", err);
}

static int runner_arguments(
    const struct mfl_start *start, struct mfl_list *argv, struct mf_error *err)
{
    char *runner = mfl_start_runner(err);
    int rc;

    if (!runner)
        return -1;
    rc = mfl_list_add(argv, runner, err);
    free(runner);
    if (rc < 0)
        return -1;
    for (char *const *arg = start->args; *arg; arg++)
        if (mfl_list_add(argv, *arg, err) < 0)
            return -1;
    return 0;
}

/* A host file in a folder of its own; both are removed by seats_drop. */
struct seats {
    char folder[PATH_MAX], file[PATH_MAX + 16];
    char *counts; /* for MOEFOLD_MAP */
};

static int seats_count(
    const struct mfl_map *map, struct seats *seats, struct mf_error *err)
{
    size_t size = 0;
    FILE *out = open_memstream(&seats->counts, &size);

    if (out)
        mfl_map_print_counts(map, out);
    if (out && fclose(out) == 0)
        return 0;
    return mf_error_set(err, MF_FAILED, "out of memory");
}

static int seats_write(
    const struct mf_plan *plan, struct seats *seats, struct mf_error *err)
{
    struct mfl_map map;
    FILE *out;
    int rc;

    if (mfl_map_make(plan, NULL, &map, err) < 0)
        return -1;
    snprintf(seats->file, sizeof seats->file, "%s/hostfile", seats->folder);
    out = fopen(seats->file, "wxe");
    if (out)
        mfl_map_print_hostfile(&map, out);
    rc = !out || fflush(out) != 0 || ferror(out) ? -1 : 0;
    if (out && fclose(out) != 0)
        rc = -1;
    if (rc < 0)
        mf_error_set(err, MF_FAILED, "%s: cannot write it: %s", seats->file,
            strerror(errno));
    else
        rc = seats_count(&map, seats, err);
    mfl_map_free(&map);
    return rc;
}

static int seats_take(
    const struct mf_plan *plan, struct seats *seats, struct mf_error *err)
{
    const char *temp = getenv("TMPDIR");
    int n = snprintf(seats->folder, sizeof seats->folder, "%s/moefold.XXXXXX",
        temp && *temp ? temp : "/tmp");

    if (n < 0 || (size_t)n >= sizeof seats->folder || !mkdtemp(seats->folder)) {
        seats->folder[0] = 0;
        return mf_error_set(err, MF_FAILED,
            "cannot make a folder for the host file in TMPDIR or /tmp: %s",
            strerror(errno));
    }
    return seats_write(plan, seats, err);
}

static void seats_drop(struct seats *seats)
{
    free(seats->counts);
    if (seats->file[0])
        unlink(seats->file);
    if (seats->folder[0])
        rmdir(seats->folder);
}

/* The whole command line, and what must change in ENV for it. */
static int compose(const struct mfl_start *start, struct seats *seats,
    struct mfl_list *argv, struct mfl_list *env, struct mf_error *err)
{
    bool here = start->here || !mfl_in_allocation();

    if (here && mfl_start_check_here(start->ranks, err) < 0)
        return -1;
    if (mfl_list_environment(env, err) < 0 ||
        mfl_list_default(env, "OPENBLAS_NUM_THREADS", "1", err) < 0)
        return -1;
    if (here) {
        if (mpirun_environment(start, env, err) < 0 ||
            mpirun_arguments(start, argv, err) < 0)
            return -1;
    } else {
        if (start->plan && seats_take(start->plan, seats, err) < 0)
            return -1;
        mfl_list_drop(env, "MOEFOLD_MAP=");
        if (seats->counts &&
            mfl_list_set(env, "MOEFOLD_MAP", seats->counts, err) < 0)
            return -1;
        if (srun_arguments(
                start, argv, start->plan ? seats->file : NULL, env, err) < 0)
            return -1;
    }
    return runner_arguments(start, argv, err);
}

int mfl_start_run(
    const struct mfl_start *start, char **output, struct mf_error *err)
{
    struct mfl_list argv = {0}, env = {0};
    struct seats seats = {0};
    int status, rc = -1;

    if (compose(start, &seats, &argv, &env, err) < 0 ||
        mfl_process_run(argv.item, env.item, output, &status, err) < 0)
        goto out;
    rc = status;
    if (status > MF_NO) {
        rc = mf_error_set(err, MF_FAILED, RUNNER " ended with status %d%s%s",
            status, status > 128 ? ": " : "",
            status > 128 ? strsignal(status - 128) : "");
        if (output) {
            free(*output);
            *output = NULL;
        }
    }
out:
    seats_drop(&seats);
    mfl_list_free(&argv);
    mfl_list_free(&env);
    return rc;
}
