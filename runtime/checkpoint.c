/* SPDX-License-Identifier: BSD-3-Clause
 * See checkpoint.h.
 */
#include "runtime/checkpoint.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/collective.h"

/* ---- names ---- */

/* How a parameter lies in its tensor: [rows][columns] of one block, all blocks
 * behind one another; or fused with its twin and turned over.
 */
enum form {
    FORM_PLAIN,         /* [rows][columns] of one block, or all of one block */
    FORM_STACKED,       /* [blocks][rows][columns] */
    FORM_TURNED,        /* [blocks][columns][rows] */
    FORM_WOVEN,         /* gate and up in turn: [blocks][columns][2 rows], or of
                           biases [blocks][2 columns] */
    FORM_HALVES,        /* gate before up: [blocks][2 rows][columns] */
    FORM_TURNED_HALVES, /* the same, turned: [blocks][columns][2 rows] */
};

static const struct name {
    enum mfr_tensor tensor;
    const char *name; /* %d: the expert; behind the prefix */
    enum form form;
} names[] = {
    {MFR_ROUTER, "gate.weight", FORM_PLAIN},
    {MFR_ROUTER, "router.weight", FORM_PLAIN},
    {MFR_ROUTER_BIAS, "router.bias", FORM_PLAIN},
    {MFR_ROUTER_BIAS, "gate.bias", FORM_PLAIN},
    {MFR_SELECT_BIAS, "gate.e_score_correction_bias", FORM_PLAIN},
    {MFR_SELECT_BIAS, "e_score_correction_bias", FORM_PLAIN},
    {MFR_SELECT_BIAS, "moe_statics.e_score_correction_bias", FORM_PLAIN},
    {MFR_GATE, "experts.%d.gate_proj.weight", FORM_PLAIN},
    {MFR_GATE, "experts.%d.w1.weight", FORM_PLAIN},
    {MFR_UP, "experts.%d.up_proj.weight", FORM_PLAIN},
    {MFR_UP, "experts.%d.w3.weight", FORM_PLAIN},
    {MFR_DOWN, "experts.%d.down_proj.weight", FORM_PLAIN},
    {MFR_DOWN, "experts.%d.w2.weight", FORM_PLAIN},
    {MFR_GATE, "experts.gate_up_proj", FORM_WOVEN},
    {MFR_UP, "experts.gate_up_proj", FORM_WOVEN},
    {MFR_GATE, "experts.gate_up_proj", FORM_HALVES},
    {MFR_UP, "experts.gate_up_proj", FORM_HALVES},
    {MFR_GATE, "experts.gate_up_proj", FORM_TURNED_HALVES},
    {MFR_UP, "experts.gate_up_proj", FORM_TURNED_HALVES},
    {MFR_DOWN, "experts.down_proj", FORM_STACKED},
    {MFR_DOWN, "experts.down_proj", FORM_TURNED},
    {MFR_GATE_BIAS, "experts.gate_up_proj_bias", FORM_WOVEN},
    {MFR_UP_BIAS, "experts.gate_up_proj_bias", FORM_WOVEN},
    {MFR_DOWN_BIAS, "experts.down_proj_bias", FORM_STACKED},
    {MFR_SHARED_GATE, "shared_expert.gate_proj.weight", FORM_PLAIN},
    {MFR_SHARED_GATE, "shared_experts.gate_proj.weight", FORM_PLAIN},
    {MFR_SHARED_UP, "shared_expert.up_proj.weight", FORM_PLAIN},
    {MFR_SHARED_UP, "shared_experts.up_proj.weight", FORM_PLAIN},
    {MFR_SHARED_DOWN, "shared_expert.down_proj.weight", FORM_PLAIN},
    {MFR_SHARED_DOWN, "shared_experts.down_proj.weight", FORM_PLAIN},
    {MFR_SHARED_ROUTER, "shared_expert_gate.weight", FORM_PLAIN},
};

