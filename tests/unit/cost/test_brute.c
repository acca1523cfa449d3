/* SPDX-License-Identifier: BSD-3-Clause
 * The search against brute force on random models, clusters and worlds: every
 * layout, order, split and setting written out and priced one by one, without
 * tables and bounds.
 */
#include "tests/unit/cost/bed.h"

#include "planner/search.h"

#define BEST 3   /* layouts whose times are compared */
#define CASES 16 /* MOEFOLD_BRUTE_CASES sets another number */

/* One random problem. */
struct problem {
    struct mf_model model;
    struct mf_cluster cluster;
    struct mf_coefficients set;
    struct mf_search search;
};

/* What brute force finds. */
struct brute {
    double best_s[BEST];
    int64_t legal, cut; /* layouts, each order apart */
    uint64_t cut_hash;  /* sum over those that are cut */
};

static void problem_up(struct problem *p, uint64_t *state)
{
    static const int64_t worlds[] = {4, 6, 8, 9, 12, 16, 18, 20, 24, 32};
    static const int64_t batches[] = {12, 16, 24, 36, 48};
    static const int64_t experts[] = {4, 6, 8, 12};
    static const int64_t gib[] = {4, 6, 9, 14, 40};
    static const int64_t nodes[] = {8, 8, 4, 8, 4};
    int64_t layers = 2 + (int64_t)(bed_random(state) % 7);

    *p = (struct problem){0};
    bed_small(&p->model, layers, 1024, 2304, bed_pick(state, experts, 4), 2);
    /* A large vocabulary makes fewer layers on the last stage pay. */
    if (bed_random(state) % 2)
        p->model.vocab = 131072;
    assert_int_equal(mf_model_count_params(&p->model, NULL), 0);
    bed_nodes(&p->cluster, nodes, 5);
    p->cluster.gpu.memory_bytes =
        1073741824.0 * (double)bed_pick(state, gib, 5);
    mf_coefficients_init(&p->set);
    p->search.world = bed_pick(state, worlds, 10);
    p->search.order = mf_order_default();
    p->search.orders = MF_ORDERS_MEGATRON;
    p->search.top = 1 + bed_random(state) % BEST;
    p->search.settings = bed_settings(bed_pick(state, batches, 5));
    p->search.settings.seq = 1152;
    p->search.settings.micro_batch = p->search.settings.vpp = 0;
    p->search.settings.first_layers = p->search.settings.last_layers = -1;
    p->search.settings.recompute = MF_RECOMPUTE_AUTO;
    p->search.settings.dispatcher = MF_DISPATCHER_AUTO;
}

static void problem_down(struct problem *p)
{
    mf_cluster_free(&p->cluster);
    mf_model_free(&p->model);
}

static uint64_t layout_hash(const struct mf_layout *l)
{
    char text[MF_LAYOUT_TEXT], order[MF_LAYOUT_TEXT];
    uint64_t hash = 1469598103934665603u;

    mf_layout_format(l, text, sizeof text);
    mf_order_format(&l->order, order, sizeof order);
    for (const char *c = text; *c; c++)
        hash = (hash ^ (uint64_t)(unsigned char)*c) * 1099511628211u;
    for (const char *c = order; *c; c++)
        hash = (hash ^ (uint64_t)(unsigned char)*c) * 1099511628211u;
    return hash;
}

/* May the stages be so? Written out from what docs/choices.md says. */
static bool split_allowed(
    int64_t layers, int64_t pp, int64_t vpp, int64_t first, int64_t last)
{
    int64_t most = (layers + pp * vpp - 1) / (pp * vpp) * vpp + vpp;
    int64_t rest = layers - first - last, middle = most;

    if (first == 0 && last == 0)
        return vpp == 1 || layers % (pp * vpp) == 0;
    if (first == 0 || last == 0 || pp < 2 || rest < 0)
        return false;
    if (pp == 2 && rest)
        return false;
    if (pp > 2) {
        if (rest % (pp - 2))
            return false;
        middle = rest / (pp - 2);
    }
    return first % vpp == 0 && last % vpp == 0 && middle % vpp == 0 &&
           first <= middle && last <= middle && middle <= most && middle > 0;
}

