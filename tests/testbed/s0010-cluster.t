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
