/* SPDX-License-Identifier: BSD-3-Clause
 * Dialects of models with experts whose layers mix tokens in several ways, or
 * in other ways than plain attention: hybrid, sparse, latent, of several head
 * shapes. Defaults as in the tables of the others.
 */
#include "planner/model_read_rows.h"

/* Qwen3-Next and Qwen3.5: gated delta networks between full layers, whose
 * queries come with an output gate.
 */
static const struct mf_key qwen_next_keys[] = {
    KEY("attn_output_gate", MF_SLOT_GATE_ON), SKIP("use_qk_norm"),
    SKIP("mtp_use_dedicated_embeddings"), SKIP("attn_output_gate_type"),
    END_KEYS};

static const struct mf_default qwen_next_defaults[] = {
    HOLDS(MF_SLOT_DENSE_TOO, true), HOLDS(MF_SLOT_GATE_ON, true),
    HOLDS(MF_SLOT_QK_NORM_ON, true), HOLDS(MF_SLOT_SHARED_GATE, true),
    HOLDS(MF_SLOT_RENORMALIZE, true), TOLD(MF_FIELD_HEAD_DIM, 256),
    HOLDS(MF_SLOT_LINEAR_STEP, 4), TOLD(MF_FIELD_LINEAR_KEY_HEADS, 16),
    TOLD(MF_FIELD_LINEAR_VALUE_HEADS, 32), TOLD(MF_FIELD_LINEAR_KEY_DIM, 128),
    TOLD(MF_FIELD_LINEAR_VALUE_DIM, 128), TOLD(MF_FIELD_LINEAR_CONV, 4),
    HOLDS(MF_SLOT_LINEAR_TYPE, MF_LINEAR_GATED_DELTA), END_DEFAULTS};

/* Granite 4 hybrids: Mamba-2 layers, and always a shared part. */
static const struct mf_key granite_hybrid_keys[] = {
    KEY("mamba_n_heads", MF_FIELD_MAMBA_HEADS),
    KEY("mamba_d_head", MF_FIELD_MAMBA_HEAD_DIM),
    KEY("mamba_n_groups", MF_FIELD_MAMBA_GROUPS),
    KEY("mamba_d_state", MF_FIELD_MAMBA_STATE),
    KEY("mamba_d_conv", MF_FIELD_MAMBA_CONV),
    KEY("mamba_expand", MF_SLOT_MAMBA_EXPAND),
    KEY("mamba_conv_bias", MF_SLOT_MAMBA_CONV_BIAS),
    KEY("mamba_proj_bias", MF_SLOT_MAMBA_PROJ_BIAS),
    SKIP("normalization_function"), SKIP("attention_window"), END_KEYS};

static const struct mf_default granite_hybrid_defaults[] = {
    HOLDS(MF_SLOT_DENSE_TOO, true), HOLDS(MF_SLOT_MAMBA_NORMS, true),
    HOLDS(MF_SLOT_MAMBA_CONV_BIAS, true), HOLDS(MF_FIELD_MAMBA_HEADS, 128),
    HOLDS(MF_FIELD_MAMBA_GROUPS, 1), HOLDS(MF_FIELD_MAMBA_STATE, 256),
    HOLDS(MF_FIELD_MAMBA_CONV, 4), HOLDS(MF_SLOT_MAMBA_EXPAND, 2),
    END_DEFAULTS};

static const struct mf_key deepseek_sparse_keys[] = {
    KEY("n_routed_experts", MF_FIELD_EXPERTS), SKIP("index_topk_freq"),
    SKIP("index_kpool"), SKIP("index_kpool_always_select_tail"),
    SKIP("index_topk_pattern"), SKIP("indexer_rope_interleave"),
    SKIP("indexer_types"), END_KEYS};

/* DeepSeek-V4: queries of low rank, one key head that is the value too, a
 * grouped output projection, entries that stand for many tokens. Defaults and
 * parts as in its published inference code.
 */
