/* SPDX-License-Identifier: BSD-3-Clause
 * Dialects of models with experts. Defaults are those of the configuration
 * classes, in Hugging Face transformers unless a row says otherwise, so that a
 * file that leaves a key out means here what it means there.
 */
#include "planner/model_read_rows.h"

/* Rows that several dialects share. */
const struct mf_default mf_rows_same_width[] = {
    HOLDS(MF_SLOT_EXPERT_SAME, true), END_DEFAULTS};

const struct mf_default mf_rows_renormalized[] = {
    HOLDS(MF_SLOT_RENORMALIZE, true), END_DEFAULTS};

static const struct mf_default kv8[] = {
    TOLD(MF_FIELD_KV_HEADS, 8), END_DEFAULTS};

const struct mf_default mf_rows_head_norms[] = {
    HOLDS(MF_SLOT_QK_NORM_ON, true), END_DEFAULTS};

const struct mf_default mf_rows_sigmoid_bias[] = {
    HOLDS(MF_SLOT_SCORE, MF_SCORE_SIGMOID), HOLDS(MF_SLOT_ROUTER_BIAS, true),
    HOLDS(MF_SLOT_RENORMALIZE, true), END_DEFAULTS};

const struct mf_default mf_rows_mla_ranks[] = {HOLDS(MF_SLOT_MLA, 1),
    TOLD(MF_FIELD_MLA_Q, 1536), TOLD(MF_FIELD_MLA_KV, 512),
    TOLD(MF_FIELD_MLA_NOPE, 128), TOLD(MF_FIELD_MLA_ROPE, 64),
    TOLD(MF_FIELD_MLA_V, 128), END_DEFAULTS};

/* The sum of the head's parts, which newer files repeat, or only one part. */
const struct mf_key mf_rows_mla_keys[] = {SKIP("head_dim"), SKIP("qk_head_dim"),
    SKIP("sliding_window"), SKIP("use_sliding_window"), END_KEYS};

/* Mixtral. */
static const struct mf_key mixtral_keys[] = {
    KEY("num_local_experts", MF_FIELD_EXPERTS), SKIP("attention_bias"),
    SKIP("qkv_bias"), SKIP("mlp_bias"), END_KEYS};

/* Qwen: the window is off unless a switch says otherwise. */
const struct mf_key mf_rows_qwen_keys[] = {
    KEY("max_window_layers", MF_SLOT_WINDOW_FROM), SKIP("layer_norm_type"),
    END_KEYS};

const struct mf_default mf_rows_qwen_defaults[] = {
    HOLDS(MF_SLOT_WINDOW_ON, false), HOLDS(MF_SLOT_MOE_PHASE, 1), END_DEFAULTS};

static const struct mf_default qwen2_moe_defaults[] = {
    HOLDS(MF_SLOT_QKV_BIAS, true), HOLDS(MF_SLOT_SHARED_GATE, true),
    TOLD(MF_FIELD_SHARED_FFN, 5632), TOLD(MF_FIELD_MOE_FFN, 1408),
    END_DEFAULTS};

/* Named by some copies of Qwen3 files; the class does not read them. */
static const struct mf_key qwen3_keys[] = {
    SKIP("shared_expert_intermediate_size"), SKIP("qkv_bias"),
    SKIP("use_qk_norm"), END_KEYS};

static const struct mf_default qwen3_defaults[] = {
    HOLDS(MF_SLOT_QK_NORM_ON, true), TOLD(MF_FIELD_HEAD_DIM, 128),
    TOLD(MF_FIELD_MOE_FFN, 768), END_DEFAULTS};

/* OLMoE normalises all heads of queries and of keys together. */
static const struct mf_default olmoe_defaults[] = {
    HOLDS(MF_SLOT_QK_NORM_ON, true), HOLDS(MF_SLOT_QK_NORM, MF_QK_NORM_WHOLE),
    END_DEFAULTS};

/* DeepSeek. */
static const struct mf_key deepseek_v2_keys[] = {
    KEY("n_routed_experts", MF_FIELD_EXPERTS),
    KEY("num_routed_experts", MF_FIELD_EXPERTS), SKIP("lm_head"),
    SKIP("rm_head"), SKIP("use_mla_absorb"), END_KEYS};

