#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# moefold-run --verify-all: all 1,530 layouts of up to 16 ranks, and every
# dispatcher and transport in the layouts of up to 8.
. "${MOEFOLD_SRCDIR:?}/tests/command/lib.sh"

command -v moefold-run >/dev/null || skip_all 'moefold-run is not built'
command -v mpirun >/dev/null || skip_all 'mpirun is not installed'

all=0
for world in $(seq 16); do
    expect "world $world holds" 0 mpirun -n "$world" \
        moefold-run --verify-all --experts exact --json
    expect_json 'in every layout' '.failed == 0 and .failures == []'
    all=$((all + $(jq .layouts "$OUT")))
done
check 'they are 1530 layouts' test "$all" = 1530

for world in $(seq 2 8); do
    for how in '--dispatcher allgather' '--dispatcher dedup' \
        '--transport mpi' '--node-ranks 2' '--node-ranks 3'; do
        # shellcheck disable=SC2086 # two words
        expect "world $world, $how" 0 mpirun -n "$world" \
            moefold-run --verify-all --experts exact --json $how
    done
done

done_testing