static const struct mf_key deepseek_v4_keys[] = {
    KEY("q_lora_rank", MF_FIELD_Q_RANK), KEY("o_lora_rank", MF_FIELD_O_RANK),
    KEY("o_groups", MF_FIELD_O_GROUPS),
    KEY("compress_ratios", MF_SLOT_COMPRESS), SKIP("qk_rope_head_dim"),
    SKIP("num_hash_layers"), SKIP("compress_rates"), SKIP("attention_bias"),
    END_KEYS};

static const struct mf_default deepseek_v4_defaults[] = {
    HOLDS(MF_SLOT_MLA, false), HOLDS(MF_SLOT_SCORE, MF_SCORE_SQRTSOFTPLUS),
    HOLDS(MF_SLOT_ROUTER_BIAS, true), HOLDS(MF_SLOT_RENORMALIZE, true),
    HOLDS(MF_SLOT_FULL_SHARED_KV, true), HOLDS(MF_SLOT_SINKS_FULL, true),
    TOLD(MF_FIELD_KV_HEADS, 1), END_DEFAULTS};

/* Kimi Linear and Kimi K3: Kimi delta attention between MLA layers. */
static const struct mf_key kimi_keys[] = {
    KEY("linear_attn_config.num_heads", MF_FIELD_LINEAR_KEY_HEADS),
    KEY("linear_attn_config.num_heads", MF_FIELD_LINEAR_VALUE_HEADS),
    KEY("linear_attn_config.head_dim", MF_FIELD_LINEAR_KEY_DIM),
    KEY("linear_attn_config.head_dim", MF_FIELD_LINEAR_VALUE_DIM),
    KEY("linear_attn_config.short_conv_kernel_size", MF_FIELD_LINEAR_CONV),
    KEY("linear_attn_config.kda_layers", MF_SLOT_LINEAR_NAMED),
    KEY("linear_attn_config.use_full_rank_gate", MF_SLOT_LINEAR_FULL_GATE),
    SKIP("linear_attn_config.full_attn_layers"),
    KEY("mla_use_output_gate", MF_SLOT_GATE_ON), SKIP("latent_moe_use_norm"),
    SKIP("attn_res_block_size"), END_KEYS};

static const struct mf_default kimi_defaults[] = {
    HOLDS(MF_SLOT_LINEAR_TYPE, MF_LINEAR_KDA), END_DEFAULTS};

/* Llama 4: intermediate_size is that of an expert; a shared expert is always
 * there; three of four layers see chunks; a norm without parameters.
 */
static const struct mf_key llama4_keys[] = {
    KEY("intermediate_size", MF_FIELD_MOE_FFN),
    KEY("intermediate_size_mlp", MF_FIELD_DENSE_FFN),
    KEY("interleave_moe_layer_step", MF_SLOT_MOE_STEP),
    KEY("attention_chunk_size", MF_FIELD_WINDOW),
    KEY("no_rope_layers", MF_SLOT_WINDOW_LIST), SKIP("use_qk_norm"),
    SKIP("for_llm_compressor"), END_KEYS};

static const struct mf_default llama4_defaults[] = {
    HOLDS(MF_FIELD_SHARED_EXPERTS, 1), HOLDS(MF_SLOT_MOE_PHASE, 1),
    HOLDS(MF_SLOT_SCORE, MF_SCORE_SIGMOID), HOLDS(MF_SLOT_WINDOW_STEP, 4),
    HOLDS(MF_SLOT_CHUNKED, true), END_DEFAULTS};

