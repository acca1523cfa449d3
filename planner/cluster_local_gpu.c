/* SPDX-License-Identifier: BSD-3-Clause
 * The GPUs of this machine, as nvidia-smi shows them: moefold itself is linked
 * with no driver.
 */
#include "config.h"

#include "planner/cluster_local_gpu.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "planner/child.h"
#include "planner/cluster_smi.h"

#define MIB 1048576.0
#define LIMIT_S 15
#define ANSWER_BYTES ((size_t)1 << 20)

/* What the program prints, malloc'd; NULL: it is not there or it failed. */
static char *smi_ask(char *const argv[])
{
    struct mf_child_limits limits = {
        .seconds = LIMIT_S, .output_bytes = ANSWER_BYTES};
    struct mf_child child;
    struct mf_error ignored;
    char *text = NULL;

    if (mf_child_program(argv, NULL, &limits, &child, &ignored) < 0)
        return NULL;
    if (child.end == MF_CHILD_EXITED && child.status == 0 && child.output &&
        strlen(child.output) == child.length)
        text = strdup(child.output);
    mf_child_free(&child);
    return text;
}

/* How many GPUs the environment lets a program see, of ALL. */
static int64_t visible(int64_t all)
{
    const char *list = getenv("CUDA_VISIBLE_DEVICES");
    int64_t count = 0;

    if (!list)
        return all;
    for (; *list; list += *list == ',') {
        size_t n = strcspn(list, ",");

        if (n == 0 || !strncmp(list, "-1", n) || !strncmp(list, "NoDev", 5))
            break;
        count++;
        list += n;
    }
    return count < all ? count : all;
}

/* "NVIDIA H100 80GB HBM3, 81559": a line a GPU. Differing ones: the first. */
static void lines_read(const char *text, struct mf_facts *facts)
{
    facts->gpus = 0;
    for (const char *line = text; *line;) {
        size_t n = strcspn(line, "\n");
        const char *comma = memchr(line, ',', n);

        if (comma && facts->gpus++ == 0) {
            double mib = strtod(comma + 1, NULL);

            snprintf(facts->model, sizeof facts->model, "%.*s",
                (int)(comma - line), line);
            if (mib > 0 && mib < 1e9)
                facts->memory_bytes = mib * MIB;
        }
        line += n + (line[n] == '\n');
    }
    facts->device = mf_device_find(facts->model);
}

int64_t mf_local_gpus(struct mf_facts *facts)
{
    char smi[] = "nvidia-smi", query[] = "--query-gpu=name,memory.total";
    char format[] = "--format=csv,noheader,nounits", topo[] = "topo",
         m[] = "-m";
    char *ask[] = {smi, query, format, NULL}, *paths[] = {smi, topo, m, NULL};
    char *text;
    int64_t all;

    mf_facts_init(facts);
    if (visible(1) == 0)
        return 0;
    text = smi_ask(ask);
    if (!text)
        return 0;
    lines_read(text, facts);
    free(text);
    all = facts->gpus;
    facts->gpus = visible(all);
    if (all != facts->gpus || all < 1 || all > MF_FACTS_GPUS_MAX)
        return facts->gpus;
    text = smi_ask(paths);
    if (text && mf_smi_is(text))
        mf_smi_links(text, facts);
    free(text);
    return facts->gpus;
}
