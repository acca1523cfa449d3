/* SPDX-License-Identifier: BSD-3-Clause
 * The rules that a layout must keep for a model and its settings.
 */
#include "planner/cost_parts.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>

/* Fill ERR when it is there; returns BRIEF. */
MF_PRINTF(3, 4)
static const char *broken(
    struct mf_error *err, const char *brief, const char *fmt, ...)
{
    char text[512];
    va_list args;

    if (!err)
        return brief;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    mf_error_set(err, MF_INVALID, "%s", text);
    return brief;
}

/* The largest divisor of N that is at most MOST. */
static int64_t divisor_at_most(int64_t n, int64_t most)
{
    int64_t d = most < n ? most : n;

    while (d > 1 && n % d)
        d--;
    return d < 1 ? 1 : d;
}

static const char *check_experts(
    const struct mf_model *m, const struct mf_layout *l, struct mf_error *err)
{
    if (m->experts < 1) {
        if (l->ep > 1)
            return broken(err, "ep needs a model with experts",
                "ep %" PRId64 " needs a model with experts; %s is dense: "
                "leave ep at 1",
                l->ep, m->name);
        if (l->etp > 1 && !l->coupled)
            return broken(err, "etp needs a model with experts",
                "etp %" PRId64 " needs a model with experts; %s is dense: "
                "leave etp at 1",
                l->etp, m->name);
        return NULL;
    }
    if (m->experts % l->ep)
        return broken(err, "ep does not divide the experts",
            "ep %" PRId64 " does not divide the %" PRId64
            " experts of %s; the next smaller that does is %" PRId64,
            l->ep, m->experts, m->name, divisor_at_most(m->experts, l->ep));
    if (m->moe_ffn % l->etp)
        return broken(err, "etp does not divide the experts' width",
            "etp %" PRId64 " does not divide the experts' width %" PRId64
            "; the next smaller that does is %" PRId64,
            l->etp, m->moe_ffn, divisor_at_most(m->moe_ffn, l->etp));
    if (m->shared_ffn % l->tp)
        return broken(err, "tp does not divide the shared experts' width",
            "tp %" PRId64 " does not divide the shared experts' width %" PRId64
            "; the next smaller that does is %" PRId64,
            l->tp, m->shared_ffn, divisor_at_most(m->shared_ffn, l->tp));
    return NULL;
}

static const char *check_attention(
    const struct mf_model *m, const struct mf_layout *l, struct mf_error *err)
{
    if (m->heads % l->tp)
        return broken(err, "tp does not divide the heads",
            "tp %" PRId64 " does not divide the %" PRId64
            " heads of %s; the next smaller that does is %" PRId64,
            l->tp, m->heads, m->name, divisor_at_most(m->heads, l->tp));
    if (m->attention != MF_ATTENTION_MLA && m->kv_heads > 0 &&
        m->kv_heads % l->tp && l->tp % m->kv_heads)
        return broken(err, "tp does not fit the KV heads",
            "tp %" PRId64 " is neither a divisor nor a multiple of the %" PRId64
            " KV heads; the next smaller divisor is %" PRId64,
            l->tp, m->kv_heads, divisor_at_most(m->kv_heads, l->tp));
    if (m->dense_ffn % l->tp)
        return broken(err, "tp does not divide the dense width",
            "tp %" PRId64 " does not divide the dense layers' width %" PRId64
            "; the next smaller that does is %" PRId64,
            l->tp, m->dense_ffn, divisor_at_most(m->dense_ffn, l->tp));
    return NULL;
}

bool mf_split_suits(
    int64_t layers, int64_t pp, int64_t vpp, int64_t first, int64_t last)
{
    int64_t rest = layers - first - last;

    if (first == 0 && last == 0)
        return layers % (pp * vpp) == 0;
    if (pp < 2 || first < 1 || last < 1 || rest < 0)
        return false;
    return first % vpp == 0 && last % vpp == 0 &&
           (pp == 2 ? rest == 0 : rest % ((pp - 2) * vpp) == 0);
}

static const char *check_layers(const struct mf_model *m,
    const struct mf_layout *l, const struct mf_settings *s,
    struct mf_error *err)
{
    int64_t vpp = s->vpp > 0 ? s->vpp : 1;

