#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# cluster: files that people really have, told apart by content, alone and
# joined. Expected values: what real controllers printed (slurm/shown), what
# tests/data/topology/README.md says of a machine, and data sheets.
. "${MOEFOLD_SRCDIR:?}/tests/command/lib.sh"

unset SLURM_CONF
D=$SRC/tests/data/topology

reads() { # FILE JQ
    expect "$1" 0 moefold cluster --json "$D/$1"
    expect_json 'as it is' "$2"
}

xml=yes
grep -q '^#define HAVE_LIBXML2' "${MOEFOLD_BUILDDIR:-.}/config.h" || xml=no
reads_xml() {
    if [ "$xml" = yes ]; then
        reads "$@"
    else
        skip "$1" 'built without libxml2'
        skip 'as it is' 'built without libxml2'
    fi
}

tier() { # NAME SIZE RATE: a jq test
    printf 'any(.tiers[]; .name == "%s" and .size == %s and
        .bytes_per_s == %s)' "$@"
}

# ---- nvidia-smi topo -m: links times 25 GB/s, or Blackwell's 50 ----
smi() { # FILE GPUS NAME SIZE RATE NETWORK
    reads "nvidia-smi/$1" ".nodes == 1 and .gpus_per_node == $2 and
        .gpu.model == null and $(tier "$3" "$4" "$5") and
        [.tiers[] | select(.name == \"network\").bytes_per_s] == $6 and
        all(.sources[] | select(.field == \"tiers.$3.bytes_per_s\");
            .how == \"assumed\")"
}
smi a100-4gpu-4nic.txt 4 nvlink 4 300e9 '[25e9]'
smi a100-8gpu-1nic-numa-mixed.txt 8 nvlink 8 300e9 '[3.125e9]'
smi a100-8gpu-8nic.txt 8 nvlink 8 300e9 '[25e9]'
smi a100-pcie-8gpu-6nic-mp.txt 8 node 8 31.5e9 '[18.75e9]'
smi dgx1-v100-8gpu-4nic.txt 8 nvlink 4 100e9 '[6.25e9]'
smi gb200-4gpu.txt 4 nvlink 4 900e9 '[]'
smi gtx-7gpu-pix-phb.txt 7 node 7 31.5e9 '[]'
smi h100-8gpu-6nic-empty-affinity.txt 8 nvlink 8 450e9 '[37.5e9]'
smi h100-8gpu-9nic-ansi-header.txt 8 nvlink 8 450e9 '[50e9]'
smi h100-8gpu-no-nic.txt 8 nvlink 8 450e9 '[]'
smi h100-pcie-2gpu-nvlink-bridge.txt 2 nvlink 2 300e9 '[]'
smi h200-dgx-8gpu-12nic.txt 8 nvlink 8 450e9 '[50e9]'

# ---- hwloc: versions 1, 2 and 3 ----
gpus() { # N MODEL BYTES
    printf '.gpus_per_node == %s and .gpu.model == "%s" and
        .gpu.memory_bytes == %s' "$@"
}
reads_xml hwloc/coral-lassen.xml "$(gpus 4 V100 16911433728) and
    .node_list[0].name == \"lassen28\" and $(tier nvlink 2 75e9) and
    $(tier network 4 12.5e9)"
reads_xml hwloc/eas-tioga.xml "$(gpus 8 MI250X 68702699520) and
    .tiers[0].name == \"xgmi\" and .tiers[0].size == 8 and
    (.tiers[0].bytes_per_s - 300e9 | fabs) < 1"
reads_xml hwloc/g4dnmetal.xml "$(gpus 8 T4 15843721216) and
    .gpu.bf16_flops == null and .tiers[0].name == \"node\""
reads_xml hwloc/nvidia-dgx-gb10.xml "$(gpus 1 GB10 128e9)"
reads_xml hwloc/nvidiaDGX2.xml "$(gpus 16 V100-32GB 34359738368) and
    $(tier nvlink 16 150e9) and any(.sources[];
        .field == \"tiers.nvlink.bytes_per_s\" and .how == \"read\")"
reads_xml hwloc/power9-gpu-numa-ignored.xml '.gpus_per_node == null and
    any(.warnings[]; test("6 display devices of unknown maker"))'
reads_xml hwloc/rsmi_corona240.xml "$(gpus 8 MI50 34342961152)"

# ---- NCCL and RCCL ----
reads_xml nccl/g5.48xl-topo.xml '.node_list[0].gpus == null and
    any(.warnings[]; test("9 PCI devices without a class"))'
reads_xml nccl/ncv4-topo.xml "$(gpus 4 A100-PCIe 85899345920) and
    $(tier network 4 3.125e9)"
reads_xml nccl/ndv4-topo.xml '.gpus_per_node == 8 and .gpu.model == null'
reads_xml nccl/oci-H100-topology.xml "$(gpus 8 H100 85899345920) and
    $(tier nvlink 8 450e9) and $(tier network 8 45e9)"
reads_xml nccl/oci-topo-flattened.xml '.gpus_per_node == 8'
reads_xml nccl/p4d-24xl-topo.xml "$(gpus 8 A100-40GB 42949672960) and
    $(tier network 8 6.25e9)"
reads_xml nccl/rccl-topo_16p1h.xml "$(gpus 16 MI250X 68719476736) and
    $(tier network 16 12.5e9)"
reads_xml nccl/rccl-topo_8p_940.xml "$(gpus 8 MI300X 192e9) and
    $(tier xgmi 8 448e9) and $(tier network 8 50e9)"
if [ "$xml" = yes ]; then
    expect 'a graph file' 2 moefold cluster "$D/nccl/ncv4-graph.xml"
    expect_error 'says what is wanted' 'NCCL_TOPO_DUMP_FILE'
else
    skip 'a graph file' 'built without libxml2'
    skip 'says what is wanted' 'built without libxml2'
fi

# ---- NUMA: of each GPU, as the files say it in their own ways ----
numa() { # FILE NODES OF_GPU
    reads "$1" ".node_list[0].numa == {nodes: $2, of_gpu: $3} and
        any(.sources[]; .field == \"node_list.numa\" and .how == \"read\")"
}
numa nvidia-smi/a100-8gpu-1nic-numa-mixed.txt null '[3,3,1,1,7,7,5,5]'
numa nvidia-smi/gb200-4gpu.txt null '[0,0,1,1]'
numa nvidia-smi/h100-8gpu-6nic-empty-affinity.txt null \
    '[null,null,null,null,1,1,1,1]'
reads nvidia-smi/dgx1-v100-8gpu-4nic.txt '.node_list[0].numa == null'
if [ "$xml" = yes ]; then
    numa hwloc/coral-lassen.xml 2 '[0,0,8,8]'
    numa hwloc/eas-tioga.xml 4 '[0,0,1,1,2,2,3,3]'
    numa hwloc/rsmi_corona240.xml 2 '[0,0,0,0,1,1,1,1]'
    numa nccl/oci-topo-flattened.xml 4 '[3,3,1,1,7,7,5,5]'
    numa nccl/ncv4-topo.xml 4 '[0,1,2,3]'
    expect 'NUMA joins a cluster' 0 moefold cluster --json \
        dgx-h100:2 "$D/nccl/oci-H100-topology.xml"
    expect_json 'on each of its nodes' 'all(.node_list[];
        .numa.of_gpu == [0,0,0,0,1,1,1,1])'
    expect 'and is printed' 0 moefold cluster \
        "$D/hwloc/coral-lassen.xml"
    cp "$OUT" numa.txt
    check 'in runs' grep -q 'NUMA  *2 nodes; GPUs 0-1 on 0, 2-3 on 8' numa.txt
fi

# ---- Slurm's files: each conf as the real controller read it ----
nodes_of() { jq -S '[.node_list[] | {name, switch, block}] | sort' "$1"; }
for pair in doc-topology-linkspeed.conf:doc-topology-linkspeed \
    man-topology.conf-3:man-topology.conf-3 \
    schedmd-block/topology.conf:schedmd-block \
    schedmd-test133-3/topology.conf:schedmd-test133-3 \
    schedmd-test133-6/topology.conf:schedmd-test133-6 \
    topograph-block-placeholder.conf:topograph-block-placeholder \
    topograph-slinky-dra-block.conf:topograph-slinky-dra-block \
    cyclecloud-block_topology.txt:cyclecloud-block_topology \
    cluster-a/topology.conf:../cluster-a/scontrol-show-topology \
    cluster-c-block/topology.conf:../cluster-c-block/scontrol-show-topology; do
    expect "${pair%:*}" 0 moefold cluster --json "$D/slurm/${pair%:*}"
    nodes_of "$OUT" >conf.json
    expect 'as shown' 0 moefold cluster --json "$D/slurm/shown/${pair#*:}.txt"
    nodes_of "$OUT" >shown.json
    check 'gives the same places' cmp conf.json shown.json
done
reads slurm/schedmd-test133-3/slurm.conf '.nodes == 400 and
    [.node_list[20] | .name, .switch, .pod] ==
        ["peta10020", "leaf101", "grp10"] and
    ([.tiers[].name] == ["node", "leaf", "pod", "spine"])'
reads slurm/schedmd-test133-6/slurm.conf '.nodes == 40 and
    any(.warnings[]; test("3 trees of switches"))'
reads slurm/cyclecloud-topology.txt '.nodes == 128 and
    any(.warnings[]; test("no tree: .*circle"))'
reads slurm/cluster-a/slurm.conf '.name == "demo" and .nodes == 11 and
    .gpus_per_node == null and .gpu.model == "H100" and
    any(.node_list[]; .name == "h100-03" and .switch == "ibleaf2" and
        .gpus == 8 and .partitions == "train,long" and
        .features == "h100,ib,nvlink") and
    any(.warnings[]; test("plans use the 4 nodes with 8 h100"))'
reads slurm/cluster-a/scontrol-show-node.txt '
    [.node_list[] | select(.state != "up") | [.name, .state]] ==
        [["h100-03", "drained"], ["h100-04", "down"],
         ["rack0-gb03", "drained"], ["rack1-gb01", "down"]] and
    any(.sources[]; .field == "node_list.state" and .how == "read")'
reads slurm/cluster-c-block/slurm.conf ".gpus_per_node == 4 and .nodes == 7 and
    $(tier nvlink 16 900e9) and
    ([.node_list[].block] | unique) == [\"rack1\", \"rack2\"]"
reads slurm/schedmd-test7.17.1/slurm.conf '.nodes == 10 and .gpus_per_node == 8'
reads slurm/man-gres.conf-3 '[.node_list[] | select(.gpus == 3).name] ==
    ["tux3"] and ([.node_list[].gpus] | add) == 63'
reads slurm/pcluster-gpu_partition.conf '.nodes == 15 and
    all(.node_list[]; .partitions == "gpu") and .gpu.model == "V100"'
reads slurm/pasted/nodes-conf-suffix-names.conf '
    [.node_list[] | [.name, .partitions]] ==
        [["xjhpc-164-100-ai", "xj-h100-ib-1"],
         ["xjhpc-164-101-ai", "xj-h100-ib-1"]]'
reads slurm/pasted/partition-h100-128nodes.txt '.nodes == 128 and
    .gpus_per_node == 8'
if grep -q '^#define HAVE_YAML' "${MOEFOLD_BUILDDIR:-.}/config.h"; then
    reads slurm/topograph-model-nvl72.yaml '.nodes == 72 and
        ([.node_list[] | .block] | group_by(.) | map(length)) ==
            [18, 18, 18, 18] and
        (.node_list[71] | [.name, .block, .switch, .pod]) ==
            ["node2218", "nvl-2-2", "leaf-2-2", "spine-2"]'
    reads slurm/man-topology.yaml '
        [.node_list[] | [.name, .switch, .block]] ==
            [["node01", "s1", null], ["node02", "s1", null],
             ["node03", "s2", null], ["node04", "s2", null]] and
        any(.warnings[]; test("topo1"))'
else
    skip 'topology.yaml' 'built without libyaml'
    skip 'as it is' 'built without libyaml'
fi
expect 'a job list' 2 moefold cluster "$D/slurm/vpenso-sinfo.txt"
expect_error 'is none of the known' 'sinfo.txt: no node, switch, block or GPU'

# ---- joined ----
expect 'racks and what is in them' 0 moefold cluster --json \
    "$D/slurm/pasted/topology-block-gb200-180nodes.txt" --cluster gb200-nvl72
expect_json 'make NVLink domains' ".nodes == 180 and .gpus_per_node == 4 and
    $(tier nvlink 72 900e9) and $(tier network 720 100e9) and
    .warnings == []"
expect 'GB200 without blocks' 0 moefold cluster --json \
    "$D/slurm/cluster-c-block/scontrol-show-node.txt"
expect_json 'are alone, with a warning' "$(tier nvlink 4 900e9) and
    any(.warnings[]; test(\"nothing says which\"))"
if [ "$xml" = yes ]; then
    expect 'a tree and a node' 0 moefold cluster --json \
        "$D/slurm/schedmd-test133-3/slurm.conf" \
        --cluster "$D/nccl/oci-H100-topology.xml"
    expect_json 'make a cluster' ".gpu.model == \"H100\" and
        $(tier nvlink 8 450e9) and $(tier leaf 160 45e9) and
        $(tier spine 3200 45e9) and .warnings == []"
else
    skip 'a tree and a node' 'built without libxml2'
    skip 'make a cluster' 'built without libxml2'
fi

# ---- plans for an uneven cluster ----
expect 'a plan for an uneven cluster' 0 moefold predict --json \
    --model "$SRC/tests/data/models/Mixtral-8x7B-v0.1.json" \
    --cluster "$D/slurm/cluster-a/slurm.conf" --layout tp2/ep8 \
    --global-batch 64
expect_json 'takes the even part and says so' '.world == 32 and
    any(.notes[]; test("4 nodes with 8 h100"))'

# Blocks of 5 and 11 nodes of 4, two nodes in none: 32 experts' ranks fit one
# block, and only one.
cat >blocks.conf <<'CONF'
NodeName=n[01-18] Gres=gpu:gb200:4
BlockName=b1 Nodes=n[01-05]
BlockName=b2 Nodes=n[06-16]
CONF
dispatch() { # NAME CLUSTER WORLD
    run moefold predict --json --cluster "$2" --layout tp1/ep32 --world "$3" \
        --model "$SRC/tests/data/models/Qwen3-30B-A3B.json" --global-batch 64
    jq '.layer.phases.dispatch.fwd_s' "$OUT" >"$1"
}
expect 'blocks that differ' 0 moefold cluster --json blocks.conf
expect_json 'and nodes in none' "$(tier nvlink 44 900e9) and
    any(.warnings[]; test(\"2 nodes are in no block\"))"
dispatch rack gb200-nvl72:1 32
dispatch one blocks.conf 32
dispatch two blocks.conf 64
check 'a group of experts goes where it fits' cmp rack one
check 'and costs more where none is left' \
    jq -es '.[1] > 1.5 * .[0]' one two

# ---- local with GPUs: nvidia-smi is asked ----
mkdir -p path
cat >path/nvidia-smi <<SMI
#!/bin/sh
case \$1 in
topo) cat "$D/nvidia-smi/h200-dgx-8gpu-12nic.txt" ;;
*) for gpu in 0 1 2 3 4 5 6 7; do echo "NVIDIA H200, 143771"; done ;;
esac
SMI
chmod +x path/nvidia-smi
with_gpus() { # VISIBLE ARG...
    env PATH="$T/path:$PATH" CUDA_VISIBLE_DEVICES="$1" \
        moefold cluster --json "${@:2}"
}
expect 'local with GPUs' 0 with_gpus 0,1,2,3,4,5,6,7 local
expect_json 'shows them' ".cpu_ranks == false and
    $(gpus 8 H200 150754820096) and $(tier nvlink 8 450e9) and
    $(tier network 8 50e9) and any(.sources[];
        .field == \"gpu.memory_bytes\" and .how == \"read\")"
expect 'two of them' 0 with_gpus 2,5 local
expect_json 'are two' '.gpus_per_node == 2 and .gpu.model == "H200"'
expect 'none of them' 0 with_gpus '' local
expect_json 'gives CPU ranks' '.cpu_ranks'
expect 'more than there are' 0 with_gpus 0,1 local --world 3
expect_json 'gives CPU ranks with a warning' '.cpu_ranks and
    .gpus_per_node == 3 and any(.warnings[]; test("has 2 GPUs"))'

printf 'NodeName=p[1-4] Gres=gpu:l40s:4\n' >pcie.conf
expect 'GPUs on PCIe alone' 0 moefold cluster --json pcie.conf
expect_json 'have its rate, assumed' "$(tier node 4 31.5e9) and any(.sources[];
    .field == \"tiers.node.bytes_per_s\" and .how == \"assumed\")"

# ---- includes ----
mkdir -p site/d
cat >site/slurm.conf <<'CONF'
clustername=x # a comment
Include d/nodes.conf
NODENAME=b[1-2]-ai \
    gres=GPU:B200:4 state=DRAIN
CONF
echo 'NodeName=a[08-11]  Gres="gpu:b200:4"' >site/d/nodes.conf
expect 'includes, continued lines, any case' 0 \
    moefold cluster --json site/slurm.conf
expect_json 'are read' '[.node_list[] | [.name, .state]] ==
    [["a08", "up"], ["a09", "up"], ["a10", "up"], ["a11", "up"],
     ["b1-ai", "drained"], ["b2-ai", "drained"]] and .gpu.model == "B200"'
echo 'Include ../slurm.conf' >site/d/nodes.conf
expect 'a circle of includes' 2 moefold cluster site/slurm.conf
expect_error 'is refused' 'slurm\.conf:2: .*nodes.conf:1: .* includes itself'
echo 'NodeName=a[3-1]' >site/d/nodes.conf
expect 'a list that falls' 2 moefold cluster site/slurm.conf
expect_error 'is named by file and line' \
    'slurm\.conf:2: .*nodes\.conf:1: .*rising'

# ---- damaged files ----
bad() { # NAME EXPECTED-TEXT < file
    cat >"bad.$1"
    expect "$1" 2 moefold cluster "bad.$1"
    expect_error 'gets one line' "$2"
    check 'and no more' test "$(wc -l <"$ERR")" -eq 1
}
bad empty 'is empty' < <(printf '')
bad zero 'byte 0' < <(printf 'NodeName=a\0b')
bad cut 'cut off' < <(printf '\t\tGPU0\tGPU1\nGPU0\t X \tNV18\nGPU1\tNV1')
bad links 'is no path' < <(printf '\t\tGPU0\tGPU1\nGPU0\t X \tNV99\n')
bad json 'bad.json:1: ' < <(printf '{"name": "x", "nodes": 1')
bad other-json 'node_list is missing' < <(printf '{"name": "x"}')
bad many '65536 hosts' < <(printf 'NodeName=n[1-99999] Gres=gpu:8\n')
bad absurd 'over 1024 GPUs' \
    < <(printf 'NodeName=a Gres=gpu:99999999999999999999\n')
bad negative '0 to 1024 GPUs' < <(printf 'NodeName=a Name=gpu Count=-5\n')
bad dash 'not a node name' < <(printf 'NodeName=-x\n')
bad bytes 'not a node name' < <(printf 'NodeName=\xff\xfe\n')
bad noname 'name of a switch' < <(printf 'SwitchName= Nodes=a\n')
if [ "$xml" = yes ]; then
    bad cut.xml 'not well-formed XML' \
        < <(head -c 2000 "$D/hwloc/nvidiaDGX2.xml")
    bad html '<html> is the root of neither' < <(printf '<html/>')
    bad entity 'entities' < <(printf '<!DOCTYPE a [<!ENTITY b "c">]><system/>')
    bad deep 'not well-formed' \
        < <(printf '<system><cpu>%s' "$(printf '<pci>%.0s' {1..500})")
    bad nan 'Mbit/s' < <(printf '<system><net speed="nan"/></system>')
fi
mkfifo pipe
expect 'a pipe that nobody writes to' 2 moefold cluster ./pipe
expect_error 'does not hang' 'is empty'
mkdir folder
expect 'a folder' 2 moefold cluster ./folder
expect_error 'is named' 'is a folder'
expect 'a file that is not there' 2 moefold cluster ./nothing
expect_error 'is named too' './nothing: No such file'
expect 'a file as printed' 0 moefold cluster --json dgx-h100:4
cp "$OUT" printed.json
expect 'is a source' 0 moefold cluster --json printed.json
cp "$OUT" again.json
check 'that gives the same' cmp again.json printed.json

done_testing
