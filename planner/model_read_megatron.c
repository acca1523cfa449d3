/* SPDX-License-Identifier: BSD-3-Clause
 * Megatron-LM's arguments into a model: what each means, and what holds when
 * it is not given.
 */
#include "planner/model_read_megatron.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "planner/model_read_rows.h"

static const struct mf_choice score_choices[] = {{"softmax", MF_SCORE_SOFTMAX},
    {"sigmoid", MF_SCORE_SIGMOID}, {"sqrtsoftplus", MF_SCORE_SQRTSOFTPLUS},
    {NULL, 0}};

/* Vectors of hidden numbers that a norm holds. */
static const struct mf_choice norm_choices[] = {
    {"RMSNorm", 1}, {"LayerNorm", 2}, {NULL, 0}};

static const struct mf_choice linear_choices[] = {
    {"gated_delta_net", MF_LINEAR_GATED_DELTA}, {NULL, 0}};

/* Names in angle brackets are worked out from others before the table is read.
 */
static const struct mf_key megatron_keys[] = {
    KEY("num-layers", MF_FIELD_LAYERS), KEY("hidden-size", MF_FIELD_HIDDEN),
    KEY("vocab-size", MF_FIELD_VOCAB),
    KEY("ffn-hidden-size", MF_FIELD_DENSE_FFN),
    KEY("num-attention-heads", MF_FIELD_HEADS),
    KEY("group-query-attention", MF_SLOT_GROUPED),
    KEY("num-query-groups", MF_FIELD_KV_HEADS),
    KEY("kv-channels", MF_FIELD_HEAD_DIM),
    KEY("add-bias-linear", MF_SLOT_QKV_BIAS),
    KEY("add-bias-linear", MF_SLOT_OUT_BIAS),
    KEY("add-bias-linear", MF_SLOT_MLP_BIAS), KEY("<tied>", MF_SLOT_TIED),
    KEY("<positions>", MF_FIELD_POSITIONS),
    {"normalization", MF_FIELD_NORMS_MIXER, norm_choices},
    {"normalization", MF_FIELD_NORMS_FFN, norm_choices},
    {"normalization", MF_FIELD_NORMS_END, norm_choices},
    KEY("<gated>", MF_SLOT_GATED), KEY("<activation>", MF_SLOT_ACTIVATION),
    KEY("qk-layernorm", MF_SLOT_QK_NORM_ON), KEY("<window>", MF_FIELD_WINDOW),
    KEY("<window-step>", MF_SLOT_WINDOW_STEP),
    KEY("<window-list>", MF_SLOT_WINDOW_LIST),
    KEY("attention-output-gate", MF_SLOT_GATE_ON),
    KEY("multi-latent-attention", MF_SLOT_MLA),
    KEY("q-lora-rank", MF_FIELD_MLA_Q), KEY("kv-lora-rank", MF_FIELD_MLA_KV),
    KEY("qk-head-dim", MF_FIELD_MLA_NOPE),
    KEY("qk-pos-emb-head-dim", MF_FIELD_MLA_ROPE),
    KEY("v-head-dim", MF_FIELD_MLA_V),
    KEY("dsa-indexer-n-heads", MF_FIELD_INDEX_HEADS),
    KEY("dsa-indexer-head-dim", MF_FIELD_INDEX_DIM),
    KEY("dsa-indexer-topk", MF_FIELD_INDEX_TOPK),
    KEY("num-experts", MF_FIELD_EXPERTS),
    KEY("num-moe-experts", MF_FIELD_EXPERTS),
    KEY("moe-router-topk", MF_FIELD_TOPK),
    KEY("moe-ffn-hidden-size", MF_FIELD_MOE_FFN),
    KEY("moe-layer-freq", MF_SLOT_MOE_STEP),
    KEY("moe-shared-expert-intermediate-size", MF_FIELD_SHARED_FFN),
    KEY("moe-shared-expert-gate", MF_SLOT_SHARED_GATE),
    KEY("moe-latent-size", MF_FIELD_LATENT),
    {"moe-router-score-function", MF_SLOT_SCORE, score_choices},
    KEY("moe-router-num-groups", MF_FIELD_GROUPS),
    KEY("moe-router-group-topk", MF_FIELD_TOPK_GROUPS),
    KEY("moe-router-topk-scaling-factor", MF_SLOT_SCALING),
    KEY("moe-router-enable-expert-bias", MF_SLOT_ROUTER_BIAS),
    KEY("<renormalize>", MF_SLOT_RENORMALIZE),
    KEY("mtp-num-layers", MF_FIELD_MTP_LAYERS),
    {"linear-attention-type", MF_SLOT_LINEAR_TYPE, linear_choices},
    KEY("<linear-step>", MF_SLOT_LINEAR_STEP),
    KEY("<linear-list>", MF_SLOT_LINEAR_LIST),
    KEY("linear-conv-kernel-dim", MF_FIELD_LINEAR_CONV),
    KEY("linear-key-head-dim", MF_FIELD_LINEAR_KEY_DIM),
    KEY("linear-value-head-dim", MF_FIELD_LINEAR_VALUE_DIM),
    KEY("linear-num-key-heads", MF_FIELD_LINEAR_KEY_HEADS),
    KEY("linear-num-value-heads", MF_FIELD_LINEAR_VALUE_HEADS),
    KEY("hybrid-override-pattern", MF_SLOT_PATTERN),
    KEY("mamba-state-dim", MF_FIELD_MAMBA_STATE),
    KEY("mamba-head-dim", MF_FIELD_MAMBA_HEAD_DIM),
    KEY("mamba-num-groups", MF_FIELD_MAMBA_GROUPS),
    KEY("mamba-num-heads", MF_FIELD_MAMBA_HEADS), END_KEYS};

