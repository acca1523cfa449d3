/* SPDX-License-Identifier: BSD-3-Clause
 * Slurm's topology.yaml (25.05 and later), a list of topologies of which one
 * is the cluster's; and the cluster models of NVIDIA's topograph, switches by
 * name with the nodes under the last of them.
 */
#include "config.h"

#include "planner/cluster_conf.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Does a line of DATA begin with KEY? */
static bool begins_line(const char *data, const char *key)
{
    for (const char *at = data; (at = strstr(at, key)); at++)
        if (at == data || at[-1] == '\n')
            return true;
    return false;
}

static bool model_is(const char *data)
{
    return begins_line(data, "switches:") && begins_line(data, "blocks:");
}

bool mf_topology_yaml_is(const char *data)
{
    static const char key[] = "topology:";

    for (const char *at = data; (at = strstr(at, key)); at++) {
        const char *line = at;

        while (line > data && line[-1] != '\n')
            line--;
        line += strspn(line, " ");
        if (line[0] == '-' && line + 1 + strspn(line + 1, " ") == at)
            return true;
    }
    return model_is(data);
}

#ifndef HAVE_YAML

int mf_topology_yaml(struct mf_conf *conf, const char *path,
    const struct mf_text *text, struct mf_error *err)
{
    (void)conf;
    (void)text;
    return mf_error_set(err, MF_INVALID,
        "%.200s: this moefold was built without libyaml; give a topology.conf",
        path);
}

#else

#include <yaml.h>

struct reading {
    yaml_document_t document;
    struct mf_conf *conf;
    const char *path;
    struct mf_error *err;
};

static const char *scalar(const yaml_node_t *node)
{
    return node && node->type == YAML_SCALAR_NODE &&
                   strlen((const char *)node->data.scalar.value) ==
                       node->data.scalar.length
               ? (const char *)node->data.scalar.value
               : NULL;
}

/* The value of KEY in a mapping, or NULL. */
static yaml_node_t *value_of(
    struct reading *r, const yaml_node_t *node, const char *key)
{
    if (!node || node->type != YAML_MAPPING_NODE)
        return NULL;
    for (yaml_node_pair_t *p = node->data.mapping.pairs.start;
         p < node->data.mapping.pairs.top; p++) {
        const char *name = scalar(yaml_document_get_node(&r->document, p->key));

        if (name && !strcmp(name, key))
            return yaml_document_get_node(&r->document, p->value);
    }
    return NULL;
}

static int refuse(
    const struct reading *r, const yaml_node_t *node, const char *why)
{
    return mf_error_set(r->err, MF_INVALID, "%.200s:%zu: %s", r->path,
        node ? node->start_mark.line + 1 : (size_t)1, why);
}

/* The items of a list: switches, blocks or rings by the names of their keys. */
static int items_read(struct reading *r, const yaml_node_t *list,
    enum mf_net_kind kind, const char *name_key)
{
    if (!list || list->type != YAML_SEQUENCE_NODE)
        return refuse(r, list, "not a list of switches, blocks or rings");
    for (yaml_node_item_t *i = list->data.sequence.items.start;
         i < list->data.sequence.items.top; i++) {
        yaml_node_t *item = yaml_document_get_node(&r->document, *i);
        const char *name = scalar(value_of(r, item, name_key));
        char clean[256];

        if (!name || !name[0] || strlen(name) > 200)
            return refuse(
                r, item, "an entry without a name of 1 to 200 characters");
        snprintf(clean, sizeof clean, "%s", name);
        for (char *c = clean; *c; c++)
            if ((unsigned char)*c < ' ' || *c == 127)
                *c = '?';
        r->conf->lines[MF_CONF_NET]++;
        if (mf_net_add(&r->conf->net, kind, clean,
                scalar(value_of(r, item, "nodes")),
                scalar(value_of(r, item, "children")), r->err) < 0)
            return -1;
    }
    return 0;
}

static int topology_read(struct reading *r, const yaml_node_t *topology)
{
    const yaml_node_t *tree = value_of(r, topology, "tree");
    const yaml_node_t *block = value_of(r, topology, "block");
    const yaml_node_t *ring = value_of(r, topology, "ring");

    if (tree)
        return items_read(
            r, value_of(r, tree, "switches"), MF_NET_SWITCH, "switch");
    if (block)
        return items_read(
            r, value_of(r, block, "blocks"), MF_NET_BLOCK, "block");
    if (ring)
        return items_read(r, value_of(r, ring, "rings"), MF_NET_RING, "ring");
    return refuse(r, topology,
        "the cluster's topology is neither a tree nor of blocks or rings");
}

