/* SPDX-License-Identifier: BSD-3-Clause
 * The shape of one MoE layer and its micro batch.
 */
#ifndef MFR_SHAPE_H
#define MFR_SHAPE_H

#include <stdbool.h>
#include <stdint.h>

#include "kernels/kernels.h"

struct mfr_shape {
    int64_t seq;   /* positions of the whole sequence */
    int64_t batch; /* sequences in a micro batch */
    int64_t hidden;
    int64_t ffn; /* width of one expert, over all of ETP */
    int64_t experts, topk;
    bool renormalize; /* chosen weights are scaled to sum to 1 */
    double scaling;   /* times the weights */
    bool sigmoid;     /* scores; else a softmax */
    int64_t groups, topk_groups, group_best; /* as struct mfk_router has it */
    bool select_bias; /* added to scores to choose by, no more */
    bool router_bias; /* of the logits */
    bool expert_bias; /* of each of an expert's products */
    enum mfk_activation activation;
    int64_t shared_ffn; /* of all shared experts together, over TP; 0: none */
    bool shared_gate;   /* times sigmoid(w . x) */
};

#endif
