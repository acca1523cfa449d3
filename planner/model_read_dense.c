/* SPDX-License-Identifier: BSD-3-Clause
 * Dialects of dense models, and of what is not read at all. Defaults as in
 * the tables of models with experts.
 */
#include "planner/model_read_rows.h"

static const struct mf_default kv8[] = {
    TOLD(MF_FIELD_KV_HEADS, 8), END_DEFAULTS};

static const struct mf_default same_width[] = {
    HOLDS(MF_SLOT_EXPERT_SAME, true), END_DEFAULTS};

static const struct mf_default tied[] = {
    HOLDS(MF_SLOT_TIED, true), END_DEFAULTS};

static const struct mf_default head_norms[] = {
    HOLDS(MF_SLOT_QK_NORM_ON, true), END_DEFAULTS};

static const struct mf_default qkv_biases[] = {
    HOLDS(MF_SLOT_QKV_BIAS, true), END_DEFAULTS};

static const struct mf_default all_biases[] = {HOLDS(MF_SLOT_QKV_BIAS, true),
    HOLDS(MF_SLOT_OUT_BIAS, true), HOLDS(MF_SLOT_MLP_BIAS, true), END_DEFAULTS};

static const struct mf_default ungated[] = {
    HOLDS(MF_SLOT_GATED, false), END_DEFAULTS};

/* Layer norms with biases; without any parameter. */
static const struct mf_default layer_norms[] = {HOLDS(MF_FIELD_NORMS_MIXER, 2),
    HOLDS(MF_FIELD_NORMS_FFN, 2), HOLDS(MF_FIELD_NORMS_END, 2), END_DEFAULTS};

static const struct mf_default bare_norms[] = {HOLDS(MF_FIELD_NORMS_MIXER, 0),
    HOLDS(MF_FIELD_NORMS_FFN, 0), HOLDS(MF_FIELD_NORMS_END, 0), END_DEFAULTS};

/* A norm before and one after each part. */
static const struct mf_default sandwich[] = {
    HOLDS(MF_FIELD_NORMS_MIXER, 2), HOLDS(MF_FIELD_NORMS_FFN, 2), END_DEFAULTS};

/* Both parts of a layer see the same norm, with or without a bias. */
static const struct mf_default parallel_norm[] = {
    HOLDS(MF_FIELD_NORMS_FFN, 0), END_DEFAULTS};

static const struct mf_default parallel_layer_norm[] = {
    HOLDS(MF_FIELD_NORMS_MIXER, 2), HOLDS(MF_FIELD_NORMS_FFN, 0),
    HOLDS(MF_FIELD_NORMS_END, 2), END_DEFAULTS};

static const struct mf_default ffn_times_4[] = {
    TIMES(MF_FIELD_DENSE_FFN, 4, MF_FIELD_HIDDEN), END_DEFAULTS};

/* Llama and its kin. */
static const struct mf_key llama_keys[] = {
    KEY("attention_in_bias", MF_SLOT_QKV_BIAS),
    KEY("attention_out_bias", MF_SLOT_OUT_BIAS),
    KEY("use_bias", MF_SLOT_MLP_BIAS), END_KEYS};

/* Llama's own params.json. */
static const struct mf_key llama_native_keys[] = {KEY("dim", MF_FIELD_HIDDEN),
    KEY("multiple_of", MF_SLOT_FFN_UNIT),
    KEY("ffn_dim_multiplier", MF_SLOT_FFN_FACTOR), SKIP("use_scaled_rope"),
    END_KEYS};

static const struct mf_key seed_keys[] = {
    KEY("attention_bias", MF_SLOT_QKV_BIAS),
    KEY("attention_out_bias", MF_SLOT_OUT_BIAS), SKIP("residual_dropout"),
    END_KEYS};

static const struct mf_key mistral_keys[] = {
    SKIP("attention_bias"), SKIP("qkv_bias"), SKIP("mlp_bias"), END_KEYS};

static const struct mf_key qwen2_keys[] = {
    KEY("max_window_layers", MF_SLOT_WINDOW_FROM), SKIP("attention_bias"),
    END_KEYS};

static const struct mf_key qwen3_keys[] = {
    KEY("max_window_layers", MF_SLOT_WINDOW_FROM), END_KEYS};