/* MiniMax M3: an indexer picks blocks in sparse layers. */
static const struct mf_key minimax_m3_keys[] = {
    KEY("intermediate_size", MF_FIELD_MOE_FFN),
    KEY("dense_intermediate_size", MF_FIELD_DENSE_FFN),
    KEY("index_topk_blocks", MF_FIELD_INDEX_TOPK),
    KEY("index_block_size", MF_SLOT_INDEX_BLOCK), SKIP("index_local_blocks"),
    KEY("sparse_attention_config.sparse_num_index_heads", MF_FIELD_INDEX_HEADS),
    KEY("sparse_attention_config.sparse_index_dim", MF_FIELD_INDEX_DIM),
    KEY("sparse_attention_config.sparse_topk_blocks", MF_FIELD_INDEX_TOPK),
    KEY("sparse_attention_config.sparse_block_size", MF_SLOT_INDEX_BLOCK),
    KEY("sparse_attention_config.sparse_attention_freq", MF_SLOT_SPARSE_LIST),
    SKIP("sparse_attention_config.sparse_local_block"),
    SKIP("sparse_attention_config.sparse_init_block"),
    SKIP("sparse_attention_config.use_sparse_attention"),
    SKIP("mtp_transformer_layers"), END_KEYS};

static const struct mf_default minimax_m3_defaults[] = {
    HOLDS(MF_SLOT_QK_NORM_ON, true), HOLDS(MF_FIELD_INDEX_HEADS, 4),
    HOLDS(MF_FIELD_INDEX_DIM, 128), HOLDS(MF_FIELD_INDEX_TOPK, 16),
    HOLDS(MF_SLOT_INDEX_BLOCK, 128), END_DEFAULTS};

static const struct mf_default bailing_linear_defaults[] = {
    HOLDS(MF_SLOT_LINEAR_TAIL, true), END_DEFAULTS};

/* Ring and Ling 3: Kimi delta attention of full rank between MLA layers that
 * have a gate value a head.
 */
static const struct mf_key bailing_hybrid_keys[] = {
    KEY("linear_head_dim", MF_FIELD_LINEAR_KEY_DIM),
    KEY("linear_head_dim", MF_FIELD_LINEAR_VALUE_DIM),
    KEY("short_conv_kernel_size", MF_FIELD_LINEAR_CONV), SKIP("no_kda_lora"),
    END_KEYS};

static const struct mf_default bailing_hybrid_defaults[] = {
    HOLDS(MF_SLOT_LINEAR_TYPE, MF_LINEAR_KDA),
    HOLDS(MF_SLOT_LINEAR_FULL_GATE, 2), HOLDS(MF_SLOT_GATE_HEAD, true),
    TIMES(MF_FIELD_LINEAR_KEY_HEADS, 1, MF_FIELD_HEADS),
    TIMES(MF_FIELD_LINEAR_VALUE_HEADS, 1, MF_FIELD_HEADS),
    HOLDS(MF_FIELD_LINEAR_CONV, 4), HOLDS(MF_FIELD_LINEAR_KEY_DIM, 128),
    HOLDS(MF_FIELD_LINEAR_VALUE_DIM, 128), END_DEFAULTS};

/* MiMo-V2: full and sliding layers have heads of their own. */
static const struct mf_key mimo_keys[] = {KEY("v_head_dim", MF_FIELD_V_DIM),
    KEY("swa_num_attention_heads", MF_FIELD_SLIDING_HEADS),
    KEY("swa_num_key_value_heads", MF_FIELD_SLIDING_KV_HEADS),
    KEY("swa_head_dim", MF_FIELD_SLIDING_HEAD_DIM),
    KEY("swa_v_head_dim", MF_FIELD_SLIDING_V_DIM),
    KEY("hybrid_layer_pattern", MF_SLOT_WINDOW_LIST),
    KEY("add_swa_attention_sink_bias", MF_SLOT_SINKS_SLIDING),
    KEY("add_full_attention_sink_bias", MF_SLOT_SINKS_FULL),
    SKIP("attention_chunk_size"), SKIP("hybrid_block_size"), END_KEYS};

