/* SPDX-License-Identifier: BSD-3-Clause
 * Fuzzes the reader of nvidia-smi topo -m.
 */
#include "config.h"

#include "planner/cluster_smi.h"
#include "tests/fuzz/fuzz_cluster.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = fuzz_text(data, size);
    struct mf_error err = {0};
    struct mf_cluster cluster;

    (void)mf_smi_is(text);
    fuzz_check(
        mf_smi_cluster("fuzz.txt", text, &cluster, &err), &cluster, &err);
    free(text);
    return 0;
}