enum { NAMES = sizeof names / sizeof *names };

static bool is_bias(enum mfr_tensor tensor)
{
    return tensor == MFR_GATE_BIAS || tensor == MFR_UP_BIAS ||
           tensor == MFR_DOWN_BIAS;
}

static bool is_second(enum mfr_tensor tensor)
{
    return tensor == MFR_UP || tensor == MFR_UP_BIAS;
}

static bool is_split(const struct name *name)
{
    return strstr(name->name, "%d");
}

static void print_name(const char *prefix, const struct name *name,
    int64_t expert, char text[MFR_NAME_MOST])
{
    const char *mark = strstr(name->name, "%d");

    if (mark)
        snprintf(text, MFR_NAME_MOST, "%s%.*s%" PRId64 "%s", prefix,
            (int)(mark - name->name), name->name, expert, mark + 2);
    else
        snprintf(text, MFR_NAME_MOST, "%s%s", prefix, name->name);
}

/* The shape of the tensor that holds one block of VIEW, or all. */
static int shape_of(const struct name *name, const struct mfr_view *view,
    int64_t size[MFR_DIMS_MOST])
{
    const int64_t rows = view->all_rows, columns = view->all_columns;
    const bool bias = is_bias(view->tensor);

    switch (name->form) {
    case FORM_PLAIN:
        if (view->all_rows == 1 && view->tensor != MFR_SHARED_ROUTER) {
            size[0] = columns;
            return 1;
        }
        size[0] = rows;
        size[1] = columns;
        return 2;
    case FORM_STACKED:
    case FORM_HALVES:
    case FORM_TURNED:
    case FORM_WOVEN:
    case FORM_TURNED_HALVES:
        break;
    }
    size[0] = view->all_blocks;
    if (bias) {
        size[1] = name->form == FORM_WOVEN ? 2 * columns : columns;
        return 2;
    }
    size[1] = name->form == FORM_STACKED  ? rows
              : name->form == FORM_HALVES ? 2 * rows
                                          : columns;
    size[2] = name->form == FORM_TURNED ? rows
              : name->form == FORM_WOVEN || name->form == FORM_TURNED_HALVES
                  ? 2 * rows
                  : columns;
    return 3;
}

/* Where value (block, row, column) of a whole parameter lies in its tensor. */
static int64_t offset_of(const struct name *name, const struct mfr_view *view,
    int64_t b, int64_t r, int64_t c)
{
    const int64_t rows = view->all_rows, columns = view->all_columns;
    const int64_t second = is_second(view->tensor);

    switch (name->form) {
    case FORM_PLAIN:
        break;
    case FORM_STACKED:
        return (b * rows + r) * columns + c;
    case FORM_TURNED:
        return (b * columns + c) * rows + r;
    case FORM_WOVEN:
        if (is_bias(view->tensor))
            return b * 2 * columns + 2 * c + second;
        return (b * columns + c) * 2 * rows + 2 * r + second;
    case FORM_HALVES:
        return (b * 2 * rows + second * rows + r) * columns + c;
    case FORM_TURNED_HALVES:
        return (b * columns + c) * 2 * rows + second * rows + r;
    }
    return r * columns + c;
}

/* ---- opening ---- */

/* What stands before "gate.weight" or "router.weight" where experts follow. */
static int find_prefix(struct mfr_checkpoint *from, struct mf_error *err)
{
    static const char *const ends[] = {"gate.weight", "router.weight"};
    const char *key;
    json_t *entry;
    int found = 0;

    json_object_foreach(from->file.header, key, entry)
    {
        for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
            const size_t length = strlen(key), end = strlen(ends[i]);
            const size_t before = length - end;
            char probe[MFR_NAME_MOST];
            const char *other;
            json_t *any;
            bool experts = false;

            if (length < end || strcmp(key + before, ends[i]) ||
                (before > 0 && key[before - 1] != '.') ||
                before + sizeof "experts." > sizeof probe)
                continue;
            snprintf(probe, sizeof probe, "%.*sexperts.", (int)before, key);
            json_object_foreach(from->file.header, other, any) experts |=
                !strncmp(other, probe, strlen(probe));
            if (!experts)
                continue;
            if (found++ == 0)
                snprintf(from->prefix, sizeof from->prefix, "%.*s", (int)before,
                    key);
        }
    }
    if (found == 1)
        return 0;
    return mf_error_set(err, MF_INVALID,
        found ? "%s: it holds %d layers with experts; leave one in it"
              : "%s: no router (gate.weight, router.weight) with experts "
                "beside it",
        from->file.path, found);
}