/* Nemotron-H: a block is a mixer or a feed-forward part, never both. */
static const struct mf_key nemotron_keys[] = {
    KEY("hybrid_override_pattern", MF_SLOT_PATTERN),
    KEY("layers_block_type", MF_SLOT_BLOCKS),
    KEY("mamba_num_heads", MF_FIELD_MAMBA_HEADS),
    KEY("mamba_head_dim", MF_FIELD_MAMBA_HEAD_DIM),
    KEY("n_groups", MF_FIELD_MAMBA_GROUPS),
    KEY("ssm_state_size", MF_FIELD_MAMBA_STATE),
    KEY("conv_kernel", MF_FIELD_MAMBA_CONV),
    KEY("use_conv_bias", MF_SLOT_MAMBA_CONV_BIAS),
    KEY("mamba_proj_bias", MF_SLOT_MAMBA_PROJ_BIAS), SKIP("expand"),
    SKIP("use_bias"), SKIP("mtp_hybrid_override_pattern"),
    SKIP("mtp_layers_block_type"), SKIP("moe_shared_expert_overlap"),
    KEY("attention_head_dim", MF_FIELD_HEAD_DIM), END_KEYS};

static const struct mf_default nemotron_defaults[] = {
    HOLDS(MF_SLOT_DENSE_TOO, true), HOLDS(MF_SLOT_GATED, false),
    HOLDS(MF_SLOT_MAMBA_NORMS, true), END_DEFAULTS};

/* Gemma 4: a dense part beside the experts; full layers have wider heads whose
 * keys are their values.
 */
static const struct mf_key gemma4_keys[] = {
    KEY("enable_moe_block", MF_SLOT_BESIDE_DENSE),
    KEY("enable_moe_block", MF_SLOT_EXPERTS_ON),
    KEY("global_head_dim", MF_FIELD_FULL_HEAD_DIM),
    KEY("num_global_key_value_heads", MF_FIELD_FULL_KV_HEADS),
    KEY("attention_k_eq_v", MF_SLOT_FULL_SHARED_KV),
    KEY("per_layer_config", MF_SLOT_PER_LAYER),
    KEY("use_double_wide_mlp", MF_SLOT_WIDE_SHARED), END_KEYS};

static const struct mf_default gemma4_defaults[] = {HOLDS(MF_SLOT_TIED, true),
    HOLDS(MF_SLOT_QK_NORM_ON, true), HOLDS(MF_SLOT_RENORMALIZE, true),
    HOLDS(MF_FIELD_NORMS_MIXER, 2), HOLDS(MF_FIELD_NORMS_FFN, 2),
    HOLDS(MF_SLOT_EXPERTS_ON, false), HOLDS(MF_SLOT_WINDOW_STEP, 6),
    END_DEFAULTS};

/* Jamba: Mamba-1 layers with norms of their own. */
static const struct mf_key jamba_keys[] = {
    KEY("attn_layer_period", MF_SLOT_MAMBA_STEP),
    KEY("attn_layer_offset", MF_SLOT_MAMBA_PHASE),
    KEY("expert_layer_period", MF_SLOT_MOE_STEP),
    KEY("expert_layer_offset", MF_SLOT_MOE_OFFSET),
    KEY("mamba_d_state", MF_FIELD_MAMBA_STATE),
    KEY("mamba_d_conv", MF_FIELD_MAMBA_CONV),
    KEY("mamba_dt_rank", MF_FIELD_MAMBA_DT_RANK),
    KEY("mamba_expand", MF_SLOT_MAMBA_EXPAND),
    KEY("mamba_conv_bias", MF_SLOT_MAMBA_CONV_BIAS),
    KEY("mamba_proj_bias", MF_SLOT_MAMBA_PROJ_BIAS), END_KEYS};

static const struct mf_default jamba_defaults[] = {
    HOLDS(MF_SLOT_DENSE_TOO, true), HOLDS(MF_SLOT_MAMBA_NORMS, true),
    HOLDS(MF_SLOT_MAMBA_CONV_BIAS, true), HOLDS(MF_SLOT_MAMBA_STEP, 8),
    HOLDS(MF_SLOT_MAMBA_PHASE, 4), HOLDS(MF_FIELD_MAMBA_STATE, 16),
    HOLDS(MF_FIELD_MAMBA_CONV, 4), HOLDS(MF_SLOT_MAMBA_EXPAND, 2),
    HOLDS(MF_SLOT_EXPERT_SAME, true), END_DEFAULTS};