static const struct mf_default qwen_defaults[] = {
    HOLDS(MF_SLOT_WINDOW_ON, false), END_DEFAULTS};

static const struct mf_default qwen3_defaults[] = {
    HOLDS(MF_SLOT_QK_NORM_ON, true), TOLD(MF_FIELD_HEAD_DIM, 128),
    END_DEFAULTS};

/* Qwen 1: the width given is that of both halves of a gated part. */
static const struct mf_key qwen1_keys[] = {
    SKIP("no_bias"), SKIP("use_flash_attn"), END_KEYS};

static const struct mf_default qwen1_defaults[] = {
    HOLDS(MF_SLOT_FFN_PARTS, 2), HOLDS(MF_SLOT_QKV_BIAS, true), END_DEFAULTS};

/* Gemma: heads of 256 whatever the width. */
static const struct mf_default gemma_defaults[] = {
    HOLDS(MF_SLOT_TIED, true), TOLD(MF_FIELD_HEAD_DIM, 256), END_DEFAULTS};

static const struct mf_key gemma_keys[] = {
    KEY("sliding_window_pattern", MF_SLOT_WINDOW_STEP),
    KEY("_sliding_window_pattern", MF_SLOT_WINDOW_STEP),
    SKIP("use_bidirectional_attention"), END_KEYS};

static const struct mf_default gemma2_defaults[] = {
    HOLDS(MF_SLOT_WINDOW_STEP, 2), TOLD(MF_FIELD_WINDOW, 4096), END_DEFAULTS};

static const struct mf_default gemma3_defaults[] = {
    HOLDS(MF_SLOT_WINDOW_STEP, 6), HOLDS(MF_SLOT_QK_NORM_ON, true),
    TOLD(MF_FIELD_WINDOW, 4096), TOLD(MF_FIELD_KV_HEADS, 4),
    TOLD(MF_FIELD_HEADS, 8), TOLD(MF_FIELD_VOCAB, 262208), END_DEFAULTS};

/* OLMo 2 and 3: norms after each part, and of all heads together. */
static const struct mf_default olmo2_defaults[] = {
    HOLDS(MF_SLOT_QK_NORM_ON, true), HOLDS(MF_SLOT_QK_NORM, MF_QK_NORM_WHOLE),
    HOLDS(MF_SLOT_WINDOW_STEP, 4), END_DEFAULTS};

/* Cohere: a norm for both parts, tied tables. */
static const struct mf_key cohere_keys[] = {
    KEY("sliding_window_pattern", MF_SLOT_WINDOW_STEP),
    SKIP("use_embedding_sharing"), SKIP("rotary_pct"),
    SKIP("use_gated_activation"), SKIP("use_parallel_block"),
    SKIP("use_parallel_embedding"), SKIP("order_of_interleaved_layers"),
    SKIP("layer_switch"), END_KEYS};

static const struct mf_default cohere2_defaults[] = {
    HOLDS(MF_SLOT_WINDOW_STEP, 4), END_DEFAULTS};

static const struct mf_key stablelm_keys[] = {
    KEY("qk_layernorm", MF_SLOT_QK_NORM_ON), END_KEYS};

static const struct mf_key phi_keys[] = {
    KEY("qk_layernorm", MF_SLOT_QK_NORM_ON), KEY("n_inner", MF_FIELD_DENSE_FFN),
    END_KEYS};

/* Phi-3-small: biases although attention_bias says otherwise. */
static const struct mf_key phi3small_keys[] = {
    KEY("ff_intermediate_size", MF_FIELD_DENSE_FFN), SKIP("attention_bias"),
    SKIP("blocksparse_block_size"), SKIP("blocksparse_num_local_blocks"),
    SKIP("blocksparse_triton_kernel_block_size"),
    SKIP("blocksparse_vert_stride"), SKIP("dense_attention_every_n_layers"),
    SKIP("attention_dropout_prob"), SKIP("embedding_dropout_prob"),
    SKIP("ffn_dropout_prob"), SKIP("gegelu_limit"), SKIP("gegelu_pad_to_256"),
    SKIP("mup_attn_multiplier"), SKIP("mup_embedding_multiplier"),
    SKIP("mup_use_scaling"), SKIP("pad_sequence_to_multiple_of_64"),
    SKIP("rope_embedding_base"), SKIP("rope_position_scale"), END_KEYS};

