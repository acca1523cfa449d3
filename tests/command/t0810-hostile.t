#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# shellcheck disable=SC2317 # functions are called by expect and check
# Closed and full outputs, odd names, foreign files, and slips of many zeros.
. "${MOEFOLD_SRCDIR:?}/tests/command/lib.sh"

small=$SRC/tests/data/models/small-moe/config.json
job=(--model "$small" --cluster dgx-h100:1 --global-batch 8
    --dispatcher alltoall)
unset SLURM_CONF SLURM_JOB_ID SLURM_JOB_NODELIST

moefold plan "${job[@]}" --output plan.json >"$T/.log"

# ---- what cannot be printed is not lost in silence
lost() { # NAME SHELL-COMMAND
    bash -c "$2" >"$OUT" 2>"$ERR" </dev/null
    rc=$?
    if [ "$rc" -eq 1 ] && _one_line; then pass "$1"; else fail "$1" "$rc"; fi
}
for command in --help --version 'map --help' 'groups --layout tp2 --world 8' \
    'groups --layout tp2 --world 64K --json' 'map plan.json --json' \
    'explain plan.json' 'launch plan.json' 'cluster dgx-h100:1 --json' \
    "model $small"; do
    lost "$command: on a full disk" "moefold $command >/dev/full"
    lost "$command: on a closed output" "moefold $command >&-"
done
lost 'a plan whose table has no place' \
    "moefold plan ${job[*]} --output closed.json >&-"
check 'is whole all the same, and nothing else is in it' \
    json closed.json '.kind == "moefold-plan"'

# ---- names
odd="a \$(touch pwned) 'b\" \`c\`
d"
mkdir "$odd"
expect 'a plan of an odd name' 0 moefold plan "${job[@]}" \
    --output "$odd/$odd.json"
expect 'is launched' 0 moefold launch "$odd/$odd.json" --db "$odd/db"
mkdir bin
printf '#!/bin/sh\nprintf "%%s\\0" "$@" >%q\n' "$T/args" >bin/srun
chmod +x bin/srun
cp "$OUT" script
check 'its script runs' env PATH="$T/bin:$PATH" bash script
mapfile -d '' -t words <args
whole() {
    for word in "${words[@]}"; do
        [ "$word" = "$(pwd -P)/$odd/$odd.json" ] && return
    done
    return 1
}
check 'and names it whole' whole
check 'nothing in it was run' test ! -e pwned
mkdir $'\xff'
cp plan.json $'\xff/plan.json'
expect 'a name that JSON cannot hold' 1 moefold launch $'\xff/plan.json' --json
expect_error 'says so' 'UTF-8'

# ---- files that are none
for file in . /dev/null /dev/zero; do
    for command in model map launch explain 'history import' \
        'history list --db' 'fit --list --db' 'fit --db'; do
        # shellcheck disable=SC2086 # words
        expect "$command $file" 2 moefold $command "$file"
    done
done
expect 'a folder is called one' 2 moefold map .
expect_error 'and not broken JSON' 'directory'

# ---- too many zeros
expect 'ranks for a whole cluster here' 2 moefold verify --all --world 16M
expect_error 'are too many' 'too many for this machine'
million='groups of a million ranks'
if [ -n "${MOEFOLD_SANITIZED:-}" ]; then
    skip "$million" 'the sanitizer needs more address space'
else
    expect "$million" 0 bash -c 'ulimit -v 200000
        moefold groups --layout tp2/ep2 --world 1M --json |
            tail -c 5 | od -An -c | tr -d " "'
    expect_line 'are written whole and in little memory' '\}'
fi

done_testing
