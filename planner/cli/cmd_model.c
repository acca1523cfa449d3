/* SPDX-License-Identifier: BSD-3-Clause
 * moefold model: the shape of a model and how many parameters it has.
 */
#include "config.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>

#include "planner/cli/commands.h"
#include "planner/model_read.h"

#define RUNS_SHOWN 6

/* TEXT (16 bytes) such as "140.6 B", "9.53 B" or "75.5 M". */
static const char *count_format(int64_t n, char text[16])
{
    double b = (double)n / 1e9;

    if (b >= 9.995)
        snprintf(text, 16, "%.1f B", b);
    else if (b >= 1)
        snprintf(text, 16, "%.2f B", b);
    else
        snprintf(text, 16, "%.1f M", b * 1e3);
    return text;
}

static const char *plural(int64_t n)
{
    return n == 1 ? "" : "s";
}

static void label(const char *text)
{
    printf("  %-12s", text);
}

static const char *mixer_text(enum mf_mixer mixer)
{
    static const char *const text[] = {
        [MF_MIXER_FULL] = "",
        [MF_MIXER_SLIDING] = "sliding window, ",
        [MF_MIXER_NONE] = "no attention, ",
        [MF_MIXER_LINEAR] = "linear attention, ",
        [MF_MIXER_MAMBA] = "Mamba, ",
        [MF_MIXER_SPARSE] = "sparse attention, ",
        [MF_MIXER_COMPRESSED] = "compressed attention, ",
        [MF_MIXER_CONV] = "convolution, ",
    };

    return text[mixer];
}

static const char *ffn_text(enum mf_ffn ffn)
{
    if (ffn == MF_FFN_NONE)
        return "no FFN";
    return ffn == MF_FFN_MOE ? "MoE" : "dense";
}

static int64_t run_end(const struct mf_model *m, int64_t from)
{
    const struct mf_layer_kind *kind = m->layer_kind;
    int64_t i = from + 1;

    while (i < m->layers && kind[i].ffn == kind[from].ffn &&
           kind[i].mixer == kind[from].mixer)
        i++;
    return i;
}

/* Runs of like layers, "0-2 dense; 3-60 MoE". */
static void print_runs(const struct mf_model *m)
{
    int64_t end, shown = 0;

    for (int64_t i = 0; i < m->layers; i = end) {
        const struct mf_layer_kind *kind = &m->layer_kind[i];

        end = run_end(m, i);
        if (shown++ == RUNS_SHOWN) {
            printf("; …");
            return;
        }
        printf("%s%" PRId64, i ? "; " : "", i);
        if (end - 1 > i)
            printf("-%" PRId64, end - 1);
        printf(" %s%s", mixer_text(kind->mixer), ffn_text(kind->ffn));
    }
}

static void print_layers(const struct mf_model *m)
{
    int64_t moe = mf_model_count(m, MF_FFN_MOE);
    int64_t dense = mf_model_count(m, MF_FFN_DENSE);

    label("layers");
    printf("%" PRId64, m->layers);
    if (moe == m->layers)
        printf(", all MoE");
    else if (dense == m->layers)
        printf(", all dense");
    else
        printf(", %" PRId64 " of them MoE", moe);
    if (run_end(m, 0) < m->layers) {
        printf(" (");
        print_runs(m);
        printf(")");
    }
    putchar('\n');
}

/* How many layers mix tokens in which way, where there are several. */
static void print_kinds(const struct mf_model *m)
{
    static const char *const text[] = {
        [MF_MIXER_FULL] = "full attention",
        [MF_MIXER_SLIDING] = "sliding window",
        [MF_MIXER_NONE] = "none",
        [MF_MIXER_LINEAR] = "linear attention",
        [MF_MIXER_MAMBA] = "Mamba",
        [MF_MIXER_SPARSE] = "sparse attention",
        [MF_MIXER_COMPRESSED] = "compressed attention",
        [MF_MIXER_CONV] = "convolution",
    };
    int shown = 0;

    if (mf_model_count_mixer(m, m->layer_kind[0].mixer) == m->layers)
        return;
    label("mixers");
    for (int i = 0; i < MF_MIXERS; i++) {
        int64_t n = mf_model_count_mixer(m, (enum mf_mixer)i);

        if (n > 0)
            printf("%s%" PRId64 " %s", shown++ ? ", " : "", n, text[i]);
    }
    putchar('\n');
}

