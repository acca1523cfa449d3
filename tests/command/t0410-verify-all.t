#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# moefold-run --verify-all: every layout of worlds 1 to 8, one job a world,
# against both references.
. "${MOEFOLD_SRCDIR:?}/tests/command/lib.sh"

command -v moefold-run >/dev/null || skip_all 'moefold-run is not built'
command -v mpirun >/dev/null || skip_all 'mpirun is not installed'

# How many layouts a world of N has: over the divisors pp, the square of the
# ways to write N / pp as an ordered product of three. 1, 3, 6, 10 ways for
# 1, a prime, 4, 8; 9 for 6.
layouts=(0 1 10 10 46 10 100 10 146)

for world in 1 2 3 4 5 6 7 8; do
    expect "world $world holds" 0 mpirun -n "$world" \
        moefold-run --verify-all --experts exact --json
    expect_json "world $world has ${layouts[world]} layouts" \
        ".world == $world and .layouts == ${layouts[world]}
            and .failed == 0 and .failures == []"
done

# The layouts of larger worlds by sample; make check-long does them all.
for world in 9 10 11 12 13 14 15 16; do
    expect "a tenth of world $world holds" 0 mpirun -n "$world" \
        moefold-run --verify-all --experts exact --one-in 10 --json
    expect_json 'none failed' ".world == $world and .failed == 0
        and .layouts >= 1"
done

expect 'experts by BLAS hold' 0 mpirun -n 4 moefold-run --verify-all --json
expect_json 'all layouts by BLAS' '.layouts == 46 and .failed == 0'

expect 'by MPI alone' 0 mpirun -n 4 moefold-run --verify-all \
    --experts exact --transport mpi --json
expect_json 'all layouts by MPI' '.layouts == 46 and .failed == 0'
for ranks in 2 3; do
    expect "shared memory and MPI mixed, $ranks ranks a node" 0 \
        mpirun -n 6 moefold-run --verify-all --experts exact --json \
        --node-ranks "$ranks"
    expect_json 'all layouts mixed' '.layouts == 100 and .failed == 0'
done

for dispatcher in allgather dedup; do
    for world in 4 6; do
        expect "$dispatcher, world $world" 0 mpirun -n "$world" \
            moefold-run --verify-all --dispatcher "$dispatcher" --json
        expect_json "$dispatcher holds in all ${layouts[world]} layouts" \
            ".layouts == ${layouts[world]} and .failed == 0"
    done
    expect "$dispatcher with a fault" 3 mpirun -n 2 moefold-run --verify-all \
        --dispatcher "$dispatcher" --fault drop-last-row --json
done

done_testing
