/* SPDX-License-Identifier: BSD-3-Clause
 * What the tests of the cost model share.
 */
#include "tests/unit/cost/bed.h"

static void bed_add_nodes(
    struct mf_cluster *cluster, const int64_t *sizes, int nodes)
{
    for (int i = 0; i < nodes; i++) {
        char name[16];

        snprintf(name, sizeof name, "n%d", i);
        assert_int_equal(mf_cluster_add_node(cluster, name, sizes[i], NULL), 0);
    }
}

void bed_h100(struct mf_cluster *cluster, int64_t nodes)
{
    *cluster = (struct mf_cluster){.name = "bed-h100",
        .gpu = {"H100", 80 * 1073741824.0, 989e12, 3.35e12},
        .tier = {{"node", 8, 450e9, 3e-6}, {"fabric", 8 * nodes, 50e9, 14e-6}},
        .tiers = 2};
    for (int64_t i = 0; i < nodes; i++)
        bed_add_nodes(cluster, (const int64_t[]){8}, 1);
}

void bed_cpu(struct mf_cluster *cluster, int64_t ranks, double flops,
    double memory_bytes_per_s, double tier_bytes_per_s)
{
    *cluster = (struct mf_cluster){.name = "bed-cpu",
        .cpu_ranks = true,
        .cores = ranks,
        .gpu = {"a CPU", 1e15, flops, memory_bytes_per_s},
        .tier = {{"node", ranks, tier_bytes_per_s, 0}},
        .tiers = 1};
    bed_add_nodes(cluster, &ranks, 1);
}

void bed_ideal(struct mf_coefficients *set)
{
    static const enum mf_coefficient zero[] = {MF_COEF_NARROW, MF_COEF_RAMP_S,
        MF_COEF_KERNEL_S, MF_COEF_FLOOR_S, MF_COEF_LATENCY, MF_COEF_MESSAGE_S,
        MF_COEF_LAYER_S};

    snprintf(set->name, sizeof set->name, "ideal");
    for (int i = 0; i < MF_COEFS; i++)
        set->value[i] = 1;
    for (size_t i = 0; i < sizeof zero / sizeof *zero; i++)
        set->value[zero[i]] = 0;
}

void bed_nodes(struct mf_cluster *cluster, const int64_t *sizes, int nodes)
{
    int64_t all = 0;

    for (int i = 0; i < nodes; i++)
        all += sizes[i];
    *cluster = (struct mf_cluster){.name = "bed-nodes",
        .gpu = {"H100", 80 * 1073741824.0, 989e12, 3.35e12},
        .tier = {{"socket", 4, 400e9, 1e-6}, {"node", 8, 200e9, 3e-6},
            {"rack", 24, 50e9, 5e-6}, {"fabric", all, 25e9, 10e-6}},
        .tiers = 4};
    bed_add_nodes(cluster, sizes, nodes);
}

void bed_model(const char *name, struct mf_model *model)
{
    const char *top = getenv("MOEFOLD_SRCDIR");
    struct mf_error err = {0};
    char path[4096];

    snprintf(
        path, sizeof path, "%s/tests/data/models/%s", top ? top : ".", name);
    if (mf_model_read(path, model, &err))
        fail_msg("%s", err.text);
}

void bed_small(struct mf_model *model, int64_t layers, int64_t hidden,
    int64_t ffn, int64_t experts, int64_t topk)
{
    *model = (struct mf_model){.name = "small",
        .layers = layers,
        .hidden = hidden,
        .vocab = 128,
        .heads = 4,
        .kv_heads = 4,
        .head_dim = hidden / 4,
        .attention = MF_ATTENTION_MHA,
        .moe_ffn = ffn,
        .gated = true,
        .experts = experts,
        .topk = topk};
    model->layer_kind = calloc((size_t)layers, sizeof *model->layer_kind);
    assert_non_null(model->layer_kind);
    for (int64_t i = 0; i < layers; i++)
        model->layer_kind[i] =
            (struct mf_layer_kind){MF_MIXER_FULL, MF_FFN_MOE};
    assert_int_equal(mf_model_count_params(model, NULL), 0);
}

struct mf_layout bed_layout(const char *text, int64_t world, bool coupled)
{
    struct mf_error err = {0};
    struct mf_layout layout;

    if (mf_layout_parse(text, &layout, &err))
        fail_msg("%s", err.text);
    layout.coupled = coupled;
    if (mf_layout_resolve(&layout, world, ~0u, &err))
        fail_msg("%s", err.text);
    return layout;
}

struct mf_settings bed_settings(int64_t global_batch)
{
    struct mf_settings settings;

    mf_settings_init(&settings);
    settings.seq = 4096;
    settings.global_batch = global_batch;
    return settings;
}

/* xorshift64* */
uint64_t bed_random(uint64_t *state)
{
    *state ^= *state >> 12;
    *state ^= *state << 25;
    *state ^= *state >> 27;
    return *state * 2685821657736338717u;
}

int64_t bed_pick(uint64_t *state, const int64_t *values, int count)
{
    return values[bed_random(state) % (uint64_t)count];
}
