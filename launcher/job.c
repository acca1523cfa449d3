/* SPDX-License-Identifier: BSD-3-Clause
 * A batch job for a plan, as data.
 */
#include "config.h"

#include "launcher/job.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "db/db.h"
#include "launcher/places.h"
#include "launcher/quote.h"
#include "launcher/runner.h"
#include "planner/layout/number.h"
#include "planner/layout/runnable.h"

#define MINUTES_MAX ((int64_t)366 * 24 * 60)
#define WARMUP 3        /* iterations, as moefold-run takes */
#define START_S 60.0    /* of one srun, on a slow file system */
#define TIME_MARGIN 3.0 /* times the prediction, before it was ever fitted */
#define TIME_LEAST 10   /* minutes */
#define TIME_DEFAULT 60 /* minutes, without a prediction */

/* Up to three numbers joined by colons; how many, or -1. */
static int read_fields(const char *text, int64_t field[3])
{
    struct mf_error err;
    char part[16];
    int n = 0;

    for (;;) {
        size_t length = strcspn(text, ":");

        if (n == 3 || length == 0 || length >= sizeof part ||
            strspn(text, "0123456789") < length)
            return -1;
        memcpy(part, text, length);
        part[length] = 0;
        if (mf_number_parse(part, "time", 0, MINUTES_MAX, &field[n++], &err))
            return -1;
        if (!text[length])
            return n;
        text += length + 1;
    }
}

/* Seconds, or -1. */
static int64_t read_time(const char *text)
{
    const char *dash = strchr(text, '-');
    int64_t days[3] = {0}, f[3] = {0};
    char part[16] = "";
    int n;

    if (dash) {
        if ((size_t)(dash - text) >= sizeof part)
            return -1;
        memcpy(part, text, (size_t)(dash - text));
        if (read_fields(part, days) != 1 || read_fields(dash + 1, f) < 1)
            return -1;
        return ((days[0] * 24 + f[0]) * 60 + f[1]) * 60 + f[2];
    }
    n = read_fields(text, f);
    if (n == 3)
        return (f[0] * 60 + f[1]) * 60 + f[2];
    return n < 1 ? -1 : f[0] * 60 + f[1];
}

int mfl_job_parse_time(const char *text, int64_t *minutes, struct mf_error *err)
{
    int64_t seconds;

    if (strcasecmp(text, "UNLIMITED") == 0) {
        *minutes = MFL_TIME_UNLIMITED;
        return 0;
    }
    seconds = read_time(text);
    if (seconds < 1 || seconds > MINUTES_MAX * 60)
        return mf_error_set(err, MF_INVALID,
            "--time: '%.40s' is not minutes, [D-]HH:MM:SS or UNLIMITED", text);
    *minutes = (seconds + 59) / 60;
    return 0;
}

void mfl_job_format_time(int64_t minutes, char *text, size_t size)
{
    long long days = minutes / (24 * 60), rest = minutes % (24 * 60);

    if (minutes == MFL_TIME_UNLIMITED)
        snprintf(text, size, "UNLIMITED");
    else if (days > 0)
        snprintf(
            text, size, "%lld-%02lld:%02lld:00", days, rest / 60, rest % 60);
    else
        snprintf(text, size, "%02lld:%02lld:00", rest / 60, rest % 60);
}

static int job_name(
    const struct mfl_wish *wish, struct mfl_job *job, struct mf_error *err)
{
    const char *name = wish->name ? wish->name : job->plan->model.name;
    size_t length = strlen(name);

    if (wish->name) {
        if (mfl_quote_check("job-name", name, err) < 0)
            return -1;
        if (length >= sizeof job->name || strchr(name, '/'))
            return mf_error_set(err, MF_INVALID,
                "--job-name: at most %zu bytes and no '/', since the log is "
                "named after it",
                sizeof job->name - 1);
    }
    snprintf(job->name, sizeof job->name, "%s", length ? name : "moefold");
    /* A model's name is free text; a job's names a file. */
    for (char *c = job->name; !wish->name && *c; c++)
        if (!isalnum((unsigned char)*c) && !strchr("._-", *c))
            *c = '_';
    return 0;
}

/* Options that the script has a line for already. */
static bool is_generated(const char *name, size_t length)
{
    static const char *const names[] = {"job-name", "partition", "account",
        "qos", "nodes", "ntasks", "ntasks-per-node", "cpus-per-task",
        "gpus-per-node", "exclusive", "time", "output", "dependency",
        "switches", "segment", "signal", "requeue", "open-mode"};

    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strlen(names[i]) == length && !strncmp(names[i], name, length))
            return true;
    return false;
}