const struct mf_default mf_rows_deepseek_v3_defaults[] = {
    TOLD(MF_FIELD_SHARED_EXPERTS, 1), TOLD(MF_SLOT_FIRST_DENSE, 3),
    END_DEFAULTS};

/* DeepSeek's own inference code (inference/model.py, class ModelArgs). */
static const struct mf_choice native_scores[] = {{"softmax", MF_SCORE_SOFTMAX},
    {"sigmoid", MF_SCORE_SIGMOID}, {"sqrtsoftplus", MF_SCORE_SQRTSOFTPLUS},
    {NULL, 0}};

static const struct mf_key deepseek_native_keys[] = {
    KEY("dim", MF_FIELD_HIDDEN), KEY("inter_dim", MF_FIELD_DENSE_FFN),
    KEY("moe_inter_dim", MF_FIELD_MOE_FFN),
    KEY("n_dense_layers", MF_SLOT_FIRST_DENSE),
    KEY("n_activated_experts", MF_FIELD_TOPK),
    KEY("n_expert_groups", MF_FIELD_GROUPS),
    KEY("n_limited_groups", MF_FIELD_TOPK_GROUPS),
    {"score_func", MF_SLOT_SCORE, native_scores}, SKIP("scale_fmt"), END_KEYS};

static const struct mf_default deepseek_native_defaults[] = {
    HOLDS(MF_FIELD_MLA_Q, 0), HOLDS(MF_SLOT_FIRST_DENSE, 1), END_DEFAULTS};

/* Whether V3 (a bias, sums of 1) or V2: its sigmoid tells. */
static const struct mf_default native_v3[] = {HOLDS(MF_SLOT_ROUTER_BIAS, true),
    HOLDS(MF_SLOT_RENORMALIZE, true), END_DEFAULTS};

/* The input of the AICB simulator (aliyun/aicb): num_experts counts copies. */
static const struct mf_key aicb_keys[] = {
    KEY("dense_layer", MF_SLOT_FIRST_DENSE), KEY("d_kv_c", MF_FIELD_MLA_KV),
    KEY("d_q_c", MF_FIELD_MLA_Q), KEY("d_r", MF_FIELD_MLA_ROPE),
    KEY("d_q", MF_FIELD_MLA_NOPE), KEY("d_kv", MF_FIELD_MLA_V),
    KEY("head_num", MF_FIELD_HEADS), KEY("router_expert", MF_FIELD_EXPERTS),
    KEY("shared_experts", MF_FIELD_SHARED_EXPERTS),
    KEY("moe_router_topk", MF_FIELD_TOPK), KEY("expert_dim", MF_FIELD_MOE_FFN),
    KEY("add_bias_linear", MF_SLOT_MLP_BIAS), SKIP("num_experts"),
    SKIP("duped_expert"), END_KEYS};

static const struct mf_default aicb_defaults[] = {
    TIMES(MF_FIELD_DENSE_FFN, 9, MF_FIELD_MOE_FFN), END_DEFAULTS};

/* Mistral's own params.json. */
static const struct mf_key mistral_native_keys[] = {KEY("dim", MF_FIELD_HIDDEN),
    KEY("hidden_dim", MF_FIELD_DENSE_FFN), KEY("tied_embeddings", MF_SLOT_TIED),
    KEY("moe.num_experts", MF_FIELD_EXPERTS),
    KEY("moe.num_experts_per_tok", MF_FIELD_TOPK),
    KEY("moe.expert_hidden_dim", MF_FIELD_MOE_FFN),
    KEY("moe.num_shared_experts", MF_FIELD_SHARED_EXPERTS),
    KEY("moe.first_k_dense_replace", MF_SLOT_FIRST_DENSE),
    KEY("moe.route_every_n", MF_SLOT_MOE_STEP),
    KEY("moe.num_expert_groups", MF_FIELD_GROUPS),
    KEY("moe.num_expert_groups_per_tok", MF_FIELD_TOPK_GROUPS),
    KEY("moe.routed_scale", MF_SLOT_SCALING), SKIP("moe.expert_parallel"),
    SKIP("moe.expert_model_parallel"), END_KEYS};

/* GLM-4.5: biases of queries, keys and values only. */
static const struct mf_key glm_keys[] = {
    KEY("attention_bias", MF_SLOT_QKV_BIAS), END_KEYS};

