#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# shellcheck disable=SC2317 # functions are called by check
# export: a plan as flags of Megatron-LM and as a JAX mesh.
. "${MOEFOLD_SRCDIR:?}/tests/command/lib.sh"

models=$SRC/tests/data/models
plan() { # FILE WORLD LAYOUT [ARG...]
    local file=$1 world=$2 layout=$3
    shift 3
    moefold plan --model "$models/Mixtral-8x22B-v0.1/config.json" \
        --cluster dgx-h100 --world "$world" --global-batch 1024 \
        --layout "$layout" --output "$file" "$@" >/dev/null
}

check 'a plan' plan p.json 128 tp2.cp1.dp8.pp8/etp1.ep8 --vpp 1 \
    --recompute none --dispatcher alltoall
expect 'to Megatron-LM' 0 moefold export p.json --to megatron --json
flag() { # NAME VALUE: NAME stands in the flags, VALUE behind it
    expect_json "$1 $2" ".flags | index(\"--$1\") as \$at |
        \$at != null and .[\$at + 1] == \"$2\""
}
flag tensor-model-parallel-size 2
flag context-parallel-size 1
flag pipeline-model-parallel-size 8
flag expert-model-parallel-size 8
flag expert-tensor-parallel-size 1
flag moe-token-dispatcher-type alltoall
flag global-batch-size 1024
expect_json 'sequence parallelism with tensor parallelism' \
    '.flags | index("--sequence-parallel") != null'
expect_json 'the usual order has no flag' \
    '.flags | index("--use-tp-pp-dp-mapping") == null'
expect 'for a script' 0 moefold export p.json --to megatron
expect_line 'a line a flag' \
    '^--expert-tensor-parallel-size 1 \\$'
check 'that a shell takes' bash -n "$OUT"

check 'the other order' plan o.json 64 tp8.dp2.pp4/ep8 --recompute full \
    --order tp-cp-ep-pp-dp
expect 'has a flag' 0 moefold export o.json --to megatron --json
expect_json 'of its own' '.flags | index("--use-tp-pp-dp-mapping") != null'
jq '.plans[0].order = "cp-tp-ep-dp-pp"' p.json >odd.json
expect 'an order that Megatron-LM does not know' 3 \
    moefold export odd.json --to megatron
expect_error 'is named' 'order cp-tp-ep-dp-pp'
jq '.plans[0].dispatcher = "dedup"' p.json >dedup.json
expect 'a dispatcher that it does not have' 3 \
    moefold export dedup.json --to megatron
# 56 layers over 5 stages: 12, 11, 11, 11, 11.
check 'stages of uneven length' plan u.json 40 tp1.pp5/ep8 --vpp 1 \
    --split even --recompute full
expect 'are written out' 0 moefold export u.json --to megatron --json
flag pipeline-model-parallel-layout 'Et*12|t*11|t*11|t*11|t*11L'
flag recompute-granularity full

# --- JAX ---
mesh() { # WORLD LAYOUT [ARG...]
    local world=$1 layout=$2
    shift 2
    moefold plan --model "$models/Mixtral-8x7B-v0.1.json" \
        --cluster dgx-h100 --world "$world" --global-batch 1024 \
        --recompute full --layout "$layout" --output j.json "$@" >/dev/null &&
        moefold export j.json --to jax >mesh.json &&
        moefold groups --layout "$layout" --world "$world" --json "$@" \
            >groups.json &&
        python3 "$SRC/tests/command/mesh.py" mesh.json groups.json
}
check 'the axes of tp2 dp8 pp8, ep8' mesh 128 tp2.cp1.dp8.pp8/etp1.ep8
check 'tp4 cp2, ep8' mesh 64 tp4.cp2.dp8.pp1/etp1.ep8
check 'tp4, etp2 ep4' mesh 64 tp4.cp1.dp8.pp2/etp2.ep4
check 'etp over tp' mesh 32 tp2.cp1.dp4.pp4/etp4.ep2
check 'coupled' mesh 64 tp2.cp2.dp8.pp2/ep4 --coupled
check 'the other order' mesh 64 tp8.cp1.dp2.pp4/ep8 --order tp-cp-ep-pp-dp
rm -f j.json
check 'a plan with tp 3 over ep 2' moefold plan --scope moe --cluster local \
    --model "$models/small-moe/config.json" --world 6 --seq 12 \
    --layout tp3.dp2/ep2 --output j.json
expect 'folds without a common split' 3 moefold export j.json --to jax
expect_error 'are named' 'no common split'
if python3 -c 'import jax' 2>/dev/null; then
    mesh 8 tp2.cp1.dp4.pp1/etp2.ep4 >/dev/null
    moefold export j.json --to jax >mesh.json
    moefold groups --layout tp2.cp1.dp4.pp1/etp2.ep4 --world 8 --json \
        >groups.json
    check 'a real mesh' python3 "$SRC/tests/command/mesh.py" \
        mesh.json groups.json jax
else
    skip 'a real mesh' 'JAX is not here'
fi

expect 'without a target' 2 moefold export p.json
expect 'to what is none' 2 moefold export p.json --to torch
expect_error 'names both' 'megatron or jax'

done_testing