static int find_tokens(struct mfr_checkpoint *from,
    const struct mfr_shape *shape, const char *name, struct mfr_stored *stored,
    struct mf_error *err)
{
    const int rc = mfr_tensorfile_find(&from->file, name, stored, err);

    if (rc < 0)
        return -1;
    if (rc == 0)
        return mf_error_set(
            err, MF_INVALID, "%s: no tensor %s", from->file.path, name);
    if (stored->dims == 3 && stored->size[2] == shape->hidden &&
        stored->size[0] > 0 && stored->size[1] > 0)
        return 0;
    return mf_error_set(err, MF_INVALID,
        "%s: %s is not [batch, seq, %" PRId64 "]", from->file.path, name,
        shape->hidden);
}

int mfr_checkpoint_open(const char *path, const struct mfr_shape *shape,
    struct mfr_checkpoint *from, struct mf_error *err)
{
    struct mfr_stored x, dy;

    *from = (struct mfr_checkpoint){0};
    if (mfr_tensorfile_open(path, &from->file, err))
        return -1;
    from->open = true;
    if (find_prefix(from, err) ||
        find_tokens(from, shape, "hidden_states", &x, err) ||
        find_tokens(from, shape, "grad_output", &dy, err))
        goto fail;
    if (x.size[0] != dy.size[0] || x.size[1] != dy.size[1]) {
        mf_error_set(err, MF_INVALID,
            "%s: hidden_states and grad_output differ in shape", path);
        goto fail;
    }
    from->biases = shape->expert_bias;
    from->batch = x.size[0];
    from->seq = x.size[1];
    return 0;
fail:
    mfr_checkpoint_close(from);
    return -1;
}

void mfr_checkpoint_close(struct mfr_checkpoint *from)
{
    if (from->open)
        mfr_tensorfile_close(&from->file);
    *from = (struct mfr_checkpoint){0};
}

/* ---- reading ---- */

static bool same_shape(
    const struct mfr_stored *stored, int dims, const int64_t *size)
{
    int64_t count = 1;

    for (int i = 0; i < dims; i++)
        count *= size[i];
    /* Vectors are written with a 1 in front by some. */
    if (dims == 1)
        return stored->count == count;
    if (stored->dims != dims)
        return false;
    for (int i = 0; i < dims; i++)
        if (stored->size[i] != size[i])
            return false;
    return true;
}

/* Experts with biases are written as gpt-oss's are; where the shapes of two
 * forms are the same that decides.
 */
static bool may_be(
    const struct name *name, const struct mfr_view *view, bool biases)
{
    if (name->tensor != view->tensor)
        return false;
    switch (name->form) {
    case FORM_PLAIN:
    case FORM_TURNED:
        return true;
    case FORM_STACKED:
        return !biases || is_bias(name->tensor);
    case FORM_WOVEN:
        return biases;
    case FORM_HALVES:
    case FORM_TURNED_HALVES:
        break;
    }
    return !biases;
}

/* The row of names whose tensor is there and has the right shape; NULL: none,
 * and why in ERR.
 */