/* Megatron's defaults (arguments.py, transformer_config.py). */
static const struct mf_default megatron_defaults[] = {HOLDS(MF_SLOT_MLA, 0),
    HOLDS(MF_SLOT_GROUPED, false), HOLDS(MF_FIELD_KV_HEADS, 1),
    HOLDS(MF_SLOT_QKV_BIAS, true), HOLDS(MF_SLOT_OUT_BIAS, true),
    HOLDS(MF_SLOT_MLP_BIAS, true), HOLDS(MF_SLOT_TIED, true),
    HOLDS(MF_FIELD_NORMS_MIXER, 2), HOLDS(MF_FIELD_NORMS_FFN, 2),
    HOLDS(MF_FIELD_NORMS_END, 2), HOLDS(MF_SLOT_GATED, false),
    HOLDS(MF_FIELD_TOPK, 2), HOLDS(MF_SLOT_EXPERT_SAME, true),
    HOLDS(MF_FIELD_MLA_KV, 32), HOLDS(MF_FIELD_MLA_NOPE, 128),
    HOLDS(MF_FIELD_MLA_ROPE, 64), HOLDS(MF_FIELD_MLA_V, 128),
    HOLDS(MF_SLOT_RENORMALIZE, true), HOLDS(MF_FIELD_LINEAR_CONV, 4),
    HOLDS(MF_FIELD_LINEAR_KEY_DIM, 128), HOLDS(MF_FIELD_LINEAR_VALUE_DIM, 128),
    HOLDS(MF_FIELD_LINEAR_KEY_HEADS, 16),
    HOLDS(MF_FIELD_LINEAR_VALUE_HEADS, 32), HOLDS(MF_SLOT_MAMBA_NORMS, true),
    HOLDS(MF_SLOT_MAMBA_CONV_BIAS, true), HOLDS(MF_SLOT_MAMBA_EXPAND, 2),
    HOLDS(MF_FIELD_MAMBA_STATE, 128), HOLDS(MF_FIELD_MAMBA_GROUPS, 8),
    HOLDS(MF_FIELD_MAMBA_CONV, 4), END_DEFAULTS};

static const struct mf_dialect megatron = {LIST("megatron"), NULL,
    KEYS(megatron_keys), DEFAULTS(megatron_defaults), NULL, NULL, NULL};

