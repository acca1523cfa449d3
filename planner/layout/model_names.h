/* SPDX-License-Identifier: BSD-3-Clause
 * The names that a model's JSON has for kinds, flags and counts, for its
 * writer and its reader.
 */
#ifndef MF_MODEL_NAMES_H
#define MF_MODEL_NAMES_H

#include "planner/layout/model_field.h"

#define MF_LINEAR_TYPES 3
#define MF_QK_NORMS 3
#define MF_FLAGS 19
#define MF_PARAMS 13
#define MF_OBJECTS 7

extern const char *const mf_mixer_names[MF_MIXERS];
extern const char *const mf_linear_names[MF_LINEAR_TYPES];
extern const char *const mf_ffn_names[MF_FFNS];
extern const char *const mf_qk_norm_names[MF_QK_NORMS];

/* A flag of a model, in OBJECT or at the top level (NULL). */
struct mf_flag_row {
    const char *object, *key;
    size_t offset;
};

extern const struct mf_flag_row mf_flag_table[MF_FLAGS];

bool *mf_flag_of(struct mf_model *model, const struct mf_flag_row *row);
bool mf_flag_get(const struct mf_model *model, const struct mf_flag_row *row);

struct mf_param_row {
    const char *key;
    size_t offset;
};

extern const struct mf_param_row mf_param_table[MF_PARAMS];

int64_t mf_param_get(
    const struct mf_params *params, const struct mf_param_row *row);

/* Parts that a model may have, each an object or null in the JSON. */
extern const char *const mf_object_table[MF_OBJECTS];

/* Whether two names of objects are the same; NULL is the top level. */
bool mf_same_object(const char *a, const char *b);
bool mf_object_present(const struct mf_model *model, const char *object);

#endif
