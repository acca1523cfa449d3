/* SPDX-License-Identifier: BSD-3-Clause
 * Hands a job to Slurm through libslurm, in a child process.
 *
 * libslurm may print and exit on its own; in the child neither harms. The
 * child answers with one JSON document, {job_id, words} or {error}.
 */
#include "config.h"

#include "launcher/submit.h"

#include <stdlib.h>
#include <string.h>

#ifdef HAVE_SLURM

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <slurm/slurm.h>
#include <slurm/slurm_errno.h>
#include <stddef.h>
#include <stdio.h>
#include <unistd.h>

#include "launcher/list.h"
#include "planner/child.h"

/* What a generic resource is called in a request changed with 23.11. */
#if SLURM_VERSION_NUMBER >= SLURM_VERSION_NUM(23, 11, 0)
#define GPU_REQUEST "gres/gpu:%lld"
#else
#define GPU_REQUEST "gres:gpu:%lld"
#endif

struct request {
    const struct mfl_job *job;
    const char *script;
    bool ask; /* only when it would start */
};

/* Texts that a description points at while it is sent. */
struct texts {
    struct mfl_list env;
    char folder[PATH_MAX], gpus[48], after[48];
};

static int texts_fill(
    const struct mfl_job *job, struct texts *texts, struct mf_error *err)
{
    const char *conf = getenv("SLURM_CONF");

    if (!getcwd(texts->folder, sizeof texts->folder))
        return mf_error_set(
            err, MF_FAILED, "the current folder: %s", strerror(errno));
    snprintf(texts->gpus, sizeof texts->gpus, GPU_REQUEST,
        (long long)job->gpus_per_node);
    snprintf(texts->after, sizeof texts->after, "afterok:%lld",
        (long long)job->after);
    if (mfl_list_environment(&texts->env, err) < 0)
        return -1;
    mfl_list_drop(&texts->env, "SLURM_");
    mfl_list_drop(&texts->env, "SLURMD_");
    mfl_list_drop(&texts->env, "SRUN_");
    mfl_list_drop(&texts->env, "PMIX_");
    mfl_list_drop(&texts->env, "PMI_");
    mfl_list_drop(&texts->env, "MOEFOLD_MAP=");
    /* As sbatch does; %x in the name of the log is read from there. */
    if (mfl_list_set(&texts->env, "SLURM_JOB_NAME", job->name, err) < 0 ||
        mfl_list_set(&texts->env, "SLURM_SUBMIT_DIR", texts->folder, err) < 0)
        return -1;
    return conf ? mfl_list_set(&texts->env, "SLURM_CONF", conf, err) : 0;
}

/* Options given as they are, where libslurm has a member for them. */
static const struct extra {
    const char *name; /* with its = */
    size_t at;        /* in job_desc_msg_t, a char pointer */
} extras[] = {
    {"--constraint=", offsetof(job_desc_msg_t, features)},
    {"--exclude=", offsetof(job_desc_msg_t, exc_nodes)},
    {"--nodelist=", offsetof(job_desc_msg_t, req_nodes)},
    {"--reservation=", offsetof(job_desc_msg_t, reservation)},
    {"--comment=", offsetof(job_desc_msg_t, comment)},
    {"--licenses=", offsetof(job_desc_msg_t, licenses)},
    {"--wckey=", offsetof(job_desc_msg_t, wckey)},
};

enum { EXTRAS = sizeof extras / sizeof *extras };

static const struct extra *extra_find(const char *text)
{
    for (int i = 0; i < EXTRAS; i++)
        if (!strncmp(text, extras[i].name, strlen(extras[i].name)))
            return &extras[i];
    return NULL;
}

static void describe_extra(const struct mfl_job *job, job_desc_msg_t *desc)
{
    for (char *const *text = job->extra; text && *text; text++) {
        const struct extra *extra = extra_find(*text);

        if (extra)
            *(char **)((char *)desc + extra->at) = *text + strlen(extra->name);
    }
}

