/* SPDX-License-Identifier: BSD-3-Clause
 * The search against every layout written out and priced one by one; and the
 * rules that layouts must keep.
 */
#include "tests/unit/cost/bed.h"

#include "planner/search.h"

/* Models and clusters small enough to try everything. */
struct small {
    struct mf_model model;
    struct mf_cluster cluster;
    struct mf_coefficients set;
    struct mf_search search;
};

static void small_up(struct small *s, int64_t world, enum mf_scope scope)
{
    const int64_t nodes[] = {4, 4, 4};

    *s = (struct small){0};
    bed_small(&s->model, 6, 48, 96, 6, 2);
    bed_nodes(&s->cluster, nodes, 3);
    mf_coefficients_init(&s->set);
    s->search.world = world;
    s->search.scope = scope;
    s->search.order = mf_order_default();
    s->search.settings = bed_settings(24);
    s->search.settings.seq = 96;
    s->search.settings.micro_batch = 0;
    s->search.settings.vpp = 0;
    s->search.settings.recompute = MF_RECOMPUTE_AUTO;
    s->search.settings.dispatcher = MF_DISPATCHER_AUTO;
}

static void small_down(struct small *s)
{
    mf_cluster_free(&s->cluster);
    mf_model_free(&s->model);
}

struct found {
    char text[MF_LAYOUT_TEXT];
    double step_s;
};

static int found_compare(const void *a, const void *b)
{
    const struct found *x = a, *y = b;

    if (x->step_s != y->step_s)
        return x->step_s < y->step_s ? -1 : 1;
    return strcmp(x->text, y->text);
}

/* All seven sizes, each from 1 to the world. Returns how many fit; *LEGAL is
 * how many obey the law of folding.
 */
static int try_everything(
    const struct small *s, struct found *found, int room, int64_t *legal)
{
    int64_t w = s->search.world, i[6];
    bool moe = s->search.scope == MF_SCOPE_MOE;
    int n = 0;

    *legal = 0;
    for (int64_t code = 0; code < w * w * w * w * w * w; code++) {
        struct mf_plan_entry entry = {.settings = s->search.settings};
        int64_t rest = code;

        for (int k = 0; k < 6; k++) {
            i[k] = rest % w + 1;
            rest /= w;
        }
        if (i[0] * i[1] * i[2] * i[3] != w || w % (i[3] * i[4] * i[5]))
            continue;
        if (moe && (i[1] > 1 || i[3] > 1))
            continue;
        ++*legal;
        entry.layout = (struct mf_layout){.tp = i[0],
            .cp = i[1],
            .dp = i[2],
            .pp = i[3],
            .etp = i[4],
            .ep = i[5],
            .edp = w / (i[3] * i[4] * i[5]),
            .order = mf_order_default()};
        if (mf_cost_predict(
                &s->model, &s->cluster, s->search.scope, &s->set, &entry, NULL))
            continue;
        if (entry.cost.fits) {
            assert_true(n < room);
            mf_layout_format(
                &entry.layout, found[n].text, sizeof found[n].text);
            found[n++].step_s = entry.cost.step_s;
        }
        mf_cost_free(&entry.cost);
    }
    qsort(found, (size_t)n, sizeof *found, found_compare);
    return n;
}

static void check_world(int64_t world, enum mf_scope scope, size_t top)
{
    static struct found found[4096];
    struct mf_plan plan = {0};
    struct mf_error err = {0};
    int64_t legal, rejected = 0;
    struct small s;
    int n;

    small_up(&s, world, scope);
    s.search.top = top;
    n = try_everything(&s, found, 4096, &legal);
    assert_true(n > 0);
    plan.model = s.model;
    plan.cluster = s.cluster;
    if (mf_search_run(&s.search, &s.set, &plan, &err))
        fail_msg("%s", err.text);
    assert_int_equal(plan.entries, top && (int)top < n ? (int)top : n);
    for (size_t i = 0; i < plan.entries; i++) {
        char text[MF_LAYOUT_TEXT];

        mf_layout_format(&plan.entry[i].layout, text, sizeof text);
        assert_string_equal(text, found[i].text);
        assert_true(plan.entry[i].cost.step_s == found[i].step_s);
        mf_cost_free(&plan.entry[i].cost);
    }
    for (int i = 0; i < plan.reasons; i++)
        rejected += plan.rejected[i].count;
    assert_int_equal(plan.enumerated, legal);
    assert_int_equal(rejected, legal - n);
    free(plan.entry);
    small_down(&s);
}

static void equals_brute_force(void **state)
{
    (void)state;
    check_world(1, MF_SCOPE_STEP, 0);
    check_world(4, MF_SCOPE_STEP, 0);
    check_world(6, MF_SCOPE_STEP, 5);
    check_world(8, MF_SCOPE_STEP, 0);
    check_world(12, MF_SCOPE_STEP, 7);
    check_world(8, MF_SCOPE_MOE, 0);
}