static const struct name *find_name(const struct mfr_checkpoint *from,
    const struct mfr_view *view, struct mf_error *err)
{
    char text[MFR_NAME_MOST], wanted[MFR_NAME_MOST] = "";

    for (int i = 0; i < NAMES; i++) {
        int64_t size[MFR_DIMS_MOST];
        struct mfr_stored stored;
        int dims, rc;

        if (!may_be(&names[i], view, from->biases))
            continue;
        print_name(from->prefix, &names[i], 0, text);
        rc = mfr_tensorfile_find(&from->file, text, &stored, err);
        if (rc < 0)
            return NULL;
        if (!wanted[0] || rc > 0)
            memcpy(wanted, text, sizeof wanted);
        if (rc == 0)
            continue;
        dims = shape_of(&names[i], view, size);
        if (same_shape(&stored, dims, size))
            return &names[i];
    }
    mf_error_set(err, MF_INVALID,
        "%s: no tensor %s for the model's %s (%" PRId64 " x %" PRId64 "%s)",
        from->file.path, wanted, view->name, view->all_rows, view->all_columns,
        view->all_blocks > 1 ? " of each expert" : "");
    return NULL;
}

static int read_block(const struct mfr_checkpoint *from,
    const struct name *name, const struct mfr_view *view, int64_t b,
    struct mf_error *err)
{
    const int64_t block = view->first_block + b;
    int64_t size[MFR_DIMS_MOST];
    const int dims = shape_of(name, view, size);
    struct mfr_stored stored;
    char text[MFR_NAME_MOST];
    int rc;

    print_name(from->prefix, name, block, text);
    rc = mfr_tensorfile_find(&from->file, text, &stored, err);
    if (rc == 0 || (rc > 0 && !same_shape(&stored, dims, size)))
        return mf_error_set(err, MF_INVALID, "%s: %s is %s", from->file.path,
            text, rc ? "not of the shape of expert 0's" : "missing");
    if (rc < 0)
        return -1;
    for (int64_t r = 0; r < view->rows; r++) {
        float *row = mfr_view_row(view, b, r);

        for (int64_t c = 0; c < view->columns; c++)
            row[c] = mfr_stored_value(
                &stored, offset_of(name, view, is_split(name) ? 0 : block,
                             view->first_row + r, view->first_column + c));
    }
    return 0;
}

int mfr_checkpoint_weights(const struct mfr_checkpoint *from, mfr_layer *layer,
    const struct mfr_shape *shape, const struct mf_coords *coords,
    struct mf_error *err)
{
    const struct mfr_tensors weights = mfr_layer_weights(layer);
    struct mfr_view view[MFR_VIEWS_MOST];
    const int n = mfr_tensors_views(shape, coords, &weights, view);

    for (int i = 0; i < n; i++) {
        const struct name *name = find_name(from, &view[i], err);

        if (!name)
            return -1;
        for (int64_t b = 0; b < view[i].blocks; b++)
            if (read_block(from, name, &view[i], b, err))
                return -1;
    }
    return 0;
}

int mfr_checkpoint_tokens(const struct mfr_checkpoint *from, const char *name,
    const struct mfr_shape *shape, const struct mfr_shard *shard, float *out,
    struct mf_error *err)
{
    const int64_t h = shape->hidden;
    struct mfr_stored stored;

    if (mfr_tensorfile_find(&from->file, name, &stored, err) != 1)
        return -1;
    for (int64_t t = 0; t < shard->tokens; t++) {
        const int64_t at = shard->first + t / shape->batch;
        const int64_t sequence =
            shard->micro_batch * shape->batch + t % shape->batch;

        for (int64_t i = 0; i < h; i++)
            out[t * h + i] =
                mfr_stored_value(&stored, (sequence * from->seq + at) * h + i);
    }
    return 0;
}

/* ---- writing ---- */

/* Values of which each rank has some and zeros elsewhere, to rank 0: as bits,
 * so that nothing is rounded and no sign is lost.
 */
