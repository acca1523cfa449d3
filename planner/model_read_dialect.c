/* SPDX-License-Identifier: BSD-3-Clause
 * The dialects of config.json. Defaults are those of the configuration
 * classes in Hugging Face transformers, so that a file that leaves a key out
 * means here what it means there.
 */
#include "planner/model_read_dialect.h"

#include <stddef.h>

#define LIST(...) ((const char *const[]){__VA_ARGS__, NULL})
#define KEYS(...) ((const struct mf_key *const[]){__VA_ARGS__, NULL})
#define DEFAULTS(...) ((const struct mf_default *const[]){__VA_ARGS__, NULL})

#define END_KEYS                                                               \
    {                                                                          \
        NULL, 0, false, NULL                                                   \
    }
#define END_DEFAULTS                                                           \
    {                                                                          \
        -1, -1, 0, false                                                       \
    }

/* Keys of every decoder in the style of Llama. */
static const struct mf_key keys_decoder[] = {
    {"num_hidden_layers", MF_FIELD_LAYERS, true, NULL},
    {"hidden_size", MF_FIELD_HIDDEN, true, NULL},
    {"vocab_size", MF_FIELD_VOCAB, true, NULL},
    {"num_attention_heads", MF_FIELD_HEADS, true, NULL},
    {"num_key_value_heads", MF_FIELD_KV_HEADS, false, NULL},
    {"hidden_act", MF_SLOT_ACTIVATION, false, NULL},
    {"tie_word_embeddings", MF_SLOT_TIED, false, NULL},
    END_KEYS,
};

static const struct mf_key keys_head_dim[] = {
    {"head_dim", MF_FIELD_HEAD_DIM, false, NULL},
    END_KEYS,
};

static const struct mf_key keys_attention_bias[] = {
    {"attention_bias", MF_SLOT_QKV_BIAS, false, NULL},
    {"attention_bias", MF_SLOT_OUT_BIAS, false, NULL},
    END_KEYS,
};

static const struct mf_key keys_qkv_bias[] = {
    {"qkv_bias", MF_SLOT_QKV_BIAS, false, NULL},
    END_KEYS,
};

static const struct mf_key keys_mlp_bias[] = {
    {"mlp_bias", MF_SLOT_MLP_BIAS, false, NULL},
    END_KEYS,
};

static const struct mf_key keys_window[] = {
    {"sliding_window", MF_FIELD_WINDOW, false, NULL},
    {"layer_types", MF_SLOT_LAYER_TYPES, false, NULL},
    END_KEYS,
};

/* The window of Qwen is off unless a switch says otherwise. */
static const struct mf_key keys_window_switch[] = {
    {"use_sliding_window", MF_SLOT_WINDOW_ON, false, NULL},
    {"max_window_layers", MF_SLOT_WINDOW_FROM, false, NULL},
    END_KEYS,
};

static const struct mf_key keys_mla[] = {
    {"q_lora_rank", MF_FIELD_MLA_Q, false, NULL},
    {"kv_lora_rank", MF_FIELD_MLA_KV, true, NULL},
    {"qk_nope_head_dim", MF_FIELD_MLA_NOPE, true, NULL},
    {"qk_rope_head_dim", MF_FIELD_MLA_ROPE, true, NULL},
    {"v_head_dim", MF_FIELD_MLA_V, true, NULL},
    /* Sums that newer files repeat. */
    {"head_dim", MF_SLOT_IGNORED, false, NULL},
    {"qk_head_dim", MF_SLOT_IGNORED, false, NULL},
    END_KEYS,
};

/* Feed-forward widths: which part the general key means differs. */
static const struct mf_key keys_dense_width[] = {
    {"intermediate_size", MF_FIELD_DENSE_FFN, false, NULL},
    END_KEYS,
};

static const struct mf_key keys_dense_only[] = {
    {"intermediate_size", MF_FIELD_DENSE_FFN, true, NULL},
    END_KEYS,
};

