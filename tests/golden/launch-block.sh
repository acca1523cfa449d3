#!/bin/bash
#SBATCH --job-name=tiny-moe
#SBATCH --nodes=4
#SBATCH --ntasks=32
#SBATCH --ntasks-per-node=8
#SBATCH --gpus-per-node=8
#SBATCH --exclusive
#SBATCH --time=00:10:00
#SBATCH --output=%x_%j.out
#
# Written by moefold 0.1.0
# command    moefold launch plan.json
# plan       /home/ada/plan.json
# model      tiny-moe
# cluster    four
# layout 1   tp2.cp1.dp4.pp4/etp1.ep8.edp1 order tp-cp-ep-dp-pp
#            predicted: MoE layer 10 ms
# all of it  predicted: 0.23 s, starts not counted

set -euo pipefail

plan='/home/ada/plan.json'
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

srun --mpi=pmix --kill-on-bad-exit=1 --wait=60 --ntasks=32 \
    --ntasks-per-node=8 --distribution=block \
    "$runner" "$plan" --pick 1 --iterations 20 --db "$db"
