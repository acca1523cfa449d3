/* SPDX-License-Identifier: BSD-3-Clause
 * A plan goes to a file and comes back; damaged ones are refused.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "planner/layout/plan.h"

static void fill_model(struct mf_model *model)
{
    struct mf_error err;

    *model = (struct mf_model){
        .name = "m",
        .layers = 2,
        .hidden = 8,
        .vocab = 16,
        .heads = 2,
        .kv_heads = 2,
        .head_dim = 4,
        .attention = MF_ATTENTION_MHA,
        .moe_ffn = 4,
        .gated = true,
        .activation = "silu",
        .experts = 4,
        .topk = 2,
        .router = {.score = MF_SCORE_SOFTMAX, .scaling = 1},
    };
    model->layer_kind = calloc(2, sizeof *model->layer_kind);
    for (int i = 0; i < 2; i++)
        model->layer_kind[i] =
            (struct mf_layer_kind){MF_MIXER_FULL, MF_FFN_MOE};
    assert_int_equal(mf_model_count_params(model, &err), 0);
}

static void fill_cluster(struct mf_cluster *cluster)
{
    struct mf_error err;

    *cluster = (struct mf_cluster){
        .name = "c",
        .gpu = {"H100", NAN, 989e12, 3.35e12},
        .tier = {{"nvlink", 4, 450e9, 1e-6}},
        .tiers = 1,
    };
    assert_int_equal(mf_cluster_add_node(cluster, "n1", 4, &err), 0);
}

static void fill_plan(struct mf_plan *plan)
{
    struct mf_plan_entry *entry = calloc(1, sizeof *entry);
    struct mf_error err;

    *plan = (struct mf_plan){.world = 4,
        .scope = MF_SCOPE_MOE,
        .coefficients = "prior",
        .entry = entry,
        .entries = 1,
        .enumerated = 9,
        .priced = 5,
        .elapsed_s = 0.25,
        .reasons = 1,
        .rejected = {{"memory", 4}}};
    fill_model(&plan->model);
    fill_cluster(&plan->cluster);
    assert_int_equal(mf_layout_parse("tp2/ep2", &entry->layout, &err), 0);
    assert_int_equal(mf_layout_resolve(&entry->layout, 4, ~0u, &err), 0);
    mf_settings_init(&entry->settings);
    entry->cost.step_s = 0.1;
    entry->cost.mfu = NAN;
    entry->cost.fits = true;
    entry->cost.limit = mf_part_name("experts");
    entry->cost.part[0] = (struct mf_part){mf_part_name("experts"), 0.06};
    entry->cost.part[1] = (struct mf_part){mf_part_name("dispatch"), 0.04};
    entry->cost.parts = 2;
    for (int i = 0; i < MF_PHASES; i++)
        entry->cost.phase_s[i][0] = entry->cost.phase_s[i][1] = NAN;
    entry->cost.phase_s[MF_PHASE_DISPATCH][MF_BACKWARD] = 0.02;
    entry->cost.stage = calloc(1, sizeof *entry->cost.stage);
    entry->cost.stage[0] = (struct mf_stage_memory){1e9, 2e9};
    assert_int_equal(mf_cost_note(&entry->cost, &err, "a %s", "note"), 0);
}

static void test_round_trip(void **state)
{
    char file[] = "/tmp/moefold-plan.XXXXXX";
    int fd = mkstemp(file);
    struct mf_plan plan, back;
    struct mf_error err = {0};
    json_t *a, *b;

    (void)state;
    assert_true(fd >= 0);
    close(fd);
    fill_plan(&plan);
    assert_int_equal(mf_plan_write(&plan, file, &err), 0);
    if (mf_plan_read(file, &back, &err))
        fail_msg("%s", err.text);
    a = mf_plan_to_json(&plan);
    b = mf_plan_to_json(&back);
    assert_true(json_equal(a, b));
    assert_true(mf_layout_equal(&plan.entry[0].layout, &back.entry[0].layout));
    json_decref(a);
    json_decref(b);
    mf_plan_free(&plan);
    mf_plan_free(&back);
    unlink(file);
}

/* Change one value of a good plan; it must be refused, never crash. */
static void test_refusals(void **state)
{
    static const struct {
        const char *object, *key, *value;
    } cases[] = {
        {NULL, "kind", "\"other\""},
        {NULL, "schema_version", "2"},
        {NULL, "world", "0"},
        {NULL, "world", "8"},
        {NULL, "world", "1e99"},
        {NULL, "scope", "\"all\""},
        {NULL, "plans", "3"},
        {NULL, "model", "null"},
        {NULL, "cluster", "[]"},
        {"0", "layout", "\"tp3\""},
        {"0", "layout", "7"},
        {"0", "order", "\"tp-tp\""},
        {"0", "seq", "-1"},
        {"0", "micro_batch", "0"},
        {"0", "dispatcher", "\"auto\""},
        {"0", "imbalance", "1.5"},
        {"0", "capacity_factor", "0"},
        {"0", "step_s", "\"x\""},
        {"0", "memory_by_stage", "[1,2,3]"},
    };
    struct mf_plan plan;

    (void)state;
    fill_plan(&plan);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        json_t *json = mf_plan_to_json(&plan);
        json_t *entry = json_array_get(json_object_get(json, "plans"), 0);
        json_t *value = json_loads(cases[i].value, JSON_DECODE_ANY, NULL);
        struct mf_error err = {0};
        struct mf_plan back;

        assert_non_null(value);
        json_object_set_new(
            cases[i].object ? entry : json, cases[i].key, value);
        assert_int_equal(mf_plan_from_json(json, &back, &err), -1);
        assert_int_equal(err.status, MF_INVALID);
        assert_true(strlen(err.text) > 0);
        json_decref(json);
    }
    mf_plan_free(&plan);
}

static void test_write_fails_cleanly(void **state)
{
    struct mf_error err;
    struct mf_plan plan;

    (void)state;
    fill_plan(&plan);
    assert_int_equal(mf_plan_write(&plan, "/nonexistent/p.json", &err), -1);
    assert_int_equal(err.status, MF_FAILED);
    assert_int_equal(mf_plan_write(&plan, "/dev/null", &err), -1);
    assert_int_equal(err.status, MF_INVALID);
    mf_plan_free(&plan);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trip),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_write_fails_cleanly),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
