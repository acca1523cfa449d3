/* SPDX-License-Identifier: BSD-3-Clause
 * What the tests of models share: where files are, and a folder to write in.
 */
#ifndef TEST_MODEL_SUPPORT_H
#define TEST_MODEL_SUPPORT_H

#include <jansson.h>
#include <stddef.h>

#include "planner/model_read.h"

#define PATH_SIZE 4096

/* The models that are read, NULL-terminated. */
extern const char *const support_models[];

/* Those that are arguments of Megatron-LM, NULL-terminated. */
extern const char *const support_arguments[];

/* Path of NAME under tests/data/models, as a string to use at once. */
const char *support_data(const char *name);

/* A folder of this test alone, made at the first call. */
const char *support_folder(void);

/* Path of NAME in that folder, which then holds SIZE bytes of TEXT. */
const char *support_write(const char *name, const void *text, size_t size);

/* Remove the folder; what support_write made goes with it. */
int support_clean(void **state);

/* The JSON of a file under tests/data/models. */
json_t *support_json(const char *name);

/* Read JSON (reference taken over) as a file called NAME.json. */
int support_read(json_t *json, const char *name, struct mf_model *model,
    struct mf_error *err);

#endif
