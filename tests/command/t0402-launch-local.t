#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# launch --local, run and verify: moefold-run started by mpirun.
. "${MOEFOLD_SRCDIR:?}/tests/command/lib.sh"

command -v moefold-run >/dev/null || skip_all 'moefold-run is not built'
command -v mpirun >/dev/null || skip_all 'mpirun is not installed'
unset OMPI_ALLOW_RUN_AS_ROOT OMPI_ALLOW_RUN_AS_ROOT_CONFIRM
unset OMPI_MCA_mpi_yield_when_idle OMPI_MCA_rmaps_base_oversubscribe

expect 'a plan of 4 ranks' 0 moefold plan \
    --model "$SRC/tests/data/models/small-moe/config.json" \
    --cluster dgx-h100:1 --world 4 --seq 64 --micro-batch 1 --scope moe \
    --output plan.json

expect 'two layouts here' 0 \
    moefold launch plan.json --local --picks 1-2 --iterations 2 --json
expect_json 'two runs, no job' '.job_id == null and .script == null
    and (.runs | length == 2)
    and ([.runs[].run_id] | unique | length == 2)
    and ([.runs[].status] == ["done", "done"])'
expect 'the history has both' 0 moefold history list --json
expect_json 'both' '.runs | length == 2 and all(.ranks == 4)'

expect 'for people' 0 moefold launch plan.json --local --iterations 2
expect_line 'the layout, then the run' '^layout 1 of '
check 'nothing on standard error' test ! -s "$ERR"

expect 'run' 0 moefold run plan.json --pick 2 --iterations 2 --json
expect_json 'its layout is the second' \
    ".run_id != null and .layer_ms > 0
    and .layout == \"$(jq -r '.plans[1].layout' plan.json)\""
expect 'verify' 0 moefold verify plan.json --json
expect_json 'all checks hold' '.checks | length > 0 and all(.ok)'
expect 'verify finds a fault' 3 moefold verify plan.json \
    --fault drop-last-row --json
expect_json 'and names it' '.checks | any(.ok | not)'
expect 'verify all layouts of 2 ranks' 0 moefold verify --all --world 2 --json
expect_json 'ten of them' '.layouts == 10 and .failed == 0'

expect 'inside a job but --local' 0 env SLURM_JOB_ID=1 SLURM_NNODES=2 \
    SLURM_JOB_NODELIST='none[1-2]' SLURM_JOBID=1 \
    moefold launch plan.json --local --iterations 1 --json

expect 'a layout that is not there' 2 moefold run plan.json --pick 1000
expect 'an unknown kernel' 2 moefold run plan.json --experts odd
expect 'verify without a plan' 2 moefold verify
expect 'verify --all without a world' 2 moefold verify --all
expect 'a world without --all' 2 moefold verify plan.json --world 4
expect 'a plan and --all' 2 moefold verify plan.json --all --world 4
expect 'no mpirun' 1 env PATH="$BIN" moefold run plan.json
expect_error 'names the package' openmpi-bin
cp "$BIN/moefold" alone
expect 'no moefold-run' 1 env MOEFOLD_RUN=/nonexistent ./alone run plan.json
expect_error 'names it' 'moefold-run is neither'
expect 'nor for launch --local' 1 env MOEFOLD_RUN=/nonexistent \
    ./alone launch plan.json --local
expect 'a script needs none' 0 env MOEFOLD_RUN=/nonexistent \
    ./alone launch plan.json
expect_line 'the job finds its own' "^runner='moefold-run'\$"

done_testing