static const struct mf_key keys_expert_is_width[] = {
    {"intermediate_size", MF_FIELD_MOE_FFN, true, NULL},
    END_KEYS,
};

static const struct mf_key keys_expert_width[] = {
    {"moe_intermediate_size", MF_FIELD_MOE_FFN, false, NULL},
    END_KEYS,
};

/* Experts. */
static const struct mf_key keys_topk[] = {
    {"num_experts_per_tok", MF_FIELD_TOPK, false, NULL},
    {"num_experts_per_token", MF_FIELD_TOPK, false, NULL},
    END_KEYS,
};

static const struct mf_key keys_local_experts[] = {
    {"num_local_experts", MF_FIELD_EXPERTS, true, NULL},
    {"num_experts", MF_FIELD_EXPERTS, false, NULL},
    END_KEYS,
};

static const struct mf_key keys_num_experts[] = {
    {"num_experts", MF_FIELD_EXPERTS, true, NULL},
    {"num_local_experts", MF_FIELD_EXPERTS, false, NULL},
    END_KEYS,
};

static const struct mf_key keys_routed_experts[] = {
    {"n_routed_experts", MF_FIELD_EXPERTS, true, NULL},
    {"num_routed_experts", MF_FIELD_EXPERTS, false, NULL},
    {"n_shared_experts", MF_FIELD_SHARED_EXPERTS, false, NULL},
    {"num_shared_experts", MF_FIELD_SHARED_EXPERTS, false, NULL},
    {"first_k_dense_replace", MF_SLOT_FIRST_DENSE, false, NULL},
    {"moe_layer_freq", MF_SLOT_MOE_STEP, false, NULL},
    END_KEYS,
};

static const struct mf_key keys_sparse_step[] = {
    {"decoder_sparse_step", MF_SLOT_MOE_STEP, false, NULL},
    {"mlp_only_layers", MF_SLOT_DENSE_LAYERS, false, NULL},
    END_KEYS,
};

static const struct mf_key keys_shared_width[] = {
    {"shared_expert_intermediate_size", MF_FIELD_SHARED_FFN, true, NULL},
    END_KEYS,
};

/* Named by some copies of Qwen3 files; the class does not read them. */
static const struct mf_key keys_qwen3_extra[] = {
    {"shared_expert_intermediate_size", MF_SLOT_IGNORED, false, NULL},
    {"qkv_bias", MF_SLOT_IGNORED, false, NULL},
    {"use_qk_norm", MF_SLOT_IGNORED, false, NULL},
    END_KEYS,
};

static const struct mf_key keys_renormalize[] = {
    {"norm_topk_prob", MF_SLOT_RENORMALIZE, false, NULL},
    END_KEYS,
};

static const struct mf_choice score_choices[] = {
    {"softmax", MF_SCORE_SOFTMAX},
    {"sigmoid", MF_SCORE_SIGMOID},
    {NULL, 0},
};

/* Whether the way to choose experts adds a bias to their scores. */
static const struct mf_choice method_choices[] = {
    {"greedy", 0},
    {"group_limited_greedy", 0},
    {"noaux_tc", 1},
    {NULL, 0},
};

static const struct mf_key keys_router[] = {
    {"scoring_func", MF_SLOT_SCORE, false, score_choices},
    {"topk_method", MF_SLOT_ROUTER_BIAS, false, method_choices},
    {"routed_scaling_factor", MF_SLOT_SCALING, false, NULL},
    {"n_group", MF_FIELD_GROUPS, false, NULL},
    {"topk_group", MF_FIELD_TOPK_GROUPS, false, NULL},
    END_KEYS,
};

static const struct mf_key keys_mtp[] = {
    {"num_nextn_predict_layers", MF_FIELD_MTP_LAYERS, false, NULL},
    END_KEYS,
};

/* What holds for every dialect unless its own rows, which come first, say
 * otherwise. A slot that is in neither is 0 when a key is missing.
 */