    if (l->pp > MF_STAGES_MAX)
        return broken(err, "too many pipeline stages",
            "pp %" PRId64 " is more than %d stages", l->pp, MF_STAGES_MAX);
    if (vpp > 1 && l->pp < 2)
        return broken(err, "vpp needs pp > 1",
            "vpp %" PRId64 " needs more than one pipeline stage; "
            "leave it at 1 or raise pp",
            vpp);
    /* Embedding and loss may take the place of a layer each. */
    if (vpp > m->layers + 2 || l->pp > (m->layers + 2) / vpp)
        return broken(err, "fewer layers than pipeline chunks",
            "pp %" PRId64 " with vpp %" PRId64 " makes more chunks than the "
            "%" PRId64 " layers of %s; lower one of them",
            l->pp, vpp, m->layers, m->name);
    if ((s->first_layers > 0 || s->last_layers > 0) &&
        !mf_split_suits(m->layers, l->pp, vpp, s->first_layers, s->last_layers))
        return broken(err, "first and last layers leave no even rest",
            "%" PRId64 " layers on the first and %" PRId64 " on the last of "
            "%" PRId64 " stages leave no rest of the %" PRId64
            " layers that the other stages and vpp %" PRId64 " divide",
            s->first_layers, s->last_layers, l->pp, m->layers, vpp);
    return NULL;
}

static const char *check_sequence(const struct mf_layout *l,
    const struct mf_settings *s, struct mf_error *err)
{
    int64_t shards;

    if (__builtin_mul_overflow(l->tp, l->cp, &shards) || s->seq % shards)
        return broken(err, "tp*cp does not divide the sequence",
            "tp %" PRId64 " x cp %" PRId64 " does not divide the sequence of "
            "%" PRId64 " tokens; lower tp or cp, or change --seq",
            l->tp, l->cp, s->seq);
    if (l->cp > 1 && s->seq % (2 * l->cp))
        return broken(err, "2*cp does not divide the sequence",
            "cp %" PRId64 " needs a sequence that 2 x cp divides, for equal "
            "causal shares; %" PRId64 " is not",
            l->cp, s->seq);
    return NULL;
}

static const char *check_batch(const struct mf_layout *l,
    const struct mf_settings *s, enum mf_scope scope, struct mf_error *err)
{
    int64_t micro = s->micro_batch > 0 ? s->micro_batch : 1, unit, count;

    if (s->global_batch < 1) {
        if (scope == MF_SCOPE_MOE)
            return NULL;
        return broken(err, "no global batch",
            "the global batch is not known; give --global-batch, in "
            "sequences an optimizer step");
    }
    if (__builtin_mul_overflow(micro, l->dp, &unit) || s->global_batch % unit)
        return broken(err, "micro batch x dp does not divide the global batch",
            "micro batch %" PRId64 " x dp %" PRId64 " does not divide the "
            "global batch of %" PRId64 " sequences",
            micro, l->dp, s->global_batch);
    count = s->global_batch / unit;
    /* With micro batch auto, larger ones divide the count of 1 further. */
    if (s->vpp > 1 && count % l->pp)
        return broken(err, "pp does not divide the micro batches",
            "vpp %" PRId64 " needs micro batches in multiples of pp %" PRId64
            "; there are %" PRId64 " a step: set vpp to 1 or change the batch",
            s->vpp, l->pp, count);
    return NULL;
}

const char *mf_check_attention_rule(const struct mf_model *model,
    const struct mf_layout *layout, const struct mf_settings *settings,
    enum mf_scope scope, struct mf_error *err)
{
    const char *rule = NULL;

    if (scope == MF_SCOPE_STEP)
        rule = check_attention(model, layout, err);
    if (!rule && scope == MF_SCOPE_STEP)
        rule = check_layers(model, layout, settings, err);
    if (!rule)
        rule = check_sequence(layout, settings, err);
    if (!rule)
        rule = check_batch(layout, settings, scope, err);
    if (!rule && layout->pp > MF_STAGES_MAX)
        rule = check_layers(model, layout, settings, err);
    return rule;
}

const char *mf_check_rule(const struct mf_model *model,
    const struct mf_layout *layout, const struct mf_settings *settings,
    enum mf_scope scope, struct mf_error *err)
{
    const char *rule;

    if (scope == MF_SCOPE_MOE && model->experts < 1)
        return broken(err, "the model has no experts",
            "scope moe needs a model with experts; %s is dense", model->name);
    rule = check_experts(model, layout, err);
    return rule ? rule
                : mf_check_attention_rule(model, layout, settings, scope, err);
}

int mf_cost_check(const struct mf_model *model, const struct mf_layout *layout,
    const struct mf_settings *settings, enum mf_scope scope,
    struct mf_error *err)
{
    struct mf_error local;

    if (mf_check_rule(model, layout, settings, scope, err ? err : &local))
        return -1;
    return 0;
}