static int join(const struct mfr_comms *comms, float *values, int64_t count,
    struct mf_error *err)
{
    for (int64_t at = 0; at < count; at += INT_MAX / 2) {
        const int64_t left = count - at;
        const int n = left < INT_MAX / 2 ? (int)left : INT_MAX / 2;

        if (mfr_reduce(comms->rank == 0 ? MPI_IN_PLACE : values + at,
                values + at, n, MPI_UINT32_T, MPI_BOR, 0, comms->base,
                "--dump: MPI_Reduce", err))
            return -1;
    }
    return 0;
}

struct dump {
    const struct mfr_checkpoint *from;
    const struct mfr_comms *comms;
    struct mfr_tensorwriter *writer; /* rank 0 */
    struct mfr_view view[MFR_VIEWS_MOST];
    const struct name *name[MFR_VIEWS_MOST];
    int views;
    const char *prefix;
    float *room;
    int64_t most;
};

/* Tensors that hold view I: one for each expert, or one. Of a fused pair the
 * first stands for both.
 */
static int64_t tensors_of(const struct dump *d, int i)
{
    if (!is_split(d->name[i]) && is_second(d->view[i].tensor))
        return 0;
    return is_split(d->name[i]) ? d->view[i].all_blocks : 1;
}

static int64_t count_of(const struct dump *d, int i)
{
    int64_t size[MFR_DIMS_MOST], count = 1;
    const int dims = shape_of(d->name[i], &d->view[i], size);

    for (int k = 0; k < dims; k++)
        count *= size[k];
    return count;
}

/* Names that a run without a file has: the first ones, and for experts with
 * biases those of gpt-oss.
 */
static const struct name *usual_name(
    const struct mfr_shape *shape, enum mfr_tensor tensor)
{
    for (int i = 0; i < NAMES; i++)
        if (names[i].tensor == tensor &&
            (!shape->expert_bias ||
                (!is_split(&names[i]) && names[i].form != FORM_STACKED) ||
                is_bias(tensor)))
            return &names[i];
    return NULL;
}

static int dump_plan(struct dump *d, mfr_layer *layer,
    const struct mfr_shape *shape, struct mf_error *err)
{
    const struct mfr_tensors gradients = mfr_layer_gradients(layer);

    d->views = mfr_tensors_views(shape, &d->comms->coords, &gradients, d->view);
    d->prefix = d->from ? d->from->prefix : "mlp.";
    for (int i = 0; i < d->views; i++) {
        d->name[i] = d->from ? find_name(d->from, &d->view[i], err)
                             : usual_name(shape, d->view[i].tensor);
        if (!d->name[i])
            return -1;
        if (count_of(d, i) > d->most)
            d->most = count_of(d, i);
    }
    d->room = calloc((size_t)d->most + 1, sizeof *d->room);
    return d->room ? 0 : mf_error_set(err, MF_FAILED, "--dump: out of memory");
}

static int dump_names(struct dump *d, const struct mfr_shape *shape, int64_t dp,
    struct mf_error *err)
{
    const int64_t tokens[] = {shape->batch * dp, shape->seq, shape->hidden};

    if (mfr_tensorwriter_add(d->writer, "output", 3, tokens, err) ||
        mfr_tensorwriter_add(d->writer, "grad_hidden_states", 3, tokens, err))
        return -1;
    for (int i = 0; i < d->views; i++)
        for (int64_t e = 0; e < tensors_of(d, i); e++) {
            char name[MFR_NAME_MOST + 8], text[MFR_NAME_MOST];
            int64_t size[MFR_DIMS_MOST];
            const int dims = shape_of(d->name[i], &d->view[i], size);

            print_name(d->prefix, d->name[i], e, text);
            snprintf(name, sizeof name, "grad.%s", text);
            if (mfr_tensorwriter_add(d->writer, name, dims, size, err))
                return -1;
        }
    return 0;
}

