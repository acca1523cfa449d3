/* SPDX-License-Identifier: BSD-3-Clause
 * Parameter counts against what the publishers print, and against the sizes
 * of the tensors in a checkpoint, written out one by one.
 */
#include "tests/unit/model/support.h"

#include <inttypes.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void must_read(const char *name, struct mf_model *model)
{
    struct mf_error err = {0};

    if (mf_model_read(support_data(name), model, &err))
        fail_msg("%s", err.text);
}

/* Billions, as printed; LAST is the place of the last printed digit. */
struct published {
    const char *name;
    double total, active, last_total, last_active;
    const char *source;
};

/* A last digit of 2 stands where a card cuts instead of rounding, or names a
 * model by less than it holds.
 */
static const struct published published_table[] = {
    {"Mixtral-8x7B-v0.1.json", 46.7, 12.9, .1, .1, "ollama model page"},
    {"Qwen1.5-MoE-A2.7B.json", 14.3, 2.7, .1, .1, "NVIDIA-NeMo/Automodel docs"},
    {"Qwen3-30B-A3B.json", 30.5, 3.3, .1, .1, "Qwen3-30B-A3B model card"},
    {"Qwen3-235B-A22B-FP8-simai.json", 235, 22, 1, 1, "NVIDIA-NeMo docs"},
    {"Qwen3-Next-80B-A3B.json", 80, 3, 1, 2,
        "NVIDIA-NeMo/Megatron-Bridge docs"},
    {"Qwen3-VL-30B-A3B-Instruct.json", 30.5, 3.3, .1, .1,
        "text part = Qwen3-30B-A3B"},
    {"Qwen3.5-35B-A3B.json", 35, 3, 1, 1, "NVIDIA-NeMo/Megatron-Bridge docs"},
    {"DeepSeek-V2-Lite.json", 15.7, 2.4, .1, .1,
        "deepseek-ai/DeepSeek-V2 README"},
    {"DeepSeek-V3.json", 671, 37, 1, 1, "deepseek-ai/DeepSeek-V3 README"},
    {"DeepSeek-V3-simai-renamed-keys.json", 671, 37, 1, 1,
        "deepseek-ai/DeepSeek-V3 README"},
    {"DeepSeek-V3.2.json", 671, 37, 1, 1,
        "DeepSeek-V3 shape plus the sparse-attent"},
    {"deepseek-native-671B.json", 671, 37, 1, 1,
        "deepseek-ai/DeepSeek-V3 README"},
    {"DeepseekV3-16B-moonlight-shape.json", 16, 3, 1, 1,
        "MoonshotAI Moonlight README"},
    {"Kimi-K2-Instruct.json", 1000, 32, 1000, 1, "Kimi-K2 README, 1T"},
    {"Kimi-K3.json", 2800, 104, 1, 1, "NVIDIA-NeMo/Automodel docs"},
    {"GLM-4.5.json", 355, 32, 1, 1, "GLM-4.5 README"},
    {"gpt-oss-20b.json", 20.9, 3.6, .1, .1,
        "gpt-oss card as quoted in NVIDIA NeMo do"},
    {"dbrx-instruct.json", 132, 36, 1, 1, "databricks/dbrx README"},
    {"Phi-3.5-MoE-instruct.json", 41.9, 6.6, .1, .1,
        "model card / sgl-project/ome fixture"},
    {"Llama-4-Scout-17B-16E-Instruct.json", 109, 17, 1, 1,
        "huggingface.co/blog/llama4-release"},
    {"MiniMax-Text-01.json", 456, 45.9, 1, .1, "MiniMax-AI/MiniMax-01 README"},
    {"MiniMax-M2.5.json", 230, 10, 1, 1, "model card"},
    {"Hunyuan-A13B.json", 80, 13, 1, 1, "Tencent-Hunyuan/Hunyuan-A13B README"},
    {"Ling-lite-base.json", 16.8, 2.75, .1, .01, "inclusionAI/Ling README"},
    {"Ling-plus-chat.json", 290, 28.8, 1, .1, "inclusionAI/Ling README"},
    {"Ling-mini-2.0.json", 16.26, 1.43, .01, .01, "inclusionAI/Ling-V2 README"},
    {"MiMo-V2-Flash.json", 309, 15, 1, 1, "NVIDIA-NeMo/Megatron-Bridge docs"},
    {"Nemotron-3-Nano-30B-A3B.json", 31.6, 3.2, .1, .1, "model card"},
    {"OLMoE-1B-7B-0924.json", 6.9, 1.3, .1, .1, "allenai/OLMoE README"},
    {"Jamba-v0.1.json", 52, 12, 1, 1, "AI21 model card"},
    {"Arctic-instruct.json", 480, 17, 1, 1,
        "Snowflake-Labs/snowflake-arctic README"},
    {"JetMoE-8B.json", 8, 2.2, 2, .1, "jetmoe README"},
    {"granite-3.0-3b-a800m-instruct.json", 3.3, 0.8, .1, .1,
        "ibm-granite 3.0 model card table"},
    {"ERNIE-4.5-21B-A3B-PT.json", 21, 3, 2, 1,
        "transformers docs ernie4_5_moe"},
    {"Yuan2-M32.json", 40, 3.7, 1, .1, "IEIT-Yuan/Yuan2.0-M32 README"},
    {"mixtral-7b-8expert-discoresearch.json", 46.7, 12.9, .1, .1,
        "same weights as Mixtral-8x7B"},
    {"gemma-4-26B-A4B.json", 26, 4, 2, 1, "NVIDIA-NeMo docs"},
    {"GigaChat-20B-A3B.json", 20, 3, 2, 1, "ai-sage model card"},
    {"OpenMoE-8B.json", 8, 2.1, 2, .1, "OpenMoE README / ColossalAI example"},
    {"dense-Llama-3-8B.json", 8.03, 8.03, .01, .01, "Meta model card"},
    {"dense-Qwen2.5-7B.json", 7.62, 7.62, .01, .01, "Qwen model card"},
    {"dense-Qwen3-32B.json", 32.8, 32.8, .1, .1, "Qwen model card"},
    {"dense-Llama-3_3-Nemotron-Super-49B-v1.json", 49.9, 49.9, .1, .1,
        "NVIDIA model card"},
    {"dense-chatglm3-6b.json", 6.24, 6.24, .01, .01, "THUDM model card"},
    {"Mixtral-8x22B-v0.1/config.json", 141, 39, 1, 1,
        "Mistral card as quoted by vercel and oll"},
    {"Qwen2-57B-A14B.json", 57.4, 14.2, .1, .1, "Qwen2-57B-A14B model card"},
    {"Qwen3-235B-A22B.json", 235, 22, 1, 1, "NVIDIA-NeMo docs"},
};