/* Beginnings of arguments that may change the count; what is known of them
 * not to follows.
 */
static const char *const suspects[] = {"num-", "hidden-size", "ffn-", "moe-",
    "kv-", "qk-", "q-", "mtp-", "linear-", "mamba-", "hybrid-", "latent-",
    "add-", "multi-latent", "dsa-", "engram", "encoder-num", "decoder-num",
    "heterogeneous", "bert-", "retro-", "vision-", "biencoder-", NULL};

static const char *const harmless[] = {"num-workers",
    "num-dataset-builder-threads", "num-layers-per-virtual-pipeline-stage",
    "hidden-dropout", "num-virtual-stages-per-pipeline-rank",
    "num-distributed-optimizer-instances", "num-tokens-to-log",
    "moe-router-load-balancing-type", "moe-aux-loss-coeff", "moe-z-loss-coeff",
    "moe-input-jitter-eps", "moe-token-dispatcher-type", "moe-grouped-gemm",
    "moe-permute-fusion", "moe-router-dtype", "moe-router-fusion",
    "moe-router-pre-softmax", "moe-router-bias-update-rate",
    "moe-expert-capacity-factor", "moe-pad-expert-input-to-capacity",
    "moe-token-drop-policy", "moe-layer-recompute", "moe-extended-tp",
    "moe-use-upcycling", "moe-upcycling-granularity", "moe-per-layer-logging",
    "moe-enable-deepep", "moe-deepep-num-sms", "moe-flex-dispatcher-backend",
    "moe-hybridep-num-sms", "moe-shared-expert-overlap",
    "moe-use-legacy-grouped-gemm", "moe-router-force-load-balancing",
    "moe-router-padding-for-fp8", "moe-router-padding-for-quantization",
    "moe-apply-probs-on-input", "moe-router-topk-limited-devices",
    "mtp-loss-scaling-factor", "kv-channels", "num-attention-heads",
    "add-position-embedding", "add-qkv-bias", "mamba-num-layers",
    "linear-attention-freq", "moe-router-permute-fusion", "qk-l2-norm",
    "qk-clip", "qk-clip-alpha", "qk-clip-threshold", "mtp-use-repeated-layer",
    "hybrid-context-parallel", "encoder-num-layers",
    "encoder-tensor-model-parallel-size",
    "encoder-pipeline-model-parallel-size", "num-gpus", "num-nodes",
    "ffn-dropout", "moe-z-loss", "mtp-detach-heads", "dsa-indexer-loss-coeff",
    "dsa-indexer-use-sparse-loss", "moe-latent-norm",
    "hidden-size-per-attention-head",
    "moe-pad-experts-for-cuda-graph-inference", "num-experts-per-tok",
    "moe-fused-router", NULL};

static bool starts(const char *text, const char *const *list, bool whole)
{
    for (; *list; list++)
        if (whole ? !strcmp(text, *list) : !strncmp(text, *list, strlen(*list)))
            return true;
    return false;
}

static bool key_known(const char *name)
{
    for (const struct mf_key *row = megatron_keys; row->key; row++)
        if (!strcmp(row->key, name))
            return true;
    return false;
}

struct megatron {
    json_t *given;  /* strings, as read */
    json_t *object; /* typed, as the table reads them */
    struct mf_model *model;
    struct mf_error *err;
};

static const char *given_text(const struct megatron *g, const char *name)
{
    const char *text = json_string_value(json_object_get(g->given, name));

    if (!text || !*text || !strcmp(text, "null") || !strcmp(text, "None") ||
        !strcmp(text, "~"))
        return NULL;
    return text;
}

static bool text_is(const char *text, const char *yes, const char *Yes)
{
    return text && (!strcmp(text, yes) || !strcmp(text, Yes));
}

static bool given_flag(const struct megatron *g, const char *name)
{
    const char *text = given_text(g, name);

    return text_is(text, "true", "True") || text_is(text, "1", "yes");
}