/* "--name" or "--name=value". */
static int check_extra(char *const *extra, struct mf_error *err)
{
    for (; extra && *extra; extra++) {
        const char *name = *extra + 2;
        const size_t length = strspn(name, "abcdefghijklmnopqrstuvwxyz-");

        if (strncmp(*extra, "--", 2) || length < 2 ||
            (name[length] && name[length] != '='))
            return mf_error_set(err, MF_INVALID,
                "--sbatch: '%.80s' is not like --constraint=hbm", *extra);
        if (mfl_quote_check("sbatch", *extra, err))
            return -1;
        if (is_generated(name, length))
            return mf_error_set(err, MF_INVALID,
                "--sbatch: the script has a line for --%.*s already",
                (int)length, name);
    }
    return 0;
}

/* A name that `module load` takes, and that is no option of it. */
static int check_modules(char *const *modules, struct mf_error *err)
{
    for (; modules && *modules; modules++)
        if (**modules == '-' || mfl_quote_check("module", *modules, err))
            return mf_error_set(err, MF_INVALID,
                "--module: '%.80s' is no name of a module", *modules);
    return 0;
}

static int job_extras(
    const struct mfl_wish *wish, struct mfl_job *job, struct mf_error *err)
{
    if (check_extra(wish->extra, err) || check_modules(wish->modules, err) ||
        mfl_slurm_find(wish->slurm_version, &job->slurm, err) ||
        (wish->container &&
            mfl_quote_check("container-image", wish->container, err)))
        return -1;
    if (wish->segment && !job->slurm.segments)
        return mf_error_set(err, MF_INVALID,
            "--segment came with Slurm 23.11, this is %d.%02d; use --switches",
            job->slurm.major, job->slurm.minor);
    job->container = wish->container;
    job->modules = wish->modules;
    job->extra = wish->extra;
    job->after = wish->after;
    job->switches = wish->switches;
    job->segment = wish->segment;
    job->requeue = wish->requeue;
    return 0;
}

static int job_options(
    const struct mfl_wish *wish, struct mfl_job *job, struct mf_error *err)
{
    const struct {
        const char *option, *value;
    } text[] = {
        {"partition", wish->partition},
        {"account", wish->account},
        {"qos", wish->qos},
        {"log", wish->log},
    };

    for (size_t i = 0; i < sizeof text / sizeof *text; i++)
        if (text[i].value &&
            mfl_quote_check(text[i].option, text[i].value, err) < 0)
            return -1;
    job->partition = wish->partition;
    job->account = wish->account;
    job->qos = wish->qos;
    job->log = wish->log ? wish->log : "%x_%j.out";
    job->command_line = wish->command_line;
    job->cpus_per_task = wish->cpus_per_task;
    job->iterations = wish->iterations ? wish->iterations : MFL_ITERATIONS;
    return job_name(wish, job, err);
}

/* Seconds that the picks are predicted to take, starts not counted. */
static double job_predict(const struct mfl_job *job)
{
    double sum = 0;

    for (size_t i = 0; i < job->picks.count; i++) {
        const struct mf_cost *cost =
            &job->plan->entry[job->picks.pick[i] - 1].cost;

        sum += cost->layer_forward_s + cost->layer_backward_s;
    }
    return sum * (double)(job->iterations + WARMUP);
}

static int job_time(
    const struct mfl_wish *wish, struct mfl_job *job, struct mf_error *err)
{
    double seconds;

    job->predicted_s = job_predict(job);
    if (wish->time)
        return mfl_job_parse_time(wish->time, &job->time_minutes, err);
    seconds =
        (double)job->picks.count * START_S + TIME_MARGIN * job->predicted_s;
    if (!isfinite(seconds))
        job->time_minutes = TIME_DEFAULT;
    else if (seconds > 60.0 * (double)MINUTES_MAX)
        return mf_error_set(err, MF_NO,
            "the picks are predicted to run %.3g s; take fewer iterations, or "
            "give --time",
            job->predicted_s);
    else
        job->time_minutes = (int64_t)ceil(seconds / 60);
    if (job->time_minutes < TIME_LEAST)
        job->time_minutes = TIME_LEAST;
    return 0;
}

