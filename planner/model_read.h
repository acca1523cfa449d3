/* SPDX-License-Identifier: BSD-3-Clause
 * Reads a model: a Hugging Face config.json or the arguments of Megatron-LM.
 * A dialect is a row of a table: which key means what, with its default.
 */
#ifndef MF_MODEL_READ_H
#define MF_MODEL_READ_H

#include <stddef.h>

#include "planner/layout/model.h"

/* What a Megatron argument file says besides the model; 0: not said, or by a
 * variable without a value.
 */
struct mf_arguments {
    bool given;  /* there were arguments at all */
    bool layout; /* a parallel size is given, so that the others are 1, and
                    ETP is TP, as in Megatron */
    int64_t tp, cp, pp, ep, etp;
    bool etp_given; /* else it is Megatron's default */
    int64_t seq, micro_batch, global_batch;
};

/* Read FILE; the model's name is that of its folder when the file is called
 * config.json or params.json, else of the file without its ending. MF_INVALID
 * with file, key and mend otherwise. Keys that could change the count and are
 * not known become warnings. Free with mf_model_free.
 */
int mf_model_read(
    const char *file, struct mf_model *model, struct mf_error *err);

/* The same with what else an argument file says in OUT (all 0 for others). */
int mf_model_read_arguments(const char *file, struct mf_model *model,
    struct mf_arguments *out, struct mf_error *err);

/* The same from SIZE bytes of TEXT, which is changed, as if read from FILE. */
int mf_model_read_text(const char *file, char *text, size_t size,
    struct mf_model *model, struct mf_arguments *out, struct mf_error *err);

#endif
