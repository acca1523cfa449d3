#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# size: deadlines, budgets, memory; what narrows a search; the seed example.
. "${MOEFOLD_SRCDIR:?}/tests/command/lib.sh"

models=$SRC/tests/data/models
mixtral=$models/Mixtral-8x7B-v0.1.json
job=(--model "$mixtral" --cluster dgx-h100:32 --global-batch 512)

expect 'a deadline' 0 moefold size "${job[@]}" --tokens 1T --days 30 --json
expect_json 'is made by the smallest world of the curve that makes it' \
    '.days <= 30 and .world == ([.curve[] | select(.days <= 30).world] | min)
    and ([.curve[].world] | . == sort)'
expect_json 'days and GPU hours follow from tokens a second' \
    'all(.curve[]; (.tokens_per_s * .days * 86400 / 1e12 - 1 | fabs) < 1e-9
    and (.gpu_hours / (.days * 24 * .world) - 1 | fabs) < 1e-9)'
expect_json 'the layouts are of their worlds' \
    'all(.curve[]; [.layout | scan("(?:^|[.])(?:tp|cp|dp|pp)([0-9]+)")[]
    | tonumber] as $n | .world == ($n | reduce .[] as $x (1; . * $x)))'
expect_json 'efficiency drops somewhere' \
    '.drops_at as $d | .curve[] | select(.world == $d) | .efficiency < 0.8'
world=$(jq .world "$OUT")
expect 'one node less' 0 moefold plan "${job[@]}" --world $((world - 8)) --json
expect_json 'is too slow' \
    '.plans[0].tokens_per_s_per_gpu * .world * 30 * 86400 < 1e12'
expect 'an impossible deadline' 3 moefold size "${job[@]}" --tokens 1000T \
    --days 1 --json
expect_json 'has no world, and a curve' \
    '.world == null and (.curve | length) > 3'
expect 'a budget' 0 moefold size "${job[@]}" --tokens 1T --gpu-hours 80K --json
expect_json 'is kept' '.gpu_hours <= 80000'
expect 'memory alone' 0 moefold size "${job[@]}" --json
expect_json 'takes the first that fits' '.world == .curve[0].world'
expect 'tokens without an end' 2 moefold size "${job[@]}" --tokens 1T
expect 'days without tokens' 2 moefold size "${job[@]}" --days 3
expect 'for people' 0 moefold size "${job[@]}" --tokens 1T --days 30
check 'in 80 columns' sh -c '! grep -qE "^.{81}" "$1"' - "$OUT"

plan=(moefold plan "${job[@]}" --world 64 --json)
expect 'limits' 0 "${plan[@]}" --max-pp 2 --max-tp 2 --max-vpp 1 \
    --max-micro-batch 2
expect_json 'are kept' 'all(.plans[]; .vpp == 1 and .micro_batch <= 2
    and (.layout | test("^tp[12][.].*pp[12]/")))'
expect 'forbidden values' 0 "${plan[@]}" --forbid ep=8 \
    --forbid dispatcher=deepep --forbid recompute=full
expect_json 'are not used' 'all(.plans[]; .dispatcher != "deepep"
    and .recompute != "full" and (.layout | test("[.]ep8[.]") | not))'
expect 'a forbidden nothing' 2 "${plan[@]}" --forbid sp=2
expect 'rejections' 0 "${plan[@]}" --rejected 'does not divide the experts'
expect_json 'are listed, as many as were counted' \
    '(.rejected_layouts | length) == .rejected["ep does not divide the experts"]
    and all(.rejected_layouts[]; .message | test("next smaller"))'
expect 'the front' 0 "${plan[@]}" --pareto
expect_json 'holds nothing that another beats' '.pareto as $p
    | ($p | length) > 3 and all($p[]; . as $a | all($p[]; . == $a
    or .world > $a.world or .step_s > $a.step_s
    or .peak_bytes > $a.peak_bytes))'
expect_json 'over several worlds' '([.pareto[].world] | unique | length) > 2'
expect 'least GPU time' 0 "${plan[@]}" --objective cost
jq '.world * .plans[0].step_s' "$OUT" >cost
expect 'least time' 0 "${plan[@]}"
check 'needs no less GPU time' jq -e --slurpfile c cost \
    '.world * .plans[0].step_s >= $c[0]' "$OUT"
jq .plans "$OUT" >one
expect 'two threads' 0 "${plan[@]}" --threads 2
check 'find the same' diff one <(jq .plans "$OUT")
expect 'free orders' 0 "${plan[@]}" --free-order
check 'are no worse' jq -e --slurpfile o one \
    '.plans[0].step_s <= $o[0][0].step_s * (1 + 1e-12)' "$OUT"
expect 'an uneven split' 0 moefold predict "${job[@]}" --world 64 \
    --layout tp1.pp4/ep8 --split 7,7 --json
expect_json 'is kept' '.first_layers == 7 and .last_layers == 7'
expect 'one that leaves no even rest' 2 moefold predict "${job[@]}" \
    --world 64 --layout tp1.pp4/ep8 --split 7,8