/* gpt-oss: biases everywhere, sinks, every other layer slides. */
static const struct mf_default gpt_oss_defaults[] = {
    HOLDS(MF_SLOT_QKV_BIAS, true), HOLDS(MF_SLOT_OUT_BIAS, true),
    HOLDS(MF_SLOT_MLP_BIAS, true), HOLDS(MF_SLOT_ROUTER_LINEAR_BIAS, true),
    HOLDS(MF_SLOT_SINKS_FULL, true), HOLDS(MF_SLOT_SINKS_SLIDING, true),
    HOLDS(MF_SLOT_RENORMALIZE, true), HOLDS(MF_SLOT_WINDOW_STEP, 2),
    TOLD(MF_FIELD_HEAD_DIM, 64), TOLD(MF_FIELD_WINDOW, 128),
    HOLDS(MF_SLOT_EXPERT_SAME, true), END_DEFAULTS};

/* DBRX: objects for attention and experts. */
static const struct mf_key dbrx_keys[] = {
    KEY("attn_config.kv_n_heads", MF_FIELD_KV_HEADS),
    KEY("ffn_config.ffn_hidden_size", MF_FIELD_MOE_FFN),
    KEY("ffn_config.moe_num_experts", MF_FIELD_EXPERTS),
    KEY("ffn_config.moe_top_k", MF_FIELD_TOPK), SKIP("ffn_config.ffn_act_fn"),
    SKIP("ffn_config.uniform_expert_assignment"),
    SKIP("ffn_config.moe_normalize_expert_weights"), END_KEYS};

/* Phi-3.5-MoE: layer norms with biases. */
static const struct mf_key phimoe_keys[] = {
    KEY("lm_head_bias", MF_SLOT_HEAD_BIAS), END_KEYS};

static const struct mf_default biased_norms[] = {HOLDS(MF_FIELD_NORMS_MIXER, 2),
    HOLDS(MF_FIELD_NORMS_FFN, 2), HOLDS(MF_FIELD_NORMS_END, 2), END_DEFAULTS};

/* MiniMax: M2 normalises all heads together; 01 and M1 have mf_rows_lightning
 * attention as wide as their heads, with an output gate.
 */
const struct mf_key mf_rows_minimax_keys[] = {
    KEY("attn_type_list", MF_SLOT_LINEAR_LIST), SKIP("mtp_transformer_layers"),
    SKIP("shared_moe_mode"), SKIP("block_size"), SKIP("full_attn_alpha_factor"),
    SKIP("full_attn_beta_factor"), SKIP("linear_attn_alpha_factor"),
    SKIP("linear_attn_beta_factor"), SKIP("mlp_alpha_factor"),
    SKIP("mlp_beta_factor"), END_KEYS};

static const struct mf_default minimax_m2_defaults[] = {
    HOLDS(MF_SLOT_QK_NORM, MF_QK_NORM_WHOLE),
    HOLDS(MF_SLOT_SCORE, MF_SCORE_SIGMOID), END_DEFAULTS};

static const struct mf_default dense_too[] = {
    HOLDS(MF_SLOT_DENSE_TOO, true), END_DEFAULTS};

const struct mf_default mf_rows_lightning[] = {
    HOLDS(MF_SLOT_LINEAR_TYPE, MF_LINEAR_LIGHTNING),
    TIMES(MF_FIELD_LINEAR_KEY_HEADS, 1, MF_FIELD_HEADS),
    TIMES(MF_FIELD_LINEAR_VALUE_HEADS, 1, MF_FIELD_HEADS), END_DEFAULTS};

/* Hunyuan: lists with a number a layer; layers may share keys and values. */
static const struct mf_key hunyuan_keys[] = {
    KEY("moe_layer_num_skipped", MF_SLOT_FIRST_DENSE),
    KEY("use_cla", MF_SLOT_SHARE_ON),
    KEY("cla_share_factor", MF_SLOT_SHARE_STEP), SKIP("use_mixed_mlp_moe"),
    SKIP("dense_list"), SKIP("norm_type"), SKIP("group_limited_greedy"),
    END_KEYS};

static const struct mf_default hunyuan_defaults[] = {
    HOLDS(MF_SLOT_SHARE_ON, false), HOLDS(MF_SLOT_QK_NORM_ON, true),
    HOLDS(MF_SLOT_RENORMALIZE, true), HOLDS(MF_SLOT_EXPERT_SAME, true),
    END_DEFAULTS};

