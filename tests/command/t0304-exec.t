#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# exec: what a program is told, and that it stops in the wrong place. Slurm's
# side of it runs under the test bed.
. "${MOEFOLD_SRCDIR:?}/tests/command/lib.sh"

moefold plan --model "$SRC/tests/data/models/Mixtral-8x7B-v0.1.json" \
    --cluster dgx-h100:2 --world 16 --global-batch 64 --layout tp2/ep8 \
    --output p.json >/dev/null || exit 1

# As srun starts a task of job 4711, step 3, on two nodes.
task() { # RANK LOCAL NODE [NAME=VALUE...] [CMD...]
    local rank=$1 local=$2 node=$3 vars=()
    shift 3
    while [[ ${1:-} == *=* ]]; do
        vars+=("$1")
        shift
    done
    env -u CUDA_VISIBLE_DEVICES -u MASTER_ADDR -u MASTER_PORT \
        SLURM_JOB_ID=4711 SLURM_STEP_ID=3 SLURM_JOB_NODELIST='n[1-2]' \
        SLURM_TASKS_PER_NODE='8(x2)' SLURM_NTASKS=16 SLURM_PROCID="$rank" \
        SLURM_LOCALID="$local" SLURM_NODEID=$((rank / 8)) \
        SLURMD_NODENAME="$node" "${vars[@]}" "$BIN/moefold" exec p.json -- "$@"
}

expect 'rank 9 of 16' 0 task 9 1 n2 env
expect_line 'its rank' '^RANK=9$'
expect_line 'the world' '^WORLD_SIZE=16$'
expect_line 'its number on the node' '^LOCAL_RANK=1$'
expect_line 'how many are there' '^LOCAL_WORLD_SIZE=8$'
expect_line 'the node' '^NODE_RANK=1$'
expect_line 'where rank 0 sits' '^MASTER_ADDR=n1$'
expect_line 'its device' '^MOEFOLD_DEVICE=1$'
port=$(sed -n 's/^MASTER_PORT=//p' "$OUT")
check 'a port below those that systems hand out' \
    test "$port" -ge 10000 -a "$port" -lt 32768
expect 'another rank' 0 task 3 3 n1 env
expect_line 'meets at the same' "^MASTER_PORT=$port\$"
expect 'ports that the site reserves' 0 \
    task 3 3 n1 SLURM_STEP_RESV_PORTS=12345-12346 env
expect_line 'come first' '^MASTER_PORT=12345$'
expect 'arguments stay as they are' 0 task 3 3 n1 printf '<%s>\n' 'a b' '$(x)'
expect_line 'each its own' '^<\$\(x\)>$'
expect "the program's status" 7 task 3 3 n1 bash -c 'exit 7'

expect 'on the wrong node' 3 task 9 1 n1 env
expect_error 'says both' 'rank 9 sits on n1, and the map puts it on n2'
expect 'at the wrong number' 3 task 9 2 n2 env
expect_error 'says both' 'number 2 on n2.* number 1'
expect 'a task count that is off' 3 task 3 3 n1 SLURM_NTASKS=15 env
expect_error 'says both' '15 tasks .* 16 ranks'
expect 'an address that is not that of rank 0' 3 \
    task 3 3 n1 MASTER_ADDR=n2 env
expect_error 'says both' 'MASTER_ADDR is n2, and rank 0 sits on n1'
expect 'one device' 0 task 3 3 n1 CUDA_VISIBLE_DEVICES=3 env
expect_line 'is device 0' '^MOEFOLD_DEVICE=0$'
expect_error 'its peers are hidden' 'warning: .* hidden'
expect 'too few devices' 3 task 3 3 n1 CUDA_VISIBLE_DEVICES=0,1 env
expect_error 'would be shared' 'two ranks would share'
expect 'no device' 3 task 3 3 n1 CUDA_VISIBLE_DEVICES= env
expect 'enough devices' 0 \
    task 3 3 n1 CUDA_VISIBLE_DEVICES=0,1,2,3,4,5,6,7 env
expect_line 'the third' '^MOEFOLD_DEVICE=3$'

expect 'outside of any job' 2 \
    env -u SLURM_PROCID moefold exec p.json -- true
expect_error 'says who starts it' 'srun nor mpirun'
expect 'no program' 2 moefold exec p.json
expect 'a program that is not there' 1 task 3 3 n1 /nowhere/at/all
if command -v mpirun >/dev/null; then
    moefold plan --model "$SRC/tests/data/models/small-moe/config.json" \
        --cluster local --world 2 --scope moe --seq 8 --top 1 \
        --output two.json >/dev/null
    expect 'under mpirun' 0 mpirun --quiet -n 2 "$BIN/moefold" exec two.json \
        -- env
    expect_line 'both ranks' '^RANK=1$'
else
    skip 'under mpirun' 'mpirun is not installed'
fi

done_testing
