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
expect 'an encoder' 2 moefold model t5.json
expect_error 'is named' 'model_type is t5: a model with an encoder is not read$'

done_testing
