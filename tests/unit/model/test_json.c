/* SPDX-License-Identifier: BSD-3-Clause
 * A model's JSON: what it carries, that it reads itself back, and that a
 * damaged one is refused.
 */
#include "tests/unit/model/support.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static json_t *model_json(const char *name)
{
    struct mf_error err = {0};
    struct mf_model model;
    json_t *json;

    if (mf_model_read(support_data(name), &model, &err))
        fail_msg("%s", err.text);
    json = mf_model_to_json(&model);
    assert_non_null(json);
    mf_model_free(&model);
    return json;
}

static void json_reads_itself_back(void **state)
{
    (void)state;
    for (const char *const *name = support_models; *name; name++) {
        json_t *json = model_json(*name), *again;
        struct mf_error err = {0};
        struct mf_model model;

        if (mf_model_from_json(json, &model, &err))
            fail_msg("%s: %s", *name, err.text);
        again = mf_model_to_json(&model);
        if (!json_equal(json, again))
            fail_msg("%s: the JSON differs after reading it", *name);
        mf_model_free(&model);
        json_decref(json);
        json_decref(again);
    }
}

static void json_has_the_contract(void **state)
{
    static const char *const keys[] = {"name", "layers", "moe_layers",
        "dense_layers", "hidden", "heads", "kv_heads", "head_dim", "attention",
        "mla", "sliding_window", "layer_kinds", "dense_ffn", "moe_ffn", "gated",
        "activation", "experts", "topk", "shared_experts", "shared_ffn",
        "shared_gate", "vocab", "tied_embeddings", "router", "mtp_layers",
        "params_total", "params_active", "params_active_no_embedding",
        "params_embedding", "params_mtp", "params_vision", "warnings"};
    json_t *json = model_json("DeepSeek-V3.json");
    json_t *router = json_object_get(json, "router");
    json_t *kinds = json_object_get(json, "layer_kinds");

    (void)state;
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (!json_object_get(json, keys[i]))
            fail_msg("%s is missing", keys[i]);
    assert_string_equal(
        json_string_value(json_object_get(router, "score")), "sigmoid");
    assert_int_equal(json_integer_value(json_object_get(router, "groups")), 8);
    assert_int_equal(
        json_integer_value(json_object_get(router, "topk_groups")), 4);
    assert_true(json_is_true(json_object_get(router, "bias")));
    assert_true(json_is_true(json_object_get(router, "renormalize")));
    assert_true(json_number_value(json_object_get(router, "scaling")) == 2.5);
    assert_int_equal(json_array_size(kinds), 61);
    assert_string_equal(
        json_string_value(json_array_get(kinds, 2)), "full+dense");
    assert_string_equal(
        json_string_value(json_array_get(kinds, 3)), "full+moe");
    json_decref(json);
}

static void json_null_where_there_is_none(void **state)
{
    json_t *json = model_json("dense-Llama-3-8B.json");

    (void)state;
    assert_true(json_is_null(json_object_get(json, "mla")));
    assert_true(json_is_null(json_object_get(json, "router")));
    assert_true(json_is_null(json_object_get(json, "sliding_window")));
    assert_int_equal(json_integer_value(json_object_get(json, "experts")), 0);
    json_decref(json);
}

/* Replace PATH ("mla.kv_rank" goes into an object) by VALUE; "" removes it. */
static void replace(json_t *json, const char *path, const char *value)
{
    const char *dot = strchr(path, '.');
    char object[32];

    if (dot) {
        snprintf(object, sizeof object, "%.*s", (int)(dot - path), path);
        json = json_object_get(json, object);
        path = dot + 1;
    }
    assert_true(json_is_object(json));
    if (!*value)
        assert_int_equal(json_object_del(json, path), 0);
    else
        assert_int_equal(json_object_set_new(json, path,
                             json_loads(value, JSON_DECODE_ANY, NULL)),
            0);
}

struct damage {
    const char *path, *value, *says;
};

