#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# moefold verify: a plan's layouts against both references.
. "${MOEFOLD_SRCDIR:?}/tests/command/lib.sh"

command -v moefold-run >/dev/null || skip_all 'moefold-run is not built'
command -v mpirun >/dev/null || skip_all 'mpirun is not installed'

models=$SRC/tests/data/models

plan() { # FILE MODEL OPTION...
    moefold plan --model "$models/$2" --cluster dgx-h100:1 --scope moe \
        --world 4 --global-batch 8 --seq 256 --fix pp=1 --output "$1" \
        "${@:3}" >/dev/null 2>"$ERR" || printf '# plan: %s\n' "$(cat "$ERR")"
}

names='["counts_one_rank", "down_grad", "dx", "dx_one_rank",
    "expert_grad_replicas", "gate_grad", "grad_norm", "grad_norm_all",
    "kept_one_rank",
    "loss", "optimizer_step", "output",
    "output_one_rank", "received_one_rank", "route_weights",
    "router_grad", "router_grad_replicas", "routes", "routes_one_rank",
    "tokens", "twice", "up_grad", "weight_replicas"]'

# Experts over both, so that rows are gathered and replicas summed.
plan etp.json small-moe/config.json --fix etp=2 --fix ep=1
expect 'experts cut in two hold' 0 moefold verify etp.json --json
expect_json 'all checks are there' "[.checks[].name] | sort == $names"
expect_json 'each holds' '.ok and ([.checks[].ok] | all)'
expect_json 'the bound is the one of fp32' '[.checks[].max_rel | numbers]
    | max < 1e-5 and length == 13'
expect_json 'it says what it verified' '.world == 4
    and (.layout | test("/etp2.ep1.edp2$")) and .shape.experts == 16
    and .shape.topk == 4 and .shape.seq == 256 and .near_ties == 0'

plan ep.json small-moe/config.json --fix etp=1 --fix ep=2
expect 'experts dealt out hold' 0 \
    moefold verify ep.json --experts exact --json
expect_json 'output and dX to the bit' '[.checks[]
    | select(.name | test("^(output|dx)_one_rank$")) | .bitwise]
    == [true, true]'
moefold plan --model "$models/small-moe/config.json" --cluster dgx-h100:1 \
    --scope moe --world 4 --global-batch 8 --seq 64 --fix pp=2 --fix ep=2 \
    --output pp.json >/dev/null 2>&1
expect 'stages that pass activations on hold' 0 \
    moefold verify pp.json --experts exact --json
expect_json 'to the bit, as all layers on one rank' '[.checks[]
    | select(.name | test("^pipeline_(output|dx)$")) | .bitwise]
    == [true, true] and ([.checks[] | select(.name == "pipeline_grads")
    | .max_rel] | .[0] < 1e-5)'
expect 'the second layout too' 0 moefold verify ep.json --pick 2
expect_line 'as a table' '^All checks hold'

expect 'a seeded fault is found' 3 \
    moefold verify ep.json --fault skip-edp-sum --json
expect_json 'and named' '(.ok | not) and .fault == "skip-edp-sum"
    and ([.checks[] | select(.ok | not) | .name]
        | index("gate_grad") != null)'
expect 'a wrong group is found' 3 moefold verify ep.json --fault wrong-group
expect_line 'in the table' 'gate_grad .* FAILED$'
expect 'a dropped row is found' 3 moefold verify ep.json --fault drop-last-row
expect_line 'in the rows received' 'received_one_rank .* FAILED$'

# A large model: the shape shrinks, experts and topk stay.
plan large.json Mixtral-8x22B-v0.1/config.json --fix etp=2
expect 'a large model is cut down' 0 moefold verify large.json --json
expect_json 'to bounded work' '.shape.experts == 8 and .shape.topk == 2
    and .shape.hidden <= 128 and .shape.ffn <= 128'

expect 'quiet when all is well' 0 moefold verify ep.json --quiet
if [ -s "$OUT" ]; then
    fail 'says nothing' 'standard output is not empty'
else
    pass 'says nothing'
fi

expect 'every layout of a world' 0 moefold verify --all --world 2
expect_line 'is counted' '^world 2: 10 layouts, 0 failed'

expect 'a missing plan' 2 moefold verify none.json
expect 'a pick too far' 2 moefold verify ep.json --pick 1000
expect 'a job of another size' 2 moefold-run --verify ep.json
expect_error 'names both sizes' '4 ranks.* 1'

done_testing