static const struct mf_default phi_defaults[] = {
    HOLDS(MF_SLOT_HEAD_BIAS, true), END_DEFAULTS};

/* GPT-2 and those after it: a learned position table. */
static const struct mf_key gpt2_keys[] = {KEY("n_inner", MF_FIELD_DENSE_FFN),
    KEY("n_positions", MF_FIELD_POSITIONS), SKIP("n_ctx"),
    KEY("multi_query", MF_SLOT_ONE_KV), SKIP("inference_runner"),
    SKIP("validate_runner_input"), SKIP("pad_key_length"),
    SKIP("pre_allocate_kv_cache"), SKIP("max_batch_size"),
    SKIP("max_sequence_length"), END_KEYS};

static const struct mf_key gptj_keys[] = {KEY("n_inner", MF_FIELD_DENSE_FFN),
    SKIP("n_positions"), SKIP("n_ctx"), END_KEYS};

static const struct mf_default gptj_defaults[] = {HOLDS(MF_SLOT_MLP_BIAS, true),
    HOLDS(MF_SLOT_HEAD_BIAS, true), END_DEFAULTS};

static const struct mf_key neox_keys[] = {
    KEY("attention_bias", MF_SLOT_QKV_BIAS),
    KEY("attention_bias", MF_SLOT_OUT_BIAS), END_KEYS};

static const struct mf_key starcoder2_keys[] = {
    KEY("use_bias", MF_SLOT_QKV_BIAS), KEY("use_bias", MF_SLOT_OUT_BIAS),
    KEY("use_bias", MF_SLOT_MLP_BIAS), END_KEYS};

static const struct mf_key gpt_neo_keys[] = {KEY("num_heads", MF_FIELD_HEADS),
    KEY("window_size", MF_FIELD_WINDOW),
    KEY("max_position_embeddings", MF_FIELD_POSITIONS), SKIP("attention_types"),
    KEY("attention_layers", MF_SLOT_LAYER_TYPES), END_KEYS};

static const struct mf_default gpt_neo_defaults[] = {
    HOLDS(MF_SLOT_OUT_BIAS, true), HOLDS(MF_SLOT_MLP_BIAS, true),
    HOLDS(MF_SLOT_WINDOW_STEP, 2), END_DEFAULTS};

static const struct mf_key bloom_keys[] = {SKIP("offset_alibi"),
    SKIP("skip_bias_add"), SKIP("skip_bias_add_qkv"),
    SKIP("attention_softmax_in_fp32"), SKIP("masked_softmax_fusion"),
    SKIP("unk_token_id"), SKIP("num_hidden_layers"), END_KEYS};

static const struct mf_default bloom_defaults[] = {
    HOLDS(MF_FIELD_NORMS_MIXER, 2), HOLDS(MF_FIELD_NORMS_FFN, 2),
    HOLDS(MF_FIELD_NORMS_END, 4), HOLDS(MF_SLOT_TIED, true), END_DEFAULTS};

static const struct mf_key mpt_keys[] = {
    KEY("expansion_ratio", MF_SLOT_FFN_TIMES),
    KEY("attn_config.kv_n_heads", MF_FIELD_KV_HEADS),
    SKIP("attn_config.attn_type"), SKIP("attn_config.attn_pdrop"),
    SKIP("attn_config.attn_impl"), SKIP("attn_config.qk_ln"),
    SKIP("attn_config.softmax_scale"), SKIP("attn_config.prefix_lm"),
    SKIP("attn_config.attn_uses_sequence_id"), SKIP("attn_config.alibi"),
    SKIP("attn_config.alibi_bias_max"), SKIP("learned_pos_emb"),
    SKIP("no_bias"), SKIP("init_config"), SKIP("init_device"), END_KEYS};

static const struct mf_default mpt_defaults[] = {HOLDS(MF_SLOT_TIED, true),
    HOLDS(MF_SLOT_GATED, false), TOLD(MF_SLOT_FFN_TIMES, 4), END_DEFAULTS};

