#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Golden files from the MoE blocks of Hugging Face transformers.

    make.py FOLDER [SEED]

For each kind of block: KIND.json, the model's config; KIND.in.safetensors, its
weights (by the names that a checkpoint of the model has), hidden_states and
grad_output; KIND.out.safetensors, output and every gradient of the sum of
output * grad_output. Sizes are tiny and random; all values are fp32.
"""
import json
import sys

import torch
from safetensors.torch import save_file
import transformers as tf
from transformers.models.deepseek_v3.modeling_deepseek_v3 import DeepseekV3MoE
from transformers.models.gpt_oss.modeling_gpt_oss import GptOssMLP
from transformers.models.mixtral.modeling_mixtral import MixtralSparseMoeBlock
from transformers.models.olmoe.modeling_olmoe import OlmoeSparseMoeBlock
from transformers.models.qwen2_moe.modeling_qwen2_moe import (
    Qwen2MoeSparseMoeBlock)
from transformers.models.qwen3_moe.modeling_qwen3_moe import (
    Qwen3MoeSparseMoeBlock)

COMMON = dict(hidden_size=24, num_hidden_layers=2, num_attention_heads=4,
              vocab_size=96, max_position_embeddings=64)

KINDS = {
    "mixtral": (MixtralSparseMoeBlock, tf.MixtralConfig(
        **COMMON, num_key_value_heads=2, intermediate_size=16,
        num_local_experts=4, num_experts_per_tok=2, router_jitter_noise=0.0),
        "model.layers.1.block_sparse_moe."),
    "qwen2-moe": (Qwen2MoeSparseMoeBlock, tf.Qwen2MoeConfig(
        **COMMON, num_key_value_heads=2, intermediate_size=32,
        moe_intermediate_size=8, shared_expert_intermediate_size=16,
        num_experts=8, num_experts_per_tok=3, norm_topk_prob=False),
        "model.layers.1.mlp."),
    "qwen3-moe": (Qwen3MoeSparseMoeBlock, tf.Qwen3MoeConfig(
        **COMMON, num_key_value_heads=2, intermediate_size=32, head_dim=8,
        moe_intermediate_size=8, num_experts=8, num_experts_per_tok=2,
        norm_topk_prob=True), "mlp."),
    "deepseek-v3": (DeepseekV3MoE, tf.DeepseekV3Config(
        **COMMON, num_key_value_heads=4, intermediate_size=32,
        moe_intermediate_size=8, n_routed_experts=16, num_experts_per_tok=4,
        n_shared_experts=2, n_group=4, topk_group=2, first_k_dense_replace=1,
        routed_scaling_factor=2.5, norm_topk_prob=True, q_lora_rank=12,
        kv_lora_rank=8, qk_nope_head_dim=4, qk_rope_head_dim=4, v_head_dim=4),
        "model.layers.1.mlp."),
    "olmoe": (OlmoeSparseMoeBlock, tf.OlmoeConfig(
        **COMMON, num_key_value_heads=4, intermediate_size=8, num_experts=8,
        num_experts_per_tok=4, norm_topk_prob=False), "model.layers.1.mlp."),
    "gpt-oss": (GptOssMLP, tf.GptOssConfig(
        **COMMON, num_key_value_heads=2, intermediate_size=8, head_dim=6,
        num_local_experts=4, num_experts_per_tok=2), "model.layers.1.mlp."),
}


def block(make, config):
    config._attn_implementation = "eager"
    try:
        return make(config)
    except TypeError:
        return make(config, 1)


def golden(folder, kind, seed):
    make, config, prefix = KINDS[kind]
    torch.manual_seed(seed)
    layer = block(make, config).float().train()
    with torch.no_grad():
        for name, value in layer.state_dict().items():
            if name.endswith("bias"):
                value.normal_(0, 0.2)
            else:
                value.normal_(0, 0.5)
    x = torch.randn(4, 6, config.hidden_size, requires_grad=True)
    dy = torch.randn(4, 6, config.hidden_size)
    y = layer(x)
    y = y[0] if isinstance(y, tuple) else y
    y.backward(dy)
    weights = {prefix + k: v.detach().clone().contiguous()
               for k, v in layer.state_dict().items()}
    weights.update(hidden_states=x.detach().clone(), grad_output=dy)
    out = {"output": y.detach().clone(), "grad_hidden_states": x.grad.clone()}
    for name, value in layer.named_parameters():
        grad = value.grad if value.grad is not None else torch.zeros_like(value)
        if value.requires_grad and not name.endswith("correction_bias"):
            out["grad." + prefix + name] = grad.clone().contiguous()
    save_file(weights, f"{folder}/{kind}.in.safetensors")
    save_file(out, f"{folder}/{kind}.out.safetensors")
    with open(f"{folder}/{kind}.json", "w", encoding="utf-8") as file:
        json.dump(config.to_diff_dict(), file, indent=1, sort_keys=True)
        file.write("\n")


def main():
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else 1
    for kind in KINDS:
        golden(sys.argv[1], kind, seed)
    print("transformers", tf.__version__, "torch", torch.__version__)


main()
