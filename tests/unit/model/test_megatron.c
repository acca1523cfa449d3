/* SPDX-License-Identifier: BSD-3-Clause
 * Arguments of Megatron-LM: the same models as their config.json, what words
 * and YAML mean, and what holds when nothing is said.
 */
#include "tests/unit/model/support.h"

#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#define SMALL                                                                  \
    "--num-layers 2 --hidden-size 1024 --num-attention-heads 16 "              \
    "--vocab-size 1000 --max-position-embeddings 512 "

static void must_read_text(const char *name, const char *text,
    struct mf_model *model, struct mf_arguments *arguments)
{
    const char *path = support_write(name, text, strlen(text));
    struct mf_error err = {0};

    if (mf_model_read_arguments(path, model, arguments, &err))
        fail_msg("%s", err.text);
}

static void refuse_text(const char *name, const char *text, const char *says)
{
    const char *path = support_write(name, text, strlen(text));
    struct mf_arguments arguments;
    struct mf_error err = {0};
    struct mf_model m;

    if (!mf_model_read_arguments(path, &m, &arguments, &err))
        fail_msg("accepted: %.200s", text);
    assert_int_equal(err.status, MF_INVALID);
    if (!strstr(err.text, says))
        fail_msg("\"%s\" does not say \"%s\"", err.text, says);
}

/* Whether this build reads YAML: libyaml may have been left out. */
static bool yaml_is_read(void)
{
    static const char text[] = "num_layers: 1\n";
    struct mf_error err = {0};
    struct mf_model m;

    assert_int_equal(
        mf_model_read(support_write("try.yaml", text, strlen(text)), &m, &err),
        -1);
    return !strstr(err.text, "built without");
}

/* Argument files and the config.json of the same model. */
static void shapes_equal_config(void **state)
{
    static const char *const pair[][2] = {
        {"megatron/modelzoo-DeepSeek-V3.yaml", "DeepSeek-V3.json"},
        {"megatron/modelzoo-Mixtral-8x22B.yaml",
            "Mixtral-8x22B-v0.1/config.json"},
        {"megatron/modelzoo-Qwen3-Next-80B-A3B.yaml",
            "Qwen3-Next-80B-A3B.json"},
        {"megatron/slime-glm4.5-355B-A32B.args", "GLM-4.5.json"},
        {"megatron/primus/mixtral_8x7B_v0.1.yaml", "Mixtral-8x7B-v0.1.json"},
        {"megatron/megatron-lm-mixtral_8x7b_tp1pp4ep8vpp8_release.yaml",
            "Mixtral-8x7B-v0.1.json"},
    };

    (void)state;
    if (!yaml_is_read())
        skip();
    for (size_t i = 0; i < sizeof pair / sizeof *pair; i++) {
        struct mf_error err = {0};
        struct mf_model a, b;

        if (mf_model_read(support_data(pair[i][0]), &a, &err) ||
            mf_model_read(support_data(pair[i][1]), &b, &err))
            fail_msg("%s", err.text);
        if (a.params.total != b.params.total ||
            a.params.active != b.params.active ||
            a.params.attention != b.params.attention ||
            a.params.router != b.params.router || a.layers != b.layers ||
            a.experts != b.experts || a.topk != b.topk ||
            a.kv_heads != b.kv_heads || a.attention != b.attention ||
            a.router.score != b.router.score)
            fail_msg("%s: %" PRId64 " parameters, %s has %" PRId64, pair[i][0],
                a.params.total, pair[i][1], b.params.total);
        mf_model_free(&a);
        mf_model_free(&b);
    }
}

/* GPT-2 style: biases, layer norms, a position table, one table for input and
 * output, GELU of four times the width.
 */