static int check_extra(const struct mfl_job *job, struct mf_error *err)
{
    for (char *const *text = job->extra; text && *text; text++)
        if (!extra_find(*text))
            return mf_error_set(err, MF_INVALID,
                "--sbatch %.80s goes into scripts alone; write one with "
                "--output and give it to sbatch",
                *text);
#if SLURM_VERSION_NUMBER < SLURM_VERSION_NUM(24, 5, 0)
    if (job->segment)
        return mf_error_set(err, MF_INVALID,
            "libslurm here has no --segment; write the script with --output "
            "and give it to sbatch");
#endif
    return 0;
}

/* libslurm takes plain char pointers and does not write through them. */
static void describe(
    const struct request *request, struct texts *texts, job_desc_msg_t *desc)
{
    const struct mfl_job *job = request->job;

    slurm_init_job_desc_msg(desc);
    desc->name = (char *)job->name;
    desc->partition = (char *)job->partition;
    desc->account = (char *)job->account;
    desc->qos = (char *)job->qos;
    desc->min_nodes = desc->max_nodes = (uint32_t)job->nodes;
    desc->num_tasks = (uint32_t)job->ranks;
    desc->ntasks_per_node = (uint16_t)job->ranks_per_node;
    desc->min_cpus = (uint32_t)job->ranks;
    if (job->cpus_per_task) {
        desc->cpus_per_task = (uint16_t)job->cpus_per_task;
        desc->min_cpus *= (uint32_t)job->cpus_per_task;
    }
    if (job->gpus_per_node)
        desc->tres_per_node = texts->gpus;
    if (job->whole_nodes)
        desc->shared = JOB_SHARED_NONE;
#if SLURM_VERSION_NUMBER >= SLURM_VERSION_NUM(24, 5, 0)
    if (job->segment)
        desc->segment_size = (uint16_t)job->segment;
#endif
    desc->time_limit = job->time_minutes == MFL_TIME_UNLIMITED
                           ? INFINITE
                           : (uint32_t)job->time_minutes;
    if (job->after)
        desc->dependency = texts->after;
    if (job->switches)
        desc->req_switch = (uint32_t)job->switches;
    if (job->requeue) {
        desc->requeue = 1;
        desc->open_mode = OPEN_MODE_APPEND;
        desc->warn_flags = KILL_JOB_BATCH;
        desc->warn_signal = SIGUSR2;
        desc->warn_time = MFL_SIGNAL_S;
    }
    describe_extra(job, desc);
    desc->std_out = (char *)job->log;
    desc->std_in = "/dev/null";
    desc->work_dir = texts->folder;
    desc->script = (char *)request->script;
    desc->submit_line = (char *)job->command_line;
    desc->environment = texts->env.item;
    desc->env_size = (uint32_t)texts->env.count;
    desc->user_id = (uint32_t)getuid();
    desc->group_id = (uint32_t)getgid();
}

/* {start, node_list, words} or {error}. */
static json_t *ask_start(job_desc_msg_t *desc)
{
    will_run_response_msg_t *response = NULL;
    json_t *document;

    if (slurm_job_will_run2(desc, &response) != SLURM_SUCCESS || !response)
        return json_pack("{s:s}", "error", slurm_strerror(errno));
    document = json_pack("{s:I, s:s?, s:s?}", "start",
        (json_int_t)response->start_time, "node_list", response->node_list,
        "words", response->job_submit_user_msg);
    /* slurm.h tells of a function to free it and has none; this child ends. */
    return document;
}

