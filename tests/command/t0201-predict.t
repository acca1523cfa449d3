#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# predict and explain: keys, sums, statuses and messages.
. "${MOEFOLD_SRCDIR:?}/tests/command/lib.sh"

models=$SRC/tests/data/models
mixtral=$models/Mixtral-8x22B-v0.1/config.json
job=(--model "$mixtral" --cluster dgx-h100 --global-batch 256)

expect 'a folded layout' 0 \
    moefold predict "${job[@]}" --layout tp2.dp8.pp8/ep8 --json
expect_json 'all keys of the contract' \
    '["step_s", "step_s_low", "step_s_high", "tokens_per_s_per_gpu",
    "tflops_per_gpu", "mfu", "fits", "memory", "static_bytes", "peak_bytes",
    "memory_by_stage", "breakdown", "hidden", "layer", "notes", "seq",
    "global_batch", "micro_batch", "vpp", "precision", "recompute",
    "dispatcher", "imbalance", "capacity_factor", "shard"]
    - keys == []'
expect_json 'the breakdown sums to the step' \
    '([.breakdown[]] | add) as $sum | ($sum - .step_s | fabs) < 1e-9'
expect_json 'the interval holds the step' \
    '.step_s_low < .step_s and .step_s < .step_s_high'
expect_json 'the hottest stage is the peak' \
    '([.memory_by_stage[].peak_bytes] | max) == .peak_bytes
    and .memory.total == .peak_bytes and (.memory_by_stage | length) == 8'
expect_json 'the phases sum to the layer' \
    '([.layer.phases[] | .fwd_s // 0] | add) as $f
    | ($f - .layer.forward_s | fabs) < 1e-9
    or .layer.phases.stage_send != null'
expect_json 'rates agree with the step' \
    '(256 * 4096 / 128 / .step_s / .tokens_per_s_per_gpu - 1 | fabs) < 1e-9
    and (.tflops_per_gpu * 1e12 / 989e12 / .mfu - 1 | fabs) < 1e-9'

expect 'for people' 0 moefold predict "${job[@]}" --layout tp2.dp8.pp8/ep8
expect_line 'what limits it' 'limited by experts'

expect 'one that does not fit' 3 \
    moefold predict "${job[@]}" --layout tp1.dp128/ep8 --json
expect_json 'is still priced' '.fits == false and .step_s > 0
    and .limit == "memory"'

expect 'all devices without a world' 0 moefold predict --model "$mixtral" \
    --cluster dgx-h100:16 --layout tp2.pp8/ep8 --global-batch 256 --json
expect_json 'dp fills them' '.layout == "tp2.cp1.dp8.pp8/etp1.ep8.edp2"'
expect 'a world too large' 3 moefold predict --model "$mixtral" \
    --cluster dgx-h100:1 --world 128 --layout tp2.pp8/ep8 --global-batch 256
expect 'no global batch' 2 moefold predict --model "$mixtral" \
    --cluster dgx-h100 --world 128 --layout tp2.pp8/ep8
expect_error 'names the option' '--global-batch'
expect 'ep for a dense model' 2 moefold predict \
    --model "$models/dense-Llama-3-8B.json" --cluster dgx-h100 \
    --world 8 --layout tp1/ep4 --global-batch 8
expect_error 'says so' 'ep 4 needs a model with experts; .* is dense'
expect 'experts that ep does not divide' 2 moefold predict "${job[@]}" \
    --world 96 --layout tp1/ep3
expect_error 'with the mend' 'next smaller that does is 2'
expect 'an unknown scope' 2 moefold predict "${job[@]}" \
    --layout tp2.dp8.pp8/ep8 --scope layer
expect 'unknown coefficients' 2 moefold predict "${job[@]}" \
    --layout tp2.dp8.pp8/ep8 --db none.db --coefficients x
expect 'the prior by name' 0 moefold predict "${job[@]}" \
    --layout tp2.dp8.pp8/ep8 --coefficients prior

expect 'scope moe needs no batch' 0 moefold predict --scope moe \
    --model "$models/small-moe/config.json" --cluster dgx-h100:1 \
    --layout tp2.dp4/ep8 --json
expect_json 'layer and expert gradients are the step' \
    '(.layer.forward_s + .layer.backward_s
    + (.breakdown.grad_reduce_expert // 0) - .step_s | fabs) < 1e-9'

expect 'explain one against another' 0 moefold explain "${job[@]}" \
    --layout tp2.dp8.pp8/ep8 --against tp2.pp8/etp2.ep4 --json
expect_json 'two layouts, term by term' \
    '.a == "tp2.cp1.dp8.pp8/etp1.ep8.edp2"
    and .b == "tp2.cp1.dp8.pp8/etp2.ep4.edp2"
    and (.terms | length) > 10 and all(.terms[]; .name and (.a | type) ==
    "number" and (.b | type) == "number")'

# One kernel. The figures are measured ones: NCCL's all-gather of 16 MiB over 8
# H100 at a bus rate of 213 GB/s, and a square bf16 product of 4096 on H100 at
# 75 to 90 % of 989 TFLOP/s.
expect 'a collective' 0 \
    moefold predict --kernel all_gather:8,16777216 --gpu h100 --json
expect_json 'as it was measured' \
    '(16777216 * 7 / 8 / .seconds / 213e9 - 1 | fabs) < 0.1
    and .low < .seconds and .seconds < .high'
expect 'a product' 0 \
    moefold predict --kernel gemm:4096,4096,4096 --gpu h100 --json
expect_json 'at a rate that was measured' \
    '(2 * 4096 * 4096 * 4096 / .seconds / 989e12) as $share
    | $share > 0.75 and $share < 0.9'
expect 'a kernel without its GPU' 2 moefold predict --kernel gemm:1,2,3
expect_error 'asks for it' '--gpu'
expect 'too few numbers' 2 moefold predict --kernel gemm:1,2 --gpu h100
expect 'a kernel nobody measured' 2 \
    moefold predict --kernel all_reduce:3,100 --gpu h100
expect 'modules to recompute' 0 moefold predict "${job[@]}" \
    --layout tp2.dp8.pp8/ep8 --recompute moe_act,layernorm --json
expect_json 'are shown' '.recompute == "moe_act,layernorm"'
expect 'an unknown module' 2 moefold predict "${job[@]}" \
    --layout tp2.dp8.pp8/ep8 --recompute moe_act,foo
expect 'coefficients of a source' 0 moefold predict "${job[@]}" \
    --layout tp2.dp8.pp8/ep8 --imbalance 0 --capacity-factor 1 \
    --micro-batch auto --vpp auto --coefficients folding-paper --json
# arXiv 2504.14960, table 3: 49.3 % MFU.
expect_json 'as the source measured' '(.mfu / 0.493 - 1 | fabs) < 0.1'

# Predictions know shapes, never names.
check 'no model is named in the cost model' test -z "$(grep -ilE \
    'mixtral|qwen|deepseek|grok|llama|nemotron|moonlight' \
    "$SRC"/planner/cost*.[ch] "$SRC"/planner/published*.[ch] \
    "$SRC"/planner/coefficients.c "$SRC"/planner/kernel*.[ch])"
expect 'the sources that come with the program' 0 \
    moefold fit --list --json --db none.db
expect_json 'have names, documents and runs' '(.shipped | length) > 20
    and ([.shipped[] | select(.name == "published")][0].runs > 150)
    and all(.shipped[]; (.runs | type) == "number")'

done_testing
