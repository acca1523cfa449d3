/* SPDX-License-Identifier: BSD-3-Clause
 * How the tables of dialects are written.
 */
#ifndef MF_MODEL_READ_ROWS_H
#define MF_MODEL_READ_ROWS_H

#include <stddef.h>

#include "planner/model_read_dialect.h"

#define LIST(...) ((const char *const[]){__VA_ARGS__, NULL})
#define KEYS(...) ((const struct mf_key *const[]){__VA_ARGS__, NULL})
#define DEFAULTS(...) ((const struct mf_default *const[]){__VA_ARGS__, NULL})

/* A key; the same for a word that stands for a number. */
#define KEY(key, slot)                                                         \
    {                                                                          \
        key, slot, NULL                                                        \
    }
#define SKIP(key) KEY(key, MF_SLOT_IGNORED)
#define END_KEYS KEY(NULL, 0)

/* What holds in silence; what the user is told; so many times another slot. */
#define HOLDS(slot, value)                                                     \
    {                                                                          \
        slot, -1, value, false                                                 \
    }
#define TOLD(slot, value)                                                      \
    {                                                                          \
        slot, -1, value, true                                                  \
    }
#define TIMES(slot, value, of)                                                 \
    {                                                                          \
        slot, of, value, false                                                 \
    }
#define END_DEFAULTS                                                           \
    {                                                                          \
        -1, -1, 0, false                                                       \
    }
#define END_DIALECTS                                                           \
    {                                                                          \
        NULL, NULL, NULL, NULL, NULL, NULL, NULL                               \
    }

/* Rows that several tables of models with experts share. */
extern const struct mf_default mf_rows_same_width[];
extern const struct mf_default mf_rows_renormalized[];
extern const struct mf_default mf_rows_head_norms[];
extern const struct mf_default mf_rows_sigmoid_bias[];
extern const struct mf_default mf_rows_mla_ranks[];
extern const struct mf_key mf_rows_mla_keys[];
extern const struct mf_key mf_rows_qwen_keys[];
extern const struct mf_default mf_rows_qwen_defaults[];
extern const struct mf_default mf_rows_deepseek_v3_defaults[];
extern const struct mf_key mf_rows_minimax_keys[];
extern const struct mf_default mf_rows_lightning[];
extern const struct mf_key mf_rows_bailing_keys[];
extern const struct mf_default mf_rows_bailing_v2_defaults[];

#endif