/* {job_id, words} or {error}; NULL when memory is short. */
static json_t *submit_request(const struct request *request)
{
    submit_response_msg_t *response = NULL;
    struct texts texts = {0};
    struct mf_error err = {0};
    job_desc_msg_t desc;
    json_t *document;

    if (texts_fill(request->job, &texts, &err) < 0) {
        document = json_pack("{s:s}", "error", err.text);
        goto out;
    }
    describe(request, &texts, &desc);
    if (request->ask) {
        document = ask_start(&desc);
        goto out;
    }
    if (slurm_submit_batch_job(&desc, &response) != SLURM_SUCCESS) {
        document = json_pack("{s:s}", "error", slurm_strerror(errno));
        goto out;
    }
    document = json_pack("{s:I, s:s?}", "job_id", (json_int_t)response->job_id,
        "words", response->job_submit_user_msg);
    slurm_free_submit_response_response_msg(response);
out:
    mfl_list_free(&texts.env);
    return document;
}

static int submit_in_child(int fd, void *arg)
{
    json_t *document;
    char *text;
    int rc;

    slurm_init(NULL);
    document = submit_request(arg);
    text = document ? json_dumps(document, JSON_COMPACT) : NULL;
    rc = text ? mf_child_write(fd, text, strlen(text)) : -1;
    free(text);
    json_decref(document);
    return rc < 0 ? 1 : 0;
}

static int read_answer(const struct mf_child *child,
    struct mfl_submission *submission, struct mf_error *err)
{
    json_t *root = NULL, *id, *start;
    const char *words, *error, *nodes;
    char why[512];
    int rc = -1;

    if (child->end == MF_CHILD_EXITED && child->status == 0 && child->output)
        root = json_loads(child->output, 0, NULL);
    id = json_object_get(root, "job_id");
    start = json_object_get(root, "start");
    nodes = json_string_value(json_object_get(root, "node_list"));
    error = json_string_value(json_object_get(root, "error"));
    words = json_string_value(json_object_get(root, "words"));
    mf_child_explain(child, why, sizeof why);
    if (error) {
        mf_error_set(err, MF_FAILED, "Slurm refused the job: %s", error);
    } else if (!json_is_integer(id) && !json_is_integer(start)) {
        mf_error_set(err, MF_FAILED, "Slurm did not take the job: %s", why);
    } else if ((words && !(submission->words = strdup(words))) ||
               (nodes && !(submission->node_list = strdup(nodes)))) {
        mf_error_set(err, MF_FAILED, "out of memory");
    } else {
        submission->job_id = json_integer_value(id);
        submission->start_unix_s = json_integer_value(start);
        rc = 0;
    }
    json_decref(root);
    return rc;
}

int mfl_submit(const struct mfl_job *job, const char *script, bool ask,
    double timeout_s, struct mfl_submission *submission, struct mf_error *err)
{
    struct request request = {.job = job, .script = script, .ask = ask};
    struct mf_child_limits limits = {
        .seconds = timeout_s, .output_bytes = 65536};
    struct mf_child child;
    int rc;

    *submission = (struct mfl_submission){0};
    if (job->ranks_per_node > UINT16_MAX - 2 ||
        job->cpus_per_task > UINT16_MAX - 2 || job->nodes > INT32_MAX)
        return mf_error_set(
            err, MF_INVALID, "more ranks on a node than Slurm can count");
    if (check_extra(job, err))
        return -1;
    if (mf_child_call(submit_in_child, &request, &limits, &child, err) < 0)
        return -1;
    rc = read_answer(&child, submission, err);
    mf_child_free(&child);
    return rc;
}

#else

int mfl_submit(const struct mfl_job *job, const char *script, bool ask,
    double timeout_s, struct mfl_submission *submission, struct mf_error *err)
{
    (void)job;
    (void)script;
    (void)ask;
    (void)timeout_s;
    *submission = (struct mfl_submission){0};
    return mf_error_set(err, MF_FAILED,
        "moefold was built without libslurm; write the script with --output "
        "and give it to sbatch");
}

#endif

void mfl_submission_free(struct mfl_submission *submission)
{
    if (!submission)
        return;
    free(submission->words);
    free(submission->node_list);
    *submission = (struct mfl_submission){0};
}