struct trying {
    const struct problem *p;
    mf_pricer *pricer;
    struct mf_plan_entry entry;
    double best_s;
};

static void try_setting(struct trying *t)
{
    const struct problem *p = t->p;
    struct mf_plan_entry *e = &t->entry;
    struct mf_error err;

    if (mf_cost_check(&p->model, &e->layout, &e->settings, MF_SCOPE_STEP, NULL))
        return;
    if (mf_pricer_fill(t->pricer, e, &err))
        fail_msg("%s", err.text);
    if (e->cost.fits && e->cost.step_s < t->best_s)
        t->best_s = e->cost.step_s;
    mf_cost_free(&e->cost);
}

static void try_splits(struct trying *t)
{
    struct mf_settings *s = &t->entry.settings;
    int64_t layers = t->p->model.layers, pp = t->entry.layout.pp;

    for (s->vpp = 1; s->vpp <= layers; s->vpp++)
        for (int64_t first = 0; first <= layers; first++)
            for (int64_t last = 0; last <= layers; last++) {
                if (!split_allowed(layers, pp, s->vpp, first, last))
                    continue;
                s->first_layers = first;
                s->last_layers = last;
                try_setting(t);
            }
}

static double try_settings(
    const struct problem *p, mf_pricer *pricer, const struct mf_layout *layout)
{
    static const enum mf_recompute again[] = {
        MF_RECOMPUTE_NONE, MF_RECOMPUTE_SELECTIVE, MF_RECOMPUTE_FULL};
    static const enum mf_dispatcher way[] = {
        MF_ALLTOALL, MF_ALLGATHER, MF_DEEPEP};
    struct trying t = {.p = p, .pricer = pricer, .best_s = INFINITY};

    t.entry.layout = *layout;
    t.entry.settings = p->search.settings;
    t.entry.settings.graphs = MF_GRAPHS_NONE;
    for (int64_t b = 1; b <= 16; b++)
        for (int r = 0; r < 3; r++)
            for (int d = 0; d < (layout->ep > 1 ? 3 : 1); d++) {
                t.entry.settings.micro_batch = b;
                t.entry.settings.recompute = again[r];
                t.entry.settings.dispatcher = way[d];
                try_splits(&t);
            }
    return t.best_s;
}

static void try_layout(const struct problem *p, mf_pricer *pricer,
    const struct mf_layout *layout, struct brute *brute)
{
    double best_s = try_settings(p, pricer, layout);

    brute->legal++;
    if (isinf(best_s)) {
        brute->cut++;
        brute->cut_hash += layout_hash(layout);
    }
    for (int i = 0; i < BEST; i++)
        if (best_s < brute->best_s[i]) {
            double other = brute->best_s[i];

            brute->best_s[i] = best_s;
            best_s = other;
        }
}

/* The other order is another layout only if the stages lie elsewhere. */
static void try_orders(const struct problem *p, mf_pricer *pricer,
    const struct mf_layout *sizes, struct brute *brute)
{
    struct mf_layout l = *sizes;

    try_layout(p, pricer, &l, brute);
    l.order = (struct mf_order){{MF_TP, MF_CP, MF_EP, MF_PP, MF_DP}};
    if (l.pp > 1 && l.dp > 1 &&
        !mf_layout_resolve(&l, p->search.world, ~0u, NULL))
        try_layout(p, pricer, &l, brute);
}

