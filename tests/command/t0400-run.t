#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# shellcheck disable=SC2317 # functions are called by expect and check
# moefold-run executes a plan's layer, times its phases and records them.
. "${MOEFOLD_SRCDIR:?}/tests/command/lib.sh"

[ -x "$BIN/moefold-run" ] || skip_all 'built without MPI'
command -v mpirun >/dev/null || skip_all 'mpirun is not installed'

model=$SRC/tests/data/models/small-moe/config.json
few=(--iterations 3 --warmup 1)

# PLAN AXIS=N...: the best layout of four ranks with these sizes.
plan() {
    local file=$1 fix=()
    shift
    for axis in "$@"; do fix+=(--fix "$axis"); done
    moefold plan --model "$model" --cluster dgx-h100:1 --world 4 --scope moe \
        --seq 32 --top 1 --output "$file" "${fix[@]}" >/dev/null
}

ranks() { # N ARG...
    local n=$1
    shift
    mpirun --quiet -n "$n" "$BIN/moefold-run" "$@"
}

check 'plans are made' plan all.json tp=2 etp=2 ep=2
check 'plans are made for experts dealt out' plan one4.json etp=1 ep=4
check 'plans are made for one group of experts' plan one.json etp=1 ep=1

expect 'a run ends well' 0 ranks 4 all.json "${few[@]}" --json
expect_json 'it says what ran and how fast' '.status == "done" and .ranks == 4
    and (.layout | test("^tp2.*/etp2.ep2.edp1$")) and .iterations == 3
    and .layer_ms > 0 and .predicted_ms > 0 and .tokens_per_s > 0
    and (.imbalance >= 0 and .imbalance < 1)
    and .history == "merged" and .spool == null'
expect_json 'every step of this layout is timed, and nothing else' \
    '(.phases | keys) == ["combine", "dispatch", "experts", "gather",
        "grad_reduce_dense", "permute", "reduce", "route", "unpermute"]'
expect_json 'steps run forward and backward' '[.phases[] |
    select(.forward_ms != null)] | length == 8 and all(.backward_ms > 0)'
expect_json 'phases lie within the layer time, each way one rank or another' \
    '.layer_ms as $l | [.phases | to_entries[] |
        select(.key | startswith("grad") | not) | .value |
        .forward_ms, .backward_ms] | all(. <= $l)'
expect_json 'over ranks there is a least, a median, a most and who that is' \
    '[.layer, (.phases[] | .forward, .backward | select(. != null))] |
        length > 8 and all(.min_ms <= .median_ms and .median_ms <= .max_ms
            and .slowest_rank >= 0 and .slowest_rank < 4
            and (.slowest_node | length) > 0)'
expect_json 'and the time of the thread is within that of the phase' \
    '[.phases[] | .forward, .backward | select(. != null)] |
        all(.cpu_ms >= 0 and .wait_ms == null)'
expect_json 'reading clocks costs little' '.timing_overhead > 0'
expect_json 'through shared memory' '.transport == "shared"'
for how in auto mpi; do
    expect "eight iterations, $how" 0 ranks 4 all.json --iterations 8 \
        --warmup 0 --json --no-history --transport "$how"
    expect_json 'tell waiting from moving in all that is exchanged' \
        '[.phases | to_entries[]
            | select(.key | test("dispatch|gather|reduce|combine")) | .value
            | .forward, .backward | select(. != null)] |
            length >= 9 and all(.wait_ms >= 0 and .move_ms >= 0)'
    expect_json 'and in nothing else' '[.phases.experts, .phases.route] |
        all(.forward.wait_ms == null and .backward.wait_ms == null)'
done
check 'plans are made for stages' plan stages.json pp=4
expect 'micro batches through four stages' 0 ranks 4 stages.json \
    --iterations 2 --warmup 1 --json --no-history --pipeline 6 --layers 2
expect_json 'it says how long a step took' '.pipeline | .micro_batches == 6
    and .layers == 2 and .step_ms > 0 and .stage_send_forward_ms > 0
    and .stage_send_backward_ms > 0 and .step_ms > .stage_send_forward_ms'
expect 'a pipeline that no node holds' 2 ranks 4 stages.json \
    --pipeline 1000000 --layers 60000
expect_error 'is refused before it starts' 'GiB, it has .* GiB free'
expect 'layers without a pipeline' 2 ranks 4 stages.json --layers 2
expect_error 'are refused' '--layers goes with --pipeline'

# One token a micro batch; one expert a rank.
moefold plan --model "$model" --cluster dgx-h100:2 --world 4 --scope moe \
    --seq 1 --top 1 --output token.json --fix ep=4 --fix tp=1 --fix pp=1 \
    >/dev/null 2>&1
expect 'a batch of one token' 0 ranks 4 token.json "${few[@]}" --no-history \
    --json
expect_json 'runs' '.status == "done" and .layer_ms > 0'
expect 'and is right' 0 ranks 4 --verify --full token.json
moefold plan --model "$model" --cluster dgx-h100:2 --world 16 --scope moe \
    --seq 5 --top 1 --output each.json --fix ep=16 --fix pp=1 >/dev/null 2>&1
expect 'one expert a rank, fewer tokens than ranks' 0 \
    ranks 16 --verify --full each.json
expect 'as if on two nodes' 0 ranks 4 one4.json "${few[@]}" --json \
    --no-history --node-ranks 2
