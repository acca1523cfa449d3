#!/bin/bash
#SBATCH --job-name=small-moe
#SBATCH --partition=gpu
#SBATCH --account="a b"
#SBATCH --nodes=4
#SBATCH --ntasks=32
#SBATCH --ntasks-per-node=8
#SBATCH --cpus-per-task=4
#SBATCH --gpus-per-node=8
#SBATCH --exclusive
#SBATCH --switches=1
#SBATCH --segment=2
#SBATCH --dependency=afterok:4711
#SBATCH --requeue
#SBATCH --open-mode=append
#SBATCH --signal=B:USR2@120
#SBATCH --time=00:30:00
#SBATCH --output=%x_%j.out
#SBATCH --constraint=hbm
#SBATCH --comment="it is \"x\""
#
# Written by moefold @VERSION@
# plan       @HERE@/plan.json
# model      small-moe
# cluster    dgx-h100:4
# layout 1   tp1.cp1.dp32.pp1/etp1.ep4.edp8 order tp-cp-ep-dp-pp
# layout 2   tp1.cp1.dp32.pp1/etp1.ep8.edp4 order tp-cp-ep-dp-pp

module load 'cuda/12.8' 'my lib'

set -euo pipefail

plan='@HERE@/plan.json'
runner=@RUNNER@
db='@HERE@/history.db'
image='registry#image:1'
folder=$(dirname -- "$db")

export OPENBLAS_NUM_THREADS="${SLURM_CPUS_PER_TASK:-1}"

# The tree that Slurm 22.05 takes by default lets ranks of a busy
# cluster out of MPI_Init too early, and they crash.
export SLURM_PMIX_FENCE="${SLURM_PMIX_FENCE:-ring}"

# CUDA, NVML and Slurm count GPUs alike only in this order.
export CUDA_DEVICE_ORDER=PCI_BUS_ID

# Left over from elsewhere it would silently move the ranks.
unset SLURM_HOSTFILE MOEFOLD_MAP

# Slurm warns 120 s before the end, or up to a minute earlier; USR1 is
# NCCL's. A job that is put back goes on with what is left.
finished="moefold-$SLURM_JOB_ID.done"
step=
put_back() {
    trap '' USR2
    echo 'moefold: the time is nearly up: the job is put back' >&2
    [ -z "$step" ] || kill -TERM "$step" 2>/dev/null || true
    [ -z "$step" ] || wait "$step" || true
    scontrol requeue "$SLURM_JOB_ID"
    exit 0
}
trap put_back USR2

for pick in 1 2; do
    if ! grep -qx "$pick" "$finished" 2>/dev/null; then
        srun --mpi=pmix --kill-on-bad-exit=1 --wait=60 --ntasks=32 \
            --ntasks-per-node=8 --distribution=block \
            --container-image="$image" \
            --container-mounts="$plan:$plan:ro,$folder:$folder" \
            --container-env=OPENBLAS_NUM_THREADS,CUDA_DEVICE_ORDER \
            "$runner" "$plan" --pick "$pick" --iterations 20 --db "$db" &
        step=$!
        wait "$step"
        step=
        echo "$pick" >>"$finished"
    fi
done
rm -f -- "$finished"