/* Ling and Ring (inclusionAI): each shared expert has the width given. */
const struct mf_key mf_rows_bailing_keys[] = {KEY("use_bias", MF_SLOT_OUT_BIAS),
    KEY("use_bias", MF_SLOT_MLP_BIAS),
    KEY("moe_shared_expert_intermediate_size", MF_SLOT_SHARED_EACH),
    KEY("layer_group_size", MF_SLOT_LINEAR_STEP), SKIP("group_norm_size"),
    SKIP("norm_head"), SKIP("norm_softmax"), SKIP("use_rmsnorm"),
    SKIP("moe_router_enable_routed_scaling"), SKIP("linear_silu"),
    SKIP("moe_router_enable_shared_expert"),
    SKIP("linear_attn_norm_group_size"), SKIP("multi_gate"),
    SKIP("router_type"), END_KEYS};

const struct mf_default mf_rows_bailing_v2_defaults[] = {
    HOLDS(MF_SLOT_SCORE, MF_SCORE_SIGMOID), HOLDS(MF_SLOT_RENORMALIZE, true),
    END_DEFAULTS};

/* OpenMoE (hpcaitech/ColossalAI): every sixth layer has experts. */
static const struct mf_key openmoe_keys[] = {KEY("topk", MF_FIELD_TOPK),
    KEY("gated", MF_SLOT_GATED), KEY("moe_layer_interval", MF_SLOT_MOE_STEP),
    END_KEYS};

static const struct mf_default openmoe_defaults[] = {
    HOLDS(MF_SLOT_MOE_PHASE, 1), HOLDS(MF_SLOT_TIED, true),
    HOLDS(MF_SLOT_EXPERT_SAME, true), END_DEFAULTS};

/* Arctic: a dense part of hidden width beside the experts. */
static const struct mf_key arctic_keys[] = {
    KEY("parallel_attn_mlp_res", MF_SLOT_BESIDE_HIDDEN),
    KEY("moe_layer_frequency", MF_SLOT_MOE_STEP), SKIP("use_residual"),
    END_KEYS};

static const struct mf_default arctic_defaults[] = {HOLDS(MF_SLOT_MOE_PHASE, 1),
    HOLDS(MF_SLOT_EXPERT_SAME, true), HOLDS(MF_FIELD_NORMS_FFN, 2),
    END_DEFAULTS};

/* Yuan 2: a filter of two convolutions before queries and keys, 2 hidden^2
 * parameters; a width of all heads together.
 */
static const struct mf_key yuan_keys[] = {
    KEY("moe_config.moe_num_experts", MF_FIELD_EXPERTS),
    KEY("moe_config.moe_top_k", MF_FIELD_TOPK),
    KEY("moe_config.ffn_hidden_size", MF_FIELD_MOE_FFN),
    KEY("moe_config.norm_topk_prob", MF_SLOT_RENORMALIZE),
    KEY("moe_config.gated_linear_unit", MF_SLOT_GATED),
    KEY("attention_projection_size", MF_SLOT_WIDTH),
    KEY("use_moe", MF_SLOT_EXPERTS_ON), END_KEYS};

static const struct mf_default yuan_defaults[] = {
    HOLDS(MF_SLOT_SQUARES, 2), END_DEFAULTS};

/* ERNIE 4.5: layers from one index to another. */
static const struct mf_key ernie_keys[] = {KEY("moe_k", MF_FIELD_TOPK),
    KEY("moe_num_shared_experts", MF_FIELD_SHARED_EXPERTS),
    KEY("moe_layer_start_index", MF_SLOT_FIRST_DENSE),
    KEY("moe_layer_end_index", MF_SLOT_MOE_END),
    KEY("moe_layer_interval", MF_SLOT_MOE_STEP),
    KEY("use_bias", MF_SLOT_QKV_BIAS), KEY("use_bias", MF_SLOT_OUT_BIAS),
    KEY("use_bias", MF_SLOT_MLP_BIAS),
    KEY("moe_use_aux_free", MF_SLOT_ROUTER_BIAS), SKIP("moe_gate"),
    SKIP("moe_capacity"), SKIP("num_nextn_predict_layers"),
    SKIP("moe_multimodal_dispatch_use_allgather"), SKIP("moe_group_experts"),
    SKIP("rope_3d"), SKIP("freq_allocation"), SKIP("use_rmsnorm"),
    SKIP("compression_ratio"), SKIP("fuse_rope"), END_KEYS};