static void print_attention(const struct mf_model *m)
{
    label("attention");
    if (m->attention == MF_ATTENTION_MLA) {
        printf("MLA, %" PRId64 " heads of %" PRId64 " (values %" PRId64
               "), key-value rank %" PRId64,
            m->heads, m->head_dim, m->mla.v_dim, m->mla.kv_rank);
        if (m->mla.q_rank)
            printf(", query rank %" PRId64, m->mla.q_rank);
    } else {
        printf("%s, %" PRId64 " heads of %" PRId64,
            m->attention == MF_ATTENTION_GQA ? "GQA" : "MHA", m->heads,
            m->head_dim);
        if (m->attention == MF_ATTENTION_GQA)
            printf(", %" PRId64 " of keys and values", m->kv_heads);
    }
    if (m->sliding_window)
        printf(", %s of %" PRId64 " tokens",
            m->window_chunked ? "chunks" : "window", m->sliding_window);
    if (m->gate_dim)
        printf(", with an output gate");
    if (m->attention_experts)
        printf(", %" PRId64 " of %" PRId64 " experts", m->attention_topk,
            m->attention_experts);
    putchar('\n');
}

static void print_heads(const char *name, const struct mf_heads *h)
{
    if (!h->heads)
        return;
    label(name);
    printf("%" PRId64 " heads of %" PRId64 ", %" PRId64 " of keys%s\n",
        h->heads, h->head_dim, h->kv_heads,
        h->keys_are_values ? " that are values too" : " and values");
}

/* Parts that a few models have. */
static void print_mixers(const struct mf_model *m)
{
    static const char *const linear[] = {
        [MF_LINEAR_GATED_DELTA] = "gated delta",
        [MF_LINEAR_KDA] = "Kimi delta",
        [MF_LINEAR_LIGHTNING] = "lightning",
    };

    print_heads("full", &m->full_heads);
    print_heads("sliding", &m->sliding_heads);
    if (m->linear.value_heads) {
        label("linear");
        printf("%s, %" PRId64 " heads of %" PRId64 ", %" PRId64
               " of keys of %" PRId64 "\n",
            linear[m->linear.type], m->linear.value_heads, m->linear.value_dim,
            m->linear.key_heads, m->linear.key_dim);
    }
    if (m->mamba.inner) {
        label("Mamba");
        printf("%d, %" PRId64 " channels, state of %" PRId64 "\n",
            m->mamba.heads ? 2 : 1, m->mamba.inner, m->mamba.state);
    }
    if (m->indexer.heads) {
        label("indexer");
        printf("%" PRId64 " heads of %" PRId64 ", the best %" PRId64 "\n",
            m->indexer.heads, m->indexer.dim, m->indexer.topk);
    }
}

static void print_experts(const struct mf_model *m)
{
    const char *gated = m->gated ? "gated " : "";

    if (m->dense_ffn) {
        label("dense FFN");
        printf("%" PRId64 " wide, %s%s\n", m->dense_ffn, gated, m->activation);
    }
    if (!m->experts)
        return;
    label("experts");
    printf("%" PRId64 ", each %" PRId64 " wide, %s%s; %" PRId64
           " for each token\n",
        m->experts, m->moe_ffn, gated, m->activation, m->topk);
    if (m->latent) {
        label("latent");
        printf("experts see %" PRId64 " numbers a token\n", m->latent);
    }
    if (m->beside_ffn) {
        label("beside");
        printf("a dense part %" PRId64 " wide for all tokens\n", m->beside_ffn);
    }
    if (!m->shared_experts)
        return;
    label("shared");
    printf("%" PRId64 " expert%s for all tokens, %" PRId64 " wide%s%s\n",
        m->shared_experts, plural(m->shared_experts), m->shared_ffn,
        m->shared_experts > 1 ? " together" : "",
        m->shared_gate ? ", with a gate" : "");
}

static void print_router(const struct mf_model *m)
{
    const struct mf_router *r = &m->router;

    if (!m->experts)
        return;
    label("router");
    printf("%s", mf_score_name(r->score));
    if (r->bias)
        printf(", selection bias");
    if (r->groups > 1)
        printf(", experts from the best %" PRId64 " of %" PRId64 " groups",
            r->topk_groups, r->groups);
    if (r->renormalize)
        printf(", weights made to sum to 1");
    if (r->scaling != 1)
        printf(", times %g", r->scaling);
    putchar('\n');
}

static void print_shape(const struct mf_model *m)
{
    char text[16];

    print_layers(m);
    label("hidden");
    printf("%" PRId64 "\n", m->hidden);
    print_kinds(m);
    print_attention(m);
    print_mixers(m);
    print_experts(m);
    print_router(m);
    label("vocabulary");
    printf("%" PRId64 ", %s\n", m->vocab,
        m->tied_embeddings ? "one table for input and output"
                           : "tables for input and output");
    if (*m->quantization) {
        label("weights");
        printf("published as %s\n", m->quantization);
    }
    if (!m->mtp_layers)
        return;
    label("MTP");
    printf("%" PRId64 " layer%s, %s more parameters\n", m->mtp_layers,
        plural(m->mtp_layers), count_format(m->params.mtp, text));
}

