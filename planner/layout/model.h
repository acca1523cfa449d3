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

/* The softmax attention of a model: MHA and GQA have heads, MLA has ranks. */
enum mf_attention { MF_ATTENTION_MHA, MF_ATTENTION_GQA, MF_ATTENTION_MLA };

/* What mixes the tokens of a layer. */
enum mf_mixer {
    MF_MIXER_FULL,       /* softmax attention over all earlier tokens */
    MF_MIXER_SLIDING,    /* over the last sliding_window tokens */
    MF_MIXER_NONE,       /* the layer has a feed-forward part only */
    MF_MIXER_LINEAR,     /* linear attention: struct mf_linear */
    MF_MIXER_MAMBA,      /* a selective state space: struct mf_mamba */
    MF_MIXER_SPARSE,     /* over indexer.topk tokens that an indexer picks;
                            with indexer.ratio, over entries that stand for
                            so many tokens, and the sliding window */
    MF_MIXER_COMPRESSED, /* over all entries that stand for compress_ratio
                            tokens each, and the sliding window */
    MF_MIXER_CONV,       /* a gated short convolution of conv_kernel taps:
                            hidden to 3 hidden, and hidden to hidden */
    MF_MIXERS
};

enum mf_ffn { MF_FFN_DENSE, MF_FFN_MOE, MF_FFN_NONE, MF_FFNS };

/* A norm of queries and keys: of each head, or of all heads together. */
enum mf_qk_norm { MF_QK_NORM_NONE, MF_QK_NORM_HEAD, MF_QK_NORM_WHOLE };
enum mf_score { MF_SCORE_SOFTMAX, MF_SCORE_SIGMOID, MF_SCORE_SQRTSOFTPLUS };

struct mf_layer_kind {
    enum mf_mixer mixer;
    enum mf_ffn ffn;
};

/* Sizes of one layer where they differ from layer to layer. KV_HEADS 0: the
 * layer uses the keys and values of an earlier one. FFN: width of its dense
 * feed-forward part.
 */
struct mf_layer_size {
    int64_t kv_heads, ffn;
};

/* Heads of GQA in the layers of one kind. */
struct mf_heads {
    int64_t heads; /* 0: as the model's own */
    int64_t kv_heads, head_dim;
    int64_t v_dim;        /* of values, and of what is projected back */
    bool keys_are_values; /* one projection serves both */
    bool sinks;           /* a learned logit for each head */
};

struct mf_mla {
    int64_t q_rank; /* 0: no low-rank query */
    int64_t kv_rank, nope_dim, rope_dim, v_dim;
};

/* Linear attention: a state of value_heads matrices of key_dim x value_dim
 * that a token updates and reads.
 */
enum mf_linear_type {
    MF_LINEAR_GATED_DELTA, /* arXiv 2412.06464, as in Qwen3-Next */
    MF_LINEAR_KDA,         /* Kimi delta attention, arXiv 2510.26692 */
    MF_LINEAR_LIGHTNING,   /* arXiv 2401.04658, as in MiniMax-01 */
};

struct mf_linear {
    enum mf_linear_type type;
    int64_t key_heads, value_heads; /* 0: there is none */
    int64_t key_dim, value_dim;     /* of one head */
    int64_t conv_kernel;            /* taps, 0: no convolution */
    int64_t gate_rank;              /* of the output gate; 0: full rank */
    int64_t decay_rank; /* of a decay a channel (KDA); 0: full rank */
};

/* A state of state x inner numbers (arXiv 2312.00752; with heads, Mamba-2,
 * arXiv 2405.21060).
 */
struct mf_mamba {
    int64_t inner; /* channels, heads x head_dim; 0: there is none */
    int64_t state, conv_kernel;
    int64_t dt_rank;                 /* Mamba-1, else 0 */
    int64_t heads, head_dim, groups; /* Mamba-2, else 0 */
    bool conv_bias, proj_bias;
    bool norms; /* of dt, B and C (Mamba-1), or before the gate */
};

/* Scores of heads x dim for each earlier entry; TOPK entries are attended. */
struct mf_indexer {
    int64_t heads, dim, topk;
    int64_t ratio; /* tokens that an entry stands for; 0: one */
};

struct mf_router {
    enum mf_score score;
    int64_t groups, topk_groups; /* 0 or 1: no group limit */
    bool bias;                   /* a selection bias for each expert */
    bool linear_bias;            /* a bias of the logits */
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
    int64_t embedding; /* input and, when untied, output; positions */
    int64_t attention; /* every mixer, without its norms */
    int64_t dense_mlp; /* those beside experts too */
    int64_t routed, shared, router, norms;
    int64_t other; /* what is in none of these: see layer_extra */
    int64_t mtp, vision;
};