static const struct mf_default ernie_defaults[] = {HOLDS(MF_SLOT_TIED, true),
    HOLDS(MF_SLOT_ROUTER_BIAS, true), HOLDS(MF_SLOT_RENORMALIZE, true),
    HOLDS(MF_SLOT_MOE_PHASE, 1), TOLD(MF_SLOT_FIRST_DENSE, 1), END_DEFAULTS};

/* Trinity (Arcee): gated attention, four norms a layer. */
static const struct mf_key afmoe_keys[] = {SKIP("global_attn_every_n_layers"),
    SKIP("num_expert_groups"), SKIP("num_limited_groups"),
    SKIP("use_grouped_mm"), END_KEYS};

static const struct mf_default afmoe_defaults[] = {HOLDS(MF_SLOT_GATE_ON, true),
    HOLDS(MF_SLOT_QK_NORM_ON, true), HOLDS(MF_FIELD_NORMS_MIXER, 2),
    HOLDS(MF_FIELD_NORMS_FFN, 2), TOLD(MF_SLOT_FIRST_DENSE, 1), END_DEFAULTS};

/* EXAONE MoE (K-EXAONE). */
static const struct mf_key exaone_moe_keys[] = {
    KEY("sliding_window_pattern", MF_SLOT_WINDOW_STEP),
    SKIP("mtp_share_layers"), KEY("num_mtp_layers", MF_FIELD_MTP_LAYERS),
    END_KEYS};

/* Step-3: queries of low rank, one key head. */
static const struct mf_key step3_keys[] = {
    KEY("num_attention_groups", MF_FIELD_KV_HEADS),
    KEY("share_q_dim", MF_FIELD_Q_RANK), SKIP("norm_expert_weight"), END_KEYS};

/* Grok: four norms a layer; Grok 2 has a dense part beside the experts. */
static const struct mf_key grok_keys[] = {
    KEY("residual_moe", MF_SLOT_BESIDE_DENSE),
    SKIP("hidden_size_per_partition"), END_KEYS};

static const struct mf_default grok_defaults[] = {
    HOLDS(MF_FIELD_NORMS_MIXER, 2), HOLDS(MF_FIELD_NORMS_FFN, 2),
    HOLDS(MF_SLOT_EXPERT_SAME, true), HOLDS(MF_SLOT_RENORMALIZE, true),
    HOLDS(MF_SLOT_TIED, true), END_DEFAULTS};

/* Cohere's experts: tied tables, one norm for both parts of a layer. */
static const struct mf_key cohere_moe_keys[] = {
    KEY("intermediate_size", MF_FIELD_MOE_FFN),
    KEY("prefix_dense_intermediate_size", MF_FIELD_DENSE_FFN),
    KEY("sliding_window_pattern", MF_SLOT_WINDOW_STEP),
    SKIP("prefix_dense_sliding_window_pattern"),
    SKIP("shared_expert_combination_strategy"), SKIP("expert_selection_fn"),
    END_KEYS};

static const struct mf_default cohere_moe_defaults[] = {
    HOLDS(MF_SLOT_TIED, true), HOLDS(MF_FIELD_NORMS_FFN, 0),
    HOLDS(MF_SLOT_WINDOW_STEP, 4), END_DEFAULTS};

/* Aria: experts of the general width where they have none of their own, as
 * many shared ones as given.
 */
static const struct mf_key aria_keys[] = {
    KEY("moe_num_shared_experts", MF_FIELD_SHARED_EXPERTS), END_KEYS};

/* Pangu Pro MoE. */
static const struct mf_default pangu_defaults[] = {
    HOLDS(MF_SLOT_QKV_BIAS, true), HOLDS(MF_SLOT_OUT_BIAS, true), END_DEFAULTS};

static const struct mf_default no_attention_bias[] = {
    HOLDS(MF_SLOT_QKV_BIAS, false), END_DEFAULTS};

