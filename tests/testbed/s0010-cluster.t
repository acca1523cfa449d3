#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# moefold cluster against a real controller: up, dead, and not there.
. "${MOEFOLD_SRCDIR:?}/tests/command/lib.sh"

bed=$SRC/tests/testbed
bed_env=$("$bed/env" 2>/dev/null) || skip_all 'the test bed is not up'
eval "$bed_env"
trap '"$bed/controller" start; cd / && rm -rf "$T"' EXIT

expect 'read through libslurm' 0 moefold cluster slurm --json
expect_json 'four nodes of eight' '.nodes == 4 and .gpus_per_node == 8
    and (.node_list | length == 4 and all(.gpus == 8))'
expect_json 'leaf by leaf, which is not by name' \
    '[.node_list[].name] == ["node1", "node3", "node2", "node4"]'
expect_json 'their leaf switches' \
    '[.node_list[].switch] == ["leaf-a", "leaf-a", "leaf-b", "leaf-b"]'
expect_json 'the model of the GPUs' '.gpu.model | test("h100"; "i")'
expect 'slurm is the default' 0 moefold cluster --json
expect_json 'the same four' '.nodes == 4'

check 'a node is drained' \
    scontrol update nodename=node4 state=drain reason=test
expect 'that is seen' 0 moefold cluster --json
expect_json 'and said' '
    any(.node_list[]; .name == "node4" and .state == "drained") and
    any(.warnings[]; test("1 node is drained .node4"))'
expect 'a plan leaves it out' 3 moefold predict --layout tp1/ep8 --world 32 \
    --model "$SRC/tests/data/models/small-moe/config.json" --global-batch 32
check 'and takes it again' scontrol update nodename=node4 state=resume

# Rates over the slow links between the nodes, and kept.
cat >probe.sh <<JOB
#!/bin/bash
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
export OMPI_MCA_mpi_yield_when_idle=1
cd "$T" && exec "$BIN/moefold" cluster --json --probe --db probe.db >probe.json
JOB
expect 'a probe outside a job' 2 moefold cluster --probe
expect_error 'says where to run it' 'inside one \(salloc, sbatch\)'
check 'a probe in a job' \
    timeout 100 sbatch -W -N4 -n4 -o "$T/probe.out" probe.sh
check 'measures the tiers inside nodes and between them' jq -e '
    [.sources[] | select(.how == "measured").field] | sort ==
        ["tiers.leaf.bytes_per_s", "tiers.leaf.latency_s",
         "tiers.nvlink.bytes_per_s", "tiers.nvlink.latency_s",
         "tiers.spine.bytes_per_s", "tiers.spine.latency_s"]' probe.json
check 'inside a node as its ranks do it' jq -e '
    any(.sources[]; .field == "tiers.nvlink.bytes_per_s" and
        (.from | test("inside node[1-4], shared memory")))' probe.json
check 'faster than between nodes' jq -e '.tiers[0].bytes_per_s >
    2 * .tiers[1].bytes_per_s' probe.json
expect 'the cluster later' 0 moefold cluster --json --db probe.db
cp "$OUT" later.json
check 'has what was measured' jq -es '.[0].tiers == .[1].tiers' \
    probe.json later.json

check 'the controller dies' "$bed/controller" stop
expect 'a dead controller' 1 moefold cluster slurm --json --slurm-timeout 3
expect_error 'is named as such' '^moefold: cluster: .*[Ss]lurm'
expect 'plan meets it too' 1 moefold plan --cluster slurm --world 32 \
    --model "$SRC/tests/data/models/small-moe/config.json" \
    --global-batch 32 --slurm-timeout 3
check 'the controller is back' "$bed/controller" start
expect 'and is read again' 0 moefold cluster slurm --json

expect 'no slurm.conf' 2 env SLURM_CONF="$T/none.conf" \
    moefold cluster slurm --json
expect_error 'is named' 'none\.conf'
printf 'ClusterName=\nNodeName=[\n' >broken.conf
expect 'a broken slurm.conf' 2 env SLURM_CONF="$T/broken.conf" \
    moefold cluster slurm --json

done_testing
