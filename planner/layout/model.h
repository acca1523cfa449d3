/* SPDX-License-Identifier: BSD-3-Clause
 * The shape of a model, as data: what a cost model and a runtime need of it.
 * Readers of foreign files (planner/model_*.c) fill it; plans carry it.
 */
#ifndef MF_MODEL_H
#define MF_MODEL_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "planner/layout/error.h"

#define MF_LAYERS_MAX 100000

enum mf_attention { MF_ATTENTION_MHA, MF_ATTENTION_GQA, MF_ATTENTION_MLA };
enum mf_mixer { MF_MIXER_FULL, MF_MIXER_SLIDING, MF_MIXER_NONE };
enum mf_ffn { MF_FFN_DENSE, MF_FFN_MOE, MF_FFN_NONE };
/* A norm of queries and keys: of each head, or of all heads together. */
enum mf_qk_norm { MF_QK_NORM_NONE, MF_QK_NORM_HEAD, MF_QK_NORM_WHOLE };
enum mf_score { MF_SCORE_SOFTMAX, MF_SCORE_SIGMOID };

struct mf_layer_kind {
    enum mf_mixer mixer;
    enum mf_ffn ffn;
};

struct mf_mla {
    int64_t q_rank; /* 0: no low-rank query */
    int64_t kv_rank, nope_dim, rope_dim, v_dim;
};

struct mf_router {
    enum mf_score score;
    int64_t groups, topk_groups; /* 0 or 1: no group limit */
    bool bias;                   /* a selection bias for each expert */
    bool renormalize;            /* chosen weights are scaled to sum to 1 */
    double scaling;              /* times the weights, 1 when unused */
};

/* Parameters of the text model; mtp and vision stand apart from total. -1 when
 * not known. active_no_embedding leaves out the input table, which is looked
 * up and not multiplied; an output projection of its own stays in. MTP counts
 * what is not shared with the main model.
 */
struct mf_params {
    int64_t total, active, active_no_embedding;
    int64_t embedding; /* input and, when untied, output */
    int64_t attention, dense_mlp, routed, shared, router, norms;
    int64_t mtp, vision;
};

struct mf_model {
    char name[128];
    int64_t layers, hidden, vocab;
    int64_t heads, kv_heads, head_dim;
    enum mf_attention attention;
    struct mf_mla mla; /* when attention is MLA; head_dim is then that
                          of queries and keys, nope_dim + rope_dim */
    bool qkv_bias, out_bias, mlp_bias;
    enum mf_qk_norm qk_norm;
    int64_t sliding_window;           /* tokens, 0: none */
    struct mf_layer_kind *layer_kind; /* [layers] */
    int64_t dense_ffn; /* width, 0 when there is no dense layer */
    int64_t moe_ffn;   /* width of one routed expert, 0 when dense */
    bool gated;
    char activation[32];
    int64_t experts, topk;  /* 0 for a dense model */
    int64_t shared_experts; /* how many */
    int64_t shared_ffn;     /* width of all shared experts together */
    bool shared_gate;
    bool tied_embeddings;
    struct mf_router router;
    int64_t mtp_layers;
    struct mf_params params;
    char **warning; /* NULL-terminated, or NULL */
};

/* Names as in JSON, such as "gqa". */
const char *mf_attention_name(enum mf_attention attention);
const char *mf_score_name(enum mf_score score);

/* Layers whose feed-forward part is of KIND. */
int64_t mf_model_count(const struct mf_model *model, enum mf_ffn kind);

/* Parameters of one routed expert. */
int64_t mf_model_expert_params(const struct mf_model *model);

/* Add a warning line. */
int mf_model_warn(struct mf_model *model, struct mf_error *err, const char *fmt,
    ...) MF_PRINTF(3, 4);

/* Work out model->params from the shape: plain sums over the layers,
 * embeddings counted; -1 (error) when a count overflows. params.vision is
 * left alone. MLA by its low-rank factors (DeepSeek-V2, arXiv 2405.04434,
 * section 2.1); an MTP layer is one more layer like the last, a projection
 * from 2 hidden to hidden and three norms (DeepSeek-V3, arXiv 2412.19437,
 * section 2.2).
 */
int mf_model_count_params(struct mf_model *model, struct mf_error *err);

/* The JSON of `moefold model --json`, and back (from a plan). Reading checks
 * every figure. Both return what mf_model_free or json_decref takes.
 */
json_t *mf_model_to_json(const struct mf_model *model);
int mf_model_from_json(
    const json_t *json, struct mf_model *model, struct mf_error *err);

void mf_model_free(struct mf_model *model);

#endif
