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

done_testing