struct mf_model {
    char name[128];
    char dtype[16];        /* of the weights as published, or empty */
    char quantization[48]; /* how they are packed, or empty */
    int64_t layers, hidden, vocab;
    int64_t heads, kv_heads, head_dim;
    int64_t v_dim; /* of a head's values; 0: head_dim (not for MLA) */
    enum mf_attention attention;
    struct mf_mla mla; /* when attention is MLA; head_dim is then that
                          of queries and keys, nope_dim + rope_dim */
    struct mf_heads full_heads, sliding_heads; /* where sliding layers, or all
                                                  others, have their own */
    int64_t q_rank;           /* low-rank query outside MLA, 0: none */
    int64_t o_rank, o_groups; /* the output projection in o_groups blocks, each
                                 through o_rank; 0: one full matrix */
    int64_t gate_dim;         /* an output gate: values a head, 0: none */
    int64_t attention_experts, attention_topk; /* query and output projections
                                                  as experts (JetMoE), 0: no */
    struct mf_linear linear;
    struct mf_mamba mamba;
    struct mf_indexer indexer;
    int64_t compress_ratio; /* of MF_MIXER_COMPRESSED */
    int64_t conv_kernel;    /* of MF_MIXER_CONV */
    bool qkv_bias, out_bias, mlp_bias;
    bool sinks; /* a learned logit for each attention head */
    enum mf_qk_norm qk_norm;
    int64_t sliding_window; /* tokens, 0: none */
    bool window_chunked;    /* windows start at multiples of their size */
    struct mf_layer_kind *layer_kind; /* [layers] */
    struct mf_layer_size *layer_size; /* [layers], NULL: all alike */
    int64_t dense_ffn;    /* width, 0 when there is no dense layer; the widest
                             where they differ */
    int64_t moe_ffn;      /* width of one routed expert, 0 when dense */
    int64_t beside_ffn;   /* width of a dense part beside the experts of each
                             MoE layer, run for every token; 0: none */
    int64_t latent;       /* routed experts see this width instead of hidden,
                             one projection down and up a layer; 0: hidden */
    int64_t zero_experts; /* that the router may choose and cost nothing */
    bool gated;
    char activation[32];
    int64_t experts, topk;  /* 0 for a dense model */
    int64_t shared_experts; /* how many */
    int64_t shared_ffn;     /* width of all shared experts together */
    bool shared_gate;
    bool tied_embeddings;
    bool head_bias;      /* of the output projection */
    int64_t positions;   /* rows of a learned position table, 0: none */
    int64_t norms_mixer; /* vectors of hidden numbers that the norms */
    int64_t norms_ffn;   /* around each part of a layer have */
    int64_t norms_end;   /* and those outside the layers */
    int64_t layer_extra; /* parameters a layer in none of these parts */
    struct mf_router router;
    int64_t mtp_layers;
    struct mf_params params;
    char **warning; /* NULL-terminated, or NULL */
};

/* Names as in JSON, such as "gqa". */
const char *mf_attention_name(enum mf_attention attention);
const char *mf_score_name(enum mf_score score);

/* Layers whose feed-forward part is of KIND; those whose mixer is MIXER. */
int64_t mf_model_count(const struct mf_model *model, enum mf_ffn kind);
int64_t mf_model_count_mixer(const struct mf_model *model, enum mf_mixer mixer);

/* The heads of softmax attention in layers of MIXER (FULL, SLIDING, SPARSE or
 * COMPRESSED), every figure filled in; not for MLA.
 */
struct mf_heads mf_model_heads(
    const struct mf_model *model, enum mf_mixer mixer);

/* Parameters of one mixer of this kind, biases and what is inside it counted,
 * norms not; 0 for NONE, -1 on overflow. Where layers differ in their key and
 * value heads, that of a layer with the model's own.
 */
int64_t mf_model_mixer_params(
    const struct mf_model *model, enum mf_mixer mixer);

/* Weights that one token is multiplied with in a mixer of this kind: forward
 * products take two FLOPs for each, besides the scores, states and convolution
 * taps that depend on the sequence. Only the chosen ones of attention experts.
 */
int64_t mf_model_mixer_weights(
    const struct mf_model *model, enum mf_mixer mixer);

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
