/* SPDX-License-Identifier: BSD-3-Clause
 * A cluster as JSON, and back with every figure checked.
 */
#include "planner/layout/cluster.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "planner/layout/layout.h"

static const char *const state_name[] = {"up", "down", "drained", "unknown"};
static const char *const how_name[] = {"measured", "read", "preset", "assumed"};

#define COUNT(list) ((int)(sizeof(list) / sizeof *(list)))

/* jansson takes UTF-8 only; a name that is not becomes '?' byte for byte. */
static json_t *text_json(const char *text)
{
    json_t *json;
    char *ascii;

    if (!text)
        return json_null();
    json = json_string(text);
    if (json)
        return json;
    ascii = strdup(text);
    for (char *c = ascii; c && *c; c++)
        if ((unsigned char)*c > 126)
            *c = '?';
    json = ascii ? json_string(ascii) : NULL;
    free(ascii);
    return json;
}

static json_t *figure_json(double value)
{
    return isfinite(value) ? json_real(value) : json_null();
}

static json_t *gpu_json(const struct mf_gpu *gpu)
{
    return json_pack("{s:o, s:o, s:o, s:o}", "model",
        gpu->model[0] ? text_json(gpu->model) : json_null(), "memory_bytes",
        figure_json(gpu->memory_bytes), "bf16_flops",
        figure_json(gpu->bf16_flops), "hbm_bytes_per_s",
        figure_json(gpu->hbm_bytes_per_s));
}

static json_t *tiers_json(const struct mf_cluster *cluster)
{
    json_t *list = json_array();

    for (int t = 0; list && t < cluster->tiers; t++) {
        const struct mf_tier *tier = &cluster->tier[t];
        json_t *item =
            json_pack("{s:o, s:o, s:o, s:o}", "name", text_json(tier->name),
                "size", tier->size > 0 ? json_integer(tier->size) : json_null(),
                "bytes_per_s", figure_json(tier->bytes_per_s), "latency_s",
                figure_json(tier->latency_s));

        if (json_array_append_new(list, item) < 0) {
            json_decref(list);
            return NULL;
        }
    }
    return list;
}

static json_t *numa_json(const struct mf_numa *numa)
{
    json_t *list;

    if (!numa)
        return json_null();
    list = numa->gpus > 0 ? json_array() : json_null();
    for (int32_t i = 0; list && i < numa->gpus; i++) {
        json_t *item =
            numa->of_gpu[i] >= 0 ? json_integer(numa->of_gpu[i]) : json_null();

        if (json_array_append_new(list, item) < 0) {
            json_decref(list);
            return NULL;
        }
    }
    return json_pack("{s:o, s:o}", "nodes",
        numa->nodes > 0 ? json_integer(numa->nodes) : json_null(), "of_gpu",
        list);
}

static json_t *nodes_json(const struct mf_cluster *cluster)
{
    json_t *list = json_array();

    for (size_t i = 0; list && i < cluster->nodes; i++) {
        const struct mf_node *node = &cluster->node[i];
        json_t *item = json_pack(
            "{s:o, s:s, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "name",
            text_json(node->name), "state", state_name[node->state], "switch",
            text_json(node->switch_name), "pod", text_json(node->pod), "block",
            text_json(node->block), "partitions", text_json(node->partitions),
            "features", text_json(node->features), "gpu_type",
            text_json(node->gpu_type), "gpus",
            node->gpus >= 0 ? json_integer(node->gpus) : json_null(), "numa",
            numa_json(node->numa));

        if (json_array_append_new(list, item) < 0) {
            json_decref(list);
            return NULL;
        }
    }
    return list;
}

static json_t *sources_json(const struct mf_cluster *cluster)
{
    json_t *list = json_array();

    for (size_t i = 0; list && i < cluster->sources; i++) {
        const struct mf_source *source = &cluster->source[i];
        json_t *item =
            json_pack("{s:o, s:s, s:o}", "field", text_json(source->field),
                "how", how_name[source->how], "from", text_json(source->from));

        if (json_array_append_new(list, item) < 0) {
            json_decref(list);
            return NULL;
        }
    }
    return list;
}

static json_t *warnings_json(const struct mf_cluster *cluster)
{
    json_t *list = json_array();

    for (size_t i = 0; list && cluster->warning && cluster->warning[i]; i++)
        if (json_array_append_new(list, text_json(cluster->warning[i])) < 0) {
            json_decref(list);
            return NULL;
        }
    return list;
}

