#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# plan: ranking, options, the plan file, statuses.
. "${MOEFOLD_SRCDIR:?}/tests/command/lib.sh"

models=$SRC/tests/data/models
mixtral=$models/Mixtral-8x22B-v0.1/config.json
small=$models/small-moe/config.json
job=(--model "$mixtral" --cluster dgx-h100:16 --global-batch 256)

expect 'sixteen nodes' 0 moefold plan "${job[@]}" --output plan.json --json
expect_json 'ten layouts and a coupled one, best first' \
    '(.plans | length) == 11 and .plans[10].coupled
    and ([.plans[:10][].step_s] | . == sort)
    and all(.plans[]; .fits and (.limit | type) == "string")'
expect_json 'what was searched and rejected' \
    '.searched.enumerated > 1000 and .searched.priced > 1000
    and .searched.bounded >= 0 and .elapsed_s >= 0
    and (.rejected | length) > 0
    and ([.rejected[]] | add) < .searched.enumerated'
cp "$OUT" first.json
expect 'once more' 0 moefold plan "${job[@]}" --json
cp "$OUT" second.json
check 'gives the same plans' diff <(jq .plans first.json) \
    <(jq .plans second.json)
check 'the file holds them too' diff <(jq .plans first.json) \
    <(jq .plans plan.json)

layout=$(jq -r '.plans[3].layout' first.json)
mapfile -t settings < <(jq -r '.plans[3] | "--micro-batch", .micro_batch,
    "--vpp", .vpp, "--recompute", .recompute, "--dispatcher", .dispatcher' \
    first.json)
expect 'predict on its fourth' 0 moefold predict "${job[@]}" \
    --layout "$layout" "${settings[@]}" --json
cp "$OUT" fourth.json
check 'has the same price' diff <(jq '.plans[3] | .step_s, .peak_bytes' \
    first.json) <(jq '.step_s, .peak_bytes' fourth.json)

expect 'for people' 0 moefold plan "${job[@]}" --top 12
expect_line 'a twelfth row' '^ +12  tp'
expect_line 'the coupled one apart' 'best coupled layout'
expect_line 'reasons' '[0-9]+  does not fit in memory'

expect 'fixed axes' 0 moefold plan "${job[@]}" --fix tp=4 --fix ep=2 --json
expect_json 'are kept' 'all(.plans[]; .layout | test("^tp4[.].*ep2[.]"))'
expect 'coupled only' 0 moefold plan "${job[@]}" --coupled --top 3 --json
expect_json 'three of them' '(.plans | length) == 3 and all(.plans[]; .coupled)'
expect 'an axis that is none' 2 moefold plan "${job[@]}" --fix sp=2
expect_error 'names them' 'tp, cp, dp, pp, etp, ep or edp'
expect 'sizes that no layout has' 3 moefold plan "${job[@]}" --fix tp=3
expect 'no global batch' 2 moefold plan --model "$mixtral" \
    --cluster dgx-h100:16
expect 'a model too large' 3 moefold plan --model "$mixtral" \
    --cluster dgx-h100:1 --global-batch 8 --json
expect_json 'counts why' '.plans == []
    and .rejected["does not fit in memory"] > 0'

expect 'one layer' 0 moefold plan --scope moe --model "$small" \
    --cluster dgx-h100:1 --seq 512 --json
expect_json 'at equal work, without stages' \
    'all(.plans[]; .global_batch == 8 and (.layout | test("[.]cp1[.].*pp1/")))'

done_testing
