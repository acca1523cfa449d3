#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# launch: the script, where it goes, what it refuses. (Slurm itself is met in
# the test bed.)
. "${MOEFOLD_SRCDIR:?}/tests/command/lib.sh"

mkdir "a plan's \$(touch owned) folder"
cd "a plan's \$(touch owned) folder" || exit 99
expect 'a plan of 32 ranks' 0 moefold plan \
    --model "$SRC/tests/data/models/small-moe/config.json" \
    --cluster dgx-h100:4 --world 32 --seq 512 --micro-batch 1 --scope moe \
    --output plan.json

expect 'a script' 0 moefold launch plan.json
cp "$OUT" script
expect_line 'its shape' '^#SBATCH --nodes=4$'
expect_line 'tasks a node, or Slurm spreads them unevenly' \
    '^#SBATCH --ntasks-per-node=8$'
expect_line 'GPUs' '^#SBATCH --gpus-per-node=8$'
expect_line 'safe shell' '^set -euo pipefail$'
expect_line 'the absolute path of the plan' "^plan='/.*/plan.json'\$"
expect_line 'a stray host file is unset' '^unset SLURM_HOSTFILE MOEFOLD_MAP$'
check 'bash reads it' bash -n script
check 'nothing in a path was run' test ! -e owned
if command -v shellcheck >/dev/null; then
    check 'shellcheck has nothing to say' shellcheck -e SC2016 script
else
    skip 'shellcheck has nothing to say' 'shellcheck is not installed'
fi

expect 'to a file' 0 moefold launch plan.json --output job.sh
check 'the same but for the command line' \
    diff <(grep -v '^# command' script) <(grep -v '^# command' job.sh)
check 'it can be executed' test -x job.sh
expect 'a file that exists' 2 moefold launch plan.json --output job.sh
expect_error 'names --force' '[-][-]force'
expect 'a file that exists, with --force' 0 \
    moefold launch plan.json --output job.sh --force --time 1-2
check 'is replaced' grep -q '^#SBATCH --time=1-02:00:00$' job.sh
expect 'not a regular file' 2 \
    moefold launch plan.json --output /dev/null --force

expect 'JSON' 0 moefold launch plan.json --json --output other.sh \
    --job-name 'a "b"'
expect_json 'the keys' '.job_id == null and .script == "other.sh"
    and has("hostfile") and .nodes == 4 and .ranks == 32'
check 'a name that sbatch must unquote' \
    grep -qxF '#SBATCH --job-name="a \"b\""' other.sh

expect 'several layouts' 0 moefold launch plan.json --picks 3,1-2
expect_line 'one after another' '^for pick in 3 1 2; do$'
expect 'a script for CPU ranks' 0 moefold launch plan.json --cpus-per-task 4
expect_line 'its cores' '^#SBATCH --cpus-per-task=4$'

expect 'a newline in an #SBATCH value' 2 \
    moefold launch plan.json --account $'a\n#SBATCH --partition=b'
expect 'a layout that is not there' 2 moefold launch plan.json --pick 1000
expect 'a time that is none' 2 moefold launch plan.json --time soon
expect 'two ways to pick' 2 moefold launch plan.json --pick 1 --all
expect 'two ways to run' 2 moefold launch plan.json --local --submit
expect 'the coupled layout' 0 moefold launch plan.json --picks 1,coupled
expect_line 'is named so' '^# layout .*, coupled$'
jq '.plans |= map(select(.coupled | not))' plan.json >folded.json
expect 'no coupled layout' 2 moefold launch folded.json --picks coupled
expect_error 'says how to get one' '[-][-]coupled'
expect 'a plan that is not there' 2 moefold launch none.json

expect 'a broken slurm.conf' 1 env SLURM_CONF=/nonexistent/slurm.conf \
    moefold launch plan.json --submit --slurm-timeout 2

done_testing
