/* SPDX-License-Identifier: BSD-3-Clause
 * Argument files of Megatron-LM: what a command line, a shell script or a YAML
 * file gives to its training programs.
 */
#ifndef MF_MODEL_READ_MEGATRON_H
#define MF_MODEL_READ_MEGATRON_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "planner/layout/model.h"
#include "planner/model_read.h"

enum mf_form { MF_FORM_JSON, MF_FORM_YAML, MF_FORM_WORDS };

/* What TEXT (SIZE bytes) looks like: JSON unless a line starts as only YAML or
 * a command line does.
 */
enum mf_form mf_form_find(const char *text, size_t size);

/* Arguments as an object of strings, names without dashes before them and with
 * dashes inside, flags "true"; or NULL and ERR. A later one goes before an
 * earlier one. A command line or shell script: comments, continuations and
 * quotes; variables that it sets, and ${NAME:-default}, are put in, others
 * stay as they stand. Nothing is executed.
 */
json_t *mf_words_read(const char *text, size_t size, struct mf_error *err);

/* The same from YAML: the mapping MODEL_ARGS, or all of it. FILE tells where
 * files named by `extends` lie. MF_INVALID where moefold was built without
 * libyaml.
 */
json_t *mf_yaml_read(
    const char *file, const char *text, size_t size, struct mf_error *err);

/* A sum of lists of 0 and 1, each so many times over, in brackets or not; NULL
 * for anything else and for more than MF_LAYERS_MAX entries.
 */
json_t *mf_list_read(const char *text);

/* All of FILE in *TEXT, which the caller frees; at most 16 MiB. */
int mf_file_load(
    const char *file, char **text, size_t *size, struct mf_error *err);

/* MODEL from ARGUMENTS, with Megatron's defaults (megatron/training/
 * arguments.py and megatron/core/transformer/transformer_config.py of
 * Megatron-LM main, d98e8a64). The layout and batch into OUT unless NULL.
 */
int mf_megatron_model(json_t *arguments, struct mf_model *model,
    struct mf_arguments *out, struct mf_error *err);

#endif
