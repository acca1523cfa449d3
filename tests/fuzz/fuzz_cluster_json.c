/* SPDX-License-Identifier: BSD-3-Clause
 * Fuzzes the reader of a cluster's JSON.
 */
#include "tests/fuzz/fuzz_cluster.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    json_t *json =
        json_loadb((const char *)data, size, JSON_REJECT_DUPLICATES, NULL);
    struct mf_error err = {0};
    struct mf_cluster cluster;

    if (json)
        fuzz_check(mf_cluster_from_json(json, &cluster, &err), &cluster, &err);
    json_decref(json);
    return 0;
}
