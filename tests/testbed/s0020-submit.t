#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# From a plan through libslurm to a run in the history, on four nodes.
. "${MOEFOLD_SRCDIR:?}/tests/command/lib.sh"

bed_env=$("$SRC/tests/testbed/env" 2>/dev/null) ||
    skip_all 'the test bed is not up'
eval "$bed_env"
command -v moefold-run >/dev/null || skip_all 'moefold-run is not built'
scontrol=$(command -v scontrol)

# All of the system's programs but those that submit would take if it ran
# Slurm's own.
mkdir bin
ln -s /usr/bin/* bin/
rm -f bin/sbatch bin/squeue bin/scontrol
PATH=$BIN:$T/bin
for tool in sbatch squeue scontrol; do
    check "$tool is off the path" sh -c "! command -v $tool"
done

state() { # JOB: as the controller has it
    "$scontrol" show job "$1" 2>/dev/null |
        sed -n 's/.*JobState=\([A-Z_]*\).*/\1/p'
}

wait_for() { # JOB
    local i now
    for ((i = 0; i < 600; i++)); do
        now=$(state "$1")
        case $now in
        PENDING | CONFIGURING | RUNNING | COMPLETING) sleep 0.5 ;;
        *) break ;;
        esac
    done
    [ "$now" = COMPLETED ]
}

expect 'a plan for all 32 GPUs' 0 moefold plan --cluster slurm --world 32 \
    --model "$SRC/tests/data/models/small-moe/config.json" \
    --seq 64 --micro-batch 1 --scope moe --output plan.json
expect 'the plan, pick by pick' 0 moefold map plan.json --json
expect_json 'ranks follow the leaves' \
    '[.ranks[0, 8, 16, 24].node] == ["node1", "node3", "node2", "node4"]'

expect 'submitted' 0 moefold launch plan.json --submit --iterations 2 \
    --log "$T/job.log" --json
expect_json 'a job id' '.job_id | tostring | test("^[0-9]+$")'
job=$(jq -r .job_id "$OUT")
layout=$(jq -r '.plans[0].layout' plan.json)

if wait_for "$job"; then
    pass 'the job completes'
else
    cp job.log "$OUT"
    fail 'the job completes' "state $(state "$job")"
fi
"$scontrol" show job "$job" >"$OUT"
expect_line 'on all four nodes' 'NodeList=node\[1-4\]'

expect 'the history' 0 moefold history list --json
expect_json 'one run' '.runs | length == 1'
expect_json 'of that job' ".runs[0].job_id | tostring == \"$job\""
expect_json 'of that layout' ".runs[0].layout == \"$layout\""
expect_json 'with 32 ranks, done, timed, predicted' '.runs[0] |
    .ranks == 32 and .status == "done" and .layer_ms > 0
    and .predicted_ms > 0'
expect 'shown alone' 0 moefold history show \
    "$(jq -r '.runs[0].run_id' "$OUT")" --json
expect_json 'four nodes, in the order of the ranks' '.runs[0] | .nodes == 4
    and .node_list == ["node1", "node3", "node2", "node4"]'
expect 'the best' 0 moefold history best --json

expect 'when and where it would start' 0 \
    moefold launch plan.json --dry-run --iterations 2 --json
expect_json 'soon, on all nodes, and nothing was submitted' '.job_id == null
    and .start_unix_s > 1600000000 and .node_list == "node[1-4]"'
expect 'for people' 0 moefold launch plan.json --dry-run --iterations 2
expect_line 'one line' '^It would start at 20.* on node\[1-4\]$'
expect 'after a job, requeued, on its nodes' 0 moefold launch plan.json \
    --submit --iterations 2 --after "$job" --requeue --time 10 \
    --sbatch --comment='it is "x"' --log "$T/second.log" --json
second=$(jq -r .job_id "$OUT")
"$scontrol" show job "$second" >"$OUT"
expect_line 'Slurm knows it' '[ ]Requeue=1 '
expect_line 'and its comment' '^ *Comment=it is "x"'
if wait_for "$second"; then
    pass 'it completes'
else
    cp second.log "$OUT"
    fail 'it completes' "state $(state "$second")"
fi
check 'its note of what was run is gone' test ! -e "moefold-$second.done"

done_testing
