/* SPDX-License-Identifier: BSD-3-Clause
 * Clusters and nodes from files, told apart by what is in them.
 */
#include "config.h"

#include "planner/cluster_file.h"

#include <stdlib.h>
#include <string.h>

#include "planner/cluster_conf.h"
#include "planner/cluster_smi.h"
#include "planner/cluster_xml.h"

/* What a file begins with, white space and a byte order mark aside. */
static const char *beginning(const char *data)
{
    if (!strncmp(data, "\xef\xbb\xbf", 3))
        data += 3;
    return data + strspn(data, " \t\r\n");
}

static int json_read(const char *path, const struct mf_text *text,
    struct mf_cluster *cluster, struct mf_error *err)
{
    const char *from = beginning(text->data);
    json_error_t broken;
    json_t *json = json_loads(from, JSON_REJECT_DUPLICATES, &broken);
    const json_t *inside = json_object_get(json, "cluster");
    int rc = -1;

    if (!json)
        return mf_error_set(
            err, MF_INVALID, "%.300s:%d: %s", path, broken.line, broken.text);
    if (inside) /* a plan */
        rc = mf_cluster_from_json(inside, cluster, err);
    else if (!json_object_get(json, "node_list"))
        mf_error_set(err, MF_INVALID,
            "not what `moefold cluster --json` prints: node_list is missing");
    else
        rc = mf_cluster_from_json(json, cluster, err);
    json_decref(json);
    return rc < 0 ? mf_error_prefix(err, "%.200s", path) : 0;
}

int mf_cluster_file(
    const char *path, struct mf_cluster *cluster, struct mf_error *err)
{
    struct mf_text text;
    int rc;

    *cluster = (struct mf_cluster){0};
    if (mf_text_read(path, &text, err) < 0)
        return -1;
    if (*beginning(text.data) == '{')
        rc = json_read(path, &text, cluster, err);
    else if (*beginning(text.data) == '<')
        rc = mf_xml_cluster(path, &text, cluster, err);
    else if (mf_smi_is(text.data))
        rc = mf_smi_cluster(path, text.data, cluster, err);
    else
        rc = mf_conf_cluster(path, &text, cluster, err);
    free(text.data);
    return rc;
}