json_t *mf_cluster_to_json(const struct mf_cluster *cluster)
{
    int64_t per_node = mf_cluster_gpus_per_node(cluster);

    return json_pack("{s:o, s:I, s:o, s:b, s:o, s:o, s:o, s:o, s:o, s:o}",
        "name", text_json(cluster->name), "nodes", (json_int_t)cluster->nodes,
        "gpus_per_node", per_node < 0 ? json_null() : json_integer(per_node),
        "cpu_ranks", cluster->cpu_ranks, "cores",
        cluster->cores > 0 ? json_integer(cluster->cores) : json_null(), "gpu",
        gpu_json(&cluster->gpu), "tiers", tiers_json(cluster), "node_list",
        nodes_json(cluster), "sources", sources_json(cluster), "warnings",
        warnings_json(cluster));
}

/* ---- reading ---- */

static int refuse(
    struct mf_error *err, const char *where, const char *key, const char *want)
{
    return mf_error_set(err, MF_INVALID, "%s.%s is not %s", where, key, want);
}

/* A text of at most SIZE - 1 bytes without control characters. */
static int read_text(const json_t *json, const char *where, const char *key,
    bool needed, char *text, size_t size, struct mf_error *err)
{
    const json_t *value = json_object_get(json, key);
    const char *from = json_string_value(value);

    text[0] = 0;
    if (!value || json_is_null(value))
        return needed ? refuse(err, where, key, "there") : 0;
    if (!from || json_string_length(value) >= size ||
        strlen(from) != json_string_length(value))
        return refuse(err, where, key, "a text of the right length");
    for (const char *c = from; *c; c++)
        if ((unsigned char)*c < ' ' || *c == 127)
            return refuse(err, where, key, "free of control characters");
    memcpy(text, from, json_string_length(value) + 1);
    return 0;
}

/* A finite number over 0, or null: not known. */
static int read_figure(const json_t *json, const char *where, const char *key,
    double *figure, struct mf_error *err)
{
    const json_t *value = json_object_get(json, key);

    *figure = NAN;
    if (!value || json_is_null(value))
        return 0;
    /* Bounds that keep products and ratios of figures within a double. */
    if (!json_is_number(value) || !(json_number_value(value) >= 1e-30) ||
        json_number_value(value) > 1e30)
        return refuse(err, where, key, "a number from 1e-30 to 1e30, or null");
    *figure = json_number_value(value);
    return 0;
}

static int read_count(const json_t *json, const char *where, const char *key,
    int64_t least, int64_t most, int64_t *count, struct mf_error *err)
{
    const json_t *value = json_object_get(json, key);
    int64_t n = json_integer_value(value);

    if (!json_is_integer(value) || n < least || n > most)
        return mf_error_set(err, MF_INVALID,
            "%s.%s is not a whole number from %lld to %lld", where, key,
            (long long)least, (long long)most);
    *count = n;
    return 0;
}

/* The same, or null for UNKNOWN. */
static int read_known(const json_t *json, const char *where, const char *key,
    int64_t least, int64_t most, int64_t unknown, int64_t *count,
    struct mf_error *err)
{
    *count = unknown;
    if (json_is_null(json_object_get(json, key)))
        return 0;
    return read_count(json, where, key, least, most, count, err);
}

static int read_name(const json_t *json, const char *where, const char *key,
    const char *const *names, int count, int *which, struct mf_error *err)
{
    const char *text = json_string_value(json_object_get(json, key));

    for (int i = 0; text && i < count; i++)
        if (!strcmp(text, names[i])) {
            *which = i;
            return 0;
        }
    return refuse(err, where, key, "one of the words known here");
}

static int read_list(const json_t *json, const char *key, size_t most,
    json_t **list, struct mf_error *err)
{
    *list = json_object_get(json, key);
    if (!json_is_array(*list) || json_array_size(*list) > most)
        return mf_error_set(err, MF_INVALID,
            "cluster.%s is not a list of at most %zu entries", key, most);
    return 0;
}

static int read_gpu(
    const json_t *json, struct mf_gpu *gpu, struct mf_error *err)
{
    static const char where[] = "cluster.gpu";

    if (!json_is_object(json))
        return mf_error_set(err, MF_INVALID, "%s is not an object", where);
    if (read_text(json, where, "model", false, gpu->model, sizeof gpu->model,
            err) < 0 ||
        read_figure(json, where, "memory_bytes", &gpu->memory_bytes, err) < 0 ||
        read_figure(json, where, "bf16_flops", &gpu->bf16_flops, err) < 0)
        return -1;
    return read_figure(
        json, where, "hbm_bytes_per_s", &gpu->hbm_bytes_per_s, err);
}

