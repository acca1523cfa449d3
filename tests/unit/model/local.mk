# SPDX-License-Identifier: BSD-3-Clause
command_tests += tests/command/t0110-model.t
unit_tests += tests/unit/model/test_counts
tests_unit_model_test_counts_CFLAGS = $(UNIT_CFLAGS) $(JANSSON_CFLAGS)
tests_unit_model_test_counts_SOURCES = \
    tests/unit/model/test_counts.c \
    tests/unit/model/support.c tests/unit/model/support.h
tests_unit_model_test_counts_LDADD = libmoefold-planner.a libmoefold-layout.a \
    $(JANSSON_LIBS) $(UNIT_LIBS)

unit_tests += tests/unit/model/test_json
tests_unit_model_test_json_CFLAGS = $(UNIT_CFLAGS) $(JANSSON_CFLAGS)
tests_unit_model_test_json_SOURCES = \
    tests/unit/model/test_json.c \
    tests/unit/model/support.c tests/unit/model/support.h
tests_unit_model_test_json_LDADD = libmoefold-planner.a libmoefold-layout.a \
    $(JANSSON_LIBS) $(UNIT_LIBS)

unit_tests += tests/unit/model/test_read
tests_unit_model_test_read_CFLAGS = $(UNIT_CFLAGS) $(JANSSON_CFLAGS)
tests_unit_model_test_read_SOURCES = \
    tests/unit/model/test_read.c \
    tests/unit/model/support.c tests/unit/model/support.h
tests_unit_model_test_read_LDADD = libmoefold-planner.a libmoefold-layout.a \
    $(JANSSON_LIBS) $(UNIT_LIBS)

unit_tests += tests/unit/model/test_mutants
tests_unit_model_test_mutants_CFLAGS = $(UNIT_CFLAGS) $(JANSSON_CFLAGS)
tests_unit_model_test_mutants_SOURCES = \
    tests/unit/model/test_mutants.c \
    tests/unit/model/support.c tests/unit/model/support.h
tests_unit_model_test_mutants_LDADD = libmoefold-planner.a libmoefold-layout.a \
    $(JANSSON_LIBS) $(UNIT_LIBS)

EXTRA_DIST += \
    tests/data/models/DeepSeek-V2-Lite.json \
    tests/data/models/DeepSeek-V3-simai-renamed-keys.json \
    tests/data/models/DeepSeek-V3.2.json \
    tests/data/models/DeepSeek-V3.json \
    tests/data/models/DeepseekV3-16B-moonlight-shape.json \
    tests/data/models/GigaChat-20B-A3B.json \
    tests/data/models/Jamba-v0.1.json \
    tests/data/models/Kimi-K2-Instruct.json \
    tests/data/models/Mixtral-8x22B-v0.1/config.json \
    tests/data/models/Mixtral-8x7B-v0.1.json \
    tests/data/models/OLMoE-1B-7B-0924.json \
    tests/data/models/Qwen1.5-MoE-A2.7B.json \
    tests/data/models/Qwen2-57B-A14B.json \
    tests/data/models/Qwen3-235B-A22B-FP8-simai.json \
    tests/data/models/Qwen3-235B-A22B.json \
    tests/data/models/Qwen3-30B-A3B.json \
    tests/data/models/Qwen3-Next-80B-A3B.json \
    tests/data/models/Qwen3-VL-30B-A3B-Instruct.json \
    tests/data/models/README.md \
    tests/data/models/dense-Llama-3-8B.json \
    tests/data/models/dense-Qwen2.5-7B.json \
    tests/data/models/dense-Qwen3-32B.json \
    tests/data/models/granite-3.0-3b-a800m-instruct.json \
    tests/data/models/mixtral-7b-8expert-discoresearch.json \
    tests/data/models/small-moe/config.json
