#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# shellcheck disable=SC2317,SC2094 # called by check; nothing is read there
# launch: scripts for several versions of Slurm, and every option of them.
. "${MOEFOLD_SRCDIR:?}/tests/command/lib.sh"

moefold plan --model "$SRC/tests/data/models/small-moe/config.json" \
    --cluster dgx-h100:4 --world 32 --seq 512 --micro-batch 1 --scope moe \
    --coefficients prior --output plan.json >/dev/null || exit 1

# What differs from machine to machine taken out.
plain() {
    sed -e "s|$T|@HERE@|g" -e "s|^moefold=.*|moefold=@MOEFOLD@|" \
        -e "s|^runner=.*|runner=@RUNNER@|" -e '/^# command/d' \
        -e '/predicted:/d' -e 's/moefold [0-9.]*$/moefold @VERSION@/'
}

script() { # VERSION
    local more=()
    [ "$1" = 22.05 ] || more=(--segment 2)
    moefold launch plan.json --slurm-version "$1" --picks 1-2 --time 30 \
        --partition gpu --account 'a b' --db "$T/history.db" --requeue \
        --after 4711 --switches 1 --module cuda/12.8 --module 'my lib' \
        --container-image 'registry#image:1' --sbatch --constraint=hbm \
        --sbatch '--comment=it is "x"' --cpus-per-task 4 "${more[@]}"
}

same() { script "$1" | plain | diff "$SRC/tests/data/scripts/$1.sh" -; }

for version in 22.05 23.11 24.11 25.05; do
    check "for Slurm $version" same "$version"
done
script 22.05 >script
check 'bash reads it' bash -n script
if command -v shellcheck >/dev/null; then
    check 'shellcheck has nothing to say' shellcheck -e SC2016 script
else
    skip 'shellcheck has nothing to say' 'shellcheck is not installed'
fi
expect 'one layout with requeue' 0 moefold launch plan.json --requeue
cp "$OUT" one
check 'is read too' bash -n one

# Run twice, as after a requeue: what was run is not run again. srun is a
# function here; the second run of the first job is told that pick 1 is done.
runs() { # DONE...
    local pick
    SLURM_JOB_ID=7
    export SLURM_JOB_ID
    rm -f moefold-7.done
    for pick in "$@"; do echo "$pick" >>moefold-7.done; done
    moefold launch plan.json --picks 1-3 --requeue --time 30 |
        { echo 'srun() { printf "%s " "$@"; echo; }'; cat; } |
        bash | sed 's/.*--pick \([0-9]*\) .*/\1/' | paste -sd ' '
}
check 'all are run' test "$(runs)" = '1 2 3'
check 'what is left is run' test "$(runs 1 3)" = '2'
check 'and the note is removed' test ! -e moefold-7.done

expect 'an older Slurm' 2 moefold launch plan.json --slurm-version 21.08
expect_error 'is named' 'older than 22.05'
expect 'no version' 2 moefold launch plan.json --slurm-version new
expect 'a segment on an old one' 2 \
    moefold launch plan.json --segment 2 --slurm-version 22.05
expect_error 'names what there is' '[-][-]switches'
expect 'a segment that does not divide' 2 \
    moefold launch plan.json --segment 3 --slurm-version 24.11
expect_error 'says so' '4 nodes are no multiple of 3'
expect 'a signal that comes as the job starts' 2 \
    moefold launch plan.json --requeue --time 3
expect_error 'asks for more time' 'more than 3 minutes'
expect 'a line that is there already' 2 \
    moefold launch plan.json --sbatch --nodes=7
expect_error 'is named' 'a line for --nodes already'
n=0
for bad in nodes=3 --x '-N 3' $'--comment=a\nb' '--a b=c'; do
    expect "no option, $((++n))" 2 moefold launch plan.json --sbatch "$bad"
done
expect 'a module that is an option' 2 moefold launch plan.json --module -r
expect 'a hostile module' 0 moefold launch plan.json --module '$(touch owned)'
expect_line 'is quoted' "^module load '\\\$\\(touch owned\\)'\$"
expect 'a hostile image' 0 \
    moefold launch plan.json --container-image "a'b\$(touch owned)"
cp "$OUT" hostile
check 'is quoted' bash -c '. <(grep "^image=" hostile) &&
    [ "$image" = "a'"'"'b\$(touch owned)" ] && [ ! -e owned ]'

done_testing
