/* SPDX-License-Identifier: BSD-3-Clause
 * Reads a Hugging Face config.json into a model. A dialect is a row of a
 * table: which key means what, with its default.
 */
#ifndef MF_MODEL_READ_H
#define MF_MODEL_READ_H

#include "planner/layout/model.h"

/* Read FILE; the model's name is that of its folder when the file is called
 * config.json, else of the file without its ending. MF_INVALID with file, key
 * and mend otherwise. Keys that could change the count and are not known
 * become warnings. Free with mf_model_free.
 */
int mf_model_read(
    const char *file, struct mf_model *model, struct mf_error *err);

#endif
