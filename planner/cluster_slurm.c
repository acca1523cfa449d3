/* SPDX-License-Identifier: BSD-3-Clause
 * A live Slurm cluster, asked in a child process under a time limit.
 *
 * libslurm prints on its own, calls exit(1) when slurm.conf is missing or
 * broken, and waits 9 s for a controller that is dead. So the child asks, and
 * hands back the JSON of the cluster, or {"error": text, "status": n}.
 */
#include "config.h"

#include "planner/cluster_parts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "planner/child.h"

#ifndef MF_SLURM_CONF
#define MF_SLURM_CONF "/etc/slurm/slurm.conf"
#endif
#define ASK_MEMORY_BYTES ((size_t)8 << 30)

const char *mf_slurm_conf(void)
{
    const char *conf = getenv("SLURM_CONF");

    return conf && conf[0] ? conf : MF_SLURM_CONF;
}

bool mf_slurm_conf_found(void)
{
    return access(mf_slurm_conf(), R_OK) == 0;
}

/* The first controller that CONF names, for messages. */
static void controller_name(const char *conf, char *name, size_t size)
{
    FILE *file = fopen(conf, "re");
    char line[4096];

    snprintf(name, size, "the controller");
    while (file && fgets(line, sizeof line, file)) {
        const char *at = line + strspn(line, " \t");
        const char *value = strchr(at, '=');

        if (!value || (strncasecmp(at, "SlurmctldHost", 13) &&
                          strncasecmp(at, "ControlMachine", 14)))
            continue;
        value += 1 + strspn(value + 1, " \t");
        snprintf(name, size, "controller %.*s", (int)strcspn(value, " \t\r\n#"),
            value);
        break;
    }
    if (file)
        fclose(file);
}

/* What Slurm itself said first, without the program's name in front. */
static void first_complaint(
    const struct mf_child *child, char *text, size_t size)
{
    const char *line = strstr(child->noise, "error: ");

    if (!line)
        line = strstr(child->noise, "fatal: ");
    if (!line) {
        mf_child_explain(child, text, size);
        return;
    }
    line += strlen("error: ");
    snprintf(text, size, "%.*s", (int)strcspn(line, "\n"), line);
}

static int answer_read(const struct mf_child *child, const char *conf,
    struct mf_cluster *cluster, struct mf_error *err)
{
    json_error_t broken;
    json_t *json = json_loadb(child->output, child->length, 0, &broken);
    const char *text = json_string_value(json_object_get(json, "error"));
    json_int_t status = json_integer_value(json_object_get(json, "status"));
    int rc = -1;

    if (!json)
        mf_error_set(err, MF_FAILED, "%s: Slurm's answer is damaged: %s", conf,
            broken.text);
    else if (text)
        mf_error_set(err, (enum mf_status)(status == MF_INVALID ? 2 : 1),
            "%s: %s", conf, text);
    else
        rc = mf_cluster_from_json(json, cluster, err);
    json_decref(json);
    return rc;
}

static int answer_write(int fd, json_t *json)
{
    char *text = json ? json_dumps(json, JSON_COMPACT) : NULL;
    int rc = text ? mf_child_write(fd, text, strlen(text)) : -1;

    free(text);
    json_decref(json);
    return rc < 0 ? 1 : 0;
}

static int ask(int fd, void *arg)
{
    struct mf_cluster cluster;
    struct mf_error err = {0};
    int rc;

    (void)arg;
    if (mf_slurm_ask(&cluster, &err) < 0)
        return answer_write(fd,
            json_pack("{s:s, s:i}", "error", err.text, "status", err.status));
    rc = answer_write(fd, mf_cluster_to_json(&cluster));
    mf_cluster_free(&cluster);
    return rc;
}

int mf_slurm_read(
    double timeout_s, struct mf_cluster *cluster, struct mf_error *err)
{
    struct mf_child_limits limits = {
        .seconds = timeout_s, .memory_bytes = ASK_MEMORY_BYTES};
    const char *conf = mf_slurm_conf();
    char name[300], text[512];
    struct mf_child child;
    int rc = -1;

    *cluster = (struct mf_cluster){0};
    if (!mf_slurm_conf_found())
        return mf_error_set(err, MF_INVALID,
            "no slurm.conf at %s; set SLURM_CONF, or name another --cluster",
            conf);
    if (mf_child_call(ask, NULL, &limits, &child, err) < 0)
        return -1;
    controller_name(conf, name, sizeof name);
    if (child.end == MF_CHILD_TIMEOUT)
        mf_error_set(err, MF_FAILED,
            "%s: %s did not answer within %g s (--slurm-timeout)", conf, name,
            timeout_s);
    else if (child.end == MF_CHILD_EXITED && child.length > 0)
        rc = answer_read(&child, conf, cluster, err);
    else {
        first_complaint(&child, text, sizeof text);
        mf_error_set(err, child.end == MF_CHILD_EXITED ? MF_INVALID : MF_FAILED,
            "%s: %s", conf, text);
    }
    mf_child_free(&child);
    return rc;
}