static void fixed_axes(void **state)
{
    struct mf_plan plan = {0};
    struct mf_error err = {0};
    struct small s;

    (void)state;
    small_up(&s, 12, MF_SCOPE_STEP);
    s.search.fix[0] = 2;
    s.search.fix[5] = 3;
    plan.model = s.model;
    plan.cluster = s.cluster;
    assert_int_equal(mf_search_run(&s.search, &s.set, &plan, &err), 0);
    assert_true(plan.entries > 0);
    for (size_t i = 0; i < plan.entries; i++) {
        assert_int_equal(plan.entry[i].layout.tp, 2);
        assert_int_equal(plan.entry[i].layout.ep, 3);
        mf_cost_free(&plan.entry[i].cost);
    }
    free(plan.entry);
    small_down(&s);
}

static void coupled_only(void **state)
{
    struct mf_plan plan = {0};
    struct mf_error err = {0};
    struct small s;

    (void)state;
    small_up(&s, 12, MF_SCOPE_STEP);
    s.search.coupled = true;
    plan.model = s.model;
    plan.cluster = s.cluster;
    assert_int_equal(mf_search_run(&s.search, &s.set, &plan, &err), 0);
    assert_true(plan.entries > 0);
    for (size_t i = 0; i < plan.entries; i++) {
        const struct mf_layout *l = &plan.entry[i].layout;

        assert_true(l->coupled);
        assert_int_equal(l->etp, l->tp);
        assert_int_equal(l->dp % l->ep, 0);
        mf_cost_free(&plan.entry[i].cost);
    }
    free(plan.entry);
    small_down(&s);
}

/* A device with next to no memory: nothing fits, and the plan says why. */
static void nothing_fits(void **state)
{
    struct mf_plan plan = {0};
    struct mf_error err = {0};
    int64_t memory = 0;
    struct small s;

    (void)state;
    small_up(&s, 4, MF_SCOPE_STEP);
    s.cluster.gpu.memory_bytes = 1e6;
    plan.model = s.model;
    plan.cluster = s.cluster;
    assert_int_equal(mf_search_run(&s.search, &s.set, &plan, &err), -1);
    assert_int_equal(err.status, MF_NO);
    assert_int_equal(plan.entries, 0);
    for (int i = 0; i < plan.reasons; i++)
        if (!strcmp(plan.rejected[i].text, "does not fit in memory"))
            memory = plan.rejected[i].count;
    assert_true(memory > 0);
    small_down(&s);
}

/* Layouts at random, priced one after another from the same tables, against a
 * prediction of each on its own.
 */
static void equals_predict(void **unused)
{
    static const int64_t pp[] = {1, 2, 4, 8}, tp[] = {1, 2, 4, 8};
    static const int64_t cp[] = {1, 2}, ep[] = {1, 2, 4, 8}, etp[] = {1, 2};
    struct mf_settings settings = bed_settings(1024);
    struct mf_coefficients set;
    struct mf_cluster cluster;
    struct mf_error err = {0};
    struct mf_model model;
    uint64_t state = 97;
    mf_pricer *pricer;

    (void)unused;
    bed_model("DeepSeek-V3.json", &model);
    bed_h100(&cluster, 16);
    mf_coefficients_prior(&cluster, &set);
    settings.micro_batch = settings.vpp = 0;
    settings.first_layers = settings.last_layers = -1;
    settings.recompute = MF_RECOMPUTE_AUTO;
    settings.dispatcher = MF_DISPATCHER_AUTO;
    pricer = mf_pricer_create(&model, &cluster, 128, MF_SCOPE_STEP, &set, &err);
    assert_non_null(pricer);
    for (int i = 0; i < 1000; i++) {
        struct mf_plan_entry entry = {.layout = {.tp = bed_pick(&state, tp, 4),
                                          .cp = bed_pick(&state, cp, 2),
                                          .pp = bed_pick(&state, pp, 4),
                                          .etp = bed_pick(&state, etp, 2),
                                          .ep = bed_pick(&state, ep, 4),
                                          .order = mf_order_default()}};
        struct mf_best best;

        assert_int_equal(mf_layout_resolve(&entry.layout, 128, ~0u, &err), 0);
        if (mf_pricer_best(pricer, &entry.layout, &settings, &best, &err))
            fail_msg("%s", err.text);
        assert_true(best.priced > 0);
        entry.settings = best.settings;
        if (mf_cost_predict(
                &model, &cluster, MF_SCOPE_STEP, &set, &entry, &err))
            fail_msg("%s", err.text);
        assert_true(fabs(entry.cost.step_s / best.step_s - 1) <= 1e-12);
        assert_true(fabs(entry.cost.peak_bytes / best.peak_bytes - 1) <= 1e-12);
        assert_int_equal(entry.cost.fits, best.fits);
        mf_cost_free(&entry.cost);
    }
    mf_pricer_free(pricer);
    mf_cluster_free(&cluster);
    mf_model_free(&model);
}

