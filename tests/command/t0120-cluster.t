#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# cluster: presets, this machine, and Slurm that is not there or is broken.
. "${MOEFOLD_SRCDIR:?}/tests/command/lib.sh"

unset SLURM_CONF
export CUDA_VISIBLE_DEVICES= # local: this machine's cores, whatever else it has
conf=$T/slurm.conf

expect 'a preset' 0 moefold cluster --json dgx-h100:16
expect_json 'has the keys of every cluster' '. as $c |
    ["name", "nodes", "gpus_per_node", "gpu", "tiers", "node_list", "sources",
     "cpu_ranks", "cores", "warnings"] | all(. as $k | $c | has($k))'
expect_json 'has published figures' '.nodes == 16 and .gpus_per_node == 8 and
    .gpu == {model: "H100", memory_bytes: 85899345920, bf16_flops: 989e12,
        hbm_bytes_per_s: 3.35e12} and
    [.tiers[] | [.name, .size, .bytes_per_s]] ==
        [["nvlink", 8, 450e9], ["network", 128, 50e9]] and
    (.node_list | length) == 16 and all(.sources[]; .how == "preset")'
expect 'a preset as large as the world' 0 \
    moefold cluster --json --cluster dgx-b200 --world 20
expect_json 'has whole nodes' '.nodes == 3 and .name == "dgx-b200:3"'
expect 'racks' 0 moefold cluster gb200-nvl72:2
expect_line 'have one NVLink domain each' '^ +nvlink +72 +900\.0 '
expect 'a second source that differs' 0 \
    moefold cluster --json dgx-h100:2 --cluster dgx-a100:2
expect_json 'is warned of' '.gpu.model == "H100" and
    any(.warnings[]; test("^gpu.model is H100, but dgx-a100:2 says A100$"))'

expect 'this machine' 0 moefold cluster --json local --world 3
expect_json 'counts CPU ranks' '.cpu_ranks and .nodes == 1 and .cores >= 1 and
    .gpus_per_node == 3 and .gpu.bf16_flops > 0 and .tiers[0].size == 3 and
    any(.sources[]; .field == "gpu.bf16_flops" and .how == "measured")'
cp "$OUT" first.json
expect 'this machine again' 0 moefold cluster --json local --world 3
cp "$OUT" second.json
check 'keeps its measures' jq -es \
    '.[0].gpu == .[1].gpu and .[0].tiers == .[1].tiers' first.json second.json

expect 'zero GPUs' 2 moefold cluster dgx-h100:0
expect_error 'gets the mend' 'has zero GPUs; give at least dgx-h100:1$'
expect 'a preset without a size' 2 moefold cluster dgx-h100
expect_error 'says how to give one' 'dgx-h100:N .*--world$'
expect 'a number that is none' 2 moefold cluster dgx-h100:many
expect 'an unknown name' 2 moefold cluster dgx-k80:4
expect_error 'names the known ones' 'dgx-h100, .*gb300-nvl72, '
expect 'an unknown option' 2 moefold cluster --nodes 4

export SLURM_CONF=$conf
expect 'no slurm.conf' 2 moefold cluster
expect_error 'says where it looked' "no slurm\.conf at $conf"
expect 'no slurm.conf, asked for' 2 moefold cluster slurm
expect_error 'says where it looked, too' "no slurm\.conf at $conf"

if ! grep -q '^#define HAVE_SLURM' "${MOEFOLD_BUILDDIR:-.}/config.h"; then
    skip 'a broken slurm.conf' 'built without libslurm'
    skip 'a dead controller' 'built without libslurm'
    done_testing
fi
printf 'ClusterName=gone\nSlurmctldHost=localhost\nSlurmctldPort=1\n' >"$conf"
printf 'Nonsense=3\n' >>"$conf"
expect 'a broken slurm.conf' 2 moefold cluster
expect_error 'is named with the key' "$conf: .*Nonsense"
sed -i '/Nonsense/d' "$conf"
expect 'a dead controller' 1 moefold cluster --slurm-timeout 1
expect_error 'is named' "$conf: .*controller localhost did not answer"

done_testing
