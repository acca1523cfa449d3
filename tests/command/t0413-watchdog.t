#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Whoever keeps others waiting is named within seconds, and all end.
. "${MOEFOLD_SRCDIR:?}/tests/command/lib.sh"

cases=${MOEFOLD_BUILDDIR:?}/tests/unit/runtime/guard_cases
command -v moefold-run >/dev/null || skip_all 'moefold-run is not built'
command -v mpirun >/dev/null || skip_all 'mpirun is not installed'
[ -x "$cases" ] || skip_all 'built without cmocka'

# A blocking call is one that the watchdog does not see.
names='Barrier|I?Bcast|All(reduce|gather|gatherv|toall|toallv)|Gatherv?'
names="$names|Scatterv?|Reduce|Scan|Comm_split(_type)?|Comm_dup"
check 'collective calls of the runtime go through the watchdog' \
    bash -c "! grep -nE 'MPI_($names)\(' '$SRC'/runtime/*.c |
        grep -vE '/(collective|guard)[.]c:'"

wait_case() { # NAME STATUS RANKS CASE
    rc=0
    mpirun --quiet -n "$3" timeout 25 "$cases" "$4" >"$OUT" 2>"$ERR" || rc=$?
    if [ "$rc" = "$2" ]; then pass "$1"; else
        fail "$1" "exit status $rc, not $2"
    fi
}

wait_case 'a late rank is waited for' 0 3 late
expect_line 'and named meanwhile' "^notice: iteration 7: the meeting, world \
group of ranks 0,1,2: rank 0 has waited [0-9.]+ s for rank 2 \(process [0-9]+ \
on .*\), which does not answer$"
check 'by one rank alone' test "$(grep -c notice "$OUT")" = 1

wait_case 'a rank that never comes ends all' 1 3 withheld
expect_line 'and is named' "^given up: iteration 7: the meeting, world group \
of ranks 0,1,2: rank [01] has waited 4 s for rank 2 "

wait_case 'two calls in two orders are a deadlock' 1 2 crossed
expect_line 'told as one' "^notice: iteration 7: sum (one|two), (first|second) \
group of ranks 0,1: rank . has waited [0-9.]+ s for rank . .*which is in sum \
(one|two) \((first|second) group\) and waits for rank .$"

wait_case 'another call in the same place' 1 2 other
expect_line 'is found by the log of calls' "^notice: .*which, as call [0-9]+ \
of the group, is in the (meeting|harvest)$"

wait_case 'who waits for one that waits' 1 3 chain
expect_line 'names the last' "rank 1 has waited .* for rank 2 .*, which does \
not answer"

wait_case 'a call that only blocks' 1 2 blocked
expect_line 'is given up by a thread' \
    '^given up in a call: rank .: MPI_Comm_dup, world group: no end within 4 s'

wait_case 'who fails alone and says so' 1 3 alone
check 'is the only one to speak' test "$(grep -c . "$OUT")" = 1

# Ranks that were told different things.
expect 'ranks of two minds' 2 mpirun --quiet \
    -n 1 moefold-run --verify-all --seed 1 : \
    -n 1 moefold-run --verify-all --seed 2
expect_error 'the first that differs is named' \
    'rank 1 is to do ".*--seed 2 .*", rank 0 ".*--seed 1 '
expect 'an option that one rank does not know' 2 mpirun --quiet \
    -n 1 moefold-run --verify-all : -n 1 moefold-run --verify-all --nope
expect_error 'ends all' 'unknown option --nope'

# moefold-run itself: stopped, and killed.
model=$SRC/tests/data/models/small-moe/config.json
moefold plan --model "$model" --cluster dgx-h100:1 --world 4 --scope moe \
    --seq 32 --top 1 --fix tp=2 --fix etp=2 --fix ep=2 --output plan.json \
    >/dev/null || exit 99
# Sourced text runs in each rank.
cat >rank.sh <<'RANK'
echo $$ >"pid.$OMPI_COMM_WORLD_RANK"
exec moefold-run "$@"
RANK

# A signal to rank 2 once all ranks compute.
signal_run() { # NAME STATUS SIGNAL ARG...
    local name=$1 want=$2 signal=$3 job
    shift 3
    rm -f pid.* trace.json
    mpirun --quiet -n 4 sh rank.sh plan.json --iterations 1000000 \
        --no-history "$@" >"$OUT" 2>"$ERR" &
    job=$!
    for _ in $(seq 100); do
        [ -s pid.0 ] && [ -s pid.1 ] && [ -s pid.2 ] && [ -s pid.3 ] && break
        sleep 0.1
    done
    # A second of its own shows that it is past its start, however busy the
    # machine.
    for _ in $(seq 600); do
        [ "$(awk '{ print $14 + $15 }' "/proc/$(cat pid.2)/stat")" -ge 100 ] &&
            break
        sleep 0.1
    done
    kill "-$signal" "$(cat pid.2)"
    rc=0
    wait "$job" || rc=$?
    cp "$ERR" said
    # A stopped process outlives mpirun's wish to end it.
    kill -KILL "$(cat pid.2)" 2>/dev/null
    if [ "$rc" = "$want" ]; then pass "$name"; else
        fail "$name" "exit status $rc, not $want"
    fi
}

stopped='rank [013] has waited [0-9.]+ s for rank 2 \(process [0-9]+ on .*\), '
named() { # NAME WHY
    check "$1" grep -Eq "^moefold-run: iteration [0-9]+: .*$stopped$2" said
}

signal_run 'a stopped rank ends all' 1 STOP --timeout 4
named 'and is named, with iteration and step' 'which is stopped'
signal_run 'over MPI alone too' 1 STOP --timeout 4 --transport mpi
named 'and is named as well' 'which is stopped'
signal_run 'a killed rank ends all' 137 KILL
named 'and is named' 'which has ended'

done_testing
