/* SPDX-License-Identifier: BSD-3-Clause
 * Reading config.json: what the keys of each dialect mean, whatever their
 * order, and which files are refused or warned about.
 */
#include "tests/unit/model/support.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#define MIXTRAL "Mixtral-8x22B-v0.1/config.json"
#define QWEN2 "Qwen1.5-MoE-A2.7B.json"
#define DEEPSEEK "DeepSeek-V3.json"

/* JSON text that replaces a key; NULL ends, "" removes. */
struct edit {
    const char *key, *value;
};

static json_t *edited(const char *name, const struct edit *edit)
{
    json_t *json = support_json(name);

    for (; edit->key; edit++)
        if (!*edit->value)
            json_object_del(json, edit->key);
        else
            assert_int_equal(json_object_set_new(json, edit->key,
                                 json_loads(edit->value, JSON_DECODE_ANY, 0)),
                0);
    return json;
}

#define EDIT(...) ((const struct edit[]){__VA_ARGS__, {NULL, NULL}})

static void must_read(
    const char *name, const struct edit *edit, struct mf_model *model)
{
    struct mf_error err = {0};

    if (support_read(edited(name, edit), "edited", model, &err))
        fail_msg("%s", err.text);
}

static int64_t moe_layers(const char *name, const struct edit *edit)
{
    struct mf_model model;
    int64_t n;

    must_read(name, edit, &model);
    n = mf_model_count(&model, MF_FFN_MOE);
    mf_model_free(&model);
    return n;
}

static json_t *read_json(json_t *config, const char *name)
{
    struct mf_error err = {0};
    struct mf_model model;
    json_t *json;

    if (support_read(config, name, &model, &err))
        fail_msg("%s", err.text);
    json = mf_model_to_json(&model);
    assert_non_null(json);
    mf_model_free(&model);
    return json;
}

/* The same object with its keys in an order that SEED gives. */
static json_t *shuffled(const json_t *object, unsigned seed)
{
    json_t *out = json_object(), *left = json_copy((json_t *)object);

    while (json_object_size(left) > 0) {
        void *at = json_object_iter(left);
        seed = seed * 1103515245u + 12345u;
        for (size_t n = (seed >> 8) % json_object_size(left); n > 0; n--)
            at = json_object_iter_next(left, at);
        json_object_set(
            out, json_object_iter_key(at), json_object_iter_value(at));
        json_object_del(left, json_object_iter_key(at));
    }
    json_decref(left);
    return out;
}

static void order_of_keys_is_free(void **state)
{
    (void)state;
    for (const char *const *name = support_models; *name; name++) {
        json_t *config = support_json(*name);
        json_t *first = read_json(json_deep_copy(config), "order");

        for (unsigned seed = 1; seed <= 5; seed++) {
            json_t *next = read_json(shuffled(config, seed), "order");
            if (!json_equal(first, next))
                fail_msg("%s differs, seed %u", *name, seed);
            json_decref(next);
        }
        json_decref(first);
        json_decref(config);
    }
}

