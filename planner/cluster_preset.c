/* SPDX-License-Identifier: BSD-3-Clause
 * Published figures of devices, and clusters made of them.
 */
#include "config.h"

#include "planner/cluster_parts.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "planner/layout/layout.h"
#include "planner/layout/number.h"

struct preset {
    const char *name, *device;
    int64_t unit_nodes, node_gpus; /* N counts units of so many nodes */
};

static const struct preset presets[] = {
    {"dgx-a100", "a100", 1, 8},
    {"dgx-h100", "h100", 1, 8},
    {"dgx-h800", "h800", 1, 8},
    {"dgx-h200", "h200", 1, 8},
    {"dgx-b200", "b200", 1, 8},
    {"dgx-b300", "b300", 1, 8},
    {"gb200-nvl72", "gb200", 18, 4},
    {"gb300-nvl72", "gb300", 18, 4},
    {"mi300x", "mi300x", 1, 8},
    {"mi355x", "mi355x", 1, 8},
};

#define COUNT(list) (sizeof(list) / sizeof *(list))

static bool word_is(const char *word, size_t length, const char *key)
{
    return strlen(key) == length && !strncasecmp(word, key, length);
}

void mf_preset_names(char *text, size_t size)
{
    size_t used = 0;

    for (size_t i = 0; i < COUNT(presets) && used < size; i++)
        used += (size_t)snprintf(
            text + used, size - used, "%s%s", i ? ", " : "", presets[i].name);
}

static const struct preset *preset_find(const char *source)
{
    for (size_t i = 0; i < COUNT(presets); i++)
        if (word_is(source, strcspn(source, ":"), presets[i].name))
            return &presets[i];
    return NULL;
}

bool mf_preset_is(const char *source)
{
    return preset_find(source) != NULL;
}

/* How many units: said after the colon, else what WORLD needs. */
static int preset_units(const struct preset *preset, const char *source,
    int64_t world, int64_t *units, struct mf_error *err)
{
    int64_t per_unit = preset->unit_nodes * preset->node_gpus;
    const char *colon = strchr(source, ':');

    if (colon && !strcmp(colon + 1, "0"))
        return mf_error_set(err, MF_INVALID,
            "cluster %s has zero GPUs; give at least %s:1", source,
            preset->name);
    if (colon)
        return mf_number_parse(
            colon + 1, source, 1, MF_WORLD_MAX / per_unit, units, err);
    if (world < 1 || world > MF_WORLD_MAX)
        return mf_error_set(err, MF_INVALID,
            "cluster %s has no size; give %s:N (%lld GPUs each), or --world",
            source, preset->name, (long long)per_unit);
    *units = (world + per_unit - 1) / per_unit;
    return 0;
}

static int preset_nodes(const struct preset *preset, int64_t units,
    struct mf_cluster *cluster, struct mf_error *err)
{
    char name[128], block[64];

    for (int64_t i = 0; i < units * preset->unit_nodes; i++) {
        bool rack = preset->unit_nodes > 1;
        int64_t unit = i / preset->unit_nodes + 1;

        snprintf(block, sizeof block, "rack%lld", (long long)unit);
        if (rack)
            snprintf(name, sizeof name, "%s-node%lld", block,
                (long long)(i % preset->unit_nodes + 1));
        else
            snprintf(name, sizeof name, "node%lld", (long long)unit);
        if (mf_cluster_add_node(cluster, name, preset->node_gpus, err) < 0)
            return -1;
        if (rack && !(cluster->node[i].block = strdup(block)))
            return mf_error_set(err, MF_FAILED, "cluster: out of memory");
    }
    return mf_cluster_add_source(
        cluster, "node_list", MF_PRESET, preset->name, err);
}

static int preset_tiers(const struct preset *preset,
    const struct mf_device *device, struct mf_cluster *cluster,
    struct mf_error *err)
{
    struct mf_tier link = {.size = preset->unit_nodes * preset->node_gpus,
        .bytes_per_s = device->link_bytes_per_s,
        .latency_s = MF_LINK_LATENCY_S};
    struct mf_tier network = {.name = "network",
        .size = mf_cluster_devices(cluster),
        .bytes_per_s = device->nic_bytes_per_s,
        .latency_s = MF_NETWORK_LATENCY_S};

    snprintf(link.name, sizeof link.name, "%s", device->link);
    if (mf_cluster_add_tier(
            cluster, &link, MF_PRESET, device->from, MF_LATENCY_FROM, err) < 0)
        return -1;
    return mf_cluster_add_tier(
        cluster, &network, MF_PRESET, device->from, MF_LATENCY_FROM, err);
}

int mf_preset_read(const char *source, int64_t world,
    struct mf_cluster *cluster, struct mf_error *err)
{
    const struct preset *preset = preset_find(source);
    const struct mf_device *device;
    int64_t units;

    *cluster = (struct mf_cluster){0};
    if (!preset)
        return mf_error_set(
            err, MF_INVALID, "cluster '%.80s' is not a preset", source);
    device = mf_device_find(preset->device);
    if (preset_units(preset, source, world, &units, err) < 0)
        return -1;
    snprintf(cluster->name, sizeof cluster->name, "%s:%lld", preset->name,
        (long long)units);
    if (mf_device_describe(cluster, device, err) < 0 ||
        preset_nodes(preset, units, cluster, err) < 0 ||
        preset_tiers(preset, device, cluster, err) < 0) {
        mf_cluster_free(cluster);
        return -1;
    }
    return 0;
}
