#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Under a real Slurm: a plan is made for its cluster, submitted through
# libslurm with sbatch, squeue and scontrol out of reach, run on four nodes in
# the order of their switches, and found in the history. Then refusals, and
# `run` and `verify` inside an allocation.
. "${MOEFOLD_SRCDIR:?}/tests/command/lib.sh"

BED=$SRC/tests/testbed
command -v moefold-run >/dev/null || skip_all 'moefold-run is not built'
bash "$BED/env" >/dev/null 2>&1 || started=yes
bash "$BED/up" >up.log 2>&1
case $? in
0) ;;
77) skip_all "$(tail -n 1 up.log)" ;;
*)
    sed 's/^/# /' up.log
    echo 'Bail out! the test bed does not come up'
    exit 99
    ;;
esac
if [ -n "${started:-}" ]; then
    trap 'bash "$BED/down" >/dev/null 2>&1; cd / && rm -rf "$T"' EXIT
fi
eval "$(bash "$BED/env")"

# All programs but the three that a submission could lean on.
mkdir bin
ln -s /usr/bin/* /usr/local/bin/* bin/ 2>/dev/null
sbatch=$(command -v sbatch)
rm -f bin/sbatch bin/squeue bin/scontrol
PATH=$BIN:$T/bin:/bin-is-not-here
check 'sbatch, squeue and scontrol are out of reach' bash -c \
    '! command -v sbatch && ! command -v squeue && ! command -v scontrol'

wait_for() { # JOB RUNS: until the history has so many finished runs of it
    local end=$((SECONDS + 400))
    while [ "$SECONDS" -lt "$end" ]; do
        moefold history list --json 2>/dev/null >"$OUT" &&
            json "$OUT" "[.runs[] | select((.job_id | tostring) == \"$1\"
                and .status == \"done\")] | length == $2" && return 0
        sleep 2
    done
    return 1
}

expect 'a plan for the cluster that Slurm describes' 0 moefold plan \
    --model "$SRC/tests/data/models/small-moe/config.json" --cluster slurm \
    --world 32 --seq 64 --micro-batch 1 --scope moe --output plan.json --json
layout=$(jq -r '.plans[1].layout' plan.json)

expect 'a job for its second layout' 0 moefold launch plan.json --pick 2 \
    --iterations 3 --job-name 'fold it' --submit --output job.sh --json
expect_json 'job id and script' \
    '(.job_id | type) == "number" and .script == "job.sh"'
job=$(jq -r .job_id "$OUT")
if wait_for "$job" 1; then
    pass 'the run is in the history'
else
    fail 'the run is in the history' "job $job: $(tail -n 5 ./*.out)"
fi
expect_json 'its job, nodes and layout' ".runs[0]
    | (.job_id | tostring) == \"$job\" and .ranks == 32 and .nodes == 4
    and .layout == \"$layout\" and .layer_ms > 0"
expect_json 'nodes in the order of their switches, not of their names' \
    '.runs[0].node_list == ["node1", "node3", "node2", "node4"]'
check 'the log is named after job and id' test -s "fold it_$job.out"

expect 'a partition that is not there' 1 \
    moefold launch plan.json --submit --partition none
expect_error "Slurm's own words" 'Invalid partition'

# The script is one that sbatch takes too, odd names included; under it, run
# and verify start moefold-run by srun.
expect 'the same as a script' 0 moefold launch plan.json --output other.sh \
    --iterations 2 --job-name 'a "b" \c #d' --log by-hand.out
cat >>other.sh <<SCRIPT
moefold=$BIN/moefold
"\$moefold" run plan.json --pick 3 --iterations 2 --json >run.json
"\$moefold" verify plan.json --json >verify.json
status=0
"\$moefold" verify plan.json --fault drop-last-row --quiet || status=\$?
echo "\$status" >status
SCRIPT
expect 'sbatch runs it' 0 "$sbatch" --wait other.sh
check 'run has answered' json run.json \
    ".layout == \"$(jq -r '.plans[2].layout' plan.json)\""
check 'verify holds' json verify.json '.checks | length > 0 and all(.ok)'
check "a fault's status comes back" test "$(cat status)" = 3
expect 'and its name is whole' 0 env PATH=/usr/bin \
    scontrol show job --oneliner
expect_line 'quotes, backslash and #' 'JobName=a "b" \\c #d '

done_testing
