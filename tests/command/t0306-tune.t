#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# tune: layouts run one after the other, the fastest written as a plan; what a
# requeued job has measured is not run again.
. "${MOEFOLD_SRCDIR:?}/tests/command/lib.sh"

[ -x "$BIN/moefold-run" ] || skip_all 'built without MPI'
command -v mpirun >/dev/null || skip_all 'mpirun is not installed'

moefold plan --model "$SRC/tests/data/models/small-moe/config.json" \
    --cluster local --world 2 --scope moe --seq 16 --output plan.json \
    >/dev/null || exit 1

expect 'two layouts' 0 moefold tune plan.json --top 2 --iterations 2 \
    --output best.json --json
cp "$OUT" tuned
expect_json 'each measured beside its prediction' '(.results | length == 2) and
    (.results | all(.layer_ms > 0 and .predicted_ms > 0 and
    .status == "done" and (.measured_before | not)))'
expect_json 'the winner has most tokens a second' '.winner ==
    (.results | max_by(.tokens_per_s) | .layout)'
check 'it is the one layout of the plan' test \
    "$(jq -c '[.plans[].layout]' best.json)" = \
    "$(jq -c '[.winner]' tuned)"
expect 'the history' 0 moefold history list --json
expect_json 'has both' '.runs | length == 2'
expect 'a plan that tune wrote' 0 moefold groups --json \
    --layout "$(jq -r .winner tuned)" --world 2

expect 'for people' 0 moefold tune plan.json --picks 1 --iterations 1
expect_line 'the winner' '^most tokens a second: layout 1$'
expect 'more than there are' 2 moefold tune plan.json --top 1000
expect 'nowhere to write' 1 moefold tune plan.json --picks 1 --iterations 1 \
    --json --output none/at/all.json
expect 'none that runs' 1 env MOEFOLD_RUN=/bin/false \
    moefold tune plan.json --picks 1 --json
expect_error 'is said' 'no layout ended well'

# The first two were measured by job 77 before it was put back.
rm -f "$MOEFOLD_DB"
n=0
for layout in $(jq -r '.results[].layout' tuned); do
    n=$((n + 1))
    "${MOEFOLD_BUILDDIR:?}/tests/unit/db/write_spool" "$MOEFOLD_DB.spool" \
        "done" model=small-moe layout="$layout" rank_order=tp-cp-ep-dp-pp \
        job_id=77 ranks=2 layer_s=0.00$n tokens_per_s=${n}000 >/dev/null
done
expect 'a job that was put back' 0 env SLURM_JOB_ID=77 MOEFOLD_RUN=/bin/false \
    moefold tune plan.json --top 2 --json
expect_json 'runs nothing twice' '(.results | all(.measured_before)) and
    [.results[].layer_ms] == [1, 2] and .winner == .results[1].layout'
expect 'the history' 0 moefold history list --json
expect_json 'has no more' '.runs | length == 2'

done_testing
