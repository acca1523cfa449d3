/* SPDX-License-Identifier: BSD-3-Clause
 * From a plan file to a shape that the layer executes.
 */
#include "runtime/setup.h"

#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "planner/layout/runnable.h"
#include "runtime/layer.h"
#include "runtime/machine.h"
#include "runtime/collective.h"

/* The plan in FILE as text, for the others; *TEXT is malloc'd. */
static int plan_text(
    const char *file, struct mf_plan *plan, char **text, struct mf_error *err)
{
    json_t *json;

    *plan = (struct mf_plan){0};
    if (mf_plan_read(file, plan, err))
        return -1;
    json = mf_plan_to_json(plan);
    *text = json ? json_dumps(json, JSON_COMPACT) : NULL;
    json_decref(json);
    if (*text && strlen(*text) < INT_MAX)
        return 0;
    mf_plan_free(plan);
    return mf_error_set(err, MF_FAILED, "%s: out of memory for the plan", file);
}

static int plan_parse(const char *file, const char *text, struct mf_plan *plan,
    struct mf_error *err)
{
    json_error_t where;
    json_t *json = json_loads(text, 0, &where);
    int rc;

    if (!json)
        return mf_error_set(err, MF_FAILED, "%s: %s", file, where.text);
    rc = mf_plan_from_json(json, plan, err);
    json_decref(json);
    return rc;
}

/* Rank 0 sends *TEXT, the others get it; all agree on RC. */
static int share_text(
    MPI_Comm world, int rank, int rc, char **text, struct mf_error *err)
{
    int length = 0;

    if (mfr_agree(world, rc, err))
        return -1;
    if (rank == 0)
        length = (int)strlen(*text) + 1;
    if (mfr_bcast(&length, 1, MPI_INT, 0, world, "MPI_Bcast (plan)", err))
        return -1;
    if (rank != 0)
        *text = malloc((size_t)length);
    rc = *text ? 0 : mf_error_set(err, MF_FAILED, "out of memory");
    if (mfr_agree(world, rc, err))
        return -1;
    return mfr_bcast(
        *text, length, MPI_CHAR, 0, world, "MPI_Bcast (plan)", err);
}

int mfr_setup_plan(MPI_Comm world, const char *file, struct mf_plan *plan,
    struct mf_error *err)
{
    char *text = NULL;
    bool read = false;
    int rank, rc = 0;

    if (mfr_mpi(MPI_Comm_rank(world, &rank), "MPI_Comm_rank", err))
        return -1;
    if (rank == 0) {
        rc = plan_text(file, plan, &text, err);
        read = rc == 0;
    }
    rc = share_text(world, rank, rc, &text, err);
    if (rc == 0 && rank != 0) {
        rc = plan_parse(file, text, plan, err);
        read = rc == 0;
        rc = mfr_agree(world, rc, err);
    } else if (rc == 0) {
        rc = mfr_agree(world, 0, err);
    }
    if (rc && read)
        mf_plan_free(plan);
    free(text);
    return rc;
}

int mfr_setup_same(MPI_Comm world, const char *choices, struct mf_error *err)
{
    char first[256] = "", mine[256] = "";
    int rank, rc = 0;

    snprintf(mine, sizeof mine, "%s", choices);
    memcpy(first, mine, sizeof first);
    if (mfr_mpi(MPI_Comm_rank(world, &rank), "MPI_Comm_rank", err) ||
        mfr_bcast(first, (int)sizeof first, MPI_CHAR, 0, world,
            "MPI_Bcast (choices)", err))
        return -1;
    first[sizeof first - 1] = 0;
    if (strcmp(first, mine) != 0)
        rc = mf_error_set(err, MF_INVALID,
            "rank %d is to do \"%s\", rank 0 \"%s\"; start all ranks alike",
            rank, mine, first);
    return mfr_agree(world, rc, err);
}

