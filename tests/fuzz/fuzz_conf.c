/* SPDX-License-Identifier: BSD-3-Clause
 * Fuzzes the reader of Slurm's files.
 */
#include "config.h"

#include "planner/cluster_conf.h"
#include "tests/fuzz/fuzz_cluster.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct mf_text text = {.data = fuzz_text(data, size)};
    struct mf_error err = {0};
    struct mf_cluster cluster;
    int rc;

    text.length = strlen(text.data);
    rc = mf_conf_cluster("fuzz.conf", &text, &cluster, &err);
    fuzz_check(rc, &cluster, &err);
    free(text.data);
    return 0;
}
