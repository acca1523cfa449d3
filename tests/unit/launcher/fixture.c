/* SPDX-License-Identifier: BSD-3-Clause
 * Plans for the launcher's tests, made by hand.
 */
#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/launcher/fixture.h"

static void fill_model(struct mf_model *model)
{
    struct mf_error err;

    *model = (struct mf_model){
        .name = "tiny-moe",
        .layers = 4,
        .hidden = 8,
        .vocab = 16,
        .heads = 2,
        .kv_heads = 2,
        .head_dim = 4,
        .attention = MF_ATTENTION_MHA,
        .moe_ffn = 4,
        .gated = true,
        .activation = "silu",
        .experts = 8,
        .topk = 2,
        .router = {.score = MF_SCORE_SOFTMAX, .scaling = 1},
    };
    model->layer_kind = calloc(4, sizeof *model->layer_kind);
    assert_non_null(model->layer_kind);
    for (int i = 0; i < 4; i++)
        model->layer_kind[i] =
            (struct mf_layer_kind){MF_MIXER_FULL, MF_FFN_MOE};
    assert_int_equal(mf_model_count_params(model, &err), 0);
}

static void add_entry(struct mf_plan *plan, const char *layout, bool coupled,
    double forward_s, double backward_s)
{
    struct mf_plan_entry *entry = &plan->entry[plan->entries++];
    struct mf_error err = {0};

    assert_int_equal(mf_layout_parse(layout, &entry->layout, &err), 0);
    entry->layout.coupled = coupled;
    if (mf_layout_resolve(&entry->layout, plan->world, ~0u, &err) < 0)
        fail_msg("%s", err.text);
    mf_settings_init(&entry->settings);
    entry->cost.fits = true;
    entry->cost.step_s = NAN;
    entry->cost.layer_forward_s = forward_s;
    entry->cost.layer_backward_s = backward_s;
}

static void begin(struct mf_plan *plan, int64_t world, const char *cluster)
{
    *plan = (struct mf_plan){
        .world = world, .scope = MF_SCOPE_MOE, .coefficients = "prior"};
    plan->entry = calloc(4, sizeof *plan->entry);
    assert_non_null(plan->entry);
    fill_model(&plan->model);
    plan->cluster.gpu = (struct mf_gpu){"H100", NAN, NAN, NAN};
    snprintf(plan->cluster.name, sizeof plan->cluster.name, "%s", cluster);
}

void fixture_plan(const char *nodes, struct mf_plan *plan)
{
    struct mf_error err = {0};
    char name[64];

    begin(plan, 32, "four");
    while (*nodes) {
        size_t length = strcspn(nodes, ",");

        snprintf(name, sizeof name, "%.*s", (int)length, nodes);
        assert_int_equal(mf_cluster_add_node(&plan->cluster, name, 8, &err), 0);
        nodes += length + (nodes[length] == ',');
    }
    add_entry(plan, "tp2.pp4/ep8", false, 0.004, 0.006);
    add_entry(plan, "tp1.pp4/ep4", false, 0.005, 0.007);
    add_entry(plan, "tp2.pp4/etp2.ep4", true, 0.007, 0.009);
}

void fixture_cpu_plan(struct mf_plan *plan)
{
    struct mf_error err = {0};

    begin(plan, 8, "local");
    plan->cluster.cpu_ranks = true;
    plan->cluster.cores = 2;
    assert_int_equal(mf_cluster_add_node(&plan->cluster, "here", 8, &err), 0);
    add_entry(plan, "tp1/ep8", false, NAN, NAN);
}

json_t *fixture_map_json(
    const struct mfl_map *map, const struct mf_layout *layout)
{
    json_error_t where;
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    json_t *json;

    assert_non_null(out);
    mfl_map_print_json(map, layout, out);
    assert_int_equal(fclose(out), 0);
    json = json_loads(text, 0, &where);
    if (!json)
        fail_msg("%s", where.text);
    free(text);
    return json;
}

char *fixture_read(const char *file)
{
    FILE *in = fopen(file, "r");
    char *text = calloc(1, 65536);

    assert_non_null(text);
    if (!in)
        fail_msg("%s cannot be read", file);
    assert_true(fread(text, 1, 65535, in) < 65535);
    fclose(in);
    return text;
}