static int near_published(
    double count, double billions, double share, double last)
{
    double b = count / 1e9;

    return fabs(b / billions - 1) <= share || fabs(b - billions) <= last / 2;
}

static void counts_equal_published(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof published_table / sizeof *published_table;
         i++) {
        const struct published *p = &published_table[i];
        struct mf_model m;

        must_read(p->name, &m);
        if (!near_published(
                (double)m.params.total, p->total, .015, p->last_total))
            fail_msg("%s: total %" PRId64 ", %s says %g billion", p->name,
                m.params.total, p->source, p->total);
        if (!near_published(
                (double)m.params.active, p->active, .06, p->last_active) &&
            !near_published((double)m.params.active_no_embedding, p->active,
                .06, p->last_active))
            fail_msg("%s: active %" PRId64 ", %s says %g billion", p->name,
                m.params.active, p->source, p->active);
        mf_model_free(&m);
    }
}

/* Families of which no file is here: their shapes as the cards and reports of
 * the models print them, each with its counts.
 */
static void shape_check(const json_t *row, const char *name)
{
    double total = json_number_value(json_object_get(row, "total"));
    double active = json_number_value(json_object_get(row, "active"));
    struct mf_error err = {0};
    struct mf_model m;

    if (support_read(
            json_deep_copy(json_object_get(row, "config")), "shape", &m, &err))
        fail_msg("%s: %s", name, err.text);
    if (!near_published((double)m.params.total, total, .015, 1))
        fail_msg("%s: total %" PRId64 ", not %g billion", name, m.params.total,
            total);
    if (active > 0 &&
        !near_published((double)m.params.active, active, .06, 1) &&
        !near_published((double)m.params.active_no_embedding, active, .06, 1))
        fail_msg("%s: active %" PRId64 ", not %g billion", name,
            m.params.active, active);
    mf_model_free(&m);
}

static void shapes_equal_cards(void **state)
{
    FILE *in = fopen(support_data("shapes.jsonl"), "r");
    json_t *row;
    int rows = 0;

    (void)state;
    assert_non_null(in);
    while ((row = json_loadf(in, JSON_DISABLE_EOF_CHECK, NULL))) {
        shape_check(row, json_string_value(json_object_get(row, "name")));
        json_decref(row);
        rows++;
    }
    assert_int_equal(fclose(in), 0);
    assert_true(rows > 30);
}

/* Tensors of the checkpoint, rows x columns, as many times over. */
struct tensor {
    int64_t times, rows, columns;
    const char *name;
};