static int job_shape(struct mfl_job *job, struct mf_error *err)
{
    const struct mf_cluster *cluster = &job->plan->cluster;
    int64_t each = mf_cluster_gpus_per_node(cluster);

    job->ranks = job->plan->world;
    if (mfl_places_span(
            cluster, job->ranks, &job->nodes, &job->ranks_per_node, err) < 0)
        return -1;
    job->whole_nodes =
        !cluster->cpu_ranks && each > 0 && job->nodes * each == job->ranks;
    if (!cluster->cpu_ranks)
        job->gpus_per_node = job->ranks_per_node;
    job->needs_hostfile =
        job->nodes > 1 && (job->nodes * job->ranks_per_node != job->ranks ||
                              !mfl_places_in_block_order(cluster));
    return 0;
}

static int check_segment(const struct mfl_job *job, struct mf_error *err)
{
    if (!job->segment || job->nodes % job->segment == 0)
        return 0;
    return mf_error_set(err, MF_INVALID,
        "--segment: %lld nodes are no multiple of %lld", (long long)job->nodes,
        (long long)job->segment);
}

/* A signal that could come as the job starts is none. */
static int check_signal(const struct mfl_job *job, struct mf_error *err)
{
    if (!job->requeue || job->time_minutes == MFL_TIME_UNLIMITED ||
        job->time_minutes * 60 > MFL_SIGNAL_S + MFL_SIGNAL_EARLY_S)
        return 0;
    return mf_error_set(err, MF_INVALID,
        "--requeue: Slurm's signal comes up to %d s before the end; give "
        "--time more than %d minutes",
        MFL_SIGNAL_S + MFL_SIGNAL_EARLY_S,
        (MFL_SIGNAL_S + MFL_SIGNAL_EARLY_S) / 60);
}

static char *absolute(const char *file, struct mf_error *err)
{
    char *path = realpath(file, NULL);

    if (!path)
        mf_error_set(err, MF_INVALID, "%s: %s", file, strerror(errno));
    return path;
}

/* A database need not be there yet, so its path is not resolved. */
static int job_db(
    const struct mfl_wish *wish, struct mfl_job *job, struct mf_error *err)
{
    char text[MFDB_ERROR_TEXT], *here;

    if (!wish->db) {
        /* Without a home there is none to name; moefold-run will say so. */
        job->db = mfdb_default_path(text);
        return 0;
    }
    if (wish->db[0] == '/') {
        job->db = strdup(wish->db);
    } else {
        here = absolute(".", err);
        if (!here)
            return -1;
        if (asprintf(&job->db, "%s/%s", here, wish->db) < 0)
            job->db = NULL;
        free(here);
    }
    return job->db ? 0 : mf_error_set(err, MF_FAILED, "out of memory");
}

/* Better refused now than by the job, when it has waited for its turn. */
static int job_runnable(const struct mfl_job *job, struct mf_error *err)
{
    for (size_t i = 0; i < job->picks.count; i++) {
        size_t pick = job->picks.pick[i];

        if (mf_runnable_check(&job->plan->model,
                &job->plan->entry[pick - 1].settings, err) < 0)
            return mf_error_prefix(err, "layout %zu", pick);
    }
    return 0;
}

int mfl_job_make(const struct mf_plan *plan, const struct mfl_wish *wish,
    struct mfl_job *job, struct mf_error *err)
{
    *job = (struct mfl_job){.plan = plan};
    if (mfl_picks_parse(
            wish->picks ? wish->picks : "1", plan, &job->picks, err) < 0 ||
        job_runnable(job, err) < 0 || job_options(wish, job, err) < 0 ||
        job_extras(wish, job, err) < 0 || job_shape(job, err) < 0 ||
        check_segment(job, err) < 0 || job_time(wish, job, err) < 0 ||
        check_signal(job, err) < 0 || job_db(wish, job, err) < 0)
        goto out;
    job->plan_file = absolute(wish->plan_file, err);
    job->moefold = job->plan_file ? absolute("/proc/self/exe", err) : NULL;
    if (job->moefold) {
        job->runner = mfl_runner_find();
        return 0;
    }
out:
    mfl_job_free(job);
    return -1;
}

void mfl_job_free(struct mfl_job *job)
{
    if (!job)
        return;
    mfl_picks_free(&job->picks);
    free(job->plan_file);
    free(job->moefold);
    free(job->runner);
    free(job->db);
    *job = (struct mfl_job){0};
}