/* JetMoE: attention is a mixture of experts as well. */
static const struct mf_key jetmoe_keys[] = {
    KEY("moe_num_experts", MF_FIELD_EXPERTS),
    KEY("moe_num_experts", MF_FIELD_ATTENTION_EXPERTS),
    KEY("num_local_experts", MF_FIELD_EXPERTS),
    KEY("num_local_experts", MF_FIELD_ATTENTION_EXPERTS),
    KEY("moe_top_k", MF_FIELD_TOPK), KEY("moe_top_k", MF_FIELD_ATTENTION_TOPK),
    KEY("num_experts_per_tok", MF_FIELD_TOPK),
    KEY("num_experts_per_tok", MF_FIELD_ATTENTION_TOPK),
    KEY("glu", MF_SLOT_GATED), SKIP("n_positions"), END_KEYS};

/* Laguna (poolside): more heads in sliding layers, one gate value a head. */
static const struct mf_key laguna_keys[] = {
    KEY("num_attention_heads_per_layer", MF_SLOT_HEAD_LIST),
    KEY("gating", MF_SLOT_GATE_HEAD), END_KEYS};

/* LongCat-Flash: two attention and two dense parts a layer, experts across
 * them, some of which do nothing.
 */
static const struct mf_key longcat_keys[] = {SKIP("num_hidden_layers"),
    SKIP("zero_expert_type"), SKIP("attention_method"),
    KEY("router_bias", MF_SLOT_ROUTER_LINEAR_BIAS),
    SKIP("mtp_replicate_modules"), SKIP("nextn_use_scmoe"), END_KEYS};

static const struct mf_default longcat_defaults[] = {
    HOLDS(MF_SLOT_PAIRED, true), HOLDS(MF_SLOT_ROUTER_BIAS, true),
    HOLDS(MF_SLOT_BESIDE_DENSE, true), END_DEFAULTS};

/* Step-3.5: sliding layers have heads of their own; a gate value a head. */
static const struct mf_key step35_keys[] = {
    KEY("num_attention_groups", MF_FIELD_KV_HEADS),
    KEY("attention_other_setting.num_attention_heads", MF_FIELD_SLIDING_HEADS),
    KEY("attention_other_setting.num_attention_groups",
        MF_FIELD_SLIDING_KV_HEADS),
    KEY("attention_other_setting.head_dim", MF_FIELD_SLIDING_HEAD_DIM),
    SKIP("attention_other_setting.true_head_dim"),
    KEY("use_head_wise_attn_gate", MF_SLOT_GATE_HEAD),
    KEY("use_moe_router_bias", MF_SLOT_ROUTER_BIAS), SKIP("moe_every_n_layer"),
    SKIP("sink"), SKIP("zero_centered"), SKIP("use_moe"), SKIP("att_impl_type"),
    SKIP("moe_layer_offset"), SKIP("n_shared_experts"),
    SKIP("norm_expert_weight"), END_KEYS};

static const struct mf_default step35_defaults[] = {
    HOLDS(MF_SLOT_GATE_HEAD, true), HOLDS(MF_SLOT_QK_NORM_ON, true),
    HOLDS(MF_SLOT_FIRST_DENSE, 1), END_DEFAULTS};

/* LFM2: gated short convolutions between attention layers. */
static const struct mf_key lfm2_keys[] = {
    KEY("conv_L_cache", MF_FIELD_CONV_KERNEL),
    KEY("use_expert_bias", MF_SLOT_ROUTER_BIAS), SKIP("conv_bias"),
    SKIP("block_auto_adjust_ff_dim"), SKIP("block_dim"), SKIP("conv_dim"),
    SKIP("conv_dim_out"), SKIP("block_mlp_init_scale"),
    SKIP("block_use_swiglu"), SKIP("block_out_init_scale"),
    SKIP("block_use_xavier_init"), SKIP("conv_use_xavier_init"),
    SKIP("block_norm_eps"), SKIP("tie_embedding"), END_KEYS};