static const struct mf_default defaults_common[] = {
    {MF_FIELD_KV_HEADS, MF_FIELD_HEADS, 0, false},
    {MF_SLOT_MOE_STEP, -1, 1, false},
    {MF_SLOT_WINDOW_ON, -1, true, false},
    {MF_SLOT_GATED, -1, true, false},
    {MF_SLOT_SCALING, -1, 1, false},
    END_DEFAULTS,
};

static const struct mf_default defaults_kv8[] = {
    {MF_FIELD_KV_HEADS, -1, 8, true},
    END_DEFAULTS,
};

static const struct mf_default defaults_renormalize[] = {
    {MF_SLOT_RENORMALIZE, -1, true, false},
    END_DEFAULTS,
};

static const struct mf_default defaults_qwen[] = {
    {MF_SLOT_WINDOW_ON, -1, false, false},
    {MF_SLOT_MOE_PHASE, -1, 1, false},
    END_DEFAULTS,
};

static const struct mf_default defaults_qkv_bias[] = {
    {MF_SLOT_QKV_BIAS, -1, true, false},
    END_DEFAULTS,
};

static const struct mf_default defaults_shared_gate[] = {
    {MF_SLOT_SHARED_GATE, -1, true, false},
    END_DEFAULTS,
};

static const struct mf_default defaults_head_norm[] = {
    {MF_SLOT_QK_NORM, -1, MF_QK_NORM_HEAD, false},
    {MF_FIELD_HEAD_DIM, -1, 128, true},
    END_DEFAULTS,
};

static const struct mf_default defaults_whole_norm[] = {
    {MF_SLOT_QK_NORM, -1, MF_QK_NORM_WHOLE, false},
    END_DEFAULTS,
};

static const struct mf_default defaults_mla[] = {
    {MF_SLOT_MLA, -1, true, false},
    {MF_FIELD_MLA_Q, -1, 1536, true},
    END_DEFAULTS,
};

static const struct mf_default defaults_v3[] = {
    {MF_FIELD_SHARED_EXPERTS, -1, 1, true},
    {MF_SLOT_FIRST_DENSE, -1, 3, true},
    {MF_SLOT_SCORE, -1, MF_SCORE_SIGMOID, false},
    {MF_SLOT_ROUTER_BIAS, -1, true, false},
    {MF_SLOT_RENORMALIZE, -1, true, false},
    END_DEFAULTS,
};