struct rule {
    const char *model, *layout;
    int64_t world, micro, vpp, batch, seq;
    enum mf_scope scope;
    const char *message; /* a part of it; NULL: accepted */
};

static void rules(void **state)
{
    static const struct rule rule[] = {
        {"dense-Llama-3-8B.json", "tp1/ep4", 4, 1, 1, 8, 4096, MF_SCOPE_STEP,
            "ep 4 needs a model with experts"},
        {"dense-Llama-3-8B.json", "tp4", 4, 1, 1, 8, 4096, MF_SCOPE_STEP, NULL},
        {"dense-Llama-3-8B.json", "tp4", 4, 1, 1, 0, 4096, MF_SCOPE_MOE,
            "scope moe needs a model with experts"},
        {"Mixtral-8x7B-v0.1.json", "tp1/ep3", 3, 1, 1, 3, 4096, MF_SCOPE_STEP,
            "does not divide the 8 experts of Mixtral-8x7B-v0.1; the next "
            "smaller that does is 2"},
        {"Mixtral-8x7B-v0.1.json", "tp1/etp3", 3, 1, 1, 3, 4096, MF_SCOPE_STEP,
            "etp 3 does not divide the experts' width"},
        {"Mixtral-8x7B-v0.1.json", "tp3", 3, 1, 1, 3, 4096, MF_SCOPE_STEP,
            "tp 3 does not divide the 32 heads"},
        {"Mixtral-8x7B-v0.1.json", "tp16", 16, 1, 1, 3, 4096, MF_SCOPE_STEP,
            NULL},
        {"Mixtral-8x7B-v0.1.json", "pp64", 64, 1, 1, 3, 4096, MF_SCOPE_STEP,
            "more chunks than the 32 layers"},
        {"Mixtral-8x7B-v0.1.json", "pp1", 1, 1, 2, 3, 4096, MF_SCOPE_STEP,
            "vpp 2 needs more than one pipeline stage"},
        {"Mixtral-8x7B-v0.1.json", "tp1", 1, 1, 1, 0, 4096, MF_SCOPE_STEP,
            "global batch is not known"},
        {"Mixtral-8x7B-v0.1.json", "tp1", 4, 2, 1, 4, 4096, MF_SCOPE_STEP,
            "micro batch 2 x dp 4 does not divide the global batch of 4"},
        {"Mixtral-8x7B-v0.1.json", "tp4", 4, 1, 1, 4, 4098, MF_SCOPE_STEP,
            "does not divide the sequence of 4098"},
        {"Mixtral-8x7B-v0.1.json", "cp2", 2, 1, 1, 4, 4098, MF_SCOPE_STEP,
            "cp 2 needs a sequence that 2 x cp divides"},
        {"Mixtral-8x7B-v0.1.json", "pp2", 2, 1, 2, 3, 4096, MF_SCOPE_STEP,
            "vpp 2 needs micro batches in multiples of pp 2"},
        {"Mixtral-8x7B-v0.1.json", "tp3/etp1", 3, 1, 1, 0, 4095, MF_SCOPE_MOE,
            NULL},
        {"Qwen3-235B-A22B.json", "tp4.pp4/ep8", 64, 1, 1, 64, 4096,
            MF_SCOPE_STEP, NULL}, /* 94 layers: 24, 24, 23, 23 */
    };

    (void)state;
    for (size_t i = 0; i < sizeof rule / sizeof *rule; i++) {
        const struct rule *r = &rule[i];
        struct mf_settings settings = bed_settings(r->batch);
        struct mf_layout layout = bed_layout(r->layout, r->world, false);
        struct mf_error err = {0};
        struct mf_model model;
        int rc;

        bed_model(r->model, &model);
        settings.micro_batch = r->micro;
        settings.vpp = r->vpp;
        settings.seq = r->seq;
        rc = mf_cost_check(&model, &layout, &settings, r->scope, &err);
        if (!r->message && rc)
            fail_msg("%s: %s", r->layout, err.text);
        if (r->message) {
            assert_int_equal(rc, -1);
            assert_int_equal(err.status, MF_INVALID);
            if (!strstr(err.text, r->message))
                fail_msg("'%s' is not in '%s'", r->message, err.text);
        }
        mf_model_free(&model);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equals_brute_force),
        cmocka_unit_test(fixed_axes),
        cmocka_unit_test(coupled_only),
        cmocka_unit_test(nothing_fits),
        cmocka_unit_test(equals_predict),
        cmocka_unit_test(rules),
    };

    return cmocka_run_group_tests_name("search", tests, NULL, NULL);
}
