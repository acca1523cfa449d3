#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# history: list, show, best and import, without and with runs.
. "${MOEFOLD_SRCDIR:?}/tests/command/lib.sh"

write=${MOEFOLD_BUILDDIR:?}/tests/unit/db/write_spool
spools=$MOEFOLD_DB.spool

# --- no history yet ---
expect 'list without a history' 0 moefold history list --json
expect_json 'it is empty' '.runs == []'
expect 'best without a history' 3 moefold history best --json
expect_json 'its JSON is empty too' '.runs == []'
expect_error 'and one line says so' 'moefold: history: no finished run'
expect 'show without a history' 2 moefold history show 12ab
expect_error 'it names the run' "12ab"
check 'none of this made a file' test ! -e "$MOEFOLD_DB"

# --- wrong usage ---
expect 'no verb' 2 moefold history
expect 'an unknown verb' 2 moefold history lsit
expect_error 'it names the verbs' 'list, show, best, compare, .*check'
expect 'show without a run' 2 moefold history show
expect 'import without a spool' 2 moefold history import
expect 'a word too many' 2 moefold history list all
expect 'an option that is none' 2 moefold history list --modell x
expect 'a limit of nothing' 2 moefold history list --limit 0
expect 'a layout that leaves dp open' 2 moefold history list --layout tp2
expect_error 'it says what to give' 'dp or --world'
expect 'a layout that breaks the law' 2 \
    moefold history list --layout tp3.dp1/ep8 --world 8

# --- runs ---
# Figures by hand: 0.1 s measured and 0.09 s predicted is 10 % too little.
slow=$("$write" "$spools" "done" layer_s=0.1 predicted_s=0.09 started_at=1000 \
    run_id=aaaaaaaa-0000-4000-8000-000000000001 job_id=4711 \
    node_list=n1,n2 tokens_per_s=40960)
"$write" "$spools" "done" layer_s=0.05 predicted_s=0.06 started_at=2000 \
    run_id=bbbbbbbb-0000-4000-8000-000000000002 tokens_per_s=81920 \
    layout=tp2.cp1.dp4.pp1/etp1.ep8.edp1 >/dev/null
"$write" "$spools" lost started_at=3000 model=Qwen2-57B-A14B \
    run_id=cccccccc-0000-4000-8000-000000000003 job_id=12_3 >/dev/null
"$write" "$spools" failed layer_s=0.01 started_at=4000 \
    run_id=dddddddd-0000-4000-8000-000000000004 >/dev/null

expect 'list merges the spools and shows them' 0 moefold history list --json
expect_json 'newest first' '[.runs[].run_id[0:4]] ==
    ["dddd", "cccc", "bbbb", "aaaa"]'
expect_json 'times are UTC' '.runs[3].started_at == "1970-01-01T00:16:40Z"'
expect_json 'measured in ms' '.runs[3].layer_ms == 100'
expect_json 'predicted in ms' '.runs[3].predicted_ms == 90'
expect_json 'the error is 10 % less' '.runs[3].error + 0.1 | fabs < 1e-12'
expect_json 'the job is a number as launch gives it' '.runs[3].job_id == 4711'
expect_json 'unless Slurm writes more' '.runs[1].job_id == "12_3"'
expect_json 'nodes by name' '.runs[3].node_list == ["n1", "n2"]'
expect_json 'the states' '[.runs[].status] ==
    ["failed", "lost", "done", "done"]'
expect_json 'unknown is null' '.runs[1] | .layer_ms == null and
    .predicted_ms == null and .error == null and .tokens_per_s == null'
expect_json 'every key of the contract is there' '.runs | all(has("run_id",
    "started_at", "model", "cluster", "layout", "ranks", "job_id", "layer_ms",
    "tokens_per_s", "predicted_ms", "status"))'
check 'the spools are gone' test ! -e "$slow"

expect 'list for people' 0 moefold history list
expect_line 'predicted beside measured, and the error' \
    '^aaaaaaaa .* 8 +4711 +done +100\.000 +90\.000 +-10\.0% +[0-9-]+$'
expect_line 'a dash where nothing is known' '^cccccccc .* lost +- +- +- +-$'