static const struct mf_default lfm2_defaults[] = {HOLDS(MF_SLOT_TIED, true),
    HOLDS(MF_SLOT_QK_NORM_ON, true), HOLDS(MF_SLOT_SCORE, MF_SCORE_SIGMOID),
    HOLDS(MF_SLOT_RENORMALIZE, true), TOLD(MF_FIELD_CONV_KERNEL, 3),
    END_DEFAULTS};

/* Without experts: the width given is that of an ungated part, made less. */
static const struct mf_key lfm2_dense_keys[] = {
    KEY("block_ff_dim", MF_FIELD_DENSE_FFN),
    KEY("block_auto_adjust_ff_dim", MF_SLOT_FFN_ADJUST),
    KEY("block_ffn_dim_multiplier", MF_SLOT_FFN_FACTOR),
    KEY("block_multiple_of", MF_SLOT_FFN_UNIT),
    KEY("full_attn_idxs", MF_SLOT_CONV_EXCEPT),
    KEY("num_heads", MF_FIELD_HEADS), END_KEYS};

static const struct mf_default lfm2_dense_defaults[] = {
    HOLDS(MF_SLOT_DENSE_TOO, true), HOLDS(MF_SLOT_FFN_ADJUST, true),
    HOLDS(MF_SLOT_FFN_UNIT, 256), END_DEFAULTS};

/* Bamba: Mamba-2 layers and a few with attention, all with a dense part. */
static const struct mf_key bamba_keys[] = {
    KEY("attn_layer_indices", MF_SLOT_MAMBA_EXCEPT), SKIP("attn_rotary_emb"),
    END_KEYS};

