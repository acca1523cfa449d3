/* SPDX-License-Identifier: BSD-3-Clause
 * XML descriptions of a node, parsed in a child under limits.
 *
 * hwloc's files are read here too, not by hwloc: 2.9 refuses those of hwloc 3,
 * and its reader crashes on damaged ones.
 */
#include "config.h"

#include "planner/cluster_xml.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "planner/child.h"

#ifndef HAVE_LIBXML2

int mf_xml_read(const char *path, const char *data, size_t length,
    struct mf_cluster *cluster, struct mf_error *err)
{
    (void)data;
    (void)length;
    *cluster = (struct mf_cluster){0};
    return mf_error_set(err, MF_INVALID,
        "%.200s: this moefold was built without libxml2, which reads XML; "
        "name another --cluster",
        path);
}

int mf_xml_cluster(const char *path, const struct mf_text *text,
    struct mf_cluster *cluster, struct mf_error *err)
{
    return mf_xml_read(path, text->data, text->length, cluster, err);
}

#else

#include <libxml/parser.h>
#include <libxml/xmlerror.h>

#define LIMIT_S 10
#define XML_MAX_BYTES ((size_t)16 << 20)
#define LIMIT_BYTES ((size_t)2 << 30)

bool mf_xml_is(xmlNodePtr node, const char *name)
{
    return node && node->type == XML_ELEMENT_NODE &&
           !strcmp((const char *)node->name, name);
}

/* An attribute without entities in it, or NULL. */
static const char *value_of(xmlNodePtr node, const char *name)
{
    for (xmlAttrPtr a = node->properties; a; a = a->next)
        if (!strcmp((const char *)a->name, name) && a->children &&
            a->children->type == XML_TEXT_NODE && a->children->content)
            return (const char *)a->children->content;
    return NULL;
}

double mf_xml_number(xmlNodePtr node, const char *name, double fallback)
{
    const char *text = value_of(node, name);
    char *end;
    double value;

    if (!text)
        return fallback;
    value = strtod(text, &end);
    return end == text ? fallback : value;
}

long mf_xml_integer(xmlNodePtr node, const char *name, int base, long fallback)
{
    const char *text = value_of(node, name);
    char *end;
    long value;

    if (!text)
        return fallback;
    value = strtol(text, &end, base);
    return end == text ? fallback : value;
}

void mf_xml_text(xmlNodePtr node, const char *name, char *text, size_t size)
{
    const char *value = value_of(node, name);

    snprintf(text, size, "%s", value ? value : "");
}

xmlNodePtr mf_xml_next(xmlNodePtr root, xmlNodePtr node)
{
    xmlNodePtr at = node;

    do {
        if (at->type == XML_ELEMENT_NODE && at->children)
            at = at->children;
        else {
            while (at != root && !at->next)
                at = at->parent;
            if (at == root)
                return NULL;
            at = at->next;
        }
    } while (at->type != XML_ELEMENT_NODE);
    return at;
}

static int root_read(xmlNodePtr root, const char *path,
    struct mf_cluster *cluster, struct mf_error *err)
{
    struct mf_facts *facts = malloc(sizeof *facts);
    struct mf_cluster notes = {0};
    bool hwloc = mf_xml_is(root, "topology");
    int rc = -1;

    if (!facts)
        return mf_error_set(err, MF_FAILED, "out of memory");
    mf_facts_init(facts);
    if (hwloc)
        rc = mf_hwloc_facts(root, facts, &notes, err);
    else if (mf_xml_is(root, "system"))
        rc = mf_nccl_facts(root, facts, &notes, err);
    else if (mf_xml_is(root, "graphs"))
        mf_error_set(err, MF_INVALID,
            "a graph file of NCCL's (NCCL_GRAPH_DUMP_FILE), which has no "
            "links; give the topology file (NCCL_TOPO_DUMP_FILE)");
    else
        mf_error_set(err, MF_INVALID,
            "<%.40s> is the root of neither hwloc's (topology) nor NCCL's "
            "(system) files",
            (const char *)root->name);
    if (rc < 0)
        mf_error_prefix(err, "%.200s", path);
    else
        rc = mf_facts_cluster(facts, path,
            hwloc ? "hwloc XML" : "NCCL topology XML", cluster, err);
    for (size_t i = 0; rc == 0 && notes.warning && notes.warning[i]; i++)
        if (mf_cluster_warn(cluster, err, "%s", notes.warning[i]) < 0) {
            mf_cluster_free(cluster);
            rc = -1;
        }
    mf_cluster_free(&notes);
    free(facts);
    return rc;
}