static const struct damage damage_table[] = {
    {"name", "", "name is missing"},
    {"name", "7", "name is missing or not a string"},
    {"layers", "0", "layers is 0"},
    {"layers", "1000000000000000000", "layers is 1000000000000000000"},
    {"layers", "60", "layer_kinds has 61 entries, but layers is 60"},
    {"layer_kinds", "[]", "layer_kinds has 0 entries"},
    {"layer_kinds", "", "layer_kinds has 0 entries"},
    {"hidden", "-7168", "hidden is -7168, less than 1"},
    {"hidden", "7168.5", "hidden is missing or not a whole number"},
    {"hidden", "7169", "params_total is 671026419200, but the shape has"},
    {"vocab", "null", "vocab is missing or not a whole number"},
    {"heads", "100", "heads is 100, not a multiple of kv_heads 128"},
    {"head_dim", "64", "head_dim is 64, but nope_dim + rope_dim is 192"},
    {"attention", "\"linear\"", "attention \"linear\" is not known"},
    {"attention", "\"gqa\"", "attention is gqa, but heads is 128"},
    {"mla", "null", "mla is missing, but attention is mla"},
    {"mla.kv_rank", "0", "kv_rank is missing or 0, but attention is MLA"},
    {"mla.kv_rank", "\"x\"", "mla: kv_rank is missing or not a whole number"},
    {"router", "null", "router is missing, but there are experts"},
    {"router.score", "\"best\"", "router: score \"best\" is not known"},
    {"router.groups", "7", "groups is 7, which does not divide 256 experts"},
    {"router.topk_groups", "9", "topk_groups is 9, more than groups 8"},
    {"router.scaling", "-1", "scaling is -1"},
    {"router.scaling", "\"1\"", "router: scaling is missing or not a number"},
    {"router.bias", "0", "router: bias is missing or neither true nor false"},
    {"topk", "257", "topk is 257, more than 256 experts"},
    {"topk", "0", "topk is missing or 0, but there are experts"},
    {"experts", "0", "experts is missing or 0, but there are MoE layers"},
    {"moe_ffn", "0", "moe_ffn is missing or 0, but there are experts"},
    {"dense_ffn", "0", "dense_ffn is missing or 0, but there are dense"},
    {"shared_ffn", "0", "shared_ffn is missing or 0, but there are shared"},
    {"moe_layers", "57", "moe_layers is not 58"},
    {"dense_layers", "", "dense_layers is not 3"},
    {"gated", "1", "gated is missing or neither true nor false"},
    {"gated", "false", "params_total is 671026419200, but the shape has"},
    {"qk_norm", "\"half\"", "qk_norm \"half\" is not known"},
    {"params_active", "1", "params_active is 1, but the shape has 37552297472"},
    {"params_total", "\"x\"", "params_total is not a whole number"},
    {"warnings", "7", "warnings is not a list"},
    {"warnings", "[7]", "warnings[0] is not a string"},
};

static void json_refuses_damage(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof damage_table / sizeof *damage_table; i++) {
        const struct damage *d = &damage_table[i];
        json_t *json = model_json("DeepSeek-V3.json");
        struct mf_error err = {0};
        struct mf_model model;

        replace(json, d->path, d->value);
        if (!mf_model_from_json(json, &model, &err))
            fail_msg("%s = %s is accepted", d->path, d->value);
        if (err.status != MF_INVALID || !strstr(err.text, d->says))
            fail_msg("%s = %s: \"%s\" does not say \"%s\"", d->path, d->value,
                err.text, d->says);
        json_decref(json);
    }
}

/* Every figure of every model, spoilt one after another. */
static void json_refuses_any_key_spoilt(void **state)
{
    static const char *const spoilt[] = {
        "{}", "[1]", "-1", "0.5", "4611686018427387904", "\"\\u0001\""};
    const char *key;
    json_t *item;

    (void)state;
    for (const char *const *name = support_models; *name; name++) {
        json_t *json = model_json(*name);
        json_object_foreach(json, key, item)
        {
            if (!json_is_number(item))
                continue;
            for (size_t i = 0; i < sizeof spoilt / sizeof *spoilt; i++) {
                json_t *copy = json_copy(json);
                struct mf_model model;
                replace(copy, key, spoilt[i]);
                if (!mf_model_from_json(copy, &model, NULL) &&
                    strcmp(key, "params_vision"))
                    fail_msg("%s: %s = %s is accepted", *name, key, spoilt[i]);
                mf_model_free(&model);
                json_decref(copy);
            }
        }
        json_decref(json);
    }
}

static void warnings_stay_readable(void **state)
{
    struct mf_model model = {.layers = 0};
    struct mf_error err = {0};
    char text[700];

    (void)state;
    memset(text, 'x', sizeof text);
    /* A letter of two bytes where the text is cut. */
    memcpy(text + 510, "\xc3\xa9", 2);
    text[sizeof text - 1] = 0;
    assert_int_equal(mf_model_warn(&model, &err, "%s", "a\nb\x7f"), 0);
    assert_int_equal(mf_model_warn(&model, &err, "%s", text), 0);
    assert_string_equal(model.warning[0], "a?b?");
    assert_int_equal(strlen(model.warning[1]), 511);
    assert_int_equal(model.warning[1][510], '?');
    assert_null(model.warning[2]);
    mf_model_free(&model);
    mf_model_free(&model);
    mf_model_free(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(json_reads_itself_back),
        cmocka_unit_test(json_has_the_contract),
        cmocka_unit_test(json_null_where_there_is_none),
        cmocka_unit_test(json_refuses_damage),
        cmocka_unit_test(json_refuses_any_key_spoilt),
        cmocka_unit_test(warnings_stay_readable),
    };

    return cmocka_run_group_tests_name("model JSON", tests, NULL, NULL);
}