struct checkpoint {
    const char *name;
    struct tensor tensor[24];
};

static const struct checkpoint checkpoint_table[] = {
    {"Mixtral-8x22B-v0.1/config.json",
        {
            {1, 32000, 6144, "embed_tokens"},
            {1, 32000, 6144, "lm_head"},
            {56, 6144, 6144, "q_proj"},
            {56, 1024, 6144, "k_proj"},
            {56, 1024, 6144, "v_proj"},
            {56, 6144, 6144, "o_proj"},
            {56, 8, 6144, "gate"},
            {56 * 8, 16384, 6144, "w1"},
            {56 * 8, 6144, 16384, "w2"},
            {56 * 8, 16384, 6144, "w3"},
            {56 * 2 + 1, 1, 6144, "layernorms"},
        }},
    {"Qwen2-57B-A14B.json",
        {
            {2, 151936, 3584, "embed_tokens, lm_head"},
            {28, 3584, 3584, "q_proj"},
            {28, 1, 3584, "q_proj.bias"},
            {28 * 2, 512, 3584, "k_proj, v_proj"},
            {28 * 2, 1, 512, "k_proj.bias, v_proj.bias"},
            {28, 3584, 3584, "o_proj"},
            {28, 64, 3584, "gate"},
            {28 * 64 * 3, 2560, 3584, "experts"},
            {28 * 3, 20480, 3584, "shared_expert"},
            {28, 1, 3584, "shared_expert_gate"},
            {28 * 2 + 1, 1, 3584, "layernorms"},
        }},
    {"Qwen3-30B-A3B.json",
        {
            {2, 151936, 2048, "embed_tokens, lm_head"},
            {48, 4096, 2048, "q_proj"},
            {48 * 2, 512, 2048, "k_proj, v_proj"},
            {48, 2048, 4096, "o_proj"},
            {48 * 2, 1, 128, "q_norm, k_norm"},
            {48, 128, 2048, "gate"},
            {48 * 128 * 3, 768, 2048, "experts"},
            {48 * 2 + 1, 1, 2048, "layernorms"},
        }},
    {"OLMoE-1B-7B-0924.json",
        {
            {2, 50304, 2048, "embed_tokens, lm_head"},
            {16 * 4, 2048, 2048, "q_proj, k_proj, v_proj, o_proj"},
            {16 * 2, 1, 2048, "q_norm, k_norm"},
            {16, 64, 2048, "gate"},
            {16 * 64 * 3, 1024, 2048, "experts"},
            {16 * 2 + 1, 1, 2048, "layernorms"},
        }},
    {"granite-3.0-3b-a800m-instruct.json",
        {
            {1, 49155, 1536, "embed_tokens, also the head"},
            {32 * 2, 1536, 1536, "q_proj, o_proj"},
            {32 * 2, 512, 1536, "k_proj, v_proj"},
            {32, 40, 1536, "router.layer"},
            {32 * 40, 1024, 1536, "input_linear"},
            {32 * 40, 1536, 512, "output_linear"},
            {32 * 2 + 1, 1, 1536, "layernorms"},
        }},
    {"DeepSeek-V2-Lite.json",
        {
            {2, 102400, 2048, "embed_tokens, lm_head"},
            {27, 3072, 2048, "q_proj"},
            {27, 576, 2048, "kv_a_proj_with_mqa"},
            {27, 1, 512, "kv_a_layernorm"},
            {27, 4096, 512, "kv_b_proj"},
            {27, 2048, 2048, "o_proj"},
            {3, 10944, 2048, "the dense layer"},
            {26, 64, 2048, "gate"},
            {26 * 64 * 3, 1408, 2048, "experts"},
            {26 * 3, 2816, 2048, "shared_experts"},
            {27 * 2 + 1, 1, 2048, "layernorms"},
        }},
    {"DeepSeek-V3.json",
        {
            {2, 129280, 7168, "embed_tokens, lm_head"},
            {61, 1536, 7168, "q_a_proj"},
            {61, 1, 1536, "q_a_layernorm"},
            {61, 24576, 1536, "q_b_proj"},
            {61, 576, 7168, "kv_a_proj_with_mqa"},
            {61, 1, 512, "kv_a_layernorm"},
            {61, 32768, 512, "kv_b_proj"},
            {61, 7168, 16384, "o_proj"},
            {3 * 3, 18432, 7168, "dense layers"},
            {58, 256, 7168, "gate"},
            {58, 1, 256, "e_score_correction_bias"},
            {58 * 256 * 3, 2048, 7168, "experts"},
            {58 * 3, 2048, 7168, "shared_experts"},
            {61 * 2 + 1, 1, 7168, "layernorms"},
        }},
    {"gpt-oss-20b.json",
        {
            {2, 201088, 2880, "embed_tokens, lm_head"},
            {24, 4096, 2880, "q_proj"},
            {24 * 2, 512, 2880, "k_proj, v_proj"},
            {24, 2880, 4096, "o_proj"},
            {24, 1, 4096 + 2 * 512 + 2880, "biases of the four"},
            {24, 1, 64, "sinks"},
            {24, 32, 2880 + 1, "router and its bias"},
            {24 * 32, 5760, 2880 + 1, "gate_up_proj and its bias"},
            {24 * 32, 2880, 2880 + 1, "down_proj and its bias"},
            {24 * 2 + 1, 1, 2880, "layernorms"},
        }},
    {"Jamba-v0.1.json",
        {
            {2, 65536, 4096, "embed_tokens, lm_head"},
            {4 * 2, 4096, 4096, "q_proj, o_proj"},
            {4 * 2, 1024, 4096, "k_proj, v_proj"},
            {28, 16384, 4096, "in_proj"},
            {28, 8192, 4 + 1, "conv1d and its bias"},
            {28, 256 + 2 * 16, 8192, "x_proj"},
            {28, 8192, 256 + 1, "dt_proj and its bias"},
            {28, 8192, 16 + 1, "A_log, D"},
            {28, 4096, 8192, "out_proj"},
            {28, 1, 256 + 2 * 16, "norms of dt, B and C"},
            {16 * 3, 14336, 4096, "feed_forward"},
            {16, 16, 4096, "router"},
            {16 * 16 * 3, 14336, 4096, "experts"},
            {32 * 2 + 1, 1, 4096, "layernorms"},
        }},
    {"Nemotron-3-Nano-30B-A3B.json",
        {
            {2, 131072, 2688, "embeddings, lm_head"},
            {23, 4096 + 6144 + 64, 2688, "in_proj"},
            {23, 6144, 4 + 1, "conv1d and its bias"},
            {23, 3, 64, "A_log, D, dt_bias"},
            {23, 1, 4096, "the norm before out_proj"},
            {23, 2688, 4096, "out_proj"},
            {6 * 2, 4096, 2688, "q_proj, o_proj"},
            {6 * 2, 256, 2688, "k_proj, v_proj"},
            {23, 128, 2688 + 1, "gate and its correction"},
            {23 * 128 * 2, 1856, 2688, "experts"},
            {23 * 2, 3712, 2688, "shared_experts"},
            {52 + 1, 1, 2688, "norms"},
        }},
    {"Qwen3-Next-80B-A3B.json",
        {
            {2, 151936, 2048, "embed_tokens, lm_head"},
            {36, 2 * 2048 + 2 * 4096, 2048, "in_proj_qkvz"},
            {36, 64, 2048, "in_proj_ba"},
            {36, 2 * 2048 + 4096, 4, "conv1d"},
            {36, 2, 32, "dt_bias, A_log"},
            {36, 1, 128, "norm"},
            {36, 2048, 4096, "out_proj"},
            {12, 2 * 4096, 2048, "q_proj with its gate"},
            {12 * 2, 512, 2048, "k_proj, v_proj"},
            {12, 2048, 4096, "o_proj"},
            {12 * 2, 1, 256, "q_norm, k_norm"},
            {48, 512, 2048, "gate"},
            {48 * 512 * 3, 512, 2048, "experts"},
            {48 * 3, 512, 2048, "shared_expert"},
            {48, 1, 2048, "shared_expert_gate"},
            {48 * 2 + 1, 1, 2048, "layernorms"},
        }},
    {"MiniMax-Text-01.json",
        {
            {2, 200064, 6144, "embed_tokens, lm_head"},
            {70, 3 * 8192, 6144, "qkv_proj"},
            {70, 8192, 6144, "output_gate"},
            {70, 6144, 8192, "out_proj"},
            {70, 1, 8192, "norm"},
            {10, 8192, 6144, "q_proj"},
            {10 * 2, 1024, 6144, "k_proj, v_proj"},
            {10, 6144, 8192, "o_proj"},
            {80, 32, 6144, "gate"},
            {80 * 32 * 3, 9216, 6144, "experts"},
            {80 * 2 + 1, 1, 6144, "layernorms"},
        }},
    {"dense-chatglm3-6b.json",
        {
            {2, 65024, 4096, "word_embeddings, output_layer"},
            {28, 4096 + 2 * 256, 4096 + 1, "query_key_value and its bias"},
            {28, 4096, 4096, "dense"},
            {28 * 3, 13696, 4096, "mlp"},
            {28 * 2 + 1, 1, 4096, "layernorms"},
        }},
    {"dense-Llama-3-8B.json",
        {
            {2, 128256, 4096, "embed_tokens, lm_head"},
            {32 * 2, 4096, 4096, "q_proj, o_proj"},
            {32 * 2, 1024, 4096, "k_proj, v_proj"},
            {32 * 3, 14336, 4096, "mlp"},
            {32 * 2 + 1, 1, 4096, "layernorms"},
        }},
};

