/* SPDX-License-Identifier: BSD-3-Clause
 * What the fuzz targets of clusters share.
 */
#ifndef MF_FUZZ_CLUSTER_H
#define MF_FUZZ_CLUSTER_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "planner/cluster_parts.h"
#include "tests/fuzz/fuzz.h"

static inline char *fuzz_text(const uint8_t *data, size_t size)
{
    char *text = malloc(size + 1);

    if (!text)
        abort();
    if (size)
        memcpy(text, data, size);
    text[size] = 0;
    return text;
}

/* Refused with a line that says why, or a cluster that stands: its JSON is
 * read back, the ranks on it have domains, and an even part can be picked.
 */
static inline void fuzz_check(
    int rc, struct mf_cluster *cluster, const struct mf_error *err)
{
    struct mf_error again = {0};
    struct mf_cluster back;
    int32_t domain[16];
    json_t *json;

    if (rc < 0) {
        if (!err->text[0] || strchr(err->text, '\n') || err->status == MF_OK)
            abort();
        return;
    }
    json = mf_cluster_to_json(cluster);
    if (!json || mf_cluster_from_json(json, &back, &again) < 0) {
        fprintf(stderr, "not read back: %s\n", again.text);
        abort();
    }
    json_decref(json);
    mf_cluster_free(&back);
    if (mf_cluster_pick(cluster, &again) == 0) {
        int64_t world = mf_cluster_devices(cluster);

        world = world > 16 ? 16 : world;
        for (int t = 0; world > 0 && t < cluster->tiers; t++)
            if (mf_cluster_domains(cluster, t, world, domain, &again) < 0 &&
                cluster->tier[t].size > 0) {
                fprintf(stderr, "no domains: %s\n", again.text);
                abort();
            }
    }
    mf_cluster_free(cluster);
}

#endif