static int read_tier(const json_t *json, const char *where,
    struct mf_tier *tier, struct mf_error *err)
{
    if (read_text(json, where, "name", true, tier->name, sizeof tier->name,
            err) < 0 ||
        read_known(json, where, "size", 1, (int64_t)1 << 48, 0, &tier->size,
            err) < 0 ||
        read_figure(json, where, "bytes_per_s", &tier->bytes_per_s, err) < 0)
        return -1;
    return read_figure(json, where, "latency_s", &tier->latency_s, err);
}

static int read_tiers(
    const json_t *json, struct mf_cluster *cluster, struct mf_error *err)
{
    json_t *list, *item;
    size_t i;

    if (read_list(json, "tiers", MF_TIERS_MAX, &list, err) < 0)
        return -1;
    json_array_foreach(list, i, item)
    {
        struct mf_tier *tier = &cluster->tier[i];
        char where[64];

        snprintf(where, sizeof where, "cluster.tiers[%zu]", i);
        if (read_tier(item, where, tier, err) < 0)
            return -1;
        if (i > 0 && tier->size > 0 && tier->size < tier[-1].size)
            return refuse(
                err, where, "size", "at least that of the tier before it");
        cluster->tiers++;
    }
    return 0;
}

static int read_label(const json_t *json, const char *where, const char *key,
    char **label, struct mf_error *err)
{
    char text[1024];

    if (read_text(json, where, key, false, text, sizeof text, err) < 0)
        return -1;
    if (!text[0])
        return 0;
    *label = strdup(text);
    return *label ? 0 : mf_error_set(err, MF_FAILED, "cluster: out of memory");
}

#define NUMA_MAX 65536

static int read_numa(const json_t *json, const char *where,
    struct mf_node *node, struct mf_error *err)
{
    const json_t *numa = json_object_get(json, "numa"), *list, *item;
    int64_t nodes;
    int32_t *of_gpu;
    size_t i;
    int rc = 0;

    if (!numa || json_is_null(numa))
        return 0;
    list = json_object_get(numa, "of_gpu");
    if (!json_is_object(numa) ||
        (list && !json_is_null(list) && !json_is_array(list)) ||
        json_array_size(list) > NUMA_MAX)
        return refuse(err, where, "numa", "an object with nodes and of_gpu");
    if (read_known(numa, where, "nodes", 1, NUMA_MAX, 0, &nodes, err) < 0)
        return -1;
    of_gpu = calloc(json_array_size(list) + 1, sizeof *of_gpu);
    if (!of_gpu)
        return mf_error_set(err, MF_FAILED, "cluster: out of memory");
    json_array_foreach(list, i, item)
    {
        json_int_t at = json_is_integer(item) ? json_integer_value(item) : -1;

        if (!json_is_null(item) && (at < 0 || at >= NUMA_MAX))
            rc = refuse(err, where, "numa.of_gpu", "a list of node numbers");
        of_gpu[i] = json_is_null(item) ? -1 : (int32_t)at;
    }
    if (rc == 0)
        rc = mf_node_numa(
            node, (int32_t)nodes, (int32_t)json_array_size(list), of_gpu, err);
    free(of_gpu);
    return rc;
}

static int read_node(const json_t *json, const char *where,
    struct mf_cluster *cluster, struct mf_error *err)
{
    struct mf_node *node;
    char name[256];
    int64_t gpus;
    int state;

    if (read_text(json, where, "name", true, name, sizeof name, err) < 0 ||
        read_name(json, where, "state", state_name, COUNT(state_name), &state,
            err) < 0 ||
        read_known(json, where, "gpus", 0, MF_WORLD_MAX, MF_GPUS_UNKNOWN, &gpus,
            err) < 0 ||
        mf_cluster_add_node(cluster, name, gpus, err) < 0)
        return -1;
    node = &cluster->node[cluster->nodes - 1];
    node->state = (enum mf_node_state)state;
    if (read_label(json, where, "switch", &node->switch_name, err) < 0 ||
        read_label(json, where, "pod", &node->pod, err) < 0 ||
        read_label(json, where, "partitions", &node->partitions, err) < 0 ||
        read_label(json, where, "features", &node->features, err) < 0 ||
        read_label(json, where, "gpu_type", &node->gpu_type, err) < 0)
        return -1;
    if (read_label(json, where, "block", &node->block, err) < 0)
        return -1;
    return read_numa(json, where, node, err);
}

