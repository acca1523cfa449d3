/* SPDX-License-Identifier: BSD-3-Clause
 * For command tests: write a run's spool and print its path.
 *
 * write_spool FOLDER STATUS [MEMBER=VALUE...]; "lost" leaves the last record
 * out.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "db/db.h"

static const struct text {
    const char *name;
    size_t offset, size;
} texts[] = {
#define MEMBER(name)                                                           \
    {                                                                          \
#name, offsetof(struct mfdb_run, name),                                \
            sizeof(((struct mfdb_run *)0)->name)                               \
    }
    MEMBER(run_id),
    MEMBER(model),
    MEMBER(cluster),
    MEMBER(layout),
    MEMBER(rank_order),
    MEMBER(job_id),
    MEMBER(node_list),
    MEMBER(command),
};

static const struct number {
    const char *name;
    size_t offset;
} numbers[] = {
    {"started_at", offsetof(struct mfdb_run, started_at)},
    {"layer_s", offsetof(struct mfdb_run, layer_s)},
    {"predicted_s", offsetof(struct mfdb_run, predicted_s)},
    {"tokens_per_s", offsetof(struct mfdb_run, tokens_per_s)},
};

static const struct number counts[] = {
    {"ranks", offsetof(struct mfdb_run, ranks)},
    {"hidden", offsetof(struct mfdb_run, hidden)},
    {"ffn", offsetof(struct mfdb_run, ffn)},
    {"experts", offsetof(struct mfdb_run, experts)},
    {"topk", offsetof(struct mfdb_run, topk)},
    {"seq", offsetof(struct mfdb_run, seq)},
    {"micro_batch", offsetof(struct mfdb_run, micro_batch)},
};

static int set(struct mfdb_run *run, const char *pair)
{
    size_t length = strcspn(pair, "=");
    const char *value = pair + length + 1;

    if (!pair[length])
        return -1;
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
        if (strlen(counts[i].name) == length &&
            !strncmp(counts[i].name, pair, length)) {
            int64_t count = strtoll(value, NULL, 10);

            memcpy((char *)run + counts[i].offset, &count, sizeof count);
            return 0;
        }
    }
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        if (strlen(texts[i].name) == length &&
            !strncmp(texts[i].name, pair, length)) {
            snprintf((char *)run + texts[i].offset, texts[i].size, "%s", value);
            return 0;
        }
    }
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        if (strlen(numbers[i].name) == length &&
            !strncmp(numbers[i].name, pair, length)) {
            double number = strtod(value, NULL);

            memcpy((char *)run + numbers[i].offset, &number, sizeof number);
            return 0;
        }
    }
    return -1;
}

static void start(struct mfdb_run *run)
{
    *run = (struct mfdb_run){
        .started_at = 1764547200, /* 2025-12-01T00:00:00Z */
        .ended_at = (double)NAN,
        .status = "running",
        .model = "Mixtral-8x22B",
        .cluster = "local",
        .layout = "tp1.cp1.dp8.pp1/etp1.ep8.edp1",
        .rank_order = "tp-cp-ep-dp-pp",
        .ranks = 8,
        .nodes = -1,
        .hidden = -1,
        .ffn = -1,
        .experts = -1,
        .topk = -1,
        .seq = -1,
        .micro_batch = -1,
        .vocab = -1,
        .gated = true,
        .imbalance = (double)NAN,
        .iterations = -1,
        .layer_s = (double)NAN,
        .tokens_per_s = (double)NAN,
        .predicted_s = (double)NAN,
    };
}

static const struct mfdb_sample samples[] = {
    {0, "dispatch", "forward", 0.001, 0.002, 0.004, 1, 1e6, (double)NAN, 0.003},
    {0, "experts", "forward", 0.01, 0.02, 0.03, 2, (double)NAN, 1e9,
        (double)NAN},
};

int main(int argc, char **argv)
{
    char err[MFDB_ERROR_TEXT] = "usage";
    struct mfdb_run run;
    mfdb_spool *spool = NULL;
    int rc = 1;

    start(&run);
    if (argc < 3 || mfdb_uuid(run.run_id))
        goto out;
    for (int i = 3; i < argc; i++)
        if (set(&run, argv[i]))
            goto out;
    spool = mfdb_spool_create(argv[1], &run, err);
    if (!spool || mfdb_spool_append(spool, samples, 2, err))
        goto out;
    snprintf(run.status, sizeof run.status, "%s", argv[2]);
    if (strcmp(run.status, "lost") && mfdb_spool_finish(spool, &run, err))
        goto out;
    puts(mfdb_spool_path(spool));
    rc = 0;
out:
    if (rc)
        fprintf(stderr, "write_spool: %s\n", err);
    mfdb_spool_close(spool);
    return rc;
}