static bool number_of(const char *text, int64_t *n)
{
    char *end;
    long long value;

    if (!text)
        return false;
    errno = 0;
    value = strtoll(text, &end, 10);
    if (errno || end == text || *end)
        return false;
    *n = value;
    return true;
}

static int put(struct megatron *g, const char *name, json_t *value)
{
    if (!value || json_object_set_new(g->object, name, value))
        return mf_error_set(g->err, MF_FAILED, "out of memory");
    return 0;
}

/* TEXT as what it looks like. */
static json_t *typed(const char *text)
{
    int64_t n;
    char *end;
    double real;

    if (number_of(text, &n))
        return json_integer(n);
    if (text_is(text, "true", "True"))
        return json_true();
    if (text_is(text, "false", "False"))
        return json_false();
    real = strtod(text, &end);
    if (end != text && !*end && real - real == 0)
        return json_real(real);
    return json_string(text);
}

/* A step, or a list in Python's words, of NAME; NULL after an error. */
static json_t *frequency(const struct megatron *g, const char *name)
{
    const char *text = given_text(g, name);
    int64_t step;
    json_t *list;

    while (*text == '\'' || *text == '"')
        text++;
    if (number_of(text, &step))
        return json_integer(step);
    list = mf_list_read(text);
    if (!list)
        mf_error_set(g->err, MF_INVALID,
            "%s is %.80s, neither a step nor lists of 0 and 1", name, text);
    return list;
}

/* Layers with experts: a step N makes layers 0, N, 2N … MoE. */
static int take_moe_layers(struct megatron *g)
{
    json_t *value;

    if (!given_text(g, "moe-layer-freq"))
        return 0;
    value = frequency(g, "moe-layer-freq");
    return value ? put(g, "moe-layer-freq", value) : -1;
}

/* Layers with linear attention: a step N makes every Nth one full; a list has
 * 1 for linear layers, where the table has 0.
 */
static int take_linear(struct megatron *g)
{
    json_t *value, *turned;

    if (!given_text(g, "linear-attention-freq") ||
        (!given_text(g, "linear-attention-type") &&
            !given_text(g, "experimental-attention-variant")))
        return 0;
    value = frequency(g, "linear-attention-freq");
    if (!value)
        return -1;
    if (json_is_integer(value))
        return put(g, "<linear-step>", value);
    turned = json_array();
    for (size_t i = 0; turned && i < json_array_size(value); i++)
        json_array_append_new(turned,
            json_integer(!json_integer_value(json_array_get(value, i))));
    json_decref(value);
    return put(g, "<linear-list>", turned);
}

/* Windows as "(127,0)": as many tokens before, and the token itself. */
static int take_window(struct megatron *g)
{
    const char *text = given_text(g, "window-size");
    json_t *value;
    int64_t n;

    if (!text)
        return 0;
    n = strtoll(text + strspn(text, "([ '\""), NULL, 10);
    if (n < 0)
        return 0;
    if (put(g, "<window>", json_integer(n + 1)))
        return -1;
    if (!given_text(g, "window-attn-skip-freq"))
        return 0;
    value = frequency(g, "window-attn-skip-freq");
    if (!value)
        return -1;
    return put(
        g, json_is_integer(value) ? "<window-step>" : "<window-list>", value);
}

static int take_activation(struct megatron *g)
{
    const char *name = "gelu";
    bool gated = given_flag(g, "swiglu") || given_flag(g, "quick-geglu");
    const char *given = given_text(g, "activation-func");

    if (given_flag(g, "swiglu") || text_is(given, "swiglu", "SwiGLU")) {
        name = "silu";
        gated = true;
    } else if (given_flag(g, "squared-relu") ||
               text_is(given, "squared_relu", "squaredrelu")) {
        name = "relu2";
    } else if (given_flag(g, "quick-geglu")) {
        name = "quick_gelu";
    }
    if (put(g, "<gated>", json_boolean(gated)) ||
        put(g, "<activation>", json_string(name)))
        return -1;
    return given_flag(g, "gated-linear-unit") ? put(g, "<gated>", json_true())
                                              : 0;
}

