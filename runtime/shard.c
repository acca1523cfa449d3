/* SPDX-License-Identifier: BSD-3-Clause
 * Which tokens a rank holds.
 */
#include "runtime/shard.h"

void mfr_shard_of(const struct mfr_shape *shape, const struct mf_layout *layout,
    int64_t rank, struct mfr_shard *shard)
{
    const int64_t shards = layout->tp * layout->cp;
    const int64_t each = shape->seq / shards, longer = shape->seq % shards;
    struct mf_coords at;

    mf_layout_coords(layout, rank, &at);
    shard->micro_batch = at.dp;
    shard->shard = at.cp * layout->tp + at.tp;
    shard->positions = each + (shard->shard < longer ? 1 : 0);
    shard->first =
        shard->shard * each + (shard->shard < longer ? shard->shard : longer);
    shard->tokens = shard->positions * shape->batch;
}