static void defaults_are_megatrons(void **state)
{
    const int64_t h = 1024, f = 4096;
    const int64_t layer =
        3 * h * h + 3 * h + h * h + h + 2 * h * f + f + h + 4 * h;
    struct mf_arguments a;
    struct mf_model m;

    (void)state;
    must_read_text("small.args", SMALL, &m, &a);
    assert_int_equal(m.params.total, 1000 * h + 512 * h + 2 * layer + 2 * h);
    assert_true(m.tied_embeddings);
    assert_false(m.gated);
    assert_int_equal(m.experts, 0);
    assert_true(a.given);
    assert_false(a.layout);
    mf_model_free(&m);
    must_read_text("small.args",
        SMALL "--swiglu --num-experts 4 --disable-bias-linear "
              "--position-embedding-type rope --normalization RMSNorm",
        &m, &a);
    /* 4 h 2/3 down to a multiple of 64. */
    assert_int_equal(m.moe_ffn, 2688);
    assert_int_equal(m.topk, 2);
    assert_int_equal(m.positions, 0);
    assert_false(m.mlp_bias);
    assert_true(m.router.renormalize);
    mf_model_free(&m);
}

static void etp_is_tp_when_unset(void **state)
{
    struct mf_arguments a;
    struct mf_model m;

    (void)state;
    must_read_text("layout.args",
        SMALL "--tensor-model-parallel-size 4 --expert-model-parallel-size=2",
        &m, &a);
    assert_true(a.layout);
    assert_int_equal(a.tp, 4);
    assert_int_equal(a.ep, 2);
    assert_int_equal(a.pp, 1);
    assert_int_equal(a.etp, 4);
    assert_false(a.etp_given);
    mf_model_free(&m);
    must_read_text("layout.args",
        SMALL "--tensor-model-parallel-size 4 --expert-tensor-parallel-size 1 "
              "--context-parallel-size $CP",
        &m, &a);
    assert_int_equal(a.etp, 1);
    assert_true(a.etp_given);
    assert_int_equal(a.cp, 0);
    mf_model_free(&m);
}

static void words_are_of_a_shell(void **state)
{
    static const char script[] =
        "#!/bin/bash\n"
        "# --num-layers 7 in a comment\n"
        "LAYERS=6; H='512'\n"
        "MODEL_ARGS=(\n"
        "    --num-layers ${LAYERS}  # six of them\n"
        "    --hidden-size \"$H\"\n"
        "    --num-attention-heads ${HEADS:-8}\n"
        "    --group-query-attention --num_query_groups=2\n"
        "    --vocab-size 99 --vocab-size 100\n"
        "    --num-experts 4\n"
        "    --moe-layer-freq \"'([0]*1+[1]*5)'\"\n"
        "    --swiglu)\n"
        "torchrun $OPTIONS pretrain_gpt.py \\\n"
        "    ${MODEL_ARGS[@]} --position-embedding-type rope \\\n"
        "    --data-path $(ls /data) --untie-embeddings-and-output-weights\n";
    struct mf_arguments a;
    struct mf_model m;

    (void)state;
    must_read_text("train.sh", script, &m, &a);
    assert_int_equal(m.layers, 6);
    assert_int_equal(m.hidden, 512);
    assert_int_equal(m.heads, 8);
    assert_int_equal(m.kv_heads, 2);
    assert_int_equal(m.vocab, 100);
    assert_int_equal(mf_model_count(&m, MF_FFN_MOE), 5);
    assert_false(m.tied_embeddings);
    assert_true(m.gated);
    assert_string_equal(m.name, "train");
    mf_model_free(&m);
}

/* A step N makes layers 0, N, 2N MoE; lists are Python's. */
static void layer_lists(void **state)
{
    static const struct {
        const char *text;
        int64_t moe;
    } row[] = {{"1", 12}, {"2", 6}, {"5", 3}, {"'[0]*3+[1]*9'", 9},
        {"([0]*1+[1]*2)*4", 8}, {"'[1,0,1]*4'", 8},
        {"\"([1] * 6 + [0, 0] * 3)\"", 6}};

    (void)state;
    if (!yaml_is_read())
        skip();
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        struct mf_arguments a;
        struct mf_model m;
        char text[512];

        snprintf(text, sizeof text,
            "--num-layers: 12\n--hidden-size: 64\n--num-attention-heads: 4\n"
            "--vocab-size: 10\n--num-experts: 8\n--moe-layer-freq: %s\n",
            row[i].text);
        must_read_text("list.yaml", text, &m, &a);
        if (mf_model_count(&m, MF_FFN_MOE) != row[i].moe)
            fail_msg("%s: %" PRId64 " MoE layers", row[i].text,
                mf_model_count(&m, MF_FFN_MOE));
        mf_model_free(&m);
    }
}