/* This rank's values of block B of VIEW into the room of its tensor. */
static void put_block(struct dump *d, int which, int64_t b)
{
    const struct mfr_view *v = &d->view[which];
    const struct name *name = d->name[which];

    if (!v->once || b < v->first_block || b >= v->first_block + v->blocks)
        return;
    for (int64_t r = 0; r < v->rows; r++) {
        const float *row = mfr_view_row(v, b - v->first_block, r);

        for (int64_t c = 0; c < v->columns; c++)
            d->room[offset_of(name, v, is_split(name) ? 0 : b, v->first_row + r,
                v->first_column + c)] = row[c];
    }
}

/* Tensor E of view I, and with it its twin. */
static void put_tensor(struct dump *d, int i, int64_t e)
{
    const bool split = is_split(d->name[i]);

    for (int k = 0; k < d->views; k++) {
        if (k != i && (split || strcmp(d->name[k]->name, d->name[i]->name)))
            continue;
        for (int64_t b = split ? e : 0;
             b < (split ? e + 1 : d->view[k].all_blocks); b++)
            put_block(d, k, b);
    }
}

static int dump_gradients(struct dump *d, struct mf_error *err)
{
    for (int i = 0; i < d->views; i++)
        for (int64_t e = 0; e < tensors_of(d, i); e++) {
            const int64_t n = count_of(d, i);
            int rc;

            memset(d->room, 0, (size_t)n * sizeof *d->room);
            put_tensor(d, i, e);
            if (join(d->comms, d->room, n, err))
                return -1;
            rc = d->writer ? mfr_tensorwriter_write(d->writer, d->room, n, err)
                           : 0;
            if (mfr_agree(d->comms->base, rc, err))
                return -1;
        }
    return 0;
}

static int dump_tokens(struct dump *d, const struct mfr_shape *shape,
    const struct mfr_shard *shard, int64_t dp, const float *values,
    struct mf_error *err)
{
    const int64_t h = shape->hidden, n = shape->batch * dp * shape->seq * h;
    float *all = calloc((size_t)n + 1, sizeof *all);
    int rc = all ? 0 : mf_error_set(err, MF_FAILED, "--dump: out of memory");

    for (int64_t t = 0; rc == 0 && t < shard->tokens; t++) {
        const int64_t at = shard->first + t / shape->batch;
        const int64_t sequence =
            shard->micro_batch * shape->batch + t % shape->batch;

        memcpy(all + (sequence * shape->seq + at) * h, values + t * h,
            (size_t)h * sizeof *all);
    }
    if (mfr_agree(d->comms->base, rc, err) == 0) {
        rc = join(d->comms, all, n, err);
        if (rc == 0 && d->writer)
            rc = mfr_tensorwriter_write(d->writer, all, n, err);
        rc = mfr_agree(d->comms->base, rc, err);
    } else
        rc = -1;
    free(all);
    return rc;
}

int mfr_checkpoint_dump(const char *path, const struct mfr_checkpoint *from,
    mfr_layer *layer, const struct mfr_shape *shape, int64_t dp,
    const struct mfr_comms *comms, const float *y, const float *dx,
    struct mf_error *err)
{
    const struct mfr_shard *shard = mfr_layer_shard(layer);
    struct dump d = {.from = from, .comms = comms};
    int rc = dump_plan(&d, layer, shape, err);

    if (rc == 0 && comms->rank == 0) {
        d.writer = mfr_tensorwriter_create(path, err);
        rc = d.writer ? dump_names(&d, shape, dp, err) : -1;
    }
    rc = mfr_agree(comms->base, rc, err);
    if (rc == 0 && (dump_tokens(&d, shape, shard, dp, y, err) ||
                       dump_tokens(&d, shape, shard, dp, dx, err) ||
                       dump_gradients(&d, err)))
        rc = -1;
    if (comms->rank == 0 &&
        mfr_tensorwriter_close(d.writer, rc == 0, rc ? NULL : err))
        rc = -1;
    free(d.room);
    return mfr_agree(comms->base, rc, err);
}
