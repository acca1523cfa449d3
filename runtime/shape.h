/* SPDX-License-Identifier: BSD-3-Clause
 * The shape of one MoE layer and its micro batch.
 */
#ifndef MFR_SHAPE_H
#define MFR_SHAPE_H

#include <stdbool.h>
#include <stdint.h>

struct mfr_shape {
    int64_t seq;   /* positions of the whole sequence */
    int64_t batch; /* sequences in a micro batch */
    int64_t hidden;
    int64_t ffn; /* width of one expert, over all of ETP */
    int64_t experts, topk;
    bool renormalize; /* chosen weights are scaled to sum to 1 */
    double scaling;   /* times the weights */
};

#endif