static void counts_equal_checkpoints(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof checkpoint_table / sizeof *checkpoint_table;
         i++) {
        const struct checkpoint *c = &checkpoint_table[i];
        struct mf_model m;
        int64_t sum = 0;

        for (const struct tensor *t = c->tensor; t->name; t++)
            sum += t->times * t->rows * t->columns;
        must_read(c->name, &m);
        if (m.params.total != sum)
            fail_msg("%s: %" PRId64 ", its tensors have %" PRId64, c->name,
                m.params.total, sum);
        mf_model_free(&m);
    }
}

/* Of 8 experts of 3 * 16384 * 6144 parameters, 2 work for a token. */
static void active_leaves_out_idle_experts(void **state)
{
    struct mf_model m;

    (void)state;
    must_read("Mixtral-8x22B-v0.1/config.json", &m);
    assert_int_equal(mf_model_expert_params(&m), 301989888);
    assert_int_equal(
        m.params.total - m.params.active, INT64_C(56) * 6 * 301989888);
    assert_int_equal(
        m.params.active - m.params.active_no_embedding, 32000 * 6144);
    assert_int_equal(m.params.embedding, 2 * 32000 * 6144);
    assert_int_equal(m.params.mtp, 0);
    assert_int_equal(m.params.vision, 0);
    mf_model_free(&m);
}