static void spellings_mean_the_same(void **state)
{
    static const char *const pair[][2] = {
        {"Mixtral-8x7B-v0.1.json", "mixtral-7b-8expert-discoresearch.json"},
        {"DeepSeek-V3.json", "DeepSeek-V3-simai-renamed-keys.json"},
        {"Qwen3-235B-A22B.json", "Qwen3-235B-A22B-FP8-simai.json"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof pair / sizeof *pair; i++) {
        json_t *a = read_json(support_json(pair[i][0]), "same");
        json_t *b = read_json(support_json(pair[i][1]), "same");

        json_object_del(a, "warnings");
        json_object_del(b, "warnings");
        json_object_del(a, "quantization");
        json_object_del(b, "quantization");
        json_object_del(a, "dtype");
        json_object_del(b, "dtype");
        if (!json_equal(a, b))
            fail_msg("%s and %s differ", pair[i][0], pair[i][1]);
        json_decref(a);
        json_decref(b);
    }
}

static void models_read_without_warnings(void **state)
{
    (void)state;
    for (const char *const *name = support_models; *name; name++) {
        struct mf_error err = {0};
        struct mf_model m;
        bool odd = strstr(*name, "discoresearch") || strstr(*name, "FP8") ||
                   strstr(*name, "aicb") || strstr(*name, "Yuan2") ||
                   strstr(*name, "Ling-mini");

        if (mf_model_read(support_data(*name), &m, &err))
            fail_msg("%s", err.text);
        if (m.warning && !odd)
            fail_msg("%s: %s", *name, m.warning[0]);
        if (!m.warning && odd)
            fail_msg("%s: no warning of what is odd in it", *name);
        mf_model_free(&m);
    }
}

static void name_is_of_folder_or_file(void **state)
{
    struct mf_model m;

    (void)state;
    assert_int_equal(mf_model_read(support_data(MIXTRAL), &m, NULL), 0);
    assert_string_equal(m.name, "Mixtral-8x22B-v0.1");
    mf_model_free(&m);
    assert_int_equal(mf_model_read(support_data(QWEN2), &m, NULL), 0);
    assert_string_equal(m.name, "Qwen1.5-MoE-A2.7B");
    mf_model_free(&m);
}

/* The cache names folders by revision, and files by what they hold. */
static void name_in_a_cache_is_of_the_model(void **state)
{
    static const char *const folders[] = {"/models--org--Some-Model-8x1B",
        "/models--org--Some-Model-8x1B/snapshots",
        "/models--org--Some-Model-8x1B/snapshots/0123abcd"};
    char path[3][PATH_SIZE], file[PATH_SIZE + 16], target[PATH_SIZE];
    struct mf_error err = {0};
    struct mf_model m;

    (void)state;
    for (int i = 0; i < 3; i++) {
        snprintf(path[i], PATH_SIZE, "%s%s", support_folder(), folders[i]);
        assert_int_equal(mkdir(path[i], 0700), 0);
    }
    assert_non_null(realpath(support_data(QWEN2), target));
    snprintf(file, sizeof file, "%s/config.json", path[2]);
    assert_int_equal(symlink(target, file), 0);
    if (mf_model_read(file, &m, &err))
        fail_msg("%s", err.text);
    assert_int_equal(unlink(file), 0);
    for (int i = 2; i >= 0; i--)
        assert_int_equal(rmdir(path[i]), 0);
    assert_string_equal(m.name, "Some-Model-8x1B");
    mf_model_free(&m);
}

static void mixtral_keys(void **state)
{
    struct mf_model m;

    (void)state;
    must_read(MIXTRAL, EDIT({"sliding_window", "4096"}), &m);
    assert_int_equal(m.layers, 56);
    assert_int_equal(m.hidden, 6144);
    assert_int_equal(m.heads, 48);
    assert_int_equal(m.kv_heads, 8);
    assert_int_equal(m.head_dim, 128);
    assert_int_equal(m.attention, MF_ATTENTION_GQA);
    assert_int_equal(m.moe_ffn, 16384);
    assert_int_equal(m.dense_ffn, 0);
    assert_int_equal(m.experts, 8);
    assert_int_equal(m.topk, 2);
    assert_int_equal(m.vocab, 32000);
    assert_true(m.gated && m.router.renormalize && !m.tied_embeddings);
    assert_int_equal(m.sliding_window, 4096);
    assert_int_equal(m.layer_kind[55].mixer, MF_MIXER_SLIDING);
    assert_string_equal(m.activation, "silu");
    mf_model_free(&m);
}

/* Layer i is MoE when (i + 1) is a multiple of the step and i is not listed:
 * of layers 0 to 23, the odd ones.
 */
static void qwen2_layers(void **state)
{
    struct mf_model m;

    (void)state;
    must_read(QWEN2, EDIT({"decoder_sparse_step", "2"}), &m);
    assert_int_equal(mf_model_count(&m, MF_FFN_MOE), 12);
    assert_int_equal(m.layer_kind[0].ffn, MF_FFN_DENSE);
    assert_int_equal(m.layer_kind[1].ffn, MF_FFN_MOE);
    assert_int_equal(m.dense_ffn, 5632);
    mf_model_free(&m);
    assert_int_equal(
        moe_layers(QWEN2, EDIT({"mlp_only_layers", "[0, 23]"})), 22);
    assert_int_equal(moe_layers(QWEN2, EDIT({"decoder_sparse_step", "5"})), 4);
}

static void qwen2_shared_expert(void **state)
{
    struct mf_model m;

    (void)state;
    must_read(QWEN2, EDIT({"use_cache", "true"}), &m);
    assert_int_equal(m.shared_experts, 1);
    assert_int_equal(m.shared_ffn, 5632);
    assert_true(m.shared_gate && m.qkv_bias && !m.out_bias);
    assert_false(m.router.renormalize);
    mf_model_free(&m);
    must_read(QWEN2, EDIT({"shared_expert_intermediate_size", "0"}), &m);
    assert_int_equal(m.shared_experts, 0);
    assert_false(m.shared_gate);
    assert_int_equal(m.params.shared, 0);
    mf_model_free(&m);
}

/* The window is written in the file but used only when the switch is on, and
 * then from layer max_window_layers = 21.
 */
static void qwen2_window(void **state)
{
    struct mf_model m;

    (void)state;
    must_read(QWEN2, EDIT({"use_cache", "true"}), &m);
    assert_int_equal(m.sliding_window, 0);
    mf_model_free(&m);
    must_read(QWEN2, EDIT({"use_sliding_window", "true"}), &m);
    assert_int_equal(m.sliding_window, 32768);
    assert_int_equal(m.layer_kind[20].mixer, MF_MIXER_FULL);
    assert_int_equal(m.layer_kind[21].mixer, MF_MIXER_SLIDING);
    mf_model_free(&m);
}

static void deepseek_layers(void **state)
{
    (void)state;
    assert_int_equal(moe_layers(DEEPSEEK, EDIT({"use_cache", "true"})), 58);
    /* Even layers from 4 to 60. */
    assert_int_equal(moe_layers(DEEPSEEK, EDIT({"moe_layer_freq", "2"})), 29);
    assert_int_equal(moe_layers(DEEPSEEK, EDIT({"num_hidden_layers", "4"},
                                              {"moe_layer_freq", "[0,0,0,1]"})),
        1);
    assert_int_equal(
        moe_layers(DEEPSEEK, EDIT({"n_routed_experts", "null"})), 0);
}

static void deepseek_router(void **state)
{
    struct mf_model m;

    (void)state;
    must_read("DeepSeek-V2-Lite.json", EDIT({"use_cache", "true"}), &m);
    assert_int_equal(m.router.score, MF_SCORE_SOFTMAX);
    assert_false(m.router.bias || m.router.renormalize);
    assert_int_equal(m.mla.q_rank, 0);
    assert_int_equal(m.mla.kv_rank, 512);
    assert_int_equal(m.head_dim, 192);
    assert_int_equal(m.shared_experts, 2);
    assert_int_equal(m.shared_ffn, 2816);
    mf_model_free(&m);
}

/* What a class assumes for a missing key is assumed, and said. */
static void assumed_values_are_told(void **state)
{
    struct mf_model m;

    (void)state;
    must_read(DEEPSEEK, EDIT({"first_k_dense_replace", ""}), &m);
    assert_int_equal(mf_model_count(&m, MF_FFN_DENSE), 3);
    assert_non_null(m.warning);
    assert_non_null(
        strstr(m.warning[0], "first_k_dense_replace is missing; 3"));
    mf_model_free(&m);
}

/* A key that is null has its own meaning: as many as there are queries. */
static void null_is_not_missing(void **state)
{
    struct mf_model m;

    (void)state;
    must_read(MIXTRAL, EDIT({"num_key_value_heads", "null"}), &m);
    assert_int_equal(m.kv_heads, 48);
    assert_null(m.warning);
    mf_model_free(&m);
    must_read(MIXTRAL, EDIT({"num_key_value_heads", ""}), &m);
    assert_int_equal(m.kv_heads, 8);
    assert_non_null(m.warning);
    mf_model_free(&m);
}

static void unknown_figures_are_told(void **state)
{
    struct mf_model m;

    (void)state;
    must_read(MIXTRAL,
        EDIT({"num_memory_slots", "16"}, {"adapter", "{\"rank\": 4}"},
            {"mood", "\"good\""}, {"extra_norm", "false"}, {"lora", "null"}),
        &m);
    assert_non_null(m.warning);
    assert_non_null(strstr(m.warning[0], "num_memory_slots is not known"));
    assert_non_null(strstr(m.warning[1], "adapter is not known"));
    assert_null(m.warning[2]);
    mf_model_free(&m);
}

/* A word that cannot change the count is no reason to refuse a model. */
static void unknown_words_are_told(void **state)
{
    struct mf_model m;

    (void)state;
    must_read(DEEPSEEK, EDIT({"scoring_func", "\"best\""}), &m);
    assert_int_equal(m.router.score, MF_SCORE_SIGMOID);
    assert_non_null(m.warning);
    assert_non_null(strstr(m.warning[0], "scoring_func is \"best\""));
    mf_model_free(&m);
}

static void weights_are_noted(void **state)
{
    struct mf_model m;

    (void)state;
    must_read(DEEPSEEK, EDIT({"mood", "0"}), &m);
    assert_string_equal(m.dtype, "bfloat16");
    assert_string_equal(m.quantization, "fp8 e4m3");
    mf_model_free(&m);
    must_read(MIXTRAL, EDIT({"mood", "0"}), &m);
    assert_string_equal(m.quantization, "");
    mf_model_free(&m);
}

struct refusal {
    const char *file;
    struct edit edit[3];
    const char *says;
};

static const struct refusal refusal_table[] = {
    {MIXTRAL, {{"num_experts_per_tok", "12"}},
        ": num_experts_per_tok is 12, more than 8 experts"},
    {MIXTRAL, {{"num_experts_per_tok", ""}},
        ": num_experts_per_tok is missing or 0, but there are experts"},
    {MIXTRAL, {{"num_local_experts", ""}}, ": num_local_experts is missing"},
    {MIXTRAL, {{"num_hidden_layers", "1000000000000000000"}},
        ": num_hidden_layers is 1000000000000000000, more than 100000"},
    {MIXTRAL, {{"num_hidden_layers", "-1"}},
        ": num_hidden_layers is -1, less than 1"},
    {MIXTRAL, {{"num_hidden_layers", "0"}},
        ": num_hidden_layers is 0, less than 1"},
    {MIXTRAL, {{"hidden_size", ""}}, ": hidden_size is missing"},
    {MIXTRAL, {{"hidden_size", "null"}}, ": hidden_size is missing"},
    {MIXTRAL, {{"hidden_size", "\"6144\""}},
        ": hidden_size is a string, not a whole number"},
    {MIXTRAL, {{"hidden_size", "6144.5"}},
        ": hidden_size is a number with a fraction, not a whole number"},
    {MIXTRAL, {{"hidden_size", "[6144]"}},
        ": hidden_size is a list, not a whole number"},
    {MIXTRAL, {{"hidden_size", "6145"}},
        ": head_dim is missing, and hidden_size 6145 is not a multiple of "
        "num_attention_heads 48"},
    {MIXTRAL, {{"num_attention_heads", "0"}},
        ": num_attention_heads is 0, less than 1"},
    {MIXTRAL, {{"num_key_value_heads", "7"}},
        ": num_attention_heads is 48, not a multiple of num_key_value_heads 7"},
    {MIXTRAL, {{"num_key_value_heads", "96"}},
        ": num_attention_heads is 48, not a multiple of"},
    {MIXTRAL, {{"vocab_size", "true"}},
        ": vocab_size is true or false, not a whole number"},
    {MIXTRAL, {{"tie_word_embeddings", "2"}},
        ": tie_word_embeddings is a whole number, not true or false"},
    {MIXTRAL, {{"hidden_act", "7"}},
        ": hidden_act is a whole number, not a string"},
    {MIXTRAL, {{"hidden_act", "\"an_activation_of_a_very_long_name\""}},
        ": hidden_act is longer than 31 bytes"},
    {MIXTRAL, {{"num_experts", "16"}},
        ": num_local_experts is 8, but num_experts is 16"},
    {MIXTRAL, {{"layer_types", "[\"full_attention\"]"}},
        ": layer_types has 1 entries, but there are 56 layers"},
    {MIXTRAL,
        {{"num_hidden_layers", "1"}, {"layer_types", "[\"linear_attention\"]"}},
        ": linear_num_key_heads is missing or 0, but attention is linear"},
    {MIXTRAL, {{"num_hidden_layers", "1"}, {"layer_types", "[\"astral\"]"}},
        ": layer_types[0] is \"astral\", a kind of layer that is not counted"},
    {MIXTRAL,
        {{"num_hidden_layers", "1"},
            {"layer_types", "[\"sliding_attention\"]"}},
        ": sliding_window is missing or 0, but there are sliding layers"},
    {MIXTRAL, {{"hc_mult", "-4"}}, ": hc_mult is -4, not in 0 to 64"},
    {MIXTRAL, {{"is_encoder_decoder", "true"}},
        ": is_encoder_decoder is true: a model with an encoder"},
    {MIXTRAL, {{"architectures", ""}, {"model_type", "\"zamba\""}},
        ": model_type is zamba: blocks of attention that several layers"},
    {MIXTRAL, {{"architectures", ""}, {"model_type", "\"falcon_h1\""}},
        ": model_type is falcon_h1: layers that run a state space beside"},
    {MIXTRAL, {{"architectures", ""}, {"model_type", "\"t5\""}},
        ": model_type is t5: a model with an encoder is not read"},
    {MIXTRAL, {{"architectures", "[\"BertModel\"]"}, {"model_type", ""}},
        ": architectures is BertModel: an encoder without a decoder"},
    {QWEN2, {{"decoder_sparse_step", "0"}}, ": decoder_sparse_step is 0, not"},
    {QWEN2, {{"mlp_only_layers", "[24]"}},
        ": mlp_only_layers[0] is 24, but there are 24 layers"},
    {QWEN2, {{"mlp_only_layers", "[-1]"}}, ": mlp_only_layers[0] is -1, but"},
    {QWEN2, {{"mlp_only_layers", "[0, \"x\"]"}},
        ": mlp_only_layers[1] is not a whole number"},
    {QWEN2, {{"mlp_only_layers", "3"}},
        ": mlp_only_layers is a whole number, not a list"},
    {QWEN2, {{"moe_intermediate_size", "0"}},
        ": moe_intermediate_size is missing or 0, but there are experts"},
    {QWEN2, {{"decoder_sparse_step", "2"}, {"intermediate_size", ""}},
        ": intermediate_size is missing or 0, but there are dense layers"},
    {DEEPSEEK, {{"n_group", "7"}},
        ": n_group is 7, which does not divide 256 experts"},
    {DEEPSEEK, {{"topk_group", "9"}}, ": topk_group is 9, more than n_group 8"},
    {DEEPSEEK, {{"topk_group", ""}}, ": topk_group is missing or 0, but"},
    {DEEPSEEK, {{"topk_group", "1"}, {"num_experts_per_tok", "40"}},
        ": num_experts_per_tok is 40, more than the 32 experts of 1 groups"},
    {DEEPSEEK, {{"routed_scaling_factor", "0"}},
        ": routed_scaling_factor is 0; it must be a positive number"},
    {DEEPSEEK, {{"routed_scaling_factor", "\"2.5\""}},
        ": routed_scaling_factor is a string, not a number"},
    {DEEPSEEK, {{"kv_lora_rank", "0"}}, ": kv_lora_rank is missing or 0, but"},
    {DEEPSEEK, {{"first_k_dense_replace", "-1"}},
        ": first_k_dense_replace is -1, not in 0"},
    {DEEPSEEK, {{"first_k_dense_replace", "61"}},
        ": n_routed_experts is 256, but no layer is an MoE layer"},
    {DEEPSEEK, {{"moe_layer_freq", "[1]"}},
        ": moe_layer_freq has 1 entries, but there are 61 layers"},
    {DEEPSEEK, {{"num_hidden_layers", "1"}, {"moe_layer_freq", "[2]"}},
        ": moe_layer_freq[0] is neither 0 nor 1"},
    {DEEPSEEK, {{"n_routed_experts", ""}}, ": n_routed_experts is missing"},
    {DEEPSEEK, {{"n_shared_experts", "1000000"}},
        ": n_shared_experts gives a width of 2048000000"},
};

static void refuse(const struct refusal *r)
{
    struct edit edit[4] = {r->edit[0], r->edit[1], r->edit[2], {NULL, NULL}};
    struct mf_error err = {0};
    struct mf_model m;

    if (!support_read(edited(r->file, edit), "edited", &m, &err))
        fail_msg("%s = %s is accepted", r->edit[0].key, r->edit[0].value);
    if (err.status != MF_INVALID || !strstr(err.text, r->says) ||
        !strstr(err.text, "/edited.json: "))
        fail_msg("%s = %s: \"%s\" does not say \"%s\"", r->edit[0].key,
            r->edit[0].value, err.text, r->says);
    assert_null(m.layer_kind);
    assert_null(m.warning);
}

static void bad_figures_are_refused(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof refusal_table / sizeof *refusal_table; i++)
        refuse(&refusal_table[i]);
}