static int read_nodes(
    const json_t *json, struct mf_cluster *cluster, struct mf_error *err)
{
    json_t *list, *item;
    int64_t nodes;
    size_t i;

    if (read_list(json, "node_list", MF_NODES_MAX, &list, err) < 0 ||
        read_count(json, "cluster", "nodes", 0, MF_NODES_MAX, &nodes, err) < 0)
        return -1;
    if ((size_t)nodes != json_array_size(list))
        return mf_error_set(err, MF_INVALID,
            "cluster.nodes is %lld, but node_list has %zu", (long long)nodes,
            json_array_size(list));
    json_array_foreach(list, i, item)
    {
        char where[64];

        snprintf(where, sizeof where, "cluster.node_list[%zu]", i);
        if (read_node(item, where, cluster, err) < 0)
            return -1;
    }
    return 0;
}

static int read_sources(
    const json_t *json, struct mf_cluster *cluster, struct mf_error *err)
{
    json_t *list, *item;
    size_t i;

    if (read_list(json, "sources", 10000, &list, err) < 0)
        return -1;
    json_array_foreach(list, i, item)
    {
        struct mf_source source;
        char where[64];
        int how;

        snprintf(where, sizeof where, "cluster.sources[%zu]", i);
        if (read_text(item, where, "field", true, source.field,
                sizeof source.field, err) < 0 ||
            read_name(
                item, where, "how", how_name, COUNT(how_name), &how, err) < 0 ||
            read_text(item, where, "from", true, source.from,
                sizeof source.from, err) < 0 ||
            mf_cluster_add_source(
                cluster, source.field, (enum mf_how)how, source.from, err) < 0)
            return -1;
    }
    return 0;
}

static int read_warnings(
    const json_t *json, struct mf_cluster *cluster, struct mf_error *err)
{
    json_t *list, *item;
    size_t i;

    if (!json_object_get(json, "warnings"))
        return 0;
    if (read_list(json, "warnings", 10000, &list, err) < 0)
        return -1;
    json_array_foreach(list, i, item)
    {
        if (!json_is_string(item))
            return mf_error_set(
                err, MF_INVALID, "cluster.warnings[%zu] is not a text", i);
        if (mf_cluster_warn(cluster, err, "%s", json_string_value(item)) < 0)
            return -1;
    }
    return 0;
}

/* What the node list already says must not be said otherwise. */
static int check_per_node(
    const json_t *json, const struct mf_cluster *cluster, struct mf_error *err)
{
    const json_t *value = json_object_get(json, "gpus_per_node");
    int64_t per_node = mf_cluster_gpus_per_node(cluster);

    if (!value || (json_is_null(value) && per_node < 0))
        return 0;
    if (!json_is_integer(value) || json_integer_value(value) != per_node)
        return mf_error_set(
            err, MF_INVALID, "cluster.gpus_per_node differs from node_list");
    return 0;
}

static int read_all(
    const json_t *json, struct mf_cluster *cluster, struct mf_error *err)
{
    const json_t *cpu = json_object_get(json, "cpu_ranks");
    const json_t *cores = json_object_get(json, "cores");

    if (!json_is_object(json))
        return mf_error_set(err, MF_INVALID, "cluster is not an object");
    if (cpu && !json_is_boolean(cpu))
        return refuse(err, "cluster", "cpu_ranks", "true or false");
    cluster->cpu_ranks = json_is_true(cpu);
    if (cores && !json_is_null(cores) &&
        read_count(json, "cluster", "cores", 1, 1 << 20, &cluster->cores, err) <
            0)
        return -1;
    if (read_text(json, "cluster", "name", true, cluster->name,
            sizeof cluster->name, err) < 0 ||
        read_gpu(json_object_get(json, "gpu"), &cluster->gpu, err) < 0 ||
        read_tiers(json, cluster, err) < 0 ||
        read_nodes(json, cluster, err) < 0 ||
        check_per_node(json, cluster, err) < 0 ||
        read_sources(json, cluster, err) < 0)
        return -1;
    return read_warnings(json, cluster, err);
}

int mf_cluster_from_json(
    const json_t *json, struct mf_cluster *cluster, struct mf_error *err)
{
    *cluster = (struct mf_cluster){0};
    if (read_all(json, cluster, err) == 0)
        return 0;
    mf_cluster_free(cluster);
    return -1;
}
