/* SPDX-License-Identifier: BSD-3-Clause
 * A layout as one JAX mesh.
 *
 * Every axis of both folds is one or two runs of the rank number (see
 * planner/layout/groups.h). Cut at the ends of all runs, the rank number falls
 * into small axes, and each of tp, cp, dp, etp, ep, edp is some of them: when
 * each end divides the next.
 */
#include "config.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "launcher/export.h"
#include "planner/layout/groups.h"

enum { ENDS_MOST = 32, NAME_MOST = 24 };

struct axis {
    int64_t size, stride;
    char name[NAME_MOST];
};

struct mesh {
    struct axis axis[ENDS_MOST]; /* by rising stride */
    int axes;
};

static const struct fold {
    const char *name;
    enum mf_group_kind kind;
    bool expert;
} folds[] = {
    {"tp", MF_GROUP_TP, false},
    {"cp", MF_GROUP_CP, false},
    {"dp", MF_GROUP_DP, false},
    {"pp", MF_GROUP_PP, false},
    {"etp", MF_GROUP_ETP, true},
    {"ep", MF_GROUP_EP, true},
    {"edp", MF_GROUP_EDP, true},
};

enum { FOLDS = sizeof folds / sizeof *folds };

static int compare_ends(const void *a, const void *b)
{
    const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

    return (x > y) - (x < y);
}

/* Where the runs of all axes begin and end, rising, each once. */
static int ends_of(const struct mf_layout *layout, int64_t end[ENDS_MOST])
{
    int n = 0, kept = 0;

    end[n++] = 1;
    end[n++] = mf_layout_world(layout);
    for (int f = 0; f < FOLDS; f++) {
        struct mf_digits d;

        mf_group_digits(layout, folds[f].kind, &d);
        for (int i = 0; i < d.n && n + 2 <= ENDS_MOST; i++) {
            end[n++] = d.digit[i].stride;
            end[n++] = d.digit[i].stride * d.digit[i].size;
        }
    }
    qsort(end, (size_t)n, sizeof *end, compare_ends);
    for (int i = 0; i < n; i++)
        if (kept == 0 || end[i] != end[kept - 1])
            end[kept++] = end[i];
    return kept;
}

/* Does axis A lie in one of the runs of KIND? */
static bool lies_in(const struct mf_layout *layout, enum mf_group_kind kind,
    const struct axis *a)
{
    struct mf_digits d;

    mf_group_digits(layout, kind, &d);
    for (int i = 0; i < d.n; i++)
        if (a->stride >= d.digit[i].stride &&
            a->stride * a->size <= d.digit[i].stride * d.digit[i].size)
            return true;
    return false;
}

/* "dp_ep": what an axis is in each fold; "pp" in both. */
static void name_axis(const struct mf_layout *layout, struct axis *a)
{
    const char *part[2] = {"", ""};

    for (int f = 0; f < FOLDS; f++)
        if (lies_in(layout, folds[f].kind, a))
            part[folds[f].expert] = folds[f].name;
    snprintf(a->name, sizeof a->name, "%s%s%s", part[0],
        *part[0] && *part[1] ? "_" : "", part[1]);
}

static int mesh_make(
    const struct mf_layout *layout, struct mesh *mesh, struct mf_error *err)
{
    int64_t end[ENDS_MOST];
    const int n = ends_of(layout, end);
    char text[MF_LAYOUT_TEXT];

    mesh->axes = 0;
    for (int i = 0; i + 1 < n; i++) {
        struct axis *a = &mesh->axis[mesh->axes++];

        if (end[i + 1] % end[i]) {
            mf_layout_format(layout, text, sizeof text);
            return mf_error_set(err, MF_NO,
                "%s: its folds have no common split: a boundary at %" PRId64
                " ranks of one does not divide that at %" PRId64
                " of the other, so there is no mesh",
                text, end[i], end[i + 1]);
        }
        *a = (struct axis){.size = end[i + 1] / end[i], .stride = end[i]};
        name_axis(layout, a);
    }
    return 0;
}

/* The axes of KIND, the slowest first. */
static json_t *axes_of(const struct mf_layout *layout, const struct mesh *mesh,
    enum mf_group_kind kind)
{
    json_t *list = json_array();

    for (int i = mesh->axes - 1; i >= 0; i--)
        if (lies_in(layout, kind, &mesh->axis[i]))
            json_array_append_new(list, json_string(mesh->axis[i].name));
    return list;
}