const struct mf_dialect mf_dialects_moe[] = {
    {LIST("mixtral"), LIST("Mixtral"), KEYS(mixtral_keys),
        DEFAULTS(mf_rows_same_width, kv8, mf_rows_renormalized), NULL, NULL,
        NULL},
    {LIST("qwen2_moe"), LIST("Qwen2Moe"), KEYS(mf_rows_qwen_keys),
        DEFAULTS(mf_rows_qwen_defaults, qwen2_moe_defaults), NULL, NULL, NULL},
    {LIST("qwen3_moe", "mellum", "qwen3_vl_moe", "qwen3_vl_moe_text",
         "qwen3_omni_moe_text", "qwen3_omni_moe", "qwen3_omni_moe_thinker"),
        LIST("Qwen3Moe", "Mellum", "Qwen3VLMoe", "Qwen3OmniMoe",
            "Qwen3OmniMoeThinker"),
        KEYS(qwen3_keys, mf_rows_qwen_keys),
        DEFAULTS(qwen3_defaults, mf_rows_qwen_defaults), NULL, NULL, NULL},
    {LIST("olmoe", "flex_olmo"), LIST("Olmoe", "FlexOlmo"), NULL,
        DEFAULTS(olmoe_defaults, mf_rows_same_width), NULL, NULL, NULL},
    {LIST("granitemoe", "granitemoeshared", "granitemoe_swa"),
        LIST("GraniteMoe", "GraniteMoeShared", "GraniteMoeSWA"), NULL,
        DEFAULTS(mf_rows_renormalized, mf_rows_same_width), NULL, NULL, NULL},
    {LIST("deepseek", "deepseek_moe"), LIST("Deepseek"), KEYS(deepseek_v2_keys),
        NULL, NULL, NULL, NULL},
    {LIST("deepseek_v2"), LIST("DeepseekV2"),
        KEYS(mf_rows_mla_keys, deepseek_v2_keys), DEFAULTS(mf_rows_mla_ranks),
        NULL, NULL, NULL},
    {LIST("deepseek_v3", "kimi_k2", "kimi_k25", "kimi_vl", "glm4_moe_lite",
         "axk1", "sarvam_mla"),
        LIST("DeepseekV3", "KimiK25", "KimiVL", "Glm4MoeLite", "AXK1"),
        KEYS(mf_rows_mla_keys, deepseek_v2_keys),
        DEFAULTS(mf_rows_mla_ranks, mf_rows_deepseek_v3_defaults,
            mf_rows_sigmoid_bias),
        NULL, NULL, NULL},
    {LIST("mistral4", "mistral4_text"), LIST("Mistral4"),
        KEYS(mf_rows_mla_keys, deepseek_v2_keys),
        DEFAULTS(mf_rows_mla_ranks, mf_rows_renormalized), NULL, NULL, NULL},
    {LIST("deepseek_native_v3"), NULL,
        KEYS(mf_rows_mla_keys, deepseek_native_keys),
        DEFAULTS(native_v3, deepseek_native_defaults, mf_rows_mla_ranks),
        LIST("n_activated_experts", "dim", "score_func"), NULL, NULL},
    {LIST("deepseek_native"), NULL,
        KEYS(mf_rows_mla_keys, deepseek_native_keys),
        DEFAULTS(deepseek_native_defaults, mf_rows_mla_ranks),
        LIST("n_activated_experts", "dim"), NULL, NULL},
    {LIST("aicb"), NULL, KEYS(aicb_keys),
        DEFAULTS(aicb_defaults, mf_rows_sigmoid_bias),
        LIST("router_expert", "expert_dim"), NULL,
        "no key gives the width of the dense layers; 9 x expert_dim is "
        "assumed, as in DeepSeek-V3"},
    {LIST("mistral_native"), NULL, KEYS(mf_rows_mla_keys, mistral_native_keys),
        DEFAULTS(dense_too, mf_rows_same_width),
        LIST("dim", "hidden_dim", "n_heads", "q_lora_rank"), NULL, NULL},
    {LIST("mistral_native"), NULL, KEYS(mistral_native_keys),
        DEFAULTS(dense_too, mf_rows_same_width),
        LIST("dim", "hidden_dim", "n_heads"), NULL, NULL},
    {LIST("glm4_moe", "glm4v_moe", "glm4v_moe_text", "sarvam_moe"),
        LIST("Glm4Moe", "Glm4vMoe"), KEYS(glm_keys),
        DEFAULTS(mf_rows_sigmoid_bias), NULL, NULL, NULL},
    {LIST("solar_open"), LIST("SolarOpen"), KEYS(glm_keys),
        DEFAULTS(mf_rows_sigmoid_bias), NULL, NULL, NULL},
    {LIST("gpt_oss"), LIST("GptOss"), NULL, DEFAULTS(gpt_oss_defaults), NULL,
        NULL, NULL},
    {LIST("dbrx"), LIST("Dbrx"), KEYS(dbrx_keys),
        DEFAULTS(mf_rows_renormalized), NULL, NULL, NULL},
    {LIST("phimoe", "grinmoe", "slimmoe"), LIST("PhiMoE", "Phimoe", "GRINMoE"),
        KEYS(phimoe_keys), DEFAULTS(biased_norms, mf_rows_same_width), NULL,
        NULL, NULL},
    {LIST("minimax_m2"), LIST("MiniMaxM2"), KEYS(mf_rows_minimax_keys),
        DEFAULTS(minimax_m2_defaults, mf_rows_renormalized, mf_rows_same_width),
        NULL, NULL, NULL},
    {LIST("hunyuan", "hunyuan_v1_moe", "hunyuan_image_3_moe"),
        LIST("HunYuanMoEV1", "HunYuanMoeV1", "HunYuan", "HunyuanImage3"),
        KEYS(hunyuan_keys), DEFAULTS(hunyuan_defaults), NULL, NULL, NULL},
    {LIST("hy_v3"), LIST("HYV3"), NULL,
        DEFAULTS(mf_rows_head_norms, mf_rows_sigmoid_bias), NULL, NULL, NULL},
    {LIST("bailing_moe"), LIST("BailingMoe"), KEYS(mf_rows_bailing_keys),
        DEFAULTS(no_attention_bias), NULL, NULL, NULL},
    {LIST("bailing_moe_v2", "llada2_moe"), LIST("BailingMoeV2", "LLaDA2Moe"),
        KEYS(mf_rows_bailing_keys),
        DEFAULTS(mf_rows_bailing_v2_defaults, mf_rows_head_norms), NULL, NULL,
        NULL},
    {LIST("openmoe"), LIST("OpenMoe"), KEYS(openmoe_keys),
        DEFAULTS(openmoe_defaults), NULL, NULL, NULL},
    {LIST("arctic"), LIST("Arctic"), KEYS(arctic_keys),
        DEFAULTS(arctic_defaults, mf_rows_renormalized), NULL, NULL, NULL},
    {LIST("yuan"), LIST("Yuan"), KEYS(yuan_keys), DEFAULTS(yuan_defaults), NULL,
        NULL, NULL},
    {LIST("ernie4_5_moe"), LIST("Ernie4_5_Moe", "Ernie4_5_MoE"),
        KEYS(ernie_keys), DEFAULTS(ernie_defaults), NULL, NULL, NULL},
    {LIST("afmoe"), LIST("Afmoe"), KEYS(afmoe_keys),
        DEFAULTS(afmoe_defaults, mf_rows_sigmoid_bias), NULL, NULL, NULL},
    {LIST("exaone_moe"), LIST("ExaoneMoe", "ExaoneMoE"), KEYS(exaone_moe_keys),
        DEFAULTS(mf_rows_head_norms, mf_rows_sigmoid_bias), NULL, NULL, NULL},
    {LIST("step3_text", "step3_vl", "step3"),
        LIST("Step3", "Step3Text", "Step3VL"), KEYS(step3_keys), NULL, NULL,
        NULL, NULL},
    {LIST("dots1"), LIST("Dots1"), NULL,
        DEFAULTS(mf_rows_head_norms, mf_rows_sigmoid_bias), NULL, NULL, NULL},
    {LIST("grok-1", "grok"), LIST("Grok1", "Grok", "Grok1Model"),
        KEYS(grok_keys), DEFAULTS(grok_defaults), NULL, NULL, NULL},
    {LIST("cohere2_moe"), LIST("Cohere2Moe"), KEYS(cohere_moe_keys),
        DEFAULTS(cohere_moe_defaults, mf_rows_renormalized), NULL, NULL, NULL},
    {LIST("aria_text", "aria_moe_lm", "aria"),
        LIST("AriaText", "AriaMoELM", "Aria"), KEYS(aria_keys),
        DEFAULTS(mf_rows_renormalized, mf_rows_same_width), NULL, NULL, NULL},
    {LIST("pangu_pro_moe", "PanguProMoE"), LIST("PanguProMoE"), NULL,
        DEFAULTS(pangu_defaults, mf_rows_renormalized), NULL, NULL, NULL},
    END_DIALECTS,
};