static void yaml_extends(void **state)
{
    struct mf_arguments a;
    struct mf_model m;

    (void)state;
    if (!yaml_is_read())
        skip();
    support_write("base.yaml",
        "num_layers: 2\nhidden_size: 64\nswiglu: true\nvocab_size: null\n", 60);
    must_read_text("child.yaml",
        "extends:\n  - base.yaml\nnum_layers: 3 # more\n"
        "num_attention_heads: 4\nvocab_size: 10\n",
        &m, &a);
    assert_int_equal(m.layers, 3);
    assert_int_equal(m.hidden, 64);
    assert_true(m.gated);
    mf_model_free(&m);
    refuse_text("circle.yaml", "extends:\n  - circle.yaml\nnum_layers: 1\n",
        "extends goes round in a circle");
    refuse_text("up.yaml", "extends:\n  - ../secret.yaml\nnum_layers: 1\n",
        "only files beside this one are read");
    refuse_text("no.yaml", "extends:\n  - none.yaml\nnum_layers: 1\n",
        "extends none.yaml: No such file");
}

static void bad_arguments_are_refused(void **state)
{
    (void)state;
    refuse_text("a.args", "--num-layers ${N} --hidden-size 8 --vocab-size 9",
        "num-layers is ${N}, a variable without a value");
    refuse_text(
        "a.args", "--hidden-size 8 --vocab-size 9", "num-layers is missing");
    refuse_text("a.args", "--num-layers 2 --hidden-size 8", "vocab-size is");
    refuse_text("a.args", SMALL "--num-layers -3", "num-layers is -3");
    refuse_text("a.args", SMALL "--num-layers 1e18",
        "num-layers is a number with a fraction, not a whole number");
    refuse_text("a.args", SMALL "--num-layers 1000000000000000000",
        "num-layers is 1000000000000000000, more than 100000");
    refuse_text("a.args", SMALL "--num-experts 8 --moe-layer-freq [1]*99999999",
        "neither a step nor lists of 0 and 1");
    refuse_text("a.args", SMALL "--num-experts 8 --moe-layer-freq [1,0,1]",
        "moe-layer-freq has 3 entries, but there are 2 layers");
    refuse_text("a.args", SMALL "--num-experts 8 --moe-layer-freq os.system(1)",
        "neither a step nor lists");
    refuse_text("a.args", SMALL "--decoder-num-layers 3",
        "a model with an encoder is not read");
    refuse_text("a.args", SMALL "--name 'open", "a quote without its end");
    refuse_text("a.args", SMALL "--name ${open", "${ without }");
    if (!yaml_is_read())
        return;
    refuse_text("a.yaml", "num_layers: &x 3\nhidden_size: *x\n", "no aliases");
    refuse_text("a.yaml", "num_layers: 3\n\tbad: [\n", "line 2");
    refuse_text("a.yaml", "a: {b: {c: {d: {e: {f: {g: {h: 1}}}}}}}\n",
        "nested too deeply");
    refuse_text("a.yaml", "learning_rate: 3\n", "num-layers is missing");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shapes_equal_config),
        cmocka_unit_test(defaults_are_megatrons),
        cmocka_unit_test(etp_is_tp_when_unset),
        cmocka_unit_test(words_are_of_a_shell),
        cmocka_unit_test(layer_lists),
        cmocka_unit_test(yaml_extends),
        cmocka_unit_test(bad_arguments_are_refused),
    };

    return cmocka_run_group_tests_name(
        "Megatron arguments", tests, NULL, support_clean);
}