static const struct mf_key falcon_keys[] = {KEY("multi_query", MF_SLOT_ONE_KV),
    KEY("new_decoder_architecture", MF_SLOT_GROUPED),
    KEY("bias", MF_SLOT_QKV_BIAS), KEY("bias", MF_SLOT_OUT_BIAS),
    KEY("bias", MF_SLOT_MLP_BIAS), SKIP("parallel_attn"),
    SKIP("num_ln_in_parallel_attn"), SKIP("ffn_factor"), END_KEYS};

static const struct mf_default falcon_defaults[] = {HOLDS(MF_SLOT_TIED, true),
    HOLDS(MF_SLOT_GROUPED, false), HOLDS(MF_SLOT_ONE_KV, true), END_DEFAULTS};

static const struct mf_key opt_keys[] = {KEY("ffn_dim", MF_FIELD_DENSE_FFN),
    KEY("max_position_embeddings", MF_FIELD_POSITIONS),
    KEY("word_embed_proj_dim", MF_SLOT_TABLE_DIM), SKIP("do_layer_norm_before"),
    SKIP("layerdrop"), SKIP("_remove_final_layer_norm"), SKIP("enable_bias"),
    SKIP("layer_norm_elementwise_affine"), SKIP("activation_dropout"),
    END_KEYS};

/* GLM 2, 3 and 4 of Tsinghua. */
static const struct mf_key chatglm_keys[] = {
    KEY("multi_query_group_num", MF_FIELD_KV_HEADS),
    KEY("add_bias_linear", MF_SLOT_OUT_BIAS),
    KEY("add_bias_linear", MF_SLOT_MLP_BIAS),
    KEY("multi_query_attention", MF_SLOT_GROUPED), SKIP("num_hidden_layers"),
    END_KEYS};

static const struct mf_default chatglm_defaults[] = {
    HOLDS(MF_SLOT_GROUPED, false), END_DEFAULTS};

static const struct mf_key glm_keys[] = {
    KEY("attention_bias", MF_SLOT_QKV_BIAS), END_KEYS};

static const struct mf_key internlm_keys[] = {KEY("bias", MF_SLOT_QKV_BIAS),
    KEY("bias", MF_SLOT_OUT_BIAS), KEY("qkv_bias", MF_SLOT_QKV_BIAS), END_KEYS};

static const struct mf_key baichuan_keys[] = {
    SKIP("z_loss_weight"), SKIP("gradient_checkpointing"), END_KEYS};

static const struct mf_key minicpm3_keys[] = {
    SKIP("head_dim"), SKIP("qk_head_dim"), END_KEYS};

static const struct mf_default minicpm3_defaults[] = {
    TOLD(MF_FIELD_MLA_V, 64), END_DEFAULTS};

static const struct mf_default minicpm_defaults[] = {
    HOLDS(MF_SLOT_TIED, true), END_DEFAULTS};

static const struct mf_key exaone_keys[] = {
    KEY("sliding_window_pattern", MF_SLOT_WINDOW_STEP), END_KEYS};

/* NVIDIA's searched models: each layer has sizes of its own. */
static const struct mf_key deci_keys[] = {
    SKIP("num_key_value_heads"), END_KEYS};

static const struct mf_key ernie_keys[] = {KEY("use_bias", MF_SLOT_QKV_BIAS),
    KEY("use_bias", MF_SLOT_OUT_BIAS), KEY("use_bias", MF_SLOT_MLP_BIAS),
    SKIP("compression_ratio"), END_KEYS};

