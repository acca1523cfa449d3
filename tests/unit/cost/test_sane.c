/* SPDX-License-Identifier: BSD-3-Clause
 * What holds of every price, whatever the model: no time or memory is below
 * zero, and better hardware is never slower and never fits less.
 */
#include "tests/unit/cost/bed.h"

#define CASES 60000
/* Another stage may become the slowest, and brings its own gradients and
 * optimizer, which come once a step.
 */
#define TOLERANCE 2e-3

struct draw {
    struct mf_model model;
    struct mf_cluster cluster;
    struct mf_coefficients set;
    struct mf_plan_entry entry;
    enum mf_scope scope;
};

static void draw_model(uint64_t *state, struct mf_model *model)
{
    static const char *const names[] = {"Mixtral-8x22B-v0.1/config.json",
        "DeepSeek-V3.json", "Qwen2-57B-A14B.json", "dense-Llama-3-8B.json",
        "granite-3.0-3b-a800m-instruct.json", "small-moe/config.json"};
    static const int64_t which[] = {0, 1, 2, 3, 4, 5, 6, 7};
    int64_t n = bed_pick(state, which, 8);

    if (n < 6)
        bed_model(names[n], model);
    else if (n == 6)
        bed_small(model, 1, 48, 16, 1, 1);
    else
        bed_small(model, 30, 96, 64, 7, 7);
}

static void draw_cluster(uint64_t *state, struct mf_cluster *cluster)
{
    static const int64_t nodes[] = {1, 2, 3, 4, 15};
    static const int64_t uneven[] = {8, 4, 7, 1, 8, 2, 6, 8};
    static const int64_t memory[] = {1, 4, 16, 80};

    if (bed_random(state) % 2)
        bed_h100(cluster, bed_pick(state, nodes, 5));
    else
        bed_nodes(cluster, uneven, 8);
    cluster->gpu.memory_bytes =
        1073741824.0 * (double)bed_pick(state, memory, 4);
}

static void draw_settings(uint64_t *state, struct mf_settings *s)
{
    static const int64_t seq[] = {1, 4, 48, 512, 4096, 32768};
    static const int64_t batch[] = {1, 7, 32, 60, 256, 840};
    static const int64_t micro[] = {1, 1, 2, 4};
    static const int64_t vpp[] = {1, 1, 1, 2};

    *s = bed_settings(bed_pick(state, batch, 6));
    s->seq = bed_pick(state, seq, 6);
    s->micro_batch = bed_pick(state, micro, 4);
    s->vpp = bed_pick(state, vpp, 4);
    s->precision = (enum mf_precision)(bed_random(state) % 3);
    s->recompute = (enum mf_recompute)(bed_random(state) % 3);
    s->dispatcher = (enum mf_dispatcher)(bed_random(state) % 5);
    s->shard = (enum mf_shard)(bed_random(state) % 3);
    s->imbalance = (double)(bed_random(state) % 4) * 0.3;
    if (bed_random(state) % 4 == 0)
        s->capacity_factor = 0.5 + (double)(bed_random(state) % 3);
}

/* False when the draw breaks a rule. */
static bool draw(uint64_t *state, struct draw *d)
{
    static const int64_t size[] = {1, 1, 1, 2, 3, 4, 7, 8};
    struct mf_layout *l = &d->entry.layout;
    int64_t dp = bed_pick(state, size, 8), stage;

    *d = (struct draw){.scope = (enum mf_scope)(bed_random(state) % 2)};
    l->order = mf_order_default();
    l->tp = bed_pick(state, size, 8);
    l->cp = bed_pick(state, size, 5);
    l->pp = bed_pick(state, size, 8);
    l->dp = dp;
    l->etp = bed_pick(state, size, 8);
    l->ep = bed_pick(state, size, 8);
    l->coupled = bed_random(state) % 4 == 0;
    if (l->coupled)
        l->etp = l->tp;
    stage = l->tp * l->cp * l->dp;
    draw_settings(state, &d->entry.settings);
    if (stage % (l->etp * l->ep))
        return false;
    l->edp = stage / l->etp / l->ep;
    if (mf_layout_resolve(l, stage * l->pp, ~0u, NULL))
        return false;
    draw_model(state, &d->model);
    draw_cluster(state, &d->cluster);
    mf_coefficients_prior(&d->cluster, &d->set);
    return true;
}

static bool price(struct draw *d, struct mf_cost *cost)
{
    struct mf_plan_entry entry = d->entry;
    struct mf_error err = {0};
    bool priced = !mf_cost_predict(
        &d->model, &d->cluster, d->scope, &d->set, &entry, &err);

    if (!priced && !err.text[0])
        fail_msg("a refusal without a reason");
    *cost = entry.cost;
    return priced;
}

static void assert_sound(const struct draw *d, const struct mf_cost *c)
{
    double memory = c->memory.params + c->memory.grads + c->memory.optimizer +
                    c->memory.activations + c->memory.buffers;
    double sum = 0;

    for (int i = 0; i < c->parts; i++) {
        assert_true(c->part[i].seconds >= 0);
        sum += c->part[i].seconds;
    }
    assert_true(fabs(sum - c->step_s) <= 1e-9 * (1 + sum));
    assert_true(c->step_s > 0 && isfinite(c->step_s));
    assert_true(c->step_s_low <= c->step_s && c->step_s <= c->step_s_high);
    assert_true(c->hidden_s >= 0 && c->mfu > 0);
    assert_true(fabs(memory - c->peak_bytes) <= 1e-9 * memory);
    assert_true(c->static_bytes <= c->peak_bytes);
    for (int i = 0; i < MF_PHASES; i++)
        for (int k = 0; k < MF_DIRECTIONS; k++)
            assert_false(c->phase_s[i][k] < 0);
    if (isnan(d->entry.settings.capacity_factor))
        assert_true(c->mfu <= 1);
}

/* The knobs that make a cluster better. */
static double *knob(struct mf_cluster *cluster, int i, double *factor)
{
    *factor = i < 3 || i % 2 ? 1.7 : 0.6;
    switch (i) {
    case 0:
        return &cluster->gpu.memory_bytes;
    case 1:
        return &cluster->gpu.bf16_flops;
    case 2:
        return &cluster->gpu.hbm_bytes_per_s;
    default:
        i -= 3;
        if (i / 2 >= cluster->tiers)
            return NULL;
        return i % 2 ? &cluster->tier[i / 2].latency_s
                     : &cluster->tier[i / 2].bytes_per_s;
    }
}

static void better_is_never_worse(void **unused)
{
    uint64_t state = UINT64_C(0x73616e65);
    int priced = 0;

    (void)unused;
    for (int n = 0; n < CASES; n++) {
        struct mf_cost base, other;
        struct draw d;

        if (!draw(&state, &d))
            continue;
        if (price(&d, &base)) {
            double factor, *value;

            priced++;
            assert_sound(&d, &base);
            for (int i = 0; (value = knob(&d.cluster, i, &factor)); i++) {
                double was = *value;

                *value *= factor;
                assert_true(price(&d, &other));
                *value = was;
                if (other.step_s > base.step_s * (1 + TOLERANCE) ||
                    (base.fits && !other.fits))
                    fail_msg("case %d, knob %d: %.17g s, was %.17g", n, i,
                        other.step_s, base.step_s);
                mf_cost_free(&other);
            }
            mf_cost_free(&base);
        }
        mf_model_free(&d.model);
        mf_cluster_free(&d.cluster);
    }
    assert_true(priced > CASES / 50);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(better_is_never_worse),
    };

    return cmocka_run_group_tests_name("sane prices", tests, NULL, NULL);
}
