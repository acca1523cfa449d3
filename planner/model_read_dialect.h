/* SPDX-License-Identifier: BSD-3-Clause
 * Dialects of config.json as data. A dialect is a row: the types and
 * architectures it answers to, what its keys mean where that differs from
 * what they mean everywhere, and what holds when a key is missing. A new one
 * needs no new code unless it has a part that no slot stands for.
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
    /* which layers have experts */
    MF_SLOT_FIRST_DENSE = MF_FIELDS, /* layers before the first MoE layer */
    MF_SLOT_MOE_STEP,     /* layer i is MoE when (i + phase) % step is 0, or a
                             list that says it for every layer */
    MF_SLOT_MOE_PHASE,    /* see step */
    MF_SLOT_MOE_OFFSET,   /* see step: layers before the first of a period */
    MF_SLOT_MOE_END,      /* last MoE layer, -1: the last one of all */
    MF_SLOT_DENSE_LAYERS, /* list of layers that are dense all the same */
    MF_SLOT_MOE_LAYERS,   /* list of MoE layers, or a text of it */
    MF_SLOT_DENSE_TOO,    /* there are models of this dialect without experts */
    MF_SLOT_EXPERTS_ON,   /* false: no layer has experts */
    MF_SLOT_PATTERN,      /* a letter a block: M, *, E, - */
    MF_SLOT_BLOCKS,       /* the same, a list of words */
    MF_SLOT_BLOCK_LIST,   /* a list of objects, one a layer */
    MF_SLOT_PAIRED,       /* each layer is two, see the reader */
    /* what mixes the tokens of a layer */
    MF_SLOT_WINDOW_ON,    /* whether the sliding window is in use */
    MF_SLOT_WINDOW_FROM,  /* first layer with a sliding window */
    MF_SLOT_WINDOW_STEP,  /* layer i is full when (i + 1) % step is 0; or
                             letters that repeat: L sliding, G full */
    MF_SLOT_WINDOW_LIST,  /* list with 1 for every sliding layer */
    MF_SLOT_CHUNKED,      /* windows are chunks */
    MF_SLOT_LAYER_TYPES,  /* list of names, one a layer */
    MF_SLOT_LINEAR_STEP,  /* layer i is full when (i + 1) % step is 0, else
                             linear */
    MF_SLOT_LINEAR_TAIL,  /* layers after the last whole step are full too */
    MF_SLOT_LINEAR_LIST,  /* list with 0 for every linear layer */
    MF_SLOT_LINEAR_NAMED, /* list of linear layers, counted from 1 */
    MF_SLOT_MAMBA_STEP,   /* attention when i % step is phase, else Mamba */
    MF_SLOT_MAMBA_PHASE,  /* see step */
    MF_SLOT_MAMBA_EXCEPT, /* list of layers with attention, else Mamba */
    MF_SLOT_CONV_EXCEPT,  /* list of layers with attention, else convolution */
    MF_SLOT_COMPRESS,     /* list of ratios, one a layer */
    MF_SLOT_SPARSE_LIST,  /* list with 1 for every sparse layer */
    MF_SLOT_INDEX_BLOCK,  /* topk of the indexer counts blocks of so many */
    MF_SLOT_SHARED_KV,    /* layers at the end without keys of their own */
    MF_SLOT_SHARE_STEP,   /* one layer of so many has keys of its own */
    MF_SLOT_SHARE_ON,     /* whether layers share keys */
    MF_SLOT_WIDE_SHARED,  /* those layers have dense parts twice as wide */
    /* attention */
    MF_SLOT_MLA,   /* attention is MLA: 0 no, 1 yes, 2 where ranks are given */
    MF_SLOT_WIDTH, /* of all heads together */
    MF_SLOT_HEAD_LIST, /* list of heads, one a layer */
    MF_SLOT_PER_LAYER, /* object of full layers with sizes of their own */
    MF_SLOT_ONE_KV,    /* one key and value head */
    MF_SLOT_GROUPED,   /* the number of key and value heads counts */
    MF_SLOT_QKV_BIAS,
    MF_SLOT_OUT_BIAS,
    MF_SLOT_QK_NORM,    /* enum mf_qk_norm, where there is one */
    MF_SLOT_QK_NORM_ON, /* whether there is one */
    MF_SLOT_GATE_ON,    /* an output gate as wide as the heads */
    MF_SLOT_GATE_HEAD,  /* an output gate of one value a head; or a word */
    MF_SLOT_SINKS_FULL,
    MF_SLOT_SINKS_SLIDING,
    MF_SLOT_FULL_SHARED_KV,   /* full layers use keys as values */
    MF_SLOT_LINEAR_TYPE,      /* enum mf_linear_type */
    MF_SLOT_LINEAR_FULL_GATE, /* KDA: 0 low rank, 1 the output gate has full
                                 rank, 2 the decay as well */
    MF_SLOT_MAMBA_EXPAND,
    MF_SLOT_MAMBA_CONV_BIAS,
    MF_SLOT_MAMBA_PROJ_BIAS,
    MF_SLOT_MAMBA_NORMS,
    /* feed-forward parts */
    MF_SLOT_MLP_BIAS,
    MF_SLOT_GATED,
    MF_SLOT_FFN_TIMES,     /* dense width is so many times the hidden one */
    MF_SLOT_FFN_UNIT,      /* dense width: 8/3 of hidden, up to a multiple */
    MF_SLOT_FFN_FACTOR,    /* of this, times the factor before that */
    MF_SLOT_FFN_ADJUST,    /* dense width: 2/3 of what the key gives, times the
                              factor, up to a multiple of the unit */
    MF_SLOT_FFN_PARTS,     /* dense width is the key's value over this */
    MF_SLOT_SHARED_EACH,   /* width of each shared expert */
    MF_SLOT_SHARED_GATE,   /* of the shared expert, where there is one */
    MF_SLOT_BESIDE_HIDDEN, /* a dense part of hidden width beside the experts */
    MF_SLOT_BESIDE_DENSE,  /* the same, as wide as that of a dense layer */
    MF_SLOT_EXPERT_SAME, /* without a width of its own, an expert has the dense
                            one, and dense layers have none if all are MoE */
    /* the rest */
    MF_SLOT_TIED,
    MF_SLOT_HEAD_BIAS,
    MF_SLOT_STREAMS,     /* residual streams with hyper-connections */
    MF_SLOT_SQUARES,     /* hidden x hidden parameters more in a layer */
    MF_SLOT_TABLE_DIM,   /* width of the embedding; must be hidden */
    MF_SLOT_LAYER_DIM,   /* width of embeddings of each layer */
    MF_SLOT_LAYER_VOCAB, /* rows of them */
    MF_SLOT_MTP_ON,
    MF_SLOT_SCORE, /* enum mf_score */
    MF_SLOT_ROUTER_BIAS,
    MF_SLOT_ROUTER_LINEAR_BIAS,
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
    MF_KIND_WHOLE_OR_LIST, /* the list is kept */
    MF_KIND_TEXT_OR_LIST,
    MF_KIND_WHOLES, /* a whole number, or a list of equal ones */
    MF_KIND_WHOLE_OR_TEXT,
    MF_KIND_FLAG_OR_TEXT,
    MF_KIND_OBJECT,
    MF_KIND_ANY,
};

