/* SPDX-License-Identifier: BSD-3-Clause
 * Keys outside any dialect: those that mean a part that is not counted, and
 * those that are known to leave the shape alone.
 */
#include "planner/model_read_dialect.h"

#include <stddef.h>

#define MAMBA "Mamba layers are not counted"
#define LINEAR "linear attention layers are not counted"
#define NESTED "a text model nested in another is not read"
#define ENCODER "a model with an encoder is not read"
#define SPARSE "a sparse-attention indexer is not counted"
#define LATENT "experts of a width other than the model's are not counted"

const struct mf_refusal mf_refusals[] = {
    {"text_config", NESTED},
    {"llm_config", NESTED},
    {"language_config", NESTED},
    {"thinker_config", NESTED},
    {"vision_config", "the parameters of a vision part are not counted"},
    {"audio_config", "the parameters of an audio part are not counted"},
    {"is_encoder_decoder", ENCODER},
    {"encoder_layers", ENCODER},
    {"num_encoder_layers", ENCODER},
    {"mamba_d_state", MAMBA},
    {"mamba_num_heads", MAMBA},
    {"ssm_state_size", MAMBA},
    {"ssm_cfg", MAMBA},
    {"hybrid_override_pattern", MAMBA},
    {"layers_block_type", MAMBA},
    {"linear_num_key_heads", LINEAR},
    {"linear_num_value_heads", LINEAR},
    {"linear_attn_config", LINEAR},
    {"attn_type_list", LINEAR},
    {"full_attention_interval", LINEAR},
    {"index_n_heads", SPARSE},
    {"index_topk", SPARSE},
    {"moe_latent_size", LATENT},
    {"routed_expert_hidden_size", LATENT},
    {"o_lora_rank", "a low-rank output projection is not counted"},
    {"hc_mult", "hyper-connections are not counted"},
    {"block_configs", "layers of different shapes are not read"},
    {"parallel_attn_mlp_res", "a dense part beside the experts is not counted"},
    {"enable_moe_block", "a dense part beside the experts is not counted"},
    {NULL, NULL},
};

const char *const mf_harmless[] = {
    /* who and what */
    "_name_or_path", "architectures", "auto_map", "model_type",
    "transformers_version", "torch_dtype", "dtype", "quantization_config",
    "finetuning_task", "id2label", "label2id", "num_labels", "problem_type",
    "task_specific_params", "_attn_implementation", "unsloth_version",
    /* tokens */
    "bos_token_id", "eos_token_id", "pad_token_id", "sep_token_id",
    "decoder_start_token_id", "image_token_id", "tokenizer_class",
    /* positions */
    "max_position_embeddings", "rope_theta", "rope_scaling", "rope_parameters",
    "rope_interleave", "partial_rotary_factor",
    "original_max_position_embeddings",
    /* numerics, which hold no parameters */
    "initializer_range", "rms_norm_eps", "layer_norm_eps", "norm_eps",
    "clip_qkv", "attention_multiplier", "embedding_multiplier",
    "logits_scaling", "residual_multiplier",
    /* training */
    "attention_dropout", "hidden_dropout", "embd_pdrop", "resid_pdrop",
    "aux_loss_alpha", "seq_aux", "router_aux_loss_coef", "router_z_loss_coef",
    "output_router_logits", "router_jitter_noise", "pretraining_tp", "ep_size",
    "moe_implementation", "gradient_checkpointing",
    /* inference and generation */
    "use_cache", "use_return_dict", "return_dict", "output_attentions",
    "output_hidden_states", "chunk_size_feed_forward", "temperature", "top_k",
    "top_p", "typical_p", "num_beams", "num_beam_groups",
    "num_return_sequences", "repetition_penalty", "length_penalty",
    "diversity_penalty", "no_repeat_ngram_size", "encoder_no_repeat_ngram_size",
    "max_length", "min_length", "do_sample", "early_stopping",
    "generation_config", "remove_invalid_values", "use_mrope", "is_decoder",
    NULL};
