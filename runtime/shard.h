/* SPDX-License-Identifier: BSD-3-Clause
 * Which tokens a rank holds.
 *
 * A micro batch is [seq][batch] tokens; the rank's dp coordinate says which
 * micro batch it works on. The positions of the sequence are cut into tp*cp
 * contiguous shards, number cp*TP + tp, the first seq % (tp*cp) of them one
 * position longer; a shard may be empty. Hidden vectors are never cut.
 */
#ifndef MFR_SHARD_H
#define MFR_SHARD_H

#include "planner/layout/layout.h"
#include "runtime/shape.h"

struct mfr_shard {
    int64_t micro_batch;      /* the dp coordinate */
    int64_t shard;            /* number of the shard, cp*TP + tp */
    int64_t first, positions; /* of the sequence */
    int64_t tokens;           /* positions * batch */
};

/* Of a resolved LAYOUT; local token t is position first + t / batch of
 * sequence t % batch.
 */
void mfr_shard_of(const struct mfr_shape *shape, const struct mf_layout *layout,
    int64_t rank, struct mfr_shard *shard);

#endif