const struct mf_dialect mf_dialects_dense[] = {
    {LIST("llama", "aquila", "smollm3", "internlm3", "iquestcoder", "granite",
         "granite_swa", "yi", "Yi", "deci_lm", "janus", "llava", "llava_llama"),
        LIST("Llama", "LLaMA", "Aquila", "SmolLM3", "InternLM3", "IQuestCoder",
            "Granite", "GraniteSWA", "Yi", "Solar", "LlavaLlama"),
        KEYS(llama_keys), NULL, NULL, NULL, NULL},
    {LIST("llama_native"), NULL, KEYS(llama_native_keys), NULL,
        LIST("dim", "multiple_of", "n_heads"), NULL, NULL},
    {LIST("seed_oss"), LIST("SeedOss"), KEYS(seed_keys), NULL, NULL, NULL,
        NULL},
    {LIST("solar"), NULL, KEYS(llama_keys), NULL, NULL, NULL, NULL},
    {LIST("mistral", "ministral", "ministral3"),
        LIST("Mistral", "Ministral", "Ministral3"), KEYS(mistral_keys),
        DEFAULTS(kv8), NULL, NULL, NULL},
    {LIST("qwen2", "qwen2_vl", "qwen2_vl_text", "qwen2_5_vl", "qwen2_5_vl_text",
         "qwen2_5_omni_text"),
        LIST("Qwen2", "Qwen2VL", "Qwen2_5_VL"), KEYS(qwen2_keys),
        DEFAULTS(qwen_defaults, qkv_biases), NULL, NULL, NULL},
    {LIST("qwen3", "qwen3_vl", "qwen3_vl_text"), LIST("Qwen3", "Qwen3VL"),
        KEYS(qwen3_keys), DEFAULTS(qwen_defaults, qwen3_defaults), NULL, NULL,
        NULL},
    {LIST("qwen"), LIST("QWen"), KEYS(qwen1_keys), DEFAULTS(qwen1_defaults),
        NULL, NULL, NULL},
    {LIST("gemma"), LIST("Gemma"), KEYS(gemma_keys), DEFAULTS(gemma_defaults),
        NULL, NULL, NULL},
    {LIST("gemma2"), LIST("Gemma2"), KEYS(gemma_keys),
        DEFAULTS(gemma2_defaults, gemma_defaults, sandwich), NULL, NULL, NULL},
    {LIST("gemma3", "gemma3_text"), LIST("Gemma3"), KEYS(gemma_keys),
        DEFAULTS(gemma3_defaults, gemma_defaults, sandwich), NULL, NULL, NULL},
    {LIST("olmo"), LIST("OLMo", "Olmo"), NULL, DEFAULTS(bare_norms), NULL, NULL,
        NULL},
    {LIST("olmo2", "olmo3"), LIST("Olmo2", "Olmo3"), NULL,
        DEFAULTS(olmo2_defaults), NULL, NULL, NULL},
    {LIST("cohere"), LIST("Cohere"), KEYS(cohere_keys),
        DEFAULTS(tied, parallel_norm), NULL, NULL, NULL},
    {LIST("cohere2"), LIST("Cohere2"), KEYS(cohere_keys),
        DEFAULTS(cohere2_defaults, tied, parallel_norm), NULL, NULL, NULL},
    {LIST("stablelm", "stablelm_epoch"), LIST("StableLm", "StableLMEpoch"),
        KEYS(stablelm_keys), DEFAULTS(layer_norms), NULL, NULL, NULL},
    {LIST("phi"), LIST("Phi"), KEYS(phi_keys),
        DEFAULTS(phi_defaults, all_biases, ungated, parallel_layer_norm,
            ffn_times_4),
        NULL, NULL, NULL},
    {LIST("phi3", "phi4mm"), LIST("Phi3", "Phi4MM"), NULL, NULL, NULL, NULL,
        NULL},
    {LIST("phi3small"), LIST("Phi3Small"), KEYS(phi3small_keys),
        DEFAULTS(all_biases, layer_norms, tied), NULL, NULL, NULL},
    {LIST("gpt2", "gpt_bigcode"), LIST("GPT2", "GPTBigCode"), KEYS(gpt2_keys),
        DEFAULTS(all_biases, ungated, layer_norms, tied, ffn_times_4), NULL,
        NULL, NULL},
    {LIST("gptj", "codegen"), LIST("GPTJ", "CodeGen"), KEYS(gptj_keys),
        DEFAULTS(gptj_defaults, ungated, parallel_layer_norm, ffn_times_4),
        NULL, NULL, NULL},
    {LIST("gpt_neox"), LIST("GPTNeoX"), KEYS(neox_keys),
        DEFAULTS(all_biases, ungated, layer_norms), NULL, NULL, NULL},
    {LIST("gpt_neo"), LIST("GPTNeo"), KEYS(gpt_neo_keys),
        DEFAULTS(gpt_neo_defaults, ungated, layer_norms, tied, ffn_times_4),
        NULL, NULL, NULL},
    {LIST("starcoder2"), LIST("Starcoder2"), KEYS(starcoder2_keys),
        DEFAULTS(all_biases, ungated, layer_norms, tied), NULL, NULL, NULL},
    {LIST("bloom"), LIST("Bloom"), KEYS(bloom_keys),
        DEFAULTS(bloom_defaults, all_biases, ungated, ffn_times_4), NULL, NULL,
        NULL},
    {LIST("mpt"), LIST("MPT", "Mpt"), KEYS(mpt_keys), DEFAULTS(mpt_defaults),
        NULL, NULL, NULL},
    {LIST("falcon", "RefinedWeb", "RefinedWebModel"), LIST("Falcon", "RW"),
        KEYS(falcon_keys),
        DEFAULTS(falcon_defaults, ungated, parallel_layer_norm, ffn_times_4),
        NULL, NULL, NULL},
    {LIST("opt"), LIST("OPT"), KEYS(opt_keys),
        DEFAULTS(all_biases, ungated, layer_norms, tied), NULL, NULL, NULL},
    {LIST("chatglm"), LIST("ChatGLM"), KEYS(chatglm_keys),
        DEFAULTS(chatglm_defaults), NULL, NULL, NULL},
    {LIST("glm"), LIST("Glm"), KEYS(glm_keys), NULL, NULL, NULL, NULL},
    {LIST("glm4", "glm4v", "glm4v_text"), LIST("Glm4", "Glm4v"), KEYS(glm_keys),
        DEFAULTS(sandwich), NULL, NULL, NULL},
    {LIST("internlm", "internlm2"), LIST("InternLM", "InternLM2"),
        KEYS(internlm_keys), NULL, NULL, NULL, NULL},
    {LIST("baichuan"), LIST("Baichuan", "BaiChuan"), KEYS(baichuan_keys), NULL,
        NULL, NULL, NULL},
    {LIST("xverse"), LIST("Xverse"), NULL, DEFAULTS(same_width), NULL, NULL,
        NULL},
    {LIST("minicpm"), LIST("MiniCPM"), NULL, DEFAULTS(minicpm_defaults), NULL,
        NULL, NULL},
    {LIST("minicpm3"), LIST("MiniCPM3"), KEYS(minicpm3_keys),
        DEFAULTS(minicpm3_defaults, minicpm_defaults), NULL, NULL, NULL},
    {LIST("exaone"), LIST("Exaone"), KEYS(exaone_keys), NULL, NULL, NULL, NULL},
    {LIST("exaone4"), LIST("Exaone4"), KEYS(exaone_keys), DEFAULTS(head_norms),
        NULL, NULL, NULL},
    {LIST("arcee"), LIST("Arcee"), NULL, DEFAULTS(ungated), NULL, NULL, NULL},
    {LIST("apertus"), LIST("Apertus"), NULL, DEFAULTS(ungated, head_norms),
        NULL, NULL, NULL},
    {LIST("nemotron"), LIST("Nemotron"), NULL, DEFAULTS(ungated, layer_norms),
        NULL, NULL, NULL},
    {LIST("nemotron-nas", "deci"), LIST("DeciLM", "Deci"), KEYS(deci_keys),
        NULL, NULL, NULL, NULL},
    {LIST("hunyuan_v1_dense"), LIST("HunYuanDenseV1"), NULL,
        DEFAULTS(head_norms), NULL, NULL, NULL},
    {LIST("ernie4_5"), LIST("Ernie4_5"), KEYS(ernie_keys), DEFAULTS(tied), NULL,
        NULL, NULL},
    {LIST("mimo"), LIST("MiMo"), KEYS(qwen2_keys),
        DEFAULTS(qwen_defaults, qkv_biases), NULL, NULL, NULL},
    END_DIALECTS,
};