/* A tied table is left out whole: 49155 * 1536 = 75502080. */
static void active_of_tied_tables(void **state)
{
    struct mf_model m;

    (void)state;
    must_read("granite-3.0-3b-a800m-instruct.json", &m);
    assert_true(m.tied_embeddings);
    assert_int_equal(m.params.embedding, 75502080);
    assert_int_equal(m.params.active - m.params.active_no_embedding, 75502080);
    mf_model_free(&m);
}

/* README_WEIGHTS of DeepSeek-V3: 11.5 billion of its own for one module. */
static void mtp_equals_published(void **state)
{
    struct mf_model m;

    (void)state;
    must_read("DeepSeek-V3.json", &m);
    assert_int_equal(m.mtp_layers, 1);
    assert_true(fabs((double)m.params.mtp / 11.5e9 - 1) < .015);
    mf_model_free(&m);
}

static void dense_has_no_experts(void **state)
{
    struct mf_model m;

    (void)state;
    must_read("dense-Qwen3-32B.json", &m);
    assert_int_equal(m.experts, 0);
    assert_int_equal(m.topk, 0);
    assert_int_equal(m.moe_ffn, 0);
    assert_int_equal(m.params.routed, 0);
    assert_int_equal(m.params.router, 0);
    assert_int_equal(m.params.active, m.params.total);
    assert_int_equal(mf_model_count(&m, MF_FFN_DENSE), 64);
    mf_model_free(&m);
}

static void counts_refuse_overflow(void **state)
{
    struct mf_layer_kind kind[1000];
    struct mf_model m = {.layers = 1000,
        .hidden = 1 << 24,
        .vocab = 1000,
        .heads = 1,
        .kv_heads = 1,
        .head_dim = 1,
        .moe_ffn = 1 << 28,
        .experts = 1 << 20,
        .topk = 1,
        .layer_kind = kind};
    struct mf_error err = {0};

    (void)state;
    for (size_t i = 0; i < 1000; i++)
        kind[i] = (struct mf_layer_kind){MF_MIXER_FULL, MF_FFN_MOE};
    assert_int_equal(mf_model_count_params(&m, &err), -1);
    assert_int_equal(err.status, MF_INVALID);
    assert_non_null(strstr(err.text, "64 bits"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(counts_equal_published),
        cmocka_unit_test(shapes_equal_cards),
        cmocka_unit_test(counts_equal_checkpoints),
        cmocka_unit_test(active_leaves_out_idle_experts),
        cmocka_unit_test(active_of_tied_tables),
        cmocka_unit_test(mtp_equals_published),
        cmocka_unit_test(dense_has_no_experts),
        cmocka_unit_test(counts_refuse_overflow),
    };

    return cmocka_run_group_tests_name(
        "model counts", tests, NULL, support_clean);
}