/* The cluster's default; without one, the first. */
static int root_read(struct reading *r)
{
    yaml_node_t *root = yaml_document_get_root_node(&r->document);
    yaml_node_t *chosen = NULL;

    if (!root || root->type != YAML_SEQUENCE_NODE)
        return refuse(r, root, "not a list of topologies");
    for (yaml_node_item_t *i = root->data.sequence.items.start;
         i < root->data.sequence.items.top; i++) {
        yaml_node_t *item = yaml_document_get_node(&r->document, *i);
        const char *is = scalar(value_of(r, item, "cluster_default"));

        if (!chosen || (is && !strcmp(is, "true")))
            chosen = item;
        if (is && !strcmp(is, "true"))
            break;
    }
    if (!chosen)
        return refuse(r, root, "no topology in the list");
    if (topology_read(r, chosen) < 0)
        return -1;
    if (root->data.sequence.items.top - root->data.sequence.items.start < 2)
        return 0;
    return mf_cluster_warn(r->conf->cluster, r->err,
        "of several topologies '%.60s', the cluster's default or the first, "
        "is taken",
        scalar(value_of(r, chosen, "topology"))
            ? scalar(value_of(r, chosen, "topology"))
            : "?");
}

/* ---- models of topograph ---- */

/* The names in a list, joined by commas; malloc'd. NULL: no memory. */
static char *names_join(struct reading *r, const yaml_node_t *list)
{
    size_t size = 1, at = 0;
    char *text;

    for (int pass = 0; pass < 2; pass++) {
        text = pass ? calloc(size, 1) : NULL;
        if (pass && !text)
            return NULL;
        for (yaml_node_item_t *i = list->data.sequence.items.start;
             i < list->data.sequence.items.top; i++) {
            const char *name = scalar(yaml_document_get_node(&r->document, *i));

            if (!name || !name[0])
                continue;
            if (!pass)
                size += strlen(name) + 1;
            else
                at += (size_t)snprintf(
                    text + at, size - at, "%s%s", at ? "," : "", name);
        }
    }
    return text;
}

/* NAME with what hangs on it: the list under KEY of ITEM, where there is one.
 */
static int model_add(struct reading *r, enum mf_net_kind kind, const char *name,
    const yaml_node_t *item, const char *key)
{
    const yaml_node_t *list = value_of(r, item, key);
    bool nodes = !strcmp(key, "nodes");
    char *text;
    int rc;

    if (!list)
        return 0;
    if (!name || !name[0] || strlen(name) > 200 ||
        list->type != YAML_SEQUENCE_NODE)
        return refuse(r, item, "not a name with a list of what hangs on it");
    for (const char *c = name; *c; c++)
        if ((unsigned char)*c < ' ' || *c == 127)
            return refuse(r, item, "a name with control characters");
    text = names_join(r, list);
    if (!text)
        return mf_error_set(r->err, MF_FAILED, "out of memory");
    r->conf->lines[MF_CONF_NET]++;
    rc = mf_net_add(&r->conf->net, kind, name, nodes ? text : NULL,
        nodes ? NULL : text, r->err);
    free(text);
    return rc;
}

static int model_read(struct reading *r, const yaml_node_t *root)
{
    static const char domain[] = "accelerator.topology.test/domain";
    const yaml_node_t *switches = value_of(r, root, "switches");
    const yaml_node_t *blocks = value_of(r, root, "blocks");

    if (!switches || switches->type != YAML_MAPPING_NODE || !blocks ||
        blocks->type != YAML_SEQUENCE_NODE)
        return refuse(r, root, "neither switches by name nor a list of blocks");
    for (yaml_node_pair_t *p = switches->data.mapping.pairs.start;
         p < switches->data.mapping.pairs.top; p++)
        if (model_add(r, MF_NET_SWITCH,
                scalar(yaml_document_get_node(&r->document, p->key)),
                yaml_document_get_node(&r->document, p->value), "switches") < 0)
            return -1;
    for (yaml_node_item_t *i = blocks->data.sequence.items.start;
         i < blocks->data.sequence.items.top; i++) {
        const yaml_node_t *item = yaml_document_get_node(&r->document, *i);
        const char *block =
            scalar(value_of(r, value_of(r, item, "annotations"), domain));

        if (model_add(r, MF_NET_SWITCH, scalar(value_of(r, item, "switch")),
                item, "nodes") < 0 ||
            (block && model_add(r, MF_NET_BLOCK, block, item, "nodes") < 0))
            return -1;
    }
    return 0;
}

int mf_topology_yaml(struct mf_conf *conf, const char *path,
    const struct mf_text *text, struct mf_error *err)
{
    struct reading r = {.conf = conf, .path = path, .err = err};
    yaml_parser_t parser;
    int rc = -1;

    if (!yaml_parser_initialize(&parser))
        return mf_error_set(err, MF_FAILED, "out of memory");
    yaml_parser_set_input_string(
        &parser, (const unsigned char *)text->data, text->length);
    if (yaml_parser_load(&parser, &r.document)) {
        yaml_node_t *root = yaml_document_get_root_node(&r.document);

        rc = root && root->type == YAML_MAPPING_NODE ? model_read(&r, root)
                                                     : root_read(&r);
        yaml_document_delete(&r.document);
    } else
        mf_error_set(err, MF_INVALID, "%.200s:%zu: %s", path,
            parser.problem_mark.line + 1,
            parser.problem ? parser.problem : "not YAML");
    yaml_parser_delete(&parser);
    return rc;
}

#endif
