#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# verify --gate: routing before and after the gather gives the same.
. "${MOEFOLD_SRCDIR:?}/tests/command/lib.sh"

[ -x "$BIN/moefold-run" ] || skip_all 'built without MPI'
command -v mpirun >/dev/null || skip_all 'mpirun is not installed'

expect 'the case that people ask about' 0 moefold verify --gate --json
expect_json 'a sequence over four ranks, EP 4' '.ok and .sequence_split == 4
    and (.layout | test("^tp4[.].*etp1[.]ep4"))'
expect_json 'routes, output and dx are the same to the bit' '[.checks[] |
    select(.name == "routes" or .name == "output" or .name == "dx")] |
    length == 3 and all(.bitwise and .ok)'
expect_json 'losses and the gradient of the router are within the bound' \
    '[.checks[] | select(.name == "aux_loss" or .name == "z_loss" or
    .name == "router_grad")] | length == 3 and all(.ok and .max_rel <= 1e-5)'
expect_json 'with the hidden dimension split it is another sum' '[.checks[] |
    select(.name == "hidden_split_output")] | .[0].bitwise == false and .[0].ok'
# 512 tokens of 128 floats: 128 tokens to three others.
expect_json 'gathering costs what it must' \
    '[.ways[] | select(.name == "gathered") | .bytes] == [128 * 128 * 4 * 3]'
# Over ranks: twice 3/4 of 8 experts of 128 floats, and of 18 doubles.
expect_json 'the local router moves its losses and its gradient alone' \
    '[.ways[] | select(.name == "local") | .bytes] ==
    [2 * 3 * 1024 / 4 * 4 + (2 * 3 * 18 / 4 | floor) * 8]'
expect 'for people' 0 moefold verify --gate
expect_line 'the answer' 'The router may run before the gather'

expect 'three ranks, which do not divide the hidden size' 0 \
    moefold verify --gate --world 3 --json
expect_json 'too' '.ok and .sequence_split == 3'
for kind in deepseek-v3 gpt-oss; do
    rm -f plan.json
    moefold plan --scope moe --model "$SRC/tests/data/golden/$kind.json" \
        --cluster local --world 4 --seq 16 --layout tp2.cp2/ep2 \
        --output plan.json >/dev/null || exit 99
    expect "a plan of $kind, tp 2 and cp 2" 0 \
        moefold verify --gate plan.json --json
    expect_json "$kind: the same" '.ok and .sequence_split == 4'
done
expect 'a fault goes elsewhere' 2 \
    mpirun --quiet -n 2 "$BIN/moefold-run" --gate --fault wrong-group

done_testing