const struct mf_dialect mf_dialects_hybrid[] = {
    {LIST("bamba"), LIST("Bamba"), KEYS(bamba_keys, granite_hybrid_keys),
        DEFAULTS(granite_hybrid_defaults), NULL, NULL, NULL},
    {LIST("qwen3_next", "qwen3_5_moe", "qwen3_5_moe_text", "qwen3_5",
         "qwen3_5_text"),
        LIST("Qwen3Next", "Qwen3_5Moe", "Qwen3_5"),
        KEYS(qwen_next_keys, mf_rows_qwen_keys),
        DEFAULTS(qwen_next_defaults, mf_rows_qwen_defaults), NULL, NULL, NULL},
    {LIST("granitemoehybrid"), LIST("GraniteMoeHybrid"),
        KEYS(granite_hybrid_keys),
        DEFAULTS(
            mf_rows_renormalized, mf_rows_same_width, granite_hybrid_defaults),
        NULL, NULL, NULL},
    {LIST("deepseek_v32", "glm_moe_dsa", "hy_v4", "hy_v4_vl", "hy_v4_vl_text"),
        LIST("DeepseekV32", "GlmMoeDsa", "HYV4", "HYV4VL"),
        KEYS(mf_rows_mla_keys, deepseek_sparse_keys),
        DEFAULTS(mf_rows_mla_ranks, mf_rows_deepseek_v3_defaults,
            mf_rows_sigmoid_bias),
        NULL, NULL, NULL},
    {LIST("deepseek_v4"), LIST("DeepseekV4"), KEYS(deepseek_v4_keys),
        DEFAULTS(deepseek_v4_defaults), NULL, NULL, NULL},
    {LIST("kimi_linear", "kimi_k3"), LIST("KimiLinear", "KimiK3"),
        KEYS(mf_rows_mla_keys, kimi_keys),
        DEFAULTS(kimi_defaults, mf_rows_sigmoid_bias), NULL, NULL, NULL},
    {LIST("llama4", "llama4_text"), LIST("Llama4"), KEYS(llama4_keys),
        DEFAULTS(llama4_defaults), NULL, NULL, NULL},
    {LIST("minimax_m3", "minimax_m3_text", "minimax_m3_vl",
         "minimax_m3_vl_text"),
        LIST("MiniMaxM3", "MiniMaxM3VL", "MiniMaxM3SparseForCausalLM"),
        KEYS(minimax_m3_keys),
        DEFAULTS(minimax_m3_defaults, mf_rows_sigmoid_bias), NULL, NULL, NULL},
    {LIST("minimax_text_01", "minimax", "minimax_m1", "minimax_vl_01"),
        LIST("MiniMaxText01", "MiniMaxM1", "MiniMax", "MiniMaxVL01"),
        KEYS(mf_rows_minimax_keys),
        DEFAULTS(mf_rows_lightning, mf_rows_renormalized, mf_rows_same_width),
        NULL, NULL, NULL},
    {LIST("bailing_hybrid", "bailing_moe_v3"),
        LIST("BailingHybrid", "BailingMoeV3"),
        KEYS(bailing_hybrid_keys, mf_rows_mla_keys, mf_rows_bailing_keys),
        DEFAULTS(bailing_hybrid_defaults, bailing_linear_defaults,
            mf_rows_bailing_v2_defaults, mf_rows_sigmoid_bias),
        NULL, NULL, NULL},
    {LIST("bailing_moe_linear", "bailing_moe_linear_v2", "bailing_moe_v2_5",
         "bailing_hybrid"),
        LIST("BailingMoeLinear", "BailingMoeLinearV2", "BailingMoeV2_5"),
        KEYS(mf_rows_bailing_keys),
        DEFAULTS(bailing_linear_defaults, mf_rows_lightning,
            mf_rows_bailing_v2_defaults),
        NULL, NULL, NULL},
    {LIST("mimo_v2_flash", "mimo_v2"), LIST("MiMoV2Flash", "MiMoV2"),
        KEYS(mimo_keys), DEFAULTS(mf_rows_sigmoid_bias), NULL, NULL, NULL},
    {LIST("nemotron_h"), LIST("NemotronH"), KEYS(nemotron_keys),
        DEFAULTS(nemotron_defaults, mf_rows_sigmoid_bias), NULL, NULL, NULL},
    {LIST("gemma4", "gemma4_text", "gemma4_unified", "gemma4_unified_text"),
        LIST("Gemma4", "Gemma4Unified"), KEYS(gemma4_keys),
        DEFAULTS(gemma4_defaults), NULL, NULL, NULL},
    {LIST("jamba"), LIST("Jamba"), KEYS(jamba_keys), DEFAULTS(jamba_defaults),
        NULL, NULL, NULL},
    {LIST("jetmoe"), LIST("JetMoE", "JetMoe"), KEYS(jetmoe_keys),
        DEFAULTS(mf_rows_same_width, mf_rows_renormalized), NULL, NULL, NULL},
    {LIST("laguna"), LIST("Laguna"), KEYS(laguna_keys),
        DEFAULTS(mf_rows_head_norms, mf_rows_sigmoid_bias), NULL, NULL, NULL},
    {LIST("longcat_flash", "longcat"), LIST("LongcatFlash"),
        KEYS(mf_rows_mla_keys, longcat_keys),
        DEFAULTS(longcat_defaults, mf_rows_mla_ranks), NULL, NULL, NULL},
    {LIST("step3p5", "step3p7"), LIST("Step3p5", "Step3p7", "Step3p7Flash"),
        KEYS(step35_keys), DEFAULTS(step35_defaults, mf_rows_sigmoid_bias),
        NULL, NULL, NULL},
    {LIST("lfm2_moe"), LIST("Lfm2Moe"), KEYS(lfm2_keys),
        DEFAULTS(lfm2_defaults), NULL, NULL, NULL},
    {LIST("lfm2"), LIST("Lfm2"), KEYS(lfm2_dense_keys, lfm2_keys),
        DEFAULTS(lfm2_dense_defaults, lfm2_defaults), NULL, NULL, NULL},
    {LIST("glm5_next", "glm5_next_text"), LIST("Glm5Next"),
        KEYS(mf_rows_mla_keys, deepseek_sparse_keys),
        DEFAULTS(kimi_defaults, mf_rows_mla_ranks, mf_rows_sigmoid_bias), NULL,
        NULL, NULL},
    END_DIALECTS,
};