expect 'a model by its beginning' 0 moefold history list --model qwen2 --json
expect_json 'one run' '.runs | length == 1'
expect 'a layout written in another way' 0 \
    moefold history list --layout dp4.tp2/ep8 --json
expect_json 'is found' '[.runs[].run_id[0:4]] == ["bbbb"]'
expect 'a limit' 0 moefold history list --limit 2 --json
expect_json 'the newest two' '[.runs[].run_id[0:4]] == ["dddd", "cccc"]'
expect 'another world' 0 moefold history list --world 16 --json
expect_json 'no run' '.runs == []'

expect 'best' 0 moefold history best --model mixtral-8x22b --json
expect_json 'fastest first, finished ones alone' \
    '[.runs[].run_id[0:4]] == ["bbbb", "aaaa"]'
expect 'best of a model that never finished' 3 \
    moefold history best --model Qwen2

expect 'show by the start of the id' 0 moefold history show aaaa --json
expect_json 'phases in their order' '[.runs[0].phases[].phase] ==
    ["dispatch", "experts"]'
expect_json 'with their figures' '.runs[0].phases[0] | .max_s == 0.004 and
    .bytes == 1000000 and .flops == null and .predicted_s == 0.003'
expect 'show for people' 0 moefold history show AAAA
expect_line 'the phase' '^dispatch +forward +1 +1\.000 +2\.000 +4\.000'
expect 'a run that is not there' 2 moefold history show eeee
expect 'no id at all' 2 moefold history show ''

# --- import ---
spool=$("$write" "$T/else where" "done" layer_s=0.2 \
    run_id=eeeeeeee-0000-4000-8000-000000000005)
cp "$spool" copy
expect 'import' 0 moefold history import "$spool" --json
check 'the spool is gone' test ! -e "$spool"
expect 'import the same again' 0 moefold history import copy
expect 'list' 0 moefold history list --json
expect_json 'it is there once' \
    '[.runs[] | select(.run_id[0:4] == "eeee")] | length == 1'
expect 'import what is not there' 2 moefold history import nothing
printf 'a letter' >letter
expect 'import what is no spool' 2 moefold history import letter
check 'it is left as it was' grep -qx 'a letter' letter

# --- hostile texts ---
"$write" "$spools" "done" layer_s=1 started_at=1900000000 \
    run_id=ffffffff-0000-4000-8000-000000000006 \
    model=$'\'; DROP TABLE run;\n--\e[31m' command=$'\xff' >/dev/null
expect 'hostile texts in JSON' 0 moefold history list --limit 1 --json
expect_json 'as they are' \
    '.runs[0].model == "\u0027; DROP TABLE run;\n--\u001b[31m"'
expect_json 'but for bytes that JSON has no way to write' \
    '.runs[0].command == "?"'
expect 'hostile texts for people' 0 moefold history list --limit 1
check 'stay on their line' test "$(moefold history list --limit 1 | wc -l)" = 2
expect 'a filter that is SQL' 0 \
    moefold history list --model "' OR 1=1 --" --json
expect_json 'finds nothing' '.runs == []'

# --- files that are not ours, or can't be written ---
printf 'no database, just words' >words
expect 'a file of others' 2 moefold history list --db words --json
expect_error 'it is named' 'words: is not a history of moefold'
expect 'import into a file of others' 2 moefold history import copy --db words
check 'it is left as it was' grep -qx 'no database, just words' words
expect 'a folder as database' 2 moefold history list --db "$T"
expect 'an empty name' 2 moefold history list --db ''
sqlite=$(command -v sqlite3) || sqlite=
if [ -n "$sqlite" ]; then
    cp "$MOEFOLD_DB" newer.db
    sqlite3 newer.db 'PRAGMA user_version = 99'
    before=$(sha256sum newer.db)
    expect 'a newer schema' 2 moefold history list --db newer.db
    expect_error 'both versions are named' 'schema 99.* up to 2;'
    check 'it is unchanged' test "$(sha256sum newer.db)" = "$before"
else
    skip 'a newer schema' 'sqlite3 is not installed'
fi
"$write" "$T/again" "done" layer_s=0.2 >path
expect 'import where nothing can be made' 1 \
    moefold history import "$(cat path)" --db words/h.db
check 'the spool stays' test -e "$(cat path)"

done_testing
