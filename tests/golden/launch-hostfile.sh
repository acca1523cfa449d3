#!/bin/bash
#SBATCH --job-name="fold it"
#SBATCH --partition=gpu
#SBATCH --account="a \"b\""
#SBATCH --qos=high
#SBATCH --nodes=4
#SBATCH --ntasks=32
#SBATCH --ntasks-per-node=8
#SBATCH --cpus-per-task=4
#SBATCH --gpus-per-node=8
#SBATCH --exclusive
#SBATCH --time=1-12:00:00
#SBATCH --output=logs/%x_%j.out
#
# Written by moefold 0.1.0
# command    moefold launch plan.json --picks 1-2,coupled
# plan       /home/ada/it's a plan.json
# model      tiny-moe
# cluster    four
# layout 1   tp2.cp1.dp4.pp4/etp1.ep8.edp1 order tp-cp-ep-dp-pp
#            predicted: MoE layer 10 ms
# layout 2   tp1.cp1.dp8.pp4/etp1.ep4.edp2 order tp-cp-ep-dp-pp
#            predicted: MoE layer 12 ms
# layout 3   tp2.cp1.dp4.pp4/etp2.ep4.edp1 order tp-cp-ep-dp-pp, coupled
#            predicted: MoE layer 16 ms
# all of it  predicted: 2.014 s, starts not counted

set -euo pipefail

plan='/home/ada/it'\''s a plan.json'
moefold='/opt/moefold/bin/moefold'
runner='/opt/moefold/bin/moefold-run'
db='/var/lib/moefold/history.db'

# srun of Slurm 22.05 to 23.02 reads a task's cores only here.
export SRUN_CPUS_PER_TASK="${SLURM_CPUS_PER_TASK:-1}"
export OPENBLAS_NUM_THREADS="${SLURM_CPUS_PER_TASK:-1}"

# The tree that Slurm 22.05 takes by default lets ranks of a busy
# cluster out of MPI_Init too early, and they crash.
export SLURM_PMIX_FENCE="${SLURM_PMIX_FENCE:-ring}"

# CUDA, NVML and Slurm count GPUs alike only in this order.
export CUDA_DEVICE_ORDER=PCI_BUS_ID

# Left over from elsewhere it would silently move the ranks.
unset SLURM_HOSTFILE MOEFOLD_MAP

# Slurm fills nodes by name; the plan wants them switch by switch.
dir=$(mktemp -d)
trap 'rm -rf -- "$dir"' EXIT
"$moefold" map "$plan" --hostfile "$dir/hostfile" >"$dir/map"
seats=$(wc -l <"$dir/hostfile")
if [ "$seats" -ne 32 ]; then
    echo "the host file seats $seats ranks, not 32" >&2
    exit 1
fi
export SLURM_HOSTFILE="$dir/hostfile"

# By this moefold-run checks that each rank sits where it should.
MOEFOLD_MAP=$(uniq -c "$dir/hostfile" |
    sed 's/^ *\([0-9]*\) \(.*\)$/\2*\1/' | paste -sd ,)
export MOEFOLD_MAP

for pick in 1 2 3; do
    srun --mpi=pmix --kill-on-bad-exit=1 --wait=60 --ntasks=32 \
        --distribution=arbitrary \
        "$runner" "$plan" --pick "$pick" --iterations 50 --db "$db"
done
