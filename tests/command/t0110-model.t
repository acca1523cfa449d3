#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# model: what it prints, and what it refuses.
. "${MOEFOLD_SRCDIR:?}/tests/command/lib.sh"

M=$SRC/tests/data/models

expect 'reads Mixtral' 0 moefold model "$M/Mixtral-8x22B-v0.1/config.json"
expect_line 'says its name and size' \
    '^Mixtral-8x22B-v0\.1: 140\.6 B parameters, 39\.2 B of them active'
expect_line 'says its layers' '^ +layers +56, all MoE$'
expect_line 'says its attention' 'GQA, 48 heads of 128, 8 of keys'
expect_line 'says its experts' 'experts +8, each 16384 wide, gated silu; 2 '

expect 'shows parts' 0 moefold model --verbose "$M/DeepSeek-V3.json"
expect_line 'says MLA' 'MLA, 128 heads of 192'
expect_line 'names runs of layers' '58 of them MoE \(0-2 dense; 3-60 MoE\)'
# 58 layers of 256 experts of 3 matrices of 2048 x 7168.
expect_line 'counts the routed experts' 'routed experts +653908770816 '

expect 'prints JSON' 0 moefold model --json "$M/DeepSeek-V3.json"
expect_json 'of a mixture' '.name == "DeepSeek-V3" and .layers == 61 and
    .moe_layers == 58 and .experts == 256 and .topk == 8 and
    .router.score == "sigmoid" and .mla.kv_rank == 512 and
    .sliding_window == null and .params_vision == 0 and .warnings == []'
expect 'reads a dense model' 0 moefold model --json "$M/dense-Llama-3-8B.json"
expect_json 'without experts' '.experts == 0 and .mla == null and
    .params_active == .params_total and .params_total == 8030261248'

expect 'warns of a type that its weights contradict' 0 \
    moefold model "$M/mixtral-7b-8expert-discoresearch.json"
expect_line 'in words' 'warning: model_type is mistral, but'

expect 'no file' 2 moefold model
expect 'a missing file' 2 moefold model no/config.json
expect_error 'is named' '^moefold: model: no/config\.json: No such file'
expect 'a folder' 2 moefold model "$M/small-moe"
expect_error 'gets the mend' 'name the config\.json in it$'
printf '{"hidden_size": 1,\n "x" 2}\n' >broken.json
expect 'broken JSON' 2 moefold model --json broken.json
expect_error 'gets its place' '^moefold: model: broken\.json: line 2, column'
jq '.num_experts_per_tok = 12' "$M/Mixtral-8x22B-v0.1/config.json" \
    >config.json
expect 'more chosen than there are' 2 moefold model config.json
expect_error 'names key and figures' \
    ': model: config\.json: num_experts_per_tok is 12, more than 8 experts$'
jq '.architectures = [] | .model_type = "t5"' "$M/dense-Llama-3-8B.json" \
    >t5.json
expect 'reads Mamba layers' 0 moefold model --json "$M/Jamba-v0.1.json"
expect_json 'as such' '.mamba.inner == 8192 and .moe_layers == 16 and
    ([.layer_kinds[] | select(startswith("mamba"))] | length) == 28'
A=$M/megatron/megatron-lm-mixtral_8x7b_tp1pp4ep8vpp8_release.yaml
if moefold model "$A" 2>&1 | grep -q "built without"; then
    skip 'Megatron arguments in YAML' 'no libyaml in this build'
else
    expect 'reads Megatron arguments' 0 moefold model --json "$A"
    expect_json 'as a model and a layout' '.params_total == 46702792704 and
        .megatron.tp == 2 and .megatron.etp == 1 and .megatron.pp == 4 and
        .megatron.etp_from == "expert-tensor-parallel-size" and
        .megatron.global_batch == 256'
    sed '/expert-tensor/d' "$A" >unset.yaml
    expect 'shows the layout of a file' 0 moefold model unset.yaml
    expect_line 'with the default of etp' 'tp2\.cp1\.pp4/etp2\.ep8 \(etp is tp'
    expect 'predicts the layout of a file' 0 moefold predict --json \
        --model unset.yaml --cluster dgx-h100:8
    expect_json 'with etp = tp' '.layout == "tp2.cp1.dp8.pp4/etp2.ep8.edp1" and
        (.notes | any(test("the layout is that of the model")))'
    expect 'plans the batch of a file' 0 moefold plan --json --top 1 \
        --model unset.yaml --cluster dgx-h100:8
    expect_json 'and its sequence' '.plans[0].global_batch == 256 and
        .plans[0].seq == 4096'
fi
printf '%s\n' '--num-layers 2 --hidden-size 64 --num-attention-heads $H' \
    >open.args
expect 'an argument without a value' 2 moefold model open.args
expect_error 'is named' 'num-attention-heads is \$H, a variable without'
printf '{"hidden_size": 8, "num_hidden_layers": 2, "hidden_size": 9}\n' \
    >twice.json
expect 'a key that stands twice' 2 moefold model twice.json
expect_error 'is named' 'line 1: hidden_size stands twice; keep the one'
jq '.model_type = "novel" | .architectures = ["NovelForCausalLM"] |
    .novel_rank = 64' "$M/Mixtral-8x7B-v0.1.json" >novel.json
expect 'reads a type that it does not know' 0 moefold model --json novel.json
expect_json 'with warnings' '(.warnings | length) == 2 and
    (.warnings[0] | test("novel.*assumed.*Mixtral")) and
    (.warnings[1] | test("novel_rank is not known")) and
    .params_total == 46702792704'

expect 'shows a hybrid' 0 moefold model --verbose \
    "$M/Nemotron-3-Nano-30B-A3B.json"
expect_line 'by its mixers' 'mixers +6 full attention, 23 none, 23 Mamba$'
expect_line 'and the Mamba layers' 'Mamba +2, 4096 channels, state of 128$'
expect 'an encoder' 2 moefold model t5.json
expect_error 'is named' 'model_type is t5: a model with an encoder is not read$'

done_testing