static void try_everything(const struct problem *p, struct brute *brute)
{
    int64_t w = p->search.world;
    struct mf_error err = {0};
    mf_pricer *pricer = mf_pricer_create(
        &p->model, &p->cluster, w, MF_SCOPE_STEP, &p->set, &err);

    if (!pricer)
        fail_msg("%s", err.text);
    *brute = (struct brute){.best_s = {INFINITY, INFINITY, INFINITY}};
    for (int64_t code = 0; code < w * w * w * w * w; code++) {
        struct mf_layout l = {.tp = code % w + 1,
            .cp = code / w % w + 1,
            .pp = code / w / w % w + 1,
            .etp = code / w / w / w % w + 1,
            .ep = code / w / w / w / w % w + 1,
            .order = mf_order_default()};

        if (w % (l.tp * l.cp * l.pp) || w % (l.etp * l.ep * l.pp))
            continue;
        l.dp = w / (l.tp * l.cp * l.pp);
        l.edp = w / (l.etp * l.ep * l.pp);
        try_orders(p, pricer, &l, brute);
    }
    mf_pricer_free(pricer);
}

/* Orders other than the first are not counted where the sizes break a rule. */
struct told {
    int64_t cut;
    uint64_t hash;
};

static void tell(void *arg, const struct mf_layout *layout, const char *reason)
{
    struct told *told = arg;
    struct mf_layout other = *layout;

    told->cut++;
    told->hash += layout_hash(layout);
    if (!strcmp(reason, "does not fit in memory") || layout->pp < 2 ||
        layout->dp < 2)
        return;
    other.order = (struct mf_order){{MF_TP, MF_CP, MF_EP, MF_PP, MF_DP}};
    if (memcmp(&other.order, &layout->order, sizeof other.order) &&
        !strstr(reason, "experts") &&
        !mf_layout_resolve(&other, mf_layout_world(layout), ~0u, NULL)) {
        told->cut++;
        told->hash += layout_hash(&other);
    }
}

static void check_problem(struct problem *p, int number)
{
    struct mf_plan plan = {.model = p->model, .cluster = p->cluster};
    struct mf_error err = {0};
    struct told told = {0};
    struct brute brute;
    int rc;

    try_everything(p, &brute);
    rc = mf_search_run(&p->search, &p->set, &plan, &err);
    if (rc && err.status != MF_NO)
        fail_msg("case %d: %s", number, err.text);
    if ((rc != 0) != isinf(brute.best_s[0]))
        fail_msg("case %d: %s", number, rc ? err.text : "brute force has none");
    for (size_t i = 0; i < plan.entries; i++)
        if (fabs(plan.entry[i].cost.step_s / brute.best_s[i] - 1) > 1e-12)
            fail_msg("case %d: world %d: %zu: %.17g, brute force %.17g", number,
                (int)p->search.world, i, plan.entry[i].cost.step_s,
                brute.best_s[i]);
    for (size_t i = 0; i < plan.entries; i++)
        mf_cost_free(&plan.entry[i].cost);
    free(plan.entry);
    plan = (struct mf_plan){.model = p->model, .cluster = p->cluster};
    p->search.told = tell;
    p->search.told_arg = &told;
    mf_search_run(&p->search, &p->set, &plan, &err);
    if (told.cut != brute.cut || told.hash != brute.cut_hash)
        fail_msg("case %d: world %d: cut %d, brute force %d of %d", number,
            (int)p->search.world, (int)told.cut, (int)brute.cut,
            (int)brute.legal);
    for (size_t i = 0; i < plan.entries; i++)
        mf_cost_free(&plan.entry[i].cost);
    free(plan.entry);
}

static void equals_brute_force(void **unused)
{
    const char *text = getenv("MOEFOLD_BRUTE_CASES");
    long cases = text ? strtol(text, NULL, 10) : CASES;
    uint64_t state = 20250607;

    (void)unused;
    assert_true(cases > 0);
    for (int i = 0; i < cases; i++) {
        struct problem p;

        problem_up(&p, &state);
        check_problem(&p, i);
        problem_down(&p);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equals_brute_force),
    };

    return cmocka_run_group_tests_name("brute", tests, NULL, NULL);
}
