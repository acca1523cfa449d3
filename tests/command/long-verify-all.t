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

# Rows that together are more than 2 GiB, where there is room for them.
cases=${MOEFOLD_BUILDDIR:?}/tests/unit/runtime/guard_cases
free=$(awk '/^MemAvailable/ { print int($2 / 1048576) }' /proc/meminfo)
if [ "${free:-0}" -ge 12 ] && [ -x "$cases" ]; then
    expect 'messages of over 2 GiB' 0 mpirun -n 2 "$cases" large patient
    expect_line 'come right' '^2293760000 bytes came right$'
else
    skip 'messages of over 2 GiB' 'less than 12 GiB are free'
fi

done_testing