static void print_part(const struct mf_model *m, const char *name, int64_t n)
{
    if (n > 0)
        printf("  %-26s %16" PRId64 "  %5.1f %%\n", name, n,
            100.0 * (double)n / (double)m->params.total);
}

static void print_parts(const struct mf_model *m)
{
    const struct mf_params *p = &m->params;

    printf("\n  %-26s %16s  %7s\n", "parameters", "count", "share");
    print_part(m, "embeddings", p->embedding);
    print_part(m, "attention", p->attention);
    print_part(m, "dense FFN", p->dense_mlp);
    print_part(m, "routed experts", p->routed);
    print_part(m, "shared experts", p->shared);
    print_part(m, "router", p->router);
    print_part(m, "norms", p->norms);
    print_part(m, "other parts", p->other);
    print_part(m, "total", p->total);
    print_part(m, "active for a token", p->active);
    print_part(m, "active but input table", p->active_no_embedding);
    if (m->experts)
        print_part(m, "one routed expert", mf_model_expert_params(m));
    if (p->mtp > 0)
        printf("  %-26s %16" PRId64 "\n", "MTP, not in the total", p->mtp);
    if (p->vision > 0)
        printf(
            "  %-26s %16" PRId64 "\n", "vision, not in the total", p->vision);
}

static void print_model(const struct mf_model *m, bool verbose)
{
    char total[16], active[16];

    printf("%s: %s parameters", m->name, count_format(m->params.total, total));
    if (m->experts)
        printf(", %s of them active for each token",
            count_format(m->params.active, active));
    printf("\n\n");
    print_shape(m);
    if (verbose)
        print_parts(m);
    for (int i = 0; m->warning && m->warning[i]; i++)
        printf("%s  warning: %s\n", i ? "" : "\n", m->warning[i]);
}

static json_t *known(int64_t n)
{
    return n > 0 ? json_integer(n) : json_null();
}

/* What an argument file gives besides the model, null for other files. */
static json_t *arguments_json(const struct mf_arguments *a)
{
    if (!a->given)
        return json_null();
    return json_pack("{s:o, s:o, s:o, s:o, s:o, s:s, s:o, s:o, s:o}", "tp",
        known(a->tp), "cp", known(a->cp), "pp", known(a->pp), "ep",
        known(a->ep), "etp", known(a->etp), "etp_from",
        a->etp_given ? "expert-tensor-parallel-size"
                     : "tensor-model-parallel-size",
        "seq", known(a->seq), "micro_batch", known(a->micro_batch),
        "global_batch", known(a->global_batch));
}

static void print_size(const char *name, int64_t n)
{
    if (n > 0)
        printf("%s%" PRId64, name, n);
    else
        printf("%s?", name);
}

/* A size that a variable gives is not known. */
static void print_arguments(const struct mf_arguments *a)
{
    if (!a->given || !a->layout)
        return;
    printf("\n");
    label("layout");
    print_size("tp", a->tp);
    print_size(".cp", a->cp);
    print_size(".pp", a->pp);
    print_size("/etp", a->etp);
    print_size(".ep", a->ep);
    printf("%s\n", a->etp_given ? "" : " (etp is tp, as Megatron has it)");
}

static int model_json(const struct mf_model *model,
    const struct mf_arguments *arguments, struct mf_error *err)
{
    json_t *json = mf_model_to_json(model);

    if (json &&
        json_object_set_new(json, "megatron", arguments_json(arguments))) {
        json_decref(json);
        json = NULL;
    }
    return mf_cli_print_json(json, err);
}

static int model_run(struct mf_cli *cli, struct mf_error *err)
{
    struct mf_arguments arguments;
    struct mf_model model;
    int status = 0;

    if (mf_model_read_arguments(
            mf_cli_operand(cli, 0), &model, &arguments, err))
        return -1;
    if (mf_cli_json(cli)) {
        status = model_json(&model, &arguments, err);
    } else {
        print_model(&model, mf_cli_has(cli, "verbose"));
        print_arguments(&arguments);
        if (fflush(stdout) || ferror(stdout))
            status = mf_error_set(err, MF_FAILED, "cannot print the model");
    }
    mf_model_free(&model);
    return status;
}

static const struct mf_option model_options[] = {
    {"verbose", NULL, "show the parameters by part"},
    {NULL, NULL, NULL},
};

static const struct mf_option *const model_tables[] = {model_options, NULL};

const struct mf_command mf_command_model = {
    .name = "model",
    .operands = "FILE",
    .summary = "Show the shape and the parameters of a model",
    .tables = model_tables,
    .least = 1,
    .most = 1,
    .run = model_run,
};