expect_json 'both ways are used' '.transport == "mixed"'
expect 'by MPI alone' 0 ranks 4 all.json "${few[@]}" --json --no-history \
    --transport mpi
expect_json 'and it says so' '.transport == "mpi"'
expect 'as before' 0 ranks 4 all.json "${few[@]}" --json
id=$(jq -r .run_id "$OUT")

expect 'the history lists it' 0 moefold history list --json
expect_json 'with its id, model and layout' "[.runs[] |
    select(.run_id == \"$id\")] | length == 1 and .[0].model == \"small-moe\"
    and .[0].ranks == 4 and .[0].layer_ms > 0 and .[0].status == \"done\""
check 'and no spool is left' \
    bash -c '[ -z "$(ls "$MOEFOLD_DB.spool" 2>/dev/null)" ]'

expect 'without exchanges' 0 ranks 4 one.json "${few[@]}" --json --no-history
expect_json 'phases that do not run are absent' \
    '(.phases | keys) == ["experts", "grad_reduce_dense",
        "grad_reduce_expert", "permute", "route", "unpermute"]
    and .history == "none"'
expect 'exact experts, a table' 0 ranks 4 all.json "${few[@]}" \
    --experts exact --no-history
expect_line 'predicted stands beside measured' '^layer,.* ms, predicted .* ms$'
expect 'quietly' 0 ranks 4 all.json "${few[@]}" --quiet --no-history
check 'quiet prints nothing' test ! -s "$OUT"

expect 'with a timeline' 0 ranks 4 all.json "${few[@]}" --no-history \
    --trace trace.json
check 'each phase of each rank and iteration is an event' jq -e '
    [.traceEvents[] | select(.ph == "X")] as $e
    | ($e | map(.pid) | unique) == [0, 1, 2, 3]
    and ($e | map(.args.iteration) | unique) == [0, 1, 2]
    and ($e | map(select(.name == "experts")) | length) == 24
    and ($e | map(select(.name == "gather" and .cat == "forward")) | length)
        == 12
    and ($e | all(.dur >= 0 and .args.cpu_us >= 0))' trace.json
check 'ranks are named' jq -e '[.traceEvents[] | select(.ph == "M")
    | .args.name | test("^rank [0-3] [(].+[)]$")] == [true, true, true, true]' \
    trace.json
expect 'a timeline that cannot be written' 1 ranks 4 all.json \
    --trace none/trace.json
expect_error 'is named' 'none/trace.json: No such file'

mkdir spools
expect 'a history that cannot be kept fails no run' 0 ranks 4 all.json \
    "${few[@]}" --db /proc/none/history.db --run-dir spools --json
expect_json 'the spool stays' '.history == "spooled" and
    (.spool | startswith("spools/"))'
expect_error 'with one warning that names it' 'warning: history: .*spools/'
check 'and it is there' bash -c 'ls spools/*.spool'

expect 'two ranks are too few' 2 ranks 2 all.json
expect_error 'both sizes are shown' 'is for 4 ranks, this job has 2'
expect 'a pick beyond the plan' 2 ranks 4 all.json --pick 99
expect 'a plan that is not there' 2 ranks 4 none.json
expect_error 'is named' 'none\.json: No such file'
echo '{' >broken.json
expect 'broken JSON' 2 ranks 4 broken.json
jq '.plans[0].dispatcher = "deepep"' all.json >deepep.json
expect 'a dispatcher of GPUs' 2 ranks 4 deepep.json
expect_error 'says which the runtime has' '--dispatcher alltoall, allgather'
expect 'an option overrides it' 0 ranks 4 deepep.json "${few[@]}" \
    --dispatcher dedup --no-history --json
expect_json 'one copy a rank: no gather, no reduce' \
    '(.phases | keys) == ["combine", "dispatch", "experts",
        "grad_reduce_dense", "permute", "route", "unpermute"]'
jq '.plans[0].dispatcher = "allgather"' all.json >gather.json
expect 'the plan may name it' 0 ranks 4 gather.json "${few[@]}" --json
expect_json 'all tokens are gathered, sums reduced' \
    '(.phases | keys) == ["experts", "gather", "grad_reduce_dense",
        "permute", "reduce", "route", "unpermute"]'
jq '.plans[0].capacity_factor = 1.5' all.json >capacity.json
expect 'a capacity factor' 2 ranks 4 capacity.json
jq '.model.router.score = "sqrtsoftplus"' all.json >odd.json
expect 'a router with other scores' 2 ranks 4 odd.json
expect_error 'says which part' 'other scores'
expect 'an unknown option' 2 "$BIN/moefold-run" all.json --nope
expect_error 'is named too' 'unknown option --nope'
expect 'no plan' 2 "$BIN/moefold-run"

expect 'two ranks probe their link' 0 ranks 2 --probe
expect_json 'in bytes a second and seconds' '.bytes_per_s > 1e6 and
    .latency_s > 0 and .latency_s < 1'
expect_json 'into the memory of the other' '.via == "shared memory" and
    .device == "cpu" and (.driver | type == "boolean")'
expect 'the first and the last of three, by MPI' 0 \
    ranks 3 --probe --transport mpi
expect_json 'is said' '.via == "MPI" and .bytes_per_s > 1e6'
expect 'one rank has no link' 2 ranks 1 --probe
expect 'help' 0 "$BIN/moefold-run" --help
check 'help fits a screen' bash -c "[ \$(wc -l <'$OUT') -le 24 ]"
expect 'version' 0 "$BIN/moefold-run" --version

done_testing