int mfr_setup_pick(const struct mf_plan *plan, int64_t pick, int64_t ranks,
    const struct mf_plan_entry **entry, struct mf_error *err)
{
    int64_t world;
    char layout[MF_LAYOUT_TEXT];

    if (pick < 1 || (uint64_t)pick > plan->entries)
        return mf_error_set(err, MF_INVALID,
            "--pick %" PRId64 ": the plan holds %zu layouts", pick,
            plan->entries);
    *entry = &plan->entry[pick - 1];
    world = mf_layout_world(&(*entry)->layout);
    if (world == ranks)
        return 0;
    mf_layout_format(&(*entry)->layout, layout, sizeof layout);
    return mf_error_set(err, MF_INVALID,
        "layout %s is for %" PRId64 " ranks, this job has %" PRId64
        "; start it with %" PRId64,
        layout, world, ranks, world);
}

static enum mfk_activation activation_of(const struct mf_model *model)
{
    /* Biases inside experts come with gpt-oss's own activation. */
    if (model->mlp_bias)
        return MFK_CLAMPED;
    return mf_activation_is_silu(model->activation) ? MFK_SWIGLU : MFK_GEGLU;
}

/* A group is judged by its two best where a bias is added to choose by
 * (DeepSeek-V3, arXiv 2412.19437, and its modeling file), else by its best
 * (DeepSeek-V2, arXiv 2405.04434).
 */
static void set_groups(const struct mf_model *model, struct mfr_shape *shape)
{
    const struct mf_router *router = &model->router;

    if (router->groups < 2)
        return;
    shape->groups = router->groups;
    shape->topk_groups = router->topk_groups > 0 ? router->topk_groups : 1;
    shape->group_best = router->bias ? 2 : 1;
}

int mfr_setup_shape(const struct mf_plan *plan,
    const struct mf_plan_entry *entry, struct mfr_shape *shape,
    struct mf_error *err)
{
    const struct mf_model *model = &plan->model;

    if (mf_runnable_check(model, &entry->settings, err))
        return -1;
    *shape = (struct mfr_shape){
        .seq = entry->settings.seq,
        .batch = entry->settings.micro_batch,
        .hidden = model->hidden,
        .ffn = model->moe_ffn,
        .experts = model->experts,
        .topk = model->topk,
        .renormalize = model->router.renormalize,
        .scaling = model->router.scaling,
        .sigmoid = model->router.score == MF_SCORE_SIGMOID,
        .select_bias = model->router.bias,
        .router_bias = model->router.linear_bias,
        .expert_bias = model->mlp_bias,
        .activation = activation_of(model),
        .shared_ffn = model->shared_ffn,
        .shared_gate = model->shared_gate,
    };
    set_groups(model, shape);
    return mfr_layer_check(shape, &entry->layout, err);
}

/* On the node of this rank. */
static int memory_check(MPI_Comm node, int64_t bytes, struct mf_error *err)
{
    const double gib = 1024.0 * 1024 * 1024;
    double mine = (double)bytes, need = 0;
    const double have = mfr_machine_memory();
    int ranks;

    if (mfr_mpi(MPI_Comm_size(node, &ranks), "MPI_Comm_size", err) ||
        mfr_allreduce(&mine, &need, 1, MPI_DOUBLE, MPI_SUM, node,
            "MPI_Allreduce (memory)", err))
        return -1;
    if (isnan(have) || need <= have)
        return 0;
    return mf_error_set(err, MF_INVALID,
        "the %d ranks on this node need %.1f GiB, it has %.1f GiB free; use "
        "more nodes or a shorter --seq",
        ranks, need / gib, have / gib);
}

int mfr_setup_memory(MPI_Comm world, int64_t bytes, struct mf_error *err)
{
    MPI_Comm node;
    int rc;

    if (mfr_comm_split_node(world, 0, "node", &node, err))
        return -1;
    rc = memory_check(node, bytes, err);
    if (mfr_mpi(MPI_Comm_free(&node), "MPI_Comm_free", rc ? NULL : err))
        rc = -1;
    return mfr_agree(world, rc, err);
}