const struct mf_dialect mf_dialects[] = {
    {
        LIST("llama"),
        LIST("LlamaForCausalLM"),
        KEYS(keys_decoder, keys_head_dim, keys_attention_bias, keys_mlp_bias,
            keys_dense_only),
        DEFAULTS(defaults_common),
    },
    {
        LIST("mistral"),
        LIST("MistralForCausalLM"),
        KEYS(keys_decoder, keys_head_dim, keys_window, keys_dense_only),
        DEFAULTS(defaults_kv8, defaults_common),
    },
    {
        LIST("qwen2"),
        LIST("Qwen2ForCausalLM"),
        KEYS(keys_decoder, keys_head_dim, keys_window, keys_window_switch,
            keys_dense_only),
        DEFAULTS(defaults_qwen, defaults_qkv_bias, defaults_common),
    },
    {
        LIST("qwen3"),
        LIST("Qwen3ForCausalLM"),
        KEYS(keys_decoder, keys_head_dim, keys_attention_bias, keys_window,
            keys_window_switch, keys_dense_only),
        DEFAULTS(defaults_qwen, defaults_head_norm, defaults_common),
    },
    {
        LIST("mixtral"),
        LIST("MixtralForCausalLM"),
        KEYS(keys_decoder, keys_head_dim, keys_window, keys_expert_is_width,
            keys_local_experts, keys_topk),
        DEFAULTS(defaults_kv8, defaults_renormalize, defaults_common),
    },
    {
        LIST("qwen2_moe"),
        LIST("Qwen2MoeForCausalLM"),
        KEYS(keys_decoder, keys_head_dim, keys_qkv_bias, keys_window,
            keys_window_switch, keys_dense_width, keys_expert_width,
            keys_num_experts, keys_topk, keys_sparse_step, keys_shared_width,
            keys_renormalize),
        DEFAULTS(defaults_qwen, defaults_qkv_bias, defaults_shared_gate,
            defaults_common),
    },
    {
        LIST("qwen3_moe"),
        LIST("Qwen3MoeForCausalLM"),
        KEYS(keys_decoder, keys_head_dim, keys_attention_bias, keys_window,
            keys_window_switch, keys_dense_width, keys_expert_width,
            keys_num_experts, keys_topk, keys_sparse_step, keys_renormalize,
            keys_qwen3_extra),
        DEFAULTS(defaults_qwen, defaults_head_norm, defaults_common),
    },
    {
        LIST("olmoe"),
        LIST("OlmoeForCausalLM"),
        KEYS(keys_decoder, keys_attention_bias, keys_expert_is_width,
            keys_num_experts, keys_topk, keys_renormalize),
        DEFAULTS(defaults_whole_norm, defaults_common),
    },
    {
        LIST("granitemoe"),
        LIST("GraniteMoeForCausalLM"),
        KEYS(keys_decoder, keys_attention_bias, keys_expert_is_width,
            keys_local_experts, keys_topk),
        DEFAULTS(defaults_renormalize, defaults_common),
    },
    {
        LIST("deepseek"),
        LIST("DeepseekForCausalLM"),
        KEYS(keys_decoder, keys_head_dim, keys_attention_bias, keys_dense_width,
            keys_expert_width, keys_routed_experts, keys_topk, keys_router,
            keys_renormalize),
        DEFAULTS(defaults_common),
    },
    {
        LIST("deepseek_v2"),
        LIST("DeepseekV2ForCausalLM"),
        KEYS(keys_decoder, keys_attention_bias, keys_mla, keys_dense_width,
            keys_expert_width, keys_routed_experts, keys_topk, keys_router,
            keys_renormalize),
        DEFAULTS(defaults_mla, defaults_common),
    },
    {
        LIST("deepseek_v3", "kimi_k2"),
        LIST("DeepseekV3ForCausalLM"),
        KEYS(keys_decoder, keys_attention_bias, keys_mla, keys_dense_width,
            keys_expert_width, keys_routed_experts, keys_topk, keys_router,
            keys_renormalize, keys_mtp),
        DEFAULTS(defaults_mla, defaults_v3, defaults_common),
    },
    {NULL, NULL, NULL, NULL},
};

enum mf_slot_kind mf_slot_kind(int slot)
{
    switch (slot) {
    case MF_SLOT_DENSE_LAYERS:
    case MF_SLOT_LAYER_TYPES:
        return MF_KIND_LIST;
    case MF_SLOT_MOE_STEP:
        return MF_KIND_WHOLE_OR_LIST;
    case MF_SLOT_ACTIVATION:
        return MF_KIND_TEXT;
    case MF_SLOT_SCALING:
        return MF_KIND_REAL;
    case MF_SLOT_IGNORED:
        return MF_KIND_ANY;
    case MF_SLOT_WINDOW_ON:
    case MF_SLOT_QKV_BIAS:
    case MF_SLOT_OUT_BIAS:
    case MF_SLOT_MLP_BIAS:
    case MF_SLOT_TIED:
    case MF_SLOT_RENORMALIZE:
        return MF_KIND_FLAG;
    default:
        return MF_KIND_WHOLE;
    }
}

const struct mf_key *mf_dialect_key_of(
    const struct mf_dialect *dialect, int slot)
{
    for (const struct mf_key *const *table = dialect->keys; *table; table++)
        for (const struct mf_key *row = *table; row->key; row++)
            if (row->slot == slot)
                return row;
    return NULL;
}

const struct mf_default *mf_dialect_default(
    const struct mf_dialect *dialect, int slot, bool is_null)
{
    for (const struct mf_default *const *table = dialect->defaults; *table;
         table++)
        for (const struct mf_default *row = *table; row->slot >= 0; row++)
            if (row->slot == slot && !(is_null && row->told))
                return row;
    return NULL;
}
