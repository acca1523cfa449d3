/* SPDX-License-Identifier: BSD-3-Clause
 * What moefold-run executes.
 */
#include "planner/layout/runnable.h"

#include <math.h>
#include <strings.h>

static int refuse(struct mf_error *err, const char *what, const char *mend)
{
    return mf_error_set(err, MF_INVALID, "the runtime does not execute %s%s%s",
        what, *mend ? "; " : "", mend);
}

bool mf_activation_is_silu(const char *name)
{
    return !strcasecmp(name, "silu") || !strcasecmp(name, "swish") ||
           !strcasecmp(name, "swiglu");
}

static int check_model(const struct mf_model *model, struct mf_error *err)
{
    const struct mf_router *router = &model->router;

    if (model->experts < 1)
        return mf_error_set(err, MF_INVALID,
            "model %s has no experts: there is no MoE layer to run",
            model->name);
    if (model->latent > 0)
        return refuse(err, "experts of another width than the model's", "");
    if (model->beside_ffn > 0)
        return refuse(err, "a dense part beside the experts", "");
    if (model->zero_experts > 0)
        return refuse(err, "experts that do nothing", "");
    if (model->mlp_bias && model->shared_ffn > 0)
        return refuse(err, "biases beside shared experts", "");
    if (!model->gated)
        return refuse(err, "experts without a gate yet", "");
    if (!mf_activation_is_silu(model->activation) &&
        strcasecmp(model->activation, "gelu"))
        return refuse(
            err, "activations other than SiLU and GELU: ", model->activation);
    if (router->score != MF_SCORE_SOFTMAX && router->score != MF_SCORE_SIGMOID)
        return refuse(err,
            "routers with other scores than softmax and "
            "sigmoid",
            "");
    return 0;
}

static int check_settings(
    const struct mf_settings *settings, struct mf_error *err)
{
    if (settings->precision != MF_BF16)
        return refuse(err, "fp8 yet", "plan with --precision bf16");
    if (settings->dispatcher != MF_ALLTOALL &&
        settings->dispatcher != MF_ALLGATHER &&
        settings->dispatcher != MF_DEDUP)
        return refuse(err, "the deepep and hybridep dispatchers",
            "use --dispatcher alltoall, allgather or dedup");
    if (!isnan(settings->capacity_factor))
        return refuse(
            err, "a capacity factor yet", "plan without --capacity-factor");
    return 0;
}

int mf_runnable_check(const struct mf_model *model,
    const struct mf_settings *settings, struct mf_error *err)
{
    if (check_model(model, err) || check_settings(settings, err))
        return -1;
    return 0;
}
