/* SPDX-License-Identifier: BSD-3-Clause
 * Fuzzes what the child does with XML, hwloc's and NCCL's.
 */
#include "config.h"

#include "planner/cluster_xml.h"
#include "tests/fuzz/fuzz_cluster.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = fuzz_text(data, size);
    struct mf_error err = {0};
    struct mf_cluster cluster;

    fuzz_check(mf_xml_read("fuzz.xml", text, strlen(text), &cluster, &err),
        &cluster, &err);
    free(text);
    return 0;
}
