#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# moefold-run holds each rank against the map before it works.
. "${MOEFOLD_SRCDIR:?}/tests/command/lib.sh"

[ -x "$BIN/moefold-run" ] || skip_all 'built without MPI'
command -v mpirun >/dev/null || skip_all 'mpirun is not installed'
unset SLURM_LOCALID SLURMD_NODENAME CUDA_VISIBLE_DEVICES

moefold plan --model "$SRC/tests/data/models/small-moe/config.json" \
    --cluster local --world 2 --scope moe --seq 8 --top 1 \
    --output plan.json >/dev/null || exit 1

# Each rank may have variables of its own, as Slurm gives them.
cat >rank <<SCRIPT
#!/bin/bash
eval "\$(sed -n "\$((OMPI_COMM_WORLD_RANK + 1))p" "$T/own")"
exec "$BIN/moefold-run" plan.json --iterations 1 --warmup 0 --no-history --quiet
SCRIPT
chmod +x rank
count=2
ranks() { # MAP [LINE...]: a line of assignments a rank
    local map=$1
    shift
    printf '%s\n' "$@" >own
    mpirun --quiet -n "$count" -x MOEFOLD_MAP="$map" ./rank
}
seat() { # NODE LOCAL [GPUS]
    printf 'export SLURMD_NODENAME=%s SLURM_LOCALID=%s' "$1" "$2"
    [ $# -lt 3 ] || printf ' CUDA_VISIBLE_DEVICES=%s' "$3"
}
here=$(hostname)
here=${here%%.*}

expect 'this very machine' 0 ranks "$here*2"
expect 'two nodes, in their order' 0 ranks 'b*1,a*1' "$(seat b 0)" "$(seat a 0)"
expect 'the other order' 3 ranks 'a*1,b*1' "$(seat b 0)" "$(seat a 0)"
expect_error 'names the first rank that is wrong' \
    'rank 0 sits on b, and the map puts it on a'
expect 'only the second is wrong' 3 ranks 'a*2' "$(seat a 0)" "$(seat b 0)"
expect_error 'names that' 'rank 1 sits on b, and the map puts it on a'
expect 'numbers on the node that are swapped' 3 \
    ranks 'a*2' "$(seat a 1)" "$(seat a 0)"
expect_error 'names both' 'rank 0 is number 1 on a, .* as number 0'
expect 'a map for more ranks' 3 ranks 'a*2,b*2' "$(seat a 0)" "$(seat a 1)"
expect_error 'says both' '2 tasks were started, and the map has 4 ranks'
expect 'a GPU for two' 3 ranks 'a*2' "$(seat a 0 3)" "$(seat a 1 3)"
expect_error 'names ranks, node and GPU' 'ranks 0 and 1 on a have one GPU, 3'
expect 'a GPU each, hidden from the other' 0 \
    ranks 'a*2' "$(seat a 0 3)" "$(seat a 1 4)"
expect_error 'is warned of' 'warning: rank 0 sees one GPU'
expect 'all GPUs seen by all' 0 ranks 'a*2' "$(seat a 0 0,1)" "$(seat a 1 0,1)"
count=3
expect 'too few GPUs seen' 3 ranks 'a*3' "$(seat a 0 0,1)" "$(seat a 1 0,1)" \
    "$(seat a 2 0,1)"
expect_error 'names the rank that has none' 'rank 2 is number 2 on a, .* 2 GPUs'
count=2
expect 'a domain behind the name of the map' 3 ranks "$here.example*2"
n=0
for map in 'a' 'a*' '*2' 'a*0' 'a*2;b' 'a*2, b*1' 'a*99999999999999999999' \
    '$(touch owned)*2'; do
    expect "no map, $((++n))" 2 ranks "$map" "$(seat a 0)" "$(seat a 1)"
done
check 'nothing of it was run' test ! -e owned

done_testing
