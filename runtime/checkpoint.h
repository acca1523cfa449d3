/* SPDX-License-Identifier: BSD-3-Clause
 * A layer's parameters by the names of published checkpoints, read from and
 * written to safetensors files.
 *
 * Names may have any beginning, such as "model.layers.3."; the router's tells
 * it. moefold-safetensors(5) lists them.
 */
#ifndef MFR_CHECKPOINT_H
#define MFR_CHECKPOINT_H

#include "runtime/comm.h"
#include "runtime/layer.h"
#include "runtime/safetensors.h"

#define MFR_NAME_MOST 256

struct mfr_checkpoint {
    struct mfr_tensorfile file;
    bool open, biases;          /* experts have biases */
    char prefix[MFR_NAME_MOST]; /* before "experts.0..." */
    int64_t seq, batch;         /* of hidden_states; batch over all of dp */
};

/* Open PATH and read what shape its tokens have; the layer whose experts it
 * holds must be one. MF_INVALID names the tensor.
 */
int mfr_checkpoint_open(const char *path, const struct mfr_shape *shape,
    struct mfr_checkpoint *from, struct mf_error *err);
void mfr_checkpoint_close(struct mfr_checkpoint *from);

/* This rank's part of every parameter of LAYER. */
int mfr_checkpoint_weights(const struct mfr_checkpoint *from, mfr_layer *layer,
    const struct mfr_shape *shape, const struct mf_coords *coords,
    struct mf_error *err);
/* Its tokens of "hidden_states" or "grad_output". */
int mfr_checkpoint_tokens(const struct mfr_checkpoint *from, const char *name,
    const struct mfr_shape *shape, const struct mfr_shard *shard, float *out,
    struct mf_error *err);

/* Write output, grad_hidden_states and grad.NAME of each parameter, under the
 * names of FROM (NULL: those of Qwen and DeepSeek), to PATH by rank 0.
 * Collective over COMMS' base; all ranks return the same.
 */
int mfr_checkpoint_dump(const char *path, const struct mfr_checkpoint *from,
    mfr_layer *layer, const struct mfr_shape *shape, int64_t dp,
    const struct mfr_comms *comms, const float *y, const float *dx,
    struct mf_error *err);

#endif