/* Four times the hidden size, or two thirds of it down to the next 64. */
static int take_ffn(struct megatron *g)
{
    int64_t hidden;

    if (given_text(g, "ffn-hidden-size") ||
        !number_of(given_text(g, "hidden-size"), &hidden) || hidden < 1 ||
        hidden > 1 << 24)
        return 0;
    return put(g, "ffn-hidden-size",
        json_integer(given_flag(g, "swiglu") ? 4 * hidden * 2 / 3 / 64 * 64
                                             : 4 * hidden));
}

/* Where the vocabulary is that of a tokenizer that is well known. */
static const struct {
    const char *part;
    int64_t vocab;
} tokenizer_table[] = {
    {"DeepSeek-V3", 129280},
    {"DeepSeekV3", 129280},
    {"DeepSeek-V2", 102400},
    {"DeepSeekV2", 102400},
    {"Kimi-K2", 163840},
    {"Moonlight", 163840},
    {"GLM-4.5", 151552},
    {"gpt-oss", 201088},
    {"Qwen3.5", 248320},
    {"Qwen3", 151936},
    {"Qwen2.5", 151936},
    {"Llama-4", 202048},
    {"Llama-3", 128256},
    {"Llama3", 128256},
    {"Mixtral", 32000},
    {"Llama-2", 32000},
    {"Llama2Tokenizer", 32000},
    {"GPT2BPETokenizer", 50257},
};

static int take_vocab(struct megatron *g)
{
    static const char *const place[] = {"tokenizer-model", "tokenizer-type"};
    const char *padded = given_text(g, "padded-vocab-size");
    int64_t n;

    if (given_text(g, "vocab-size"))
        return 0;
    if (number_of(padded, &n))
        return put(g, "vocab-size", json_integer(n));
    for (size_t i = 0; i < 2; i++)
        for (size_t k = 0; k < sizeof tokenizer_table / sizeof *tokenizer_table;
             k++) {
            const char *text = given_text(g, place[i]);

            if (!text || !strstr(text, tokenizer_table[k].part))
                continue;
            if (put(g, "vocab-size", json_integer(tokenizer_table[k].vocab)))
                return -1;
            return mf_model_warn(g->model, g->err,
                "vocab-size is missing; %" PRId64 " is assumed, as %s %.64s "
                "has it",
                tokenizer_table[k].vocab, place[i], text);
        }
    return mf_error_set(g->err, MF_INVALID,
        "vocab-size is missing, and no tokenizer is named whose size is known");
}

/* A learned table of positions, unless they are rotary or none. */
static int take_positions(struct megatron *g)
{
    const char *type = given_text(g, "position-embedding-type");
    int64_t rows;

    if ((type && strcmp(type, "learned_absolute")) ||
        given_flag(g, "use-rotary-position-embeddings") ||
        given_flag(g, "no-position-embedding") ||
        !number_of(given_text(g, "max-position-embeddings"), &rows))
        return 0;
    return put(g, "<positions>", json_integer(rows));
}

static int take_switches(struct megatron *g)
{
    bool sigmoid = text_is(
        given_text(g, "moe-router-score-function"), "sigmoid", "Sigmoid");

    if (given_text(g, "untie-embeddings-and-output-weights") &&
        put(g, "<tied>",
            json_boolean(
                !given_flag(g, "untie-embeddings-and-output-weights"))))
        return -1;
    if (given_flag(g, "moe-router-pre-softmax") && !sigmoid &&
        put(g, "<renormalize>", json_false()))
        return -1;
    if (given_flag(g, "disable-bias-linear") &&
        put(g, "add-bias-linear", json_false()))
        return -1;
    return 0;
}

/* add-qkv-bias brings back what no-bias takes from queries alone. */
static int take_biases(struct megatron *g, bool *qkv)
{
    *qkv = given_flag(g, "add-qkv-bias") &&
           (given_flag(g, "disable-bias-linear") ||
               text_is(given_text(g, "add-bias-linear"), "false", "False"));
    return 0;
}

