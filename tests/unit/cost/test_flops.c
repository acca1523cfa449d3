/* SPDX-License-Identifier: BSD-3-Clause
 * FLOPs of every model file: short sequences cost six a weight and token, and
 * what grows with the sequence is the scores that a mixer can see.
 */
#include <inttypes.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "planner/cost_parts.h"
#include "tests/unit/model/support.h"

static void must_read(const char *name, struct mf_model *model)
{
    struct mf_error err = {0};

    if (mf_model_read(support_data(name), model, &err))
        fail_msg("%s", err.text);
    model->mtp_layers = 0;
}

/* Norms, biases and states are left: under 3 % of any of these models. */
static void short_sequences_cost_six_a_weight(void **state)
{
    (void)state;
    for (const char *const *name = support_models; *name; name++) {
        struct mf_model m;
        double flops, weights;

        must_read(*name, &m);
        flops = mf_flops_token(&m, 1);
        weights = (double)m.params.active_no_embedding;
        if (m.tied_embeddings)
            weights += (double)m.vocab * (double)m.hidden;
        weights -= (double)m.layers * (double)m.layer_extra;
        if (fabs(flops / (6 * weights) - 1) > .03)
            fail_msg("%s: %g FLOPs for %g weights", *name, flops, weights);
        mf_model_free(&m);
    }
}

struct growth {
    const char *name;
    double more; /* forward FLOPs a token more at 8192 than at 4096 */
};

/* Written out: layers x 2 x keys more x heads x (width of keys + values). */
static const struct growth growth_table[] = {
    {"Mixtral-8x7B-v0.1.json", 32. * 2 * 2048 * 32 * (128 + 128)},
    {"DeepSeek-V3.json", 61. * 2 * 2048 * 128 * (192 + 128)},
    /* 4 of 32 layers; the others have a state. */
    {"Jamba-v0.1.json", 4. * 2 * 2048 * 32 * (128 + 128)},
    {"Nemotron-3-Nano-30B-A3B.json", 6. * 2 * 2048 * 32 * (128 + 128)},
    {"Qwen3-Next-80B-A3B.json", 12. * 2 * 2048 * 16 * (256 + 256)},
    {"MiniMax-Text-01.json", 10. * 2 * 2048 * 64 * (128 + 128)},
    {"Kimi-K3.json", 24. * 2 * 2048 * 96 * (192 + 128)},
    /* Every other layer sees 128 tokens: 128 (1 - 127 / 2s). */
    {"gpt-oss-20b.json", 12. * 2 * 64 * (64 + 64) *
                             (2048 + 128 * 127 * (1 / 8192. - 1 / 16384.))},
};

static void scores_grow_where_they_are_seen(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof growth_table / sizeof *growth_table; i++) {
        const struct growth *g = &growth_table[i];
        struct mf_model m;
        double more;

        must_read(g->name, &m);
        more = (mf_flops_token(&m, 8192) - mf_flops_token(&m, 4096)) / 3;
        if (fabs(more / g->more - 1) > 1e-6)
            fail_msg("%s: %.9g FLOPs more, not %.9g", g->name, more, g->more);
        mf_model_free(&m);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(short_sequences_cost_six_a_weight),
        cmocka_unit_test(scores_grow_where_they_are_seen),
    };

    return cmocka_run_group_tests_name("model FLOPs", tests, NULL, NULL);
}
