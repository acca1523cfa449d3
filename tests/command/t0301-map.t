#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# map: from a list, from an allocation, from the plan, and to files.
. "${MOEFOLD_SRCDIR:?}/tests/command/lib.sh"

unset SLURM_JOB_NODELIST SLURM_TASKS_PER_NODE SLURM_GPUS_ON_NODE
expect 'a plan of 32 ranks' 0 moefold plan \
    --model "$SRC/tests/data/models/small-moe/config.json" \
    --cluster dgx-h100:4 --world 32 --seq 512 --micro-batch 1 --scope moe \
    --output plan.json

expect 'on the nodes of the plan' 0 moefold map plan.json --json
expect_json 'each rank once, eight a node, a device of its own' \
    '.from == "plan" and ([.ranks[].rank] == [range(32)])
    and ([.ranks | group_by(.node)[] | [.[].gpu] == [range(8)]] | all)
    and (.ranks | all(.local == .gpu))'
expect_json 'both folds in the coordinates' \
    '.ranks[0].coords == {tp:0, cp:0, dp:0, pp:0, etp:0, ep:0, edp:0}
    and ([.ranks[].coords | [.tp, .cp, .dp, .pp]] | unique | length == 32)
    and ([.ranks[].coords | [.etp, .ep, .edp, .pp]] | unique | length == 32)'

expect 'a list keeps its order' 0 \
    moefold map plan.json --nodes 'b,a,n[10,09]' --json
expect_json 'b before a' \
    '.from == "list" and [.ranks[0, 8, 16, 24].node] == ["b","a","n10","n09"]'

expect 'in an allocation' 0 env SLURM_JOB_NODELIST='x[1-5]' \
    SLURM_TASKS_PER_NODE='8(x3),4(x2)' moefold map plan.json --json
expect_json "Slurm's nodes and task counts" '.from == "allocation"
    and ([.ranks | group_by(.node)[] | length] == [8, 8, 8, 4, 4])'
expect 'a list beats the allocation' 0 env SLURM_JOB_NODELIST='x[1-4]' \
    moefold map plan.json --nodes 'y[1-4]' --json
expect_json 'y' '.ranks[31].node == "y4"'

expect 'for people' 0 moefold map plan.json --nodes 'n[1-4]'
expect_line 'a line a rank' '^ +31 +n4 +7 +7 '

expect 'a falling range' 2 moefold map plan.json --nodes 'n[4-1]' --hostfile h
expect_error 'a falling range is refused' '\[4-1\]'
expect 'to files' 0 moefold map plan.json --nodes 'n[3-4],n[1-2]' \
    --hostfile h --rankfile r
check 'a node a rank, in rank order' diff h <(for n in 3 4 1 2; do
    for _ in 1 2 3 4 5 6 7 8; do echo "n$n"; done
done)
check 'the rank file names the same nodes' \
    diff h <(sed 's/^rank [0-9]*=\(.*\) slot=.*/\1/' r)

expect 'too few nodes' 3 moefold map plan.json --nodes 'n[1-3]'
expect 'an empty list' 2 moefold map plan.json --nodes ''
expect 'a hostile name' 2 moefold map plan.json --nodes 'n1;id'
expect 'more hosts than there are' 2 moefold map plan.json \
    --nodes 'n[0-99999999]'
expect_error 'says how many it takes' 65536
expect 'a layout that is not there' 2 moefold map plan.json --pick 1000
expect 'a file that cannot be written' 1 moefold map plan.json \
    --hostfile none/h
expect 'counts for other nodes' 2 env SLURM_JOB_NODELIST='x[1-4]' \
    SLURM_TASKS_PER_NODE='8(x3)' moefold map plan.json
expect_error 'names the variable' SLURM_TASKS_PER_NODE
expect 'no plan' 2 moefold map
expect 'not a plan' 2 moefold map h

moefold plan --model "$SRC/tests/data/models/Mixtral-8x7B-v0.1.json" \
    --cluster dgx-h100:2 --world 16 --global-batch 64 --layout tp2/ep8 \
    --output drawn.json >/dev/null
expect 'drawn' 0 moefold map drawn.json --show
# tp2/ep8: rank 9 is in the tp group of 8 and the ep group of 8.
expect_line 'ranks of the second node' '^  rank +8 +9 +10 .* 15$'
expect_line 'their tp groups' '^  tp +8 +8 +10 +10 +12 +12 +14 +14$'
expect_line 'their ep group' '^  ep +8 +8 +8 +8 +8 +8 +8 +8$'
expect_line 'no ep group leaves its node' '^ep +8 +1$'
expect_line 'edp groups do' '^edp +2 +2$'

done_testing
