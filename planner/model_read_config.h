/* SPDX-License-Identifier: BSD-3-Clause
 * What the steps of reading a config.json share: finding its text model and
 * dialect, taking its values, and telling what is not known.
 */
#ifndef MF_MODEL_READ_CONFIG_H
#define MF_MODEL_READ_CONFIG_H

#include "planner/model_read_dialect.h"

struct reading {
    json_t *root;  /* the whole file */
    json_t *text;  /* the object of the text model in it, or all of it */
    char path[96]; /* where that is, with a dot at its end, or empty */
    const struct mf_dialect *dialect;
    struct mf_model *model;
    struct mf_error *err;
    struct mf_value value[MF_SLOTS];
};

bool mf_listed(const char *const *list, const char *text);

/* What PATH, names with dots between them, leads to in OBJECT, or NULL. */
const json_t *mf_path_get(const json_t *object, const char *path);

/* Whether a table has a row for KEY, and whether a dialect's own have. */
bool mf_keys_have(const struct mf_key *row, const char *key);
bool mf_dialect_has(const struct mf_dialect *dialect, const char *key);

/* The text model of R->root into R->text and R->path. */
void mf_text_find(struct reading *r);

/* The dialect of R->text, or an error that says what the file is. */
int mf_dialect_find(struct reading *r);

/* A warning for each key that could change the count and is not known. */
int mf_unknown_tell(struct reading *r);

/* Whether the file has parts other than text. */
bool mf_other_parts(const struct reading *r);

/* How the weights are published. */
void mf_weights_note(struct reading *r);

#endif
