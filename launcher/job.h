/* SPDX-License-Identifier: BSD-3-Clause
 * A batch job for a plan, as data: the script and the submission through
 * libslurm are both made from it, so that they cannot differ.
 */
#ifndef MFL_JOB_H
#define MFL_JOB_H

#include "launcher/picks.h"
#include "planner/layout/plan.h"

#define MFL_ITERATIONS 20 /* timed ones, unless the user says otherwise */
#define MFL_TIME_UNLIMITED INT64_MAX

/* What the user asked for; NULL and 0: not given. */
struct mfl_wish {
    const char *plan_file, *picks; /* picks NULL: the first */
    const char *name, *partition, *account, *qos, *time, *log;
    const char *db, *command_line;
    const char *container, *slurm_version;
    char *const *modules, *const *extra; /* NULL-terminated, or NULL */
    int64_t iterations, cpus_per_task, after, switches, segment;
    bool requeue;
};

/* What differs between versions of Slurm. */
struct mfl_slurm {
    int major, minor;        /* 23, 11 */
    bool srun_cpus_per_task; /* srun reads a task's cores only from
                                SRUN_CPUS_PER_TASK: 22.05 to 23.02 */
    bool segments;           /* --segment, with topology/block: 23.11 on */
};

struct mfl_job {
    const struct mf_plan *plan;
    struct mfl_picks picks;
    char name[128];
    const char *partition, *account, *qos; /* NULL: Slurm's default */
    const char *log, *command_line;
    const char *container;               /* image, NULL: none */
    char *const *modules, *const *extra; /* as given */
    struct mfl_slurm slurm;
    int64_t after;             /* job to follow, 0: none */
    int64_t switches, segment; /* 0: none asked for */
    bool requeue;
    int64_t nodes, ranks, ranks_per_node;
    int64_t gpus_per_node; /* 0: none asked for */
    int64_t cpus_per_task; /* 0: not asked for */
    int64_t time_minutes;  /* or MFL_TIME_UNLIMITED */
    double predicted_s;    /* of the picks' iterations, NAN: not known */
    int64_t iterations;
    bool whole_nodes;          /* the ranks take every device of their nodes */
    bool needs_hostfile;       /* block order is not the plan's order */
    char *plan_file, *moefold; /* absolute */
    char *runner;              /* moefold-run, NULL: not on this machine */
    char *db;                  /* absolute, NULL: moefold-run's own */
};

/* Fill JOB from PLAN and WISH, both of which outlive it. Values that could not
 * stand in a script or on an #SBATCH line are MF_INVALID, as are picks that
 * moefold-run does not execute (planner/layout/runnable.h); a plan larger than
 * its cluster MF_NO.
 */
int mfl_job_make(const struct mf_plan *plan, const struct mfl_wish *wish,
    struct mfl_job *job, struct mf_error *err);
void mfl_job_free(struct mfl_job *job);

/* What is known of the Slurm VERSION, such as 23.11 or 23.11.4; NULL: that of
 * libslurm here, else 23.11. MF_INVALID: older than 22.05, or no version.
 */
int mfl_slurm_find(
    const char *version, struct mfl_slurm *slurm, struct mf_error *err);

/* Seconds of the signal before the time limit, and how much earlier it may
 * come: Slurm looks once a minute.
 */
#define MFL_SIGNAL_S 120
#define MFL_SIGNAL_EARLY_S 60

/* Slurm's time formats (M, M:S, H:M:S, D-H, D-H:M, D-H:M:S, UNLIMITED) in
 * whole minutes, seconds rounded up; from a minute to a year.
 */
int mfl_job_parse_time(
    const char *text, int64_t *minutes, struct mf_error *err);

/* "[D-]HH:MM:00" or "UNLIMITED" */
void mfl_job_format_time(int64_t minutes, char *text, size_t size);

#endif