#define ENCODER "a model with an encoder is not read"
#define ENCODER_ONLY "an encoder without a decoder is not read"
#define NO_ATTENTION "a model without softmax attention is not read"
#define MIXED "layers that run a state space beside attention are not counted"

const struct mf_dialect mf_dialects_refused[] = {
    {LIST("t5", "mt5", "umt5", "longt5", "switch_transformers", "nllb-moe",
         "bart", "mbart", "m2m_100", "pegasus", "marian", "prophetnet",
         "whisper", "led", "blenderbot", "encoder-decoder", "t5gemma", "byt5",
         "speech_to_text", "seamless_m4t", "seamless_m4t_v2", "florence2"),
        LIST("T5", "MT5", "UMT5", "LongT5", "SwitchTransformers", "NllbMoe",
            "Bart", "MBart", "M2M100", "Pegasus", "Marian", "Whisper",
            "T5Gemma", "SeamlessM4T", "Florence2"),
        NULL, NULL, NULL, ENCODER, NULL},
    {LIST("bert", "roberta", "xlm-roberta", "deberta", "deberta-v2",
         "distilbert", "electra", "albert", "mpnet", "modernbert", "nomic_bert",
         "vit", "clip", "siglip", "siglip2", "dinov2", "wav2vec2", "hubert",
         "beit", "swin", "esm", "bert-generation", "camembert", "layoutlmv3"),
        LIST("Bert", "BertGenerationDecoder", "BertForMaskedLM", "Roberta",
            "RobertaForMaskedLM", "XLMRoberta", "XLMRobertaForMaskedLM",
            "DebertaV2", "DistilBert", "DistilBertForMaskedLM", "Electra",
            "Albert", "ModernBert", "ModernBertForMaskedLM", "NomicBert", "ViT",
            "CLIP", "Siglip", "Wav2Vec2", "MPNet", "Esm", "EsmForMaskedLM"),
        NULL, NULL, NULL, ENCODER_ONLY, NULL},
    {LIST("mamba", "mamba2", "falcon_mamba", "rwkv", "rwkv5", "rwkv6", "rwkv7",
         "retnet", "xlstm", "codestral_mamba"),
        LIST("Mamba", "Mamba2", "FalconMamba", "Rwkv", "Rwkv5", "Rwkv6",
            "RWKV7", "xLSTM"),
        NULL, NULL, NULL, NO_ATTENTION, NULL},
    {LIST("falcon_h1", "hymba"), LIST("FalconH1", "Hymba"), NULL, NULL, NULL,
        MIXED, NULL},
    {LIST("zamba", "zamba2"), LIST("Zamba", "Zamba2"), NULL, NULL, NULL,
        "blocks of attention that several layers share are not counted", NULL},
    {LIST("recurrent_gemma"), LIST("RecurrentGemma"), NULL, NULL, NULL,
        "layers with a gated linear recurrence (RG-LRU) are not counted", NULL},
    {LIST("plamo2"), LIST("Plamo2"), NULL, NULL, NULL,
        "its Mamba layers project steps of their own kind, which is not "
        "counted",
        NULL},
    {LIST("phi4flash"), LIST("Phi4Flash"), NULL, NULL, NULL,
        "layers that share keys across the decoder, and gated memory units, "
        "are not counted",
        NULL},
    {LIST("gemma3n", "gemma3n_text"), LIST("Gemma3n"), NULL, NULL, NULL,
        "per-layer embeddings and AltUp are not counted", NULL},
    {LIST("mllama", "mllama_text_model"), LIST("Mllama"), NULL, NULL, NULL,
        "layers of cross attention to an image are not counted", NULL},
    {LIST("ernie4_5_moe_vl", "ernie4_5_vl_moe"),
        LIST("Ernie4_5_VLMoe", "Ernie4_5_VLMoeForConditionalGeneration"), NULL,
        NULL, NULL,
        "experts of text and of images beside each other are "
        "not counted",
        NULL},
    {LIST("openelm"), LIST("OpenELM"), NULL, NULL, NULL,
        "heads and widths that differ from layer to layer are not read", NULL},
    {LIST("longcat_flash_ngram"), LIST("LongcatFlashNgram"), NULL, NULL, NULL,
        "n-gram embeddings are not counted", NULL},
    END_DIALECTS,
};

const struct mf_dialect mf_dialect_other = {
    LIST("other"), NULL, NULL, DEFAULTS(same_width), NULL, NULL, NULL};