static void refuse_text(const char *text, size_t size, const char *says)
{
    const char *path = support_write("text.json", text, size);
    struct mf_error err = {0};
    struct mf_model m;

    assert_int_equal(mf_model_read(path, &m, &err), -1);
    assert_int_equal(err.status, MF_INVALID);
    if (!strstr(err.text, says))
        fail_msg("\"%s\" does not say \"%s\"", err.text, says);
}

/* Files beside a config.json, each told by a key that only it has. */
static void other_files_are_named(void **state)
{
    static const char *const table[][2] = {
        {"{\"weight_map\": {\"a\": \"b\"}}", "an index of weights"},
        {"{\"do_sample\": true, \"top_p\": 0.9}", "of text generation"},
        {"{\"added_tokens_decoder\": {}}", "the settings of a tokenizer"},
        {"{\"quantization\": {\"quant_algo\": \"FP8\"}}", "on quantisation"},
        {"{\"text_config\": {\"a\": 1}}", "not a model's config.json"},
        {"{\"model_type\": \"strange\"}", "not a model's config.json"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        refuse_text(table[i][0], strlen(table[i][0]), table[i][1]);
}

static void bad_text_is_refused(void **state)
{
    static const char nul[] = "{\"hidden_size\": 1, \"a\0b\": 2}";
    char *deep = malloc(100000);

    (void)state;
    assert_non_null(deep);
    memset(deep, '[', 100000);
    refuse_text("", 0, "line 1, column 0: not JSON");
    refuse_text("{\n \"a\": 1,\n \"b\" 2}", 18, "line 3, column");
    refuse_text("{\"hidden_size\": NaN}", 20, "line 1, column");
    refuse_text("{\"hidden_size\": 1e999}", 22, "line 1, column");
    refuse_text(
        "{\"hidden_size\": 99999999999999999999}", 37, "line 1, column");
    refuse_text(nul, sizeof nul - 1, "not JSON");
    refuse_text("[1, 2]", 6, "it holds a list, not an object");
    refuse_text("7", 1, "it holds a whole number, not an object");
    refuse_text("{}", 2, "model_type is missing");
    refuse_text(deep, 100000, "not JSON");
    free(deep);
}

static void bad_files_are_refused(void **state)
{
    size_t size = (size_t)17 << 20;
    char *blanks = malloc(size);
    struct mf_error err = {0};
    struct mf_model m;

    (void)state;
    assert_non_null(blanks);
    memset(blanks, ' ', size);
    refuse_text(blanks, size, "more than 16 MiB");
    free(blanks);
    assert_int_equal(mf_model_read(support_data("no.json"), &m, &err), -1);
    assert_int_equal(err.status, MF_INVALID);
    assert_non_null(strstr(err.text, "no.json: No such file"));
    assert_int_equal(mf_model_read(support_folder(), &m, &err), -1);
    assert_int_equal(err.status, MF_INVALID);
    assert_non_null(strstr(err.text, "name the config.json in it"));
    assert_int_equal(mf_model_read("", &m, NULL), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(order_of_keys_is_free),
        cmocka_unit_test(spellings_mean_the_same),
        cmocka_unit_test(models_read_without_warnings),
        cmocka_unit_test(name_is_of_folder_or_file),
        cmocka_unit_test(name_in_a_cache_is_of_the_model),
        cmocka_unit_test(mixtral_keys),
        cmocka_unit_test(qwen2_layers),
        cmocka_unit_test(qwen2_shared_expert),
        cmocka_unit_test(qwen2_window),
        cmocka_unit_test(deepseek_layers),
        cmocka_unit_test(deepseek_router),
        cmocka_unit_test(assumed_values_are_told),
        cmocka_unit_test(null_is_not_missing),
        cmocka_unit_test(unknown_figures_are_told),
        cmocka_unit_test(unknown_words_are_told),
        cmocka_unit_test(weights_are_noted),
        cmocka_unit_test(bad_figures_are_refused),
        cmocka_unit_test(other_files_are_named),
        cmocka_unit_test(bad_text_is_refused),
        cmocka_unit_test(bad_files_are_refused),
    };

    return cmocka_run_group_tests_name(
        "model reader", tests, NULL, support_clean);
}
