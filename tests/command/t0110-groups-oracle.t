#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# groups: equal to what Megatron-LM's own code builds, list by list.
. "${MOEFOLD_SRCDIR:?}/tests/command/lib.sh"

oracle=$SRC/tests/data/megatron/megatron-groups.jsonl
invalid=$SRC/tests/data/megatron/megatron-groups-invalid.jsonl

# The sizes of a record as a layout; a null etp is tp, as Megatron has it.
layout='"tp\(.tp).cp\(.cp // 1).pp\(.pp // 1)/ep\(.ep // 1).etp\(.etp // .tp)"'

# Count, size and hash of the complete list of each kind, and the lists shown.
matches() { # RECORD
    local kind list
    jq -e --slurpfile got got.json '. as $want | $got[0].groups as $g |
        all($want.count | to_entries[]; ($g[.key] | length) == .value) and
        all($want.size | to_entries[]; ($g[.key][0] | length) == .value) and
        all($want.groups | to_entries[];
            .value == $g[.key][:(.value | length)])' <<<"$1" >/dev/null ||
        return 1
    while read -r kind list; do
        printf '%s %s\n' "$kind" "$(printf %s "$list" | sha256sum | cut -c-64)"
    done < <(jq -r '.groups | to_entries[] | "\(.key) \(.value | tojson)"' \
        got.json) | sort >got.sums
    jq -r '.sha256 | to_entries[] | "\(.key) \(.value)"' <<<"$1" | sort |
        cmp - got.sums
}

while IFS= read -r record; do
    run moefold groups --json --world "$(jq .world <<<"$record")" \
        --layout "$(jq -r "$layout" <<<"$record")" \
        --order "$(jq -r .order <<<"$record")"
    cp "$OUT" got.json
    check "as Megatron builds $(jq -r .id <<<"$record")" matches "$record"
done <"$oracle"

# Instances of the optimizer and SHARP are none of the layout's business.
while IFS= read -r record; do
    config=$(jq -c .config <<<"$record")
    if [ "$(jq .accepted <<<"$record")" = true ]; then
        want=0
    else
        want=2
    fi
    expect "$(jq -r '"\(.id): \(.reason)"' <<<"$record")" "$want" \
        moefold groups --world "$(jq .world <<<"$config")" \
        --layout "$(jq -r "$layout" <<<"$config")" \
        --order "$(jq -r .order <<<"$config")"
done < <(jq -c 'select(.layer == "groups") | select(.config |
    has("num_distributed_optimizer_instances") or has("sharp_enabled_group")
    | not)' "$invalid")

expect 'a world that the experts do not factor' 2 \
    moefold groups --world 4 --layout pp2/ep4
expect_error 'shows the product, factor by factor, and the other' \
    'etp 1 \(default\) \* ep 4 \* pp 2 = 8.*tp 1 \(default\).* = 4'
expect 'ep inside tp and dp' 0 moefold groups --world 8 --layout tp2.cp2/ep4
expect 'coupled: ep must divide dp' 2 \
    moefold groups --world 8 --layout tp4/ep4 --coupled
expect_error 'says what would do' 'ep 4 does not divide dp 2'

done_testing