int mf_xml_read(const char *path, const char *data, size_t length,
    struct mf_cluster *cluster, struct mf_error *err)
{
    const int options = XML_PARSE_NONET | XML_PARSE_NOERROR |
                        XML_PARSE_NOWARNING | XML_PARSE_NOCDATA;
    const xmlError *broken;
    xmlDocPtr doc;
    int rc = -1;

    *cluster = (struct mf_cluster){0};
    if (strstr(data, "<!ENTITY"))
        return mf_error_set(err, MF_INVALID,
            "%.200s: it defines entities, which no such file needs", path);
    doc = xmlReadMemory(data, (int)length, NULL, NULL, options);
    if (doc && xmlDocGetRootElement(doc))
        rc = root_read(xmlDocGetRootElement(doc), path, cluster, err);
    else {
        broken = xmlGetLastError();
        mf_error_set(err, MF_INVALID, "%.200s:%d: not well-formed XML: %.*s",
            path, broken ? broken->line : 1,
            broken && broken->message ? (int)strcspn(broken->message, "\r\n")
                                      : 5,
            broken && broken->message ? broken->message : "empty");
    }
    xmlFreeDoc(doc);
    return rc;
}

struct job {
    const char *path;
    const struct mf_text *text;
};

static int job_run(int fd, void *arg)
{
    const struct job *job = arg;
    struct mf_cluster cluster;
    struct mf_error err = {0};
    json_t *json;
    char *text;
    int rc;

    if (mf_xml_read(
            job->path, job->text->data, job->text->length, &cluster, &err) < 0)
        json = json_pack("{s:s, s:i}", "error", err.text, "status", err.status);
    else
        json = mf_cluster_to_json(&cluster);
    text = json ? json_dumps(json, JSON_COMPACT) : NULL;
    rc = text ? mf_child_write(fd, text, strlen(text)) : -1;
    free(text);
    json_decref(json);
    mf_cluster_free(&cluster);
    return rc < 0;
}

static int answer_read(const struct mf_child *child, const char *path,
    struct mf_cluster *cluster, struct mf_error *err)
{
    json_t *json = json_loadb(child->output, child->length, 0, NULL);
    const char *text = json_string_value(json_object_get(json, "error"));
    int rc = -1;

    if (text) /* an error text that is not UTF-8 comes as no JSON at all */
        mf_error_set(err, MF_INVALID, "%s", text);
    else if (!json)
        mf_error_set(err, MF_INVALID, "%.200s: damaged XML", path);
    else
        rc = mf_cluster_from_json(json, cluster, err);
    json_decref(json);
    return rc;
}

int mf_xml_cluster(const char *path, const struct mf_text *text,
    struct mf_cluster *cluster, struct mf_error *err)
{
    struct mf_child_limits limits = {
        .seconds = LIMIT_S, .memory_bytes = LIMIT_BYTES};
    struct job job = {.path = path, .text = text};
    struct mf_child child;
    char why[512];
    int rc = -1;

    *cluster = (struct mf_cluster){0};
    if (text->length > XML_MAX_BYTES)
        return mf_error_set(err, MF_INVALID,
            "%.200s: is larger than 16 MiB, which no node's description is",
            path);
    if (mf_child_call(job_run, &job, &limits, &child, err) < 0)
        return -1;
    if (child.end == MF_CHILD_EXITED && child.status == 0)
        rc = answer_read(&child, path, cluster, err);
    else {
        mf_child_explain(&child, why, sizeof why);
        mf_error_set(
            err, MF_INVALID, "%.200s: the reader of XML %s", path, why);
    }
    mf_child_free(&child);
    return rc;
}

#endif
