/* SPDX-License-Identifier: BSD-3-Clause
 * Dialects of config.json as data. A dialect is a row: the types and
 * architectures it answers to, the tables of keys that it reads and the
 * tables of what holds when a key is missing. A new one needs no new code
 * unless it has a part that no slot stands for.
 */
#ifndef MF_MODEL_READ_DIALECT_H
#define MF_MODEL_READ_DIALECT_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "planner/layout/model_field.h"

/* What a key may mean. The first slots are the fields of a model, one to one;
 * the others are rules and switches that the fields are worked out from.
 */
enum mf_slot {
    MF_SLOT_FIRST_DENSE = MF_FIELDS, /* layers before the first MoE layer */
    MF_SLOT_MOE_STEP,     /* layer i is MoE when (i + phase) % step is 0 */
    MF_SLOT_MOE_PHASE,    /* see step */
    MF_SLOT_DENSE_LAYERS, /* list of layers that are dense all the same */
    MF_SLOT_WINDOW_ON,    /* whether the sliding window is in use */
    MF_SLOT_WINDOW_FROM,  /* first layer with a sliding window */
    MF_SLOT_LAYER_TYPES,  /* list of names, one a layer */
    MF_SLOT_MLA,          /* attention is MLA */
    MF_SLOT_QKV_BIAS,
    MF_SLOT_OUT_BIAS,
    MF_SLOT_MLP_BIAS,
    MF_SLOT_QK_NORM, /* enum mf_qk_norm */
    MF_SLOT_GATED,
    MF_SLOT_SHARED_GATE, /* of the shared expert, where there is one */
    MF_SLOT_TIED,
    MF_SLOT_SCORE, /* enum mf_score */
    MF_SLOT_ROUTER_BIAS,
    MF_SLOT_RENORMALIZE,
    MF_SLOT_SCALING,
    MF_SLOT_ACTIVATION,
    MF_SLOT_IGNORED, /* known to leave the shape alone */
    MF_SLOTS
};

enum mf_slot_kind {
    MF_KIND_WHOLE,
    MF_KIND_FLAG,
    MF_KIND_REAL,
    MF_KIND_TEXT,
    MF_KIND_LIST,
    MF_KIND_WHOLE_OR_LIST,
    MF_KIND_ANY,
};

/* A word that stands for a number. */
struct mf_choice {
    const char *text;
    int64_t value;
};

/* One key. Two rows may share a key (one switch, two parts) or a slot (two
 * spellings; files that give both must agree).
 */
struct mf_key {
    const char *key;
    int slot;                        /* enum mf_slot or enum mf_field */
    bool required;                   /* the key must stand in the file */
    const struct mf_choice *choices; /* when the value is a word */
};

/* What a slot is when no key gives it. SAME_AS is -1 or the slot to copy.
 * TOLD: an assumption of the class that changes the count; the user is warned,
 * and a key that is null has no part in it.
 */
struct mf_default {
    int slot;
    int same_as;
    int64_t value;
    bool told;
};

struct mf_dialect {
    const char *const *types;         /* of "model_type" */
    const char *const *architectures; /* of "architectures" */
    const struct mf_key *const *keys; /* tables, each ended by NULL key */
    const struct mf_default *const *defaults; /* first hit wins; slot -1 ends */
};

/* A key whose presence means a part that is not counted. */
struct mf_refusal {
    const char *key, *reason;
};

/* Every dialect; ended by a row without types. */
extern const struct mf_dialect mf_dialects[];

/* Ended by a row without a key. */
extern const struct mf_refusal mf_refusals[];

/* Keys that leave the shape alone in every dialect; ended by NULL. */
extern const char *const mf_harmless[];

enum mf_slot_kind mf_slot_kind(int slot);

/* The first row of DIALECT for SLOT, NULL: none. */
const struct mf_key *mf_dialect_key_of(
    const struct mf_dialect *dialect, int slot);

/* NULL: SLOT has no default in DIALECT. IS_NULL: the file gives the key as
 * null, which overrides what a class assumes for a missing key.
 */
const struct mf_default *mf_dialect_default(
    const struct mf_dialect *dialect, int slot, bool is_null);

/* What a file said, slot by slot. */
struct mf_value {
    bool given, is_null;
    const char *key; /* the key that gave it, or the first one that could */
    int64_t whole;   /* whole numbers, flags, choices */
    double real;
    const char *text;
    const json_t *list;
};

/* Work out MODEL from VALUE: layer kinds, widths, checks and counts. MODEL is
 * empty but for its name; the caller frees it on failure too.
 */
int mf_model_shape(struct mf_model *model,
    const struct mf_value value[MF_SLOTS], struct mf_error *err);

#endif