# Attention keeps tp4.cp2.dp8. Coupled, EP lies inside DP: at most 8, with the
# experts cut by tp. Folded, EP is eight times that, with whole experts.
seed=(--model "$models/DeepSeek-V3.json" --cluster dgx-h100:64 --world 512
    --global-batch 512 --micro-batch 1)
expect 'EP 64 folded' 0 moefold predict "${seed[@]}" --recompute full \
    --layout tp4.cp2.dp8.pp8/etp1.ep64.edp1 --json
expect_json 'is priced and fits' '.fits and .step_s > 0'
expect 'EP 64 coupled' 2 moefold predict "${seed[@]}" --coupled \
    --layout tp4.cp2.dp8.pp8/ep64
expect_error 'is refused' 'ep 64'
expect 'EP 8 coupled' 0 moefold groups --coupled --world 512 --json \
    --layout tp4.cp2.dp8.pp8/ep8
expect_json 'is the largest' 'all(.groups.ep[]; length == 8)'
expect 'the search' 0 moefold plan "${seed[@]}" --json \
    --fix tp=4 --fix cp=2 --fix pp=8 --fix ep=64 --fix etp=1 --top 1
expect_json 'finds it too' \
    '.plans[0].layout == "tp4.cp2.dp8.pp8/etp1.ep64.edp1"'

expect 'why not ep 8' 0 moefold explain "${seed[@]}" --recompute full \
    --layout tp4.cp2.dp8.pp8/ep64 --against ep=8 --json
expect_json 'is answered by terms that sum' '.b | test("ep8.edp8$")'
expect_json 'on both sides' '(.terms | map(.name) | index("step_s")) as $n
    | .terms[$n] as $all | (.terms[:$n] | map(.a) | add) as $a
    | (.terms[:$n] | map(.b) | add) as $b
    | ($a - $all.a | fabs) < 1e-9 and ($b - $all.b | fabs) < 1e-9'
expect 'bars' 0 moefold explain "${seed[@]}" --recompute full \
    --layout tp4.cp2.dp8.pp8/ep64
expect_line 'show where time goes' 'experts +[0-9.]+ %  #+'
check 'explain in 80 columns' sh -c '! grep -qE "^.{81}" "$1"' - "$OUT"

# Users' problems. Megatron-LM#4050: experts are not cut by tp. One layer of
# Mixtral-8x7B has 1,409,286,144 expert parameters, 176,160,768 a rank at ep 8.
grads() { # LAYOUT: bytes of fp32 gradients of one rank
    moefold predict --model "$mixtral" --cluster dgx-h100:1 --world 8 \
        --global-batch 8 --layout "$1" --shard none --json |
        jq .memory.grads
}
experts() { # with tp 1 and 8: what does not depend on tp is the experts'
    echo "$(grads "$1") $(grads "$2")"
}
experts tp1.dp8/ep8 tp1.dp8/ep4 >cut.txt
check 'ep 4 holds as many experts again as ep 8' awk \
    '{ exit ($2 - $1) != 32 * 4 * 176160768 }' cut.txt
experts tp8/ep8 tp8/etp8 >cut.txt
check 'ep 8 and etp 8 hold the same' awk '{ exit $1 != $2 }' cut.txt

# Megatron-LM#2762: Qwen3-30B-A3B with micro batch 1 on one node.
qwen() { # WORLD EP
    moefold predict --model "$models/Qwen3-30B-A3B.json" --cluster dgx-h100:2 \
        --world "$1" --layout "tp1/ep$2" --global-batch 16 --json
}
expect 'one node' 3 qwen 8 8
expect_json 'holds 76.8 GB before any token' \
    '(.static_bytes / 76.8e9 - 1 | fabs) < 0.01'
expect 'two nodes with ep 16' 0 qwen 16 16
expect_json 'hold 43 GB' '.fits and (.static_bytes / 43e9 - 1 | fabs) < 0.01'
qwen 16 8 >"$OUT"
expect_json 'and with ep 8 54 GB' '(.static_bytes / 54e9 - 1 | fabs) < 0.01'

# Megatron-LM#1445: what fits balanced is at risk when routing shifts.
risk() { # GINI
    moefold predict --model "$models/Qwen3-30B-A3B.json" --cluster dgx-h100:2 \
        --world 16 --layout tp1/ep16 --global-batch 16 --imbalance "$1" --json
}
risk 0 >balanced
risk 0.5 >shifted
check 'imbalance raises memory' jq -en --slurpfile a balanced \
    --slurpfile b shifted '$b[0].peak_bytes > 1.02 * $a[0].peak_bytes'

# Megatron-LM#1258: with more dp at a fixed batch and ep, gradients take more.
scaled() { # DP
    moefold predict --model "$mixtral" --cluster dgx-h100:32 --json \
        --world "$((4 * $1))" --layout "tp4.dp$1/ep4" --global-batch 256 \
        --recompute full | jq '(.breakdown.grad_reduce_expert // 0)
            + (.breakdown.grad_reduce_dense // 0), .step_s'
}
{ scaled 8; scaled 32; } | paste -s >shares
check 'their share is shown to grow' awk '{ exit !($3 / $4 > 2 * $1 / $2) }' \
    shares

done_testing
