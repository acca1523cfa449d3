# SPDX-License-Identifier: BSD-3-Clause
command_tests += tests/command/t0110-model.t
unit_tests += tests/unit/model/test_counts
tests_unit_model_test_counts_CFLAGS = $(UNIT_CFLAGS) $(JANSSON_CFLAGS)
tests_unit_model_test_counts_SOURCES = \
    tests/unit/model/test_counts.c \
    tests/unit/model/support.c tests/unit/model/support.h
tests_unit_model_test_counts_LDADD = libmoefold-planner.a libmoefold-layout.a \
    $(JANSSON_LIBS) $(YAML_LIBS) $(UNIT_LIBS)

unit_tests += tests/unit/model/test_json
tests_unit_model_test_json_CFLAGS = $(UNIT_CFLAGS) $(JANSSON_CFLAGS)
tests_unit_model_test_json_SOURCES = \
    tests/unit/model/test_json.c \
    tests/unit/model/support.c tests/unit/model/support.h
tests_unit_model_test_json_LDADD = libmoefold-planner.a libmoefold-layout.a \
    $(JANSSON_LIBS) $(YAML_LIBS) $(UNIT_LIBS)

unit_tests += tests/unit/model/test_read
tests_unit_model_test_read_CFLAGS = $(UNIT_CFLAGS) $(JANSSON_CFLAGS)
tests_unit_model_test_read_SOURCES = \
    tests/unit/model/test_read.c \
    tests/unit/model/support.c tests/unit/model/support.h
tests_unit_model_test_read_LDADD = libmoefold-planner.a libmoefold-layout.a \
    $(JANSSON_LIBS) $(YAML_LIBS) $(UNIT_LIBS)

unit_tests += tests/unit/model/test_megatron
tests_unit_model_test_megatron_CFLAGS = $(UNIT_CFLAGS) $(JANSSON_CFLAGS)
tests_unit_model_test_megatron_SOURCES = \
    tests/unit/model/test_megatron.c \
    tests/unit/model/support.c tests/unit/model/support.h
tests_unit_model_test_megatron_LDADD = libmoefold-planner.a \
    libmoefold-layout.a $(JANSSON_LIBS) $(YAML_LIBS) $(UNIT_LIBS)

unit_tests += tests/unit/model/test_mutants
tests_unit_model_test_mutants_CFLAGS = $(UNIT_CFLAGS) $(JANSSON_CFLAGS)
tests_unit_model_test_mutants_SOURCES = \
    tests/unit/model/test_mutants.c \
    tests/unit/model/support.c tests/unit/model/support.h
tests_unit_model_test_mutants_LDADD = libmoefold-planner.a libmoefold-layout.a \
    $(JANSSON_LIBS) $(YAML_LIBS) $(UNIT_LIBS)

megatron_data = tests/data/models/megatron
EXTRA_DIST += \
    tests/data/models/Arctic-instruct.json \
    tests/data/models/DeepSeek-V2-Lite.json \
    tests/data/models/DeepSeek-V3-simai-renamed-keys.json \
    tests/data/models/DeepSeek-V3.2.json \
    tests/data/models/DeepSeek-V3.json \
    tests/data/models/DeepSeek-V4-Pro.json \
    tests/data/models/DeepseekV3-16B-moonlight-shape.json \
    tests/data/models/ERNIE-4.5-21B-A3B-PT.json \
    tests/data/models/GLM-4.5.json \
    tests/data/models/GigaChat-20B-A3B.json \
    tests/data/models/Hunyuan-A13B.json \
    tests/data/models/Jamba-v0.1.json \
    tests/data/models/JetMoE-8B.json \
    tests/data/models/Kimi-K2-Instruct.json \
    tests/data/models/Kimi-K3.json \
    tests/data/models/Ling-lite-base.json \
    tests/data/models/Ling-mini-2.0.json \
    tests/data/models/Ling-plus-chat.json \
    tests/data/models/Llama-4-Scout-17B-16E-Instruct.json \
    tests/data/models/MiMo-V2-Flash.json \
    tests/data/models/MiniMax-M2.5.json \
    tests/data/models/MiniMax-Text-01.json \
    tests/data/models/Mixtral-8x22B-v0.1/config.json \
    tests/data/models/Mixtral-8x7B-v0.1.json \
    tests/data/models/Nemotron-3-Nano-30B-A3B.json \
    tests/data/models/OLMoE-1B-7B-0924.json \
    tests/data/models/OpenMoE-8B.json \
    tests/data/models/Phi-3.5-MoE-instruct.json \
    tests/data/models/Qwen1.5-MoE-A2.7B.json \
    tests/data/models/Qwen2-57B-A14B.json \
    tests/data/models/Qwen3-235B-A22B-FP8-simai.json \
    tests/data/models/Qwen3-235B-A22B.json \
    tests/data/models/Qwen3-30B-A3B.json \
    tests/data/models/Qwen3-Next-80B-A3B.json \
    tests/data/models/Qwen3-VL-30B-A3B-Instruct.json \
    tests/data/models/Qwen3.5-35B-A3B.json \
    tests/data/models/README.md \
    tests/data/models/Yuan2-M32.json \
    tests/data/models/aicb-deepseek-default.json \
    tests/data/models/dbrx-instruct.json \
    tests/data/models/deepseek-native-671B.json \
    tests/data/models/dense-Llama-3-8B.json \
    tests/data/models/dense-Llama-3_3-Nemotron-Super-49B-v1.json \
    tests/data/models/dense-Qwen2.5-7B.json \
    tests/data/models/dense-Qwen3-32B.json \
    tests/data/models/dense-chatglm3-6b.json \
    tests/data/models/gemma-4-26B-A4B.json \
    tests/data/models/gpt-oss-20b.json \
    tests/data/models/granite-3.0-3b-a800m-instruct.json \
    $(megatron_data)/megatron-lm-mixtral_8x7b_tp1pp4ep8vpp8_release.yaml \
    tests/data/models/megatron/modelzoo-DeepSeek-V3-Proxy.yaml \
    tests/data/models/megatron/modelzoo-DeepSeek-V3.yaml \
    tests/data/models/megatron/modelzoo-Mixtral-8x22B.yaml \
    tests/data/models/megatron/modelzoo-Qwen3-Next-80B-A3B.yaml \
    tests/data/models/megatron/primus/language_model.yaml \
    tests/data/models/megatron/primus/llama_base.yaml \
    tests/data/models/megatron/primus/mixtral_8x7B_v0.1.yaml \
    tests/data/models/megatron/primus/mixtral_base.yaml \
    tests/data/models/megatron/primus/primus_megatron_model.yaml \
    tests/data/models/megatron/slime-glm4.5-355B-A32B.args \
    tests/data/models/mixtral-7b-8expert-discoresearch.json \
    tests/data/models/shapes.jsonl \
    tests/data/models/small-moe/config.json
