#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# fit: from runs that were made up, all 2.5 times slower than their prediction.
. "${MOEFOLD_SRCDIR:?}/tests/command/lib.sh"

write=${MOEFOLD_BUILDDIR:?}/tests/unit/db/write_spool
small=$SRC/tests/data/models/small-moe/config.json
cluster=dgx-h100:1
spools=$MOEFOLD_DB.spool

layer_of() { # LAYOUT: predicted seconds of the layer, with the prior
    moefold predict --scope moe --model "$small" --cluster "$cluster" \
        --layout "$1" --world 8 --seq 512 --json --coefficients prior |
        jq '.layer.forward_s + .layer.backward_s'
}

name=$(moefold cluster "$cluster" --json | jq -r .name)

remember() { # LAYOUT FACTOR
    local canonical layer
    canonical=$(moefold predict --scope moe --model "$small" \
        --cluster "$cluster" --layout "$1" --world 8 --seq 512 --json \
        --coefficients prior | jq -r .layout)
    layer=$(layer_of "$1" | jq ". * $2")
    "$write" "$spools" "done" "layout=$canonical" "layer_s=$layer" \
        "cluster=$name" hidden=512 ffn=1024 experts=16 topk=4 seq=512 \
        micro_batch=1 >>written
}

expect 'without a history' 1 moefold fit --cluster "$cluster"
remember tp1/ep8 2.5
expect 'the spool is merged' 0 moefold history import "$(cat written)"
expect 'one layout is too few' 1 moefold fit --cluster "$cluster"
expect_error 'with the count' 'different layouts 1; .* at least 2'
for run in 'tp2/ep4 2.6' 'tp2/etp2.ep4 2.4'; do
    rm written
    read -r layout factor <<<"$run"
    remember "$layout" "$factor"
    expect "$layout is merged" 0 moefold history import "$(cat written)"
done

expect 'a dry run' 0 moefold fit --cluster "$cluster" --dry-run --json
expect_json 'is better, and not saved' \
    '.improved and (.saved | not) and .error_before > 0.5
    and .error_after < 0.1 and .layouts == 3 and (.coefficients | length) > 10'
expect 'none is saved' 0 moefold fit --list --json
expect_json 'the list is empty' '.sets == []'
expect 'a fit' 0 moefold fit --cluster "$cluster" --name mine --json
expect_json 'is saved by name' '.saved and .name == "mine"'
expect 'the list' 0 moefold fit --list --json
expect_json 'has it' '.sets[0].name == "mine" and .sets[0].runs == 3'
expect 'a name that is taken' 1 moefold fit --cluster "$cluster" --name mine

prior=$(layer_of tp4/ep8)
expect 'predict takes the newest set' 0 moefold predict --scope moe \
    --model "$small" --cluster "$cluster" --layout tp4/ep8 --world 8 \
    --seq 512 --json
expect_json 'and is 2.2 to 2.8 times slower' \
    "(.layer.forward_s + .layer.backward_s) / $prior
    | . > 2.2 and . < 2.8"
expect 'plan names the set' 0 moefold plan --scope moe --model "$small" \
    --cluster "$cluster" --seq 512
expect_line 'in its first line' 'coefficients mine'

done_testing