/* A word that stands for a number. */
struct mf_choice {
    const char *text;
    int64_t value;
};

/* One key; dots go into objects. Two rows may share a key (one switch, two
 * parts) or a slot (two spellings; files that give both must agree). A row of
 * a dialect hides the rows for its key that hold everywhere.
 */
struct mf_key {
    const char *key;
    int slot;                        /* enum mf_slot or enum mf_field */
    const struct mf_choice *choices; /* when the value is a word */
};

/* What a slot is when no key gives it. SAME_AS is -1, or the slot to copy
 * VALUE times. TOLD: an assumption of the class that changes the count; the
 * user is warned, and a key that is null has no part in it.
 */
struct mf_default {
    int slot;
    int same_as;
    int64_t value;
    bool told;
};

struct mf_dialect {
    const char *const *types;         /* of "model_type" */
    const char *const *architectures; /* without what they are built for:
                                         "Mixtral", not MixtralForCausalLM */
    const struct mf_key *const *keys; /* tables, each ended by NULL key */
    const struct mf_default *const *defaults; /* first hit wins; slot -1 ends */
    const char *const *marks; /* keys that tell a file without type */
    const char *refusal;      /* NULL, or why such a model is not read */
    const char *note;         /* NULL, or a warning for each such file */
};

/* Every dialect in tables, ended by NULL; a table by a row without types. */
extern const struct mf_dialect *const mf_dialects[];
extern const struct mf_dialect mf_dialects_moe[];
extern const struct mf_dialect mf_dialects_hybrid[];
extern const struct mf_dialect mf_dialects_dense[];
extern const struct mf_dialect mf_dialects_refused[];

/* A decoder of a type that no row stands for. */
extern const struct mf_dialect mf_dialect_other;

/* Keys that mean the same in every dialect; ended by a NULL key. */
extern const struct mf_key mf_keys_common[];
/* What holds in every dialect unless its own rows say otherwise. */
extern const struct mf_default mf_defaults_common[];

/* Keys that leave the shape alone in every dialect; ended by NULL. */
extern const char *const mf_harmless[];

/* Objects that a text model may lie in; ended by NULL. */
extern const char *const mf_nests[];

enum mf_slot_kind mf_slot_kind(int slot);

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
    const json_t *list; /* or an object */
};

/* Read ROOT, the content of a config.json, into MODEL, which is empty but for
 * its name; the caller frees it on failure too.
 */
int mf_model_config(json_t *root, struct mf_model *model, struct mf_error *err);

/* The same in a dialect that is known. */
int mf_model_config_as(json_t *object, const struct mf_dialect *dialect,
    struct mf_model *model, struct mf_error *err);

/* Work out MODEL from VALUE: layer kinds, widths, checks and counts. The
 * caller frees MODEL on failure too.
 */
int mf_model_shape(struct mf_model *model,
    const struct mf_value value[MF_SLOTS], struct mf_error *err);

#endif