static json_t *mesh_json(const struct mesh *mesh)
{
    json_t *list = json_array();

    for (int i = mesh->axes - 1; i >= 0; i--)
        json_array_append_new(
            list, json_pack("{s:s, s:I}", "name", mesh->axis[i].name, "size",
                      (json_int_t)mesh->axis[i].size));
    return list;
}

static json_t *fold_json(
    const struct mf_layout *layout, const struct mesh *mesh, bool expert)
{
    json_t *json = json_object();

    for (int f = 0; f < FOLDS; f++)
        if (folds[f].expert == expert || folds[f].kind == MF_GROUP_PP)
            json_object_set_new(
                json, folds[f].name, axes_of(layout, mesh, folds[f].kind));
    return json;
}

/* One dimension of a tensor: cut over the axes of A, or whole (-1). */
#define WHOLE (-1)

static const struct tensor {
    const char *name;
    int dims, cut[3]; /* enum mf_group_kind */
} tensors[] = {
    {"hidden_states", 3, {MF_GROUP_DP, MF_GROUP_TP_CP, WHOLE}},
    {"attention_qkv", 2, {WHOLE, MF_GROUP_TP, 0}},
    {"attention_out", 2, {MF_GROUP_TP, WHOLE, 0}},
    {"router", 2, {WHOLE, WHOLE, 0}},
    {"expert_gate", 3, {MF_GROUP_EP, WHOLE, MF_GROUP_ETP}},
    {"expert_up", 3, {MF_GROUP_EP, WHOLE, MF_GROUP_ETP}},
    {"expert_down", 3, {MF_GROUP_EP, MF_GROUP_ETP, WHOLE}},
};

/* [batch, seq, hidden]; [hidden, heads]; [heads, hidden]; [experts, hidden];
 * [experts, hidden, ffn] twice; [experts, ffn, hidden]: a list of axes each.
 */
static json_t *specs_json(
    const struct mf_layout *layout, const struct mesh *mesh)
{
    json_t *json = json_object();

    for (size_t t = 0; t < sizeof tensors / sizeof *tensors; t++) {
        json_t *dims = json_array();

        for (int d = 0; d < tensors[t].dims; d++)
            json_array_append_new(
                dims, tensors[t].cut[d] == WHOLE
                          ? json_array()
                          : axes_of(layout, mesh,
                                (enum mf_group_kind)tensors[t].cut[d]));
        json_object_set_new(json, tensors[t].name, dims);
    }
    return json;
}

static const struct collective {
    const char *phase, *op;
    enum mf_group_kind kind;
} collectives[] = {
    {"attention_gather", "all_gather", MF_GROUP_TP},
    {"attention_scatter", "reduce_scatter", MF_GROUP_TP},
    {"dispatch", "all_to_all", MF_GROUP_EP},
    {"gather", "all_gather", MF_GROUP_ETP},
    {"reduce", "reduce_scatter", MF_GROUP_ETP},
    {"combine", "all_to_all", MF_GROUP_EP},
    {"stage_send", "ppermute", MF_GROUP_PP},
    {"grad_reduce_expert", "psum", MF_GROUP_EDP},
    {"grad_reduce_dense", "psum", MF_GROUP_DP_CP},
};

static json_t *collectives_json(
    const struct mf_layout *layout, const struct mesh *mesh)
{
    json_t *list = json_array();

    for (size_t i = 0; i < sizeof collectives / sizeof *collectives; i++) {
        const struct collective *c = &collectives[i];

        if (mf_group_size(layout, c->kind) > 1)
            json_array_append_new(
                list, json_pack("{s:s, s:s, s:o}", "phase", c->phase, "op",
                          c->op, "axes", axes_of(layout, mesh, c->kind)));
    }
    return list;
}

int mfl_export_jax(
    const struct mf_plan_entry *entry, json_t **json, struct mf_error *err)
{
    const struct mf_layout *layout = &entry->layout;
    struct mesh mesh;

    *json = NULL;
    if (mesh_make(layout, &mesh, err))
        return -1;
    *json = json_pack("{s:o, s:o, s:o, s:o, s:o}", "axes", mesh_json(&mesh),
        "attention", fold_json(layout, &mesh, false), "expert",
        fold_json(layout, &mesh, true), "specs", specs_json(layout, &mesh),
        "collectives", collectives_json(layout, &mesh));
    return *json ? 0 : mf_error_set(err, MF_FAILED, "out of memory");
}