/* Arguments as they stand; a variable without a value has none. */
static int take_plain(struct megatron *g)
{
    const char *name;
    json_t *item;

    json_object_foreach(g->given, name, item)
    {
        const char *text = given_text(g, name);
        bool known = key_known(name);

        if (!text || (!known && (!starts(name, suspects, false) ||
                                    starts(name, harmless, true))))
            continue;
        if (strchr(text, '$')) {
            if (known)
                return mf_error_set(g->err, MF_INVALID,
                    "%s is %.80s, a variable without a value; write the "
                    "number",
                    name, text);
            continue;
        }
        if (put(g, name, typed(text)))
            return -1;
    }
    return 0;
}

static int refuse_kinds(const struct megatron *g)
{
    static const char *const encoder[] = {
        "decoder-num-layers", "bert-embedder-type", "retro-add-retriever"};

    for (size_t i = 0; i < sizeof encoder / sizeof *encoder; i++)
        if (given_text(g, encoder[i]))
            return mf_error_set(g->err, MF_INVALID,
                "%s: a model with an encoder is not read", encoder[i]);
    if (given_text(g, "num-layers"))
        return 0;
    return mf_error_set(g->err, MF_INVALID,
        "num-layers is missing: these are no arguments of a Megatron model");
}

static int64_t size_of(const struct megatron *g, const char *name)
{
    int64_t n = 0;

    return number_of(given_text(g, name), &n) && n > 0 && n <= 1 << 24 ? n : 0;
}

static int64_t size_or_1(const struct megatron *g, const char *name)
{
    return given_text(g, name) ? size_of(g, name) : 1;
}

/* A size given by a variable is 0: not known. */
static void arguments_fill(const struct megatron *g, struct mf_arguments *out)
{
    out->given = true;
    out->layout = given_text(g, "tensor-model-parallel-size") ||
                  given_text(g, "pipeline-model-parallel-size") ||
                  given_text(g, "expert-model-parallel-size") ||
                  given_text(g, "context-parallel-size");
    out->tp = size_or_1(g, "tensor-model-parallel-size");
    out->cp = size_or_1(g, "context-parallel-size");
    out->pp = size_or_1(g, "pipeline-model-parallel-size");
    out->ep = size_or_1(g, "expert-model-parallel-size");
    out->etp_given = given_text(g, "expert-tensor-parallel-size");
    out->etp =
        out->etp_given ? size_of(g, "expert-tensor-parallel-size") : out->tp;
    out->seq = size_of(g, "seq-length");
    out->micro_batch = size_of(g, "micro-batch-size");
    out->global_batch = size_of(g, "global-batch-size");
}

static int megatron_read(struct megatron *g)
{
    bool qkv = false;

    if (refuse_kinds(g) || take_plain(g) || take_switches(g) ||
        take_activation(g) || take_ffn(g) || take_vocab(g) ||
        take_positions(g) || take_moe_layers(g) || take_linear(g) ||
        take_window(g) || take_biases(g, &qkv))
        return -1;
    if (mf_model_config_as(g->object, &megatron, g->model, g->err))
        return -1;
    if (!qkv || g->model->qkv_bias)
        return 0;
    g->model->qkv_bias = true;
    return mf_model_count_params(g->model, g->err);
}

int mf_megatron_model(json_t *arguments, struct mf_model *model,
    struct mf_arguments *out, struct mf_error *err)
{
    struct megatron g = {.given = arguments,
        .object = json_object(),
        .model = model,
        .err = err};
    int status = -1;

    if (!g.object)
        return mf_error_set(err, MF_FAILED, "out of memory");
    if (out)
        arguments_fill(&g, out);
    status = megatron_read(&g);
    if (!status && out && out->layout && !out->etp_given && out->tp > 1)
        status = mf_model_warn(model, err,
            "expert-tensor-parallel-size is missing; Megatron takes "
            "tensor-model-parallel-size, %" PRId64 ", for it",
            out->tp);
    json_decref(g.object);
    return status;
}
