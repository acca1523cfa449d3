#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Bad input: one clear line on standard error, the right exit status, nothing
# on standard output.
. "${MOEFOLD_SRCDIR:?}/tests/command/lib.sh"

mixtral=$SRC/tests/data/models/Mixtral-8x22B-v0.1/config.json
small=$SRC/tests/data/models/small-moe/config.json
unset SLURM_CONF

bad() { # NAME STATUS REGEX CMD...
    local name=$1 status=$2 regex=$3
    shift 3
    expect "$name" "$status" "$@"
    expect_error "$name: says so" "$regex"
}

sized() { # OPTION...
    moefold predict --model "$mixtral" --cluster dgx-h100:1 \
        --global-batch 64 "$@"
}

# ---- files
bad 'a missing model' 2 'nosuch.json.*No such file' moefold model nosuch.json
printf '{"hidden_size": 12,,}' >broken.json
bad 'broken JSON' 2 'broken.json: line 1' moefold model broken.json
printf '[]' >list.json
bad 'a model that is no object' 2 'list.json' moefold model list.json
bad 'a folder as a model' 2 . moefold model .
bad 'a missing plan' 2 'nosuch.json.*No such file' moefold launch nosuch.json
cp "$mixtral" notplan.json
bad 'a model where a plan belongs' 2 'notplan.json.*plan' \
    moefold launch notplan.json
jq '.num_experts_per_tok = 12' "$mixtral" >twelve.json
bad 'more experts a token than experts' 2 \
    'twelve.json: num_experts_per_tok is 12.* 8' moefold model twelve.json

# ---- layouts that break a rule
jq '{model_type: "llama", architectures: ["LlamaForCausalLM"], hidden_size,
    intermediate_size, num_attention_heads, num_key_value_heads,
    num_hidden_layers, vocab_size, hidden_act, tie_word_embeddings}' \
    "$mixtral" >dense.json
bad 'ep over 1 for a dense model' 2 'ep 2.*experts' \
    moefold predict --model dense.json --cluster dgx-h100:1 \
    --global-batch 8 --layout tp4/ep2
bad 'experts not divisible by ep' 2 '8 experts' \
    moefold predict --model "$mixtral" --cluster dgx-h100:2 --world 12 \
    --global-batch 12 --layout tp4/ep3
bad 'a world that does not factor' 2 'world is 8.*tp 3' sized --layout tp3
bad 'pp after the slash' 2 'pp' sized --layout tp2/pp2
bad 'a size of zero' 2 'tp' sized --layout tp0
bad 'a size given twice' 2 'twice' sized --layout tp2.tp2
bad 'an order with an unknown axis' 2 "'xp' is no axis" \
    sized --layout tp2 --order tp-xp
bad 'heads not divisible by tp' 2 'heads' \
    moefold predict --model "$mixtral" --cluster dgx-h100:4 --world 32 \
    --global-batch 8 --layout tp32

# ---- clusters
bad 'zero nodes' 2 'dgx-h100' moefold cluster dgx-h100:0
bad 'zero GPUs' 2 'world is 0|--world' moefold plan --model "$mixtral" \
    --cluster dgx-h100:1 --world 0 --global-batch 8
bad 'an unknown preset names the known ones' 2 'dgx-h100' \
    moefold cluster dgx-z9:4
export SLURM_CONF=$T/none/slurm.conf
bad 'no slurm.conf' 2 'slurm.conf' moefold cluster slurm
unset SLURM_CONF
cat >slurm.conf <<END
ClusterName=dead
SlurmctldHost=nowhere(127.0.0.1)
SlurmctldPort=1
AuthType=auth/none
NodeName=n1 CPUs=1
PartitionName=p Nodes=n1
END
export SLURM_CONF=$T/slurm.conf
if moefold cluster slurm --slurm-timeout 2 2>&1 |
    grep -q 'without libslurm'; then
    skip 'a dead controller' 'built without libslurm'
else
    bad 'a dead controller' 1 'controller|Slurm' \
        moefold cluster slurm --slurm-timeout 2
fi
unset SLURM_CONF
expect 'a world larger than the cluster is a no' 3 moefold predict \
    --model "$mixtral" --cluster dgx-h100:1 --world 16 --global-batch 16 \
    --layout tp2

# ---- the answer is no: one document all the same
no() { # NAME FILTER CMD...
    local name=$1 filter=$2
    shift 2
    expect "$name" 3 "$@" --json
    expect_json "$name: one document" "$filter"
    check "$name: one line says why" test "$(wc -l <"$ERR")" -eq 1
}

moefold plan --model "$small" --cluster dgx-h100:2 --global-batch 16 \
    --output two.json >"$T/.log"
no 'map on too few nodes' '.answer == "no" and (.reason | test("16 ranks"))' \
    moefold map two.json --nodes n1
no 'predict beyond the cluster' '.answer == "no"' sized --world 16 --layout tp2
no 'predict beyond the memory' '.fits == false and .peak_bytes > 0' \
    sized --layout tp1/ep8
no 'plan beyond the cluster' '.plans == [] and .searched.priced == 0' \
    moefold plan --model "$small" --cluster dgx-h100:1 --world 16 \
    --global-batch 16
no 'plan with a size that no layout has' '.plans == [] and .rejected == {}' \
    moefold plan --model "$small" --cluster dgx-h100:1 --global-batch 8 \
    --fix tp=3
no 'no best run' '.runs == []' moefold history best --model nosuch

# ---- a plan that no job could run
moefold plan --model "$mixtral" --cluster dgx-h100:16 --global-batch 256 \
    --dispatcher deepep --output deepep.json >"$T/.log"
bad 'a dispatcher that moefold-run does not have' 2 \
    'layout 1: .*does not execute.*dispatchers.*--dispatcher alltoall' \
    moefold launch deepep.json

# ---- usage
bad 'a plan and what it already says' 2 'leave out --seq' \
    moefold explain two.json --seq 8
bad 'a pick of no plan' 2 '--pick' moefold explain --pick 2 --layout tp2
bad 'an order that leaves an axis out' 2 'leaves out' \
    moefold explain --model "$mixtral" --cluster dgx-h100:1 \
    --global-batch 64 --layout tp2/ep4 --order tp-dp
bad 'chunks that no micro batch suits' 2 'multiples of pp 2' sized \
    --layout pp2.dp4/ep4 --global-batch 12 --vpp 2 --micro-batch auto
bad 'no command' 2 'no command' moefold
bad 'an unknown command' 2 "unknown command 'paln'" moefold paln
for command in model cluster groups predict plan launch map history fit; do
    bad "$command: an unknown option" 2 "unknown option '--nosuch'" \
        moefold "$command" --nosuch
done
bad 'an option without its value' 2 'needs a value' moefold predict --layout
bad 'an operand too many' 2 'too many' moefold model a b
bad 'no global batch' 2 'global' moefold plan --model "$small" \
    --cluster dgx-h100:1
bad 'no model' 2 'model' moefold plan --cluster dgx-h100:1 --global-batch 8
bad 'a number that is none' 2 'seq' moefold plan --model "$small" \
    --cluster dgx-h100:1 --global-batch 8 --seq 4x
bad 'a recompute that is none' 2 'recompute' sized --layout tp2 \
    --recompute some

done_testing
