#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Readers of clusters on mutants of real files: no crash, no hang, and each
# answer is a cluster that stands or one line. MOEFOLD_FUZZ_S: seconds each.
. "${MOEFOLD_SRCDIR:?}/tests/command/lib.sh"

seconds=${MOEFOLD_FUZZ_S:-3}
seed=${MOEFOLD_FUZZ_SEED:-20261201}
D=$SRC/tests/data/topology

run_target() { timeout 300 "$1" "$seconds" "$seed" "${@:2}"; }

fuzz() { # TARGET FILE...
    local target=${MOEFOLD_BUILDDIR:?}/tests/fuzz/$1
    shift
    if [ -x "$target" ]; then
        check "${target##*/} makes no mistake" run_target "$target" "$@"
        sed 's/^/# /' "$OUT"
    else
        skip "${target##*/}" 'not built'
    fi
}

mapfile -t conf < <(find "$D/slurm" -type f | sort)
fuzz fuzz_conf "${conf[@]}"
fuzz fuzz_smi "$D"/nvidia-smi/*.txt
fuzz fuzz_xml "$D"/nccl/*.xml "$D"/hwloc/*.xml
cut -f 1 "$D/hostlists.tsv" | split -l 1 - list.
fuzz fuzz_hostlist list.*
i=0
for source in dgx-h100:2 gb200-nvl72:1 "$D/slurm/cluster-a/slurm.conf" \
    "$D/nvidia-smi/dgx1-v100-8gpu-4nic.txt"; do
    run moefold cluster --json "$source"
    cp "$OUT" "cluster.$i"
    i=$((i + 1))
done
fuzz fuzz_cluster_json cluster.*

done_testing
