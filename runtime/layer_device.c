/* SPDX-License-Identifier: BSD-3-Clause
 * The work of a layer inside a rank, on a device.
 */
#include "runtime/layer_device.h"

#include <stdlib.h>

#include "kernels/kernels.h"
#include "runtime/device.h"

static int done(struct mfr_layer_device *d, int rc, struct mf_error *err)
{
    return rc ? mfr_device_failed(d->device, err) : 0;
}

static size_t bytes_of(int64_t a, int64_t b)
{
    return (size_t)a * (size_t)b * sizeof(float);
}

static int upload(struct mfr_layer_device *d, void *to, const void *from,
    size_t bytes, struct mf_error *err)
{
    return done(d, d->device->api->upload(d->device, to, from, bytes), err);
}

static int download(struct mfr_layer_device *d, void *to, const void *from,
    size_t bytes, struct mf_error *err)
{
    return done(d, d->device->api->download(d->device, to, from, bytes), err);
}

static int take(struct mfr_layer_device *d, int64_t n, size_t size, void *to,
    struct mf_error *err)
{
    return done(d, d->device->api->alloc(d->device, (size_t)n * size, to), err);
}

static void give(struct mfr_layer_device *d, void *memory)
{
    d->device->api->free(d->device, memory);
}

static int tensors_take(struct mfr_layer_device *d,
    const struct mfr_tensors *like, struct mfr_tensors *t, struct mf_error *err)
{
    const int64_t h = d->router->hidden, n = d->local * d->ffn * h;

    *t = (struct mfr_tensors){.experts = like->experts, .ffn = like->ffn};
    return take(d, d->router->experts * h, sizeof(float), &t->router, err) ||
                   take(d, n, sizeof(float), &t->gate, err) ||
                   take(d, n, sizeof(float), &t->up, err) ||
                   take(d, n, sizeof(float), &t->down, err)
               ? -1
               : 0;
}

static void tensors_give(struct mfr_layer_device *d, struct mfr_tensors *t)
{
    give(d, t->router);
    give(d, t->gate);
    give(d, t->up);
    give(d, t->down);
}

/* What the kernels on devices do not do is refused, not left out. */
static int check_shape(const struct mfr_shape *shape, struct mf_error *err)
{
    const int64_t each =
        shape->groups > 1 ? shape->topk / shape->topk_groups : 1;

    if (shape->shared_ffn > 0 || shape->router_bias || shape->expert_bias ||
        shape->activation != MFK_SWIGLU)
        return mf_error_set(err, MF_INVALID,
            "shared experts, biases of experts and of the router, and other "
            "activations than SwiGLU run on the CPU alone; use --backend cpu");
    if (shape->groups > 1 && shape->group_best != (each > 0 ? each : 1))
        return mf_error_set(err, MF_INVALID,
            "on a device groups of experts are judged by their topk / "
            "topk_groups best, here by %lld; use --backend cpu",
            (long long)shape->group_best);
    return 0;
}

static int tokens_take(struct mfr_layer_device *d, struct mf_error *err)
{
    const struct mfr_router *r = d->router;
    const int64_t wide = r->tokens * r->hidden, n = r->tokens * r->topk;
    const int64_t scores = r->tokens * r->experts;
    const int64_t part = mfk_device_group_room(n, r->experts);

    return take(d, wide, sizeof(float), &d->x, err) ||
                   take(d, wide, sizeof(float), &d->dx, err) ||
                   take(d, scores, sizeof(float), &d->logits, err) ||
                   take(d, scores, sizeof(float), &d->scores, err) ||
                   take(d, scores, sizeof(float), &d->dlogits, err) ||
                   take(d, n, sizeof(float), &d->weights, err) ||
                   take(d, n, sizeof(float), &d->dweights, err) ||
                   take(d, n, sizeof(int32_t), &d->ids, err) ||
                   take(d, part, sizeof(int64_t), &d->part, err) ||
                   take(d, r->experts, sizeof(int64_t), &d->counts, err) ||
                   take(d, n, sizeof(int64_t), &d->place, err) ||
                   take(d, n * r->hidden, sizeof(float), &d->send, err) ||
                   take(d, n * r->hidden, sizeof(float), &d->returned, err)
               ? -1
               : 0;
}

static size_t largest_gradient(const struct mfr_layer_device *d)
{
    const int64_t h = d->router->hidden, n = d->local * d->ffn * h;
    const int64_t router = d->router->experts * h;

    return (size_t)(n > router ? n : router);
}

int mfr_layer_device_create(const struct mfr_layer_options *options,
    const struct mfr_shape *shape, const struct mfr_router *router,
    const struct mfr_tensors *tensors, bool alone,
    struct mfr_layer_device **out, struct mf_error *err)
{
    struct mfr_layer_device *d = calloc(1, sizeof *d);

    *out = NULL;
    if (!d)
        return mf_error_set(err, MF_FAILED, "out of memory");
    if (check_shape(shape, err)) {
        free(d);
        return -1;
    }
    d->device = options->device;
    d->router = router;
    d->local = tensors->experts;
    d->ffn = tensors->ffn;
    d->kernel = options->kernel;
    d->observed = options->observed;
    d->comms = options->device_comms;
    d->moves = d->comms && !alone;
    d->resident = d->comms || alone;
    d->weights_new = true;
    d->gradients_old = true;
    d->product = calloc((size_t)d->local * 2, sizeof *d->product);
    d->scratch = malloc(largest_gradient(d) * sizeof *d->scratch);
    if (!d->product || !d->scratch) {
        mf_error_set(err, MF_FAILED, "out of memory");
        goto out;
    }
    if (shape->select_bias &&
        take(d, router->experts, sizeof(float), &d->select_bias, err))
        goto out;
    if (tokens_take(d, err) == 0 &&
        tensors_take(d, tensors, &d->weight, err) == 0 &&
        tensors_take(d, tensors, &d->gradient, err) == 0) {
        *out = d;
        return 0;
    }
out:
    mfr_layer_device_free(d);
    return -1;
}

static void room_give(struct mfr_layer_device *d)
{
    give(d, d->rows);
    give(d, d->out);
    give(d, d->gate);
    give(d, d->up);
    give(d, d->act);
    d->rows = d->out = d->gate = d->up = d->act = NULL;
    d->room = 0;
}

void mfr_layer_device_free(struct mfr_layer_device *d)
{
    if (!d)
        return;
    mfr_dispatch_device_free(&d->dispatch);
    room_give(d);
    tensors_give(d, &d->weight);
    tensors_give(d, &d->gradient);
    give(d, d->select_bias);
    give(d, d->x);
    give(d, d->dx);
    give(d, d->logits);
    give(d, d->scores);
    give(d, d->dlogits);
    give(d, d->weights);
    give(d, d->dweights);
    give(d, d->ids);
    give(d, d->part);
    give(d, d->counts);
    give(d, d->place);
    give(d, d->send);
    give(d, d->returned);
    free(d->product);
    free(d->scratch);
    free(d);
}

int mfr_layer_device_room(
    struct mfr_layer_device *d, int64_t rows, struct mf_error *err)
{
    const int64_t h = d->router->hidden;

    if (d->moves && mfr_dispatch_device_room(&d->dispatch, err))
        return -1;
    if (d->rows && rows <= d->room)
        return 0;
    room_give(d);
    if (take(d, rows * h, sizeof(float), &d->rows, err) ||
        take(d, rows * h, sizeof(float), &d->out, err) ||
        take(d, rows * d->ffn, sizeof(float), &d->gate, err) ||
        take(d, rows * d->ffn, sizeof(float), &d->up, err) ||
        take(d, rows * d->ffn, sizeof(float), &d->act, err)) {
        room_give(d);
        return -1;
    }
    d->room = rows;
    return 0;
}

/* FROM one memory to another, tensor by tensor. */
static int tensors_copy(struct mfr_layer_device *d, const struct mfr_tensors *t,
    const struct mfr_tensors *from, bool up, struct mf_error *err)
{
    const int64_t h = d->router->hidden;
    const size_t n = bytes_of(d->local * d->ffn, h);
    int (*const copy)(struct mfr_layer_device *, void *, const void *, size_t,
        struct mf_error *) = up ? upload : download;

    return copy(d, t->router, from->router, bytes_of(d->router->experts, h),
               err) ||
                   copy(d, t->gate, from->gate, n, err) ||
                   copy(d, t->up, from->up, n, err) ||
                   copy(d, t->down, from->down, n, err)
               ? -1
               : 0;
}

int mfr_layer_device_input(struct mfr_layer_device *d,
    const struct mfr_tensors *weights, const float *x, struct mf_error *err)
{
    if (d->weights_new && tensors_copy(d, &d->weight, weights, true, err))
        return -1;
    if (d->weights_new && d->select_bias &&
        upload(d, d->select_bias, weights->select_bias,
            bytes_of(d->router->experts, 1), err))
        return -1;
    d->weights_new = false;
    return upload(
        d, d->x, x, bytes_of(d->router->tokens, d->router->hidden), err);
}

int mfr_layer_device_output_grad(
    struct mfr_layer_device *d, const float *dy, struct mf_error *err)
{
    return upload(
        d, d->dx, dy, bytes_of(d->router->tokens, d->router->hidden), err);
}

int mfr_layer_device_output(
    struct mfr_layer_device *d, float *y, struct mf_error *err)
{
    return download(
        d, y, d->dx, bytes_of(d->router->tokens, d->router->hidden), err);
}

static struct mfk_device_router router_of(const struct mfr_layer_device *d)
{
    return (struct mfk_device_router){
        .tokens = d->router->tokens,
        .experts = d->router->experts,
        .topk = d->router->topk,
        .sigmoid = d->router->how.sigmoid,
        .groups = d->router->how.groups > 1 ? d->router->how.groups : 1,
        .topk_groups =
            d->router->how.groups > 1 ? d->router->how.topk_groups : 1,
        .renormalize = d->router->how.renormalize,
        .scaling = d->router->how.scaling,
        .bias = d->select_bias,
    };
}

/* Choices, weights and places for the host. */
static int route_observe(
    struct mfr_layer_device *d, struct mfr_router *router, struct mf_error *err)
{
    const int64_t n = router->tokens * router->topk;

    if (!d->observed)
        return 0;
    return download(d, router->ids, d->ids, (size_t)n * sizeof(int32_t), err) ||
                   download(
                       d, router->weights, d->weights, bytes_of(n, 1), err) ||
                   download(d, router->place, d->place,
                       (size_t)n * sizeof(int64_t), err)
               ? -1
               : 0;
}

int mfr_layer_device_route(
    struct mfr_layer_device *d, struct mfr_router *router, struct mf_error *err)
{
    const int64_t n = router->tokens * router->topk;
    const struct mfk_device_router how = router_of(d);
    const struct mfk_product logits = {
        .form = MFK_NT,
        .m = router->tokens,
        .n = router->experts,
        .k = router->hidden,
        .a = d->x,
        .b = d->weight.router,
        .c = d->logits,
    };

    if (done(d, mfk_device_exact(d->device, &logits), err) ||
        done(d,
            mfk_device_route(
                d->device, &how, d->logits, d->scores, d->ids, d->weights),
            err) ||
        done(d,
            mfk_device_group(d->device, n, router->experts, d->ids, d->part,
                d->counts, d->place),
            err) ||
        route_observe(d, router, err))
        return -1;
    return download(d, router->counts, d->counts,
        (size_t)router->experts * sizeof(int64_t), err);
}

/* Rows that others need go to the host; those of this rank alone stay. */
static int hand_out(struct mfr_layer_device *d, void *host, const void *from,
    int64_t rows, struct mf_error *err)
{
    if (d->resident)
        return 0;
    return download(d, host, from, bytes_of(rows, d->router->hidden), err);
}

static int hand_in(struct mfr_layer_device *d, void *to, const void *host,
    int64_t rows, struct mf_error *err)
{
    if (d->resident)
        return 0;
    return upload(d, to, host, bytes_of(rows, d->router->hidden), err);
}

/* Where rows by expert go that are to become TARGET. */
static float *source(struct mfr_layer_device *d, float *target)
{
    if (d->moves)
        return mfr_dispatch_device_source(&d->dispatch, d->send, target);
    return d->resident ? target : d->send;
}

int mfr_layer_device_permute(
    struct mfr_layer_device *d, float *send, struct mf_error *err)
{
    const struct mfr_router *r = d->router;
    float *to = source(d, d->rows);

    if (done(d,
            mfk_device_permute(d->device, MFK_F32, r->tokens, r->topk,
                r->hidden, d->x, d->place, to),
            err))
        return -1;
    return hand_out(d, send, to, r->tokens * r->topk, err);
}

/* Add to the list a product of the rows of expert E. */
static void product_add(struct mfr_layer_device *d, int *n, int64_t rows,
    struct mfk_product product)
{
    if (rows > 0)
        d->product[(*n)++] = product;
}

static int multiply(struct mfr_layer_device *d, int n, struct mf_error *err)
{
    if (d->kernel == MFK_BLAS)
        return done(
            d, d->device->api->multiply(d->device, d->product, n, false), err);
    for (int i = 0; i < n; i++)
        if (done(d, mfk_device_exact(d->device, &d->product[i]), err))
            return -1;
    return 0;
}

/* OUT[rows][out_width] = IN[rows][in_width] by each expert's WEIGHT, in FORM
 * MFK_NT or MFK_NN.
 */
static void products_rows(struct mfr_layer_device *d, int *n,
    enum mfk_form form, const int64_t *first, const float *in, int64_t in_width,
    const float *weight, int64_t out_width, bool add, float *out)
{
    for (int64_t e = 0; e < d->local; e++)
        product_add(d, n, first[e + 1] - first[e],
            (struct mfk_product){
                .form = form,
                .m = first[e + 1] - first[e],
                .n = out_width,
                .k = in_width,
                .a = in + first[e] * in_width,
                .b = weight + e * in_width * out_width,
                .c = out + first[e] * out_width,
                .add = add,
            });
}

/* Each expert's gradient[a_width][b_width] += A[rows]^T * B[rows]. */
static void products_gradient(struct mfr_layer_device *d, int *n,
    const int64_t *first, const float *a, int64_t a_width, const float *b,
    int64_t b_width, float *gradient)
{
    for (int64_t e = 0; e < d->local; e++)
        product_add(d, n, first[e + 1] - first[e],
            (struct mfk_product){
                .form = MFK_TN,
                .m = a_width,
                .n = b_width,
                .k = first[e + 1] - first[e],
                .a = a + first[e] * a_width,
                .b = b + first[e] * b_width,
                .c = gradient + e * a_width * b_width,
                .add = true,
            });
}

int mfr_layer_device_experts(struct mfr_layer_device *d, const int64_t *first,
    const float *rows, float *out, struct mf_error *err)
{
    const int64_t h = d->router->hidden, f = d->ffn, all = first[d->local];
    int n = 0;

    if (hand_in(d, d->rows, rows, all, err))
        return -1;
    products_rows(
        d, &n, MFK_NT, first, d->rows, h, d->weight.gate, f, false, d->gate);
    products_rows(
        d, &n, MFK_NT, first, d->rows, h, d->weight.up, f, false, d->up);
    if (multiply(d, n, err) || done(d,
                                   mfk_device_swiglu(d->device, MFK_F32, all, f,
                                       d->gate, d->up, NULL, d->act),
                                   err))
        return -1;
    n = 0;
    products_rows(
        d, &n, MFK_NT, first, d->act, f, d->weight.down, h, false, d->out);
    if (multiply(d, n, err))
        return -1;
    return hand_out(d, out, d->out, all, err);
}

int mfr_layer_device_unpermute(
    struct mfr_layer_device *d, const float *returned, struct mf_error *err)
{
    const struct mfr_router *r = d->router;
    const int64_t n = r->tokens * r->topk;

    /* Kept for the backward pass, which the next experts would overwrite. */
    if (d->resident && !d->moves) {
        float *kept = d->returned;

        d->returned = d->out;
        d->out = kept;
    }
    if (hand_in(d, d->returned, returned, n, err))
        return -1;
    return done(d,
        mfk_device_unpermute(d->device, MFK_F32, r->tokens, r->topk, r->hidden,
            d->returned, d->place, d->weights, d->dx),
        err);
}

int mfr_layer_device_unpermute_back(
    struct mfr_layer_device *d, float *send, struct mf_error *err)
{
    const struct mfr_router *r = d->router;
    float *to = source(d, d->out);

    if (done(d,
            mfk_device_unpermute_backward(d->device, MFK_F32, r->tokens,
                r->topk, r->hidden, d->returned, d->place, d->weights, d->dx,
                to, d->dweights),
            err))
        return -1;
    return hand_out(d, send, to, r->tokens * r->topk, err);
}

/* Clear gradients that count no more, before the first sum of a pass. */
static int gradients_begin(struct mfr_layer_device *d, struct mf_error *err)
{
    const int64_t h = d->router->hidden;
    const size_t n = bytes_of(d->local * d->ffn, h);
    const struct mfk_device_api *api = d->device->api;
    const struct mfr_tensors *g = &d->gradient;

    if (!d->gradients_old)
        return 0;
    d->gradients_old = false;
    return done(d,
        api->fill(d->device, g->router, 0, bytes_of(d->router->experts, h)) ||
            api->fill(d->device, g->gate, 0, n) ||
            api->fill(d->device, g->up, 0, n) ||
            api->fill(d->device, g->down, 0, n),
        err);
}

int mfr_layer_device_experts_back(struct mfr_layer_device *d,
    const int64_t *first, float *out, struct mf_error *err)
{
    const int64_t h = d->router->hidden, f = d->ffn, all = first[d->local];
    int n = 0;

    if (hand_in(d, d->out, out, all, err) || gradients_begin(d, err))
        return -1;
    products_gradient(d, &n, first, d->out, h, d->act, f, d->gradient.down);
    if (multiply(d, n, err))
        return -1;
    n = 0;
    /* The activation is used up: its gradient takes its place. */
    products_rows(
        d, &n, MFK_NN, first, d->out, h, d->weight.down, f, false, d->act);
    if (multiply(d, n, err) ||
        done(d,
            mfk_device_swiglu_backward(d->device, MFK_F32, all, f, d->gate,
                d->up, d->act, NULL, d->gate, d->up, NULL),
            err))
        return -1;
    n = 0;
    products_gradient(d, &n, first, d->gate, f, d->rows, h, d->gradient.gate);
    products_gradient(d, &n, first, d->up, f, d->rows, h, d->gradient.up);
    if (multiply(d, n, err))
        return -1;
    n = 0;
    products_rows(
        d, &n, MFK_NN, first, d->gate, f, d->weight.gate, h, false, d->out);
    products_rows(
        d, &n, MFK_NN, first, d->up, f, d->weight.up, h, true, d->out);
    if (multiply(d, n, err))
        return -1;
    return hand_out(d, out, d->out, all, err);
}

int mfr_layer_device_permute_back(
    struct mfr_layer_device *d, const float *send, struct mf_error *err)
{
    const struct mfr_router *r = d->router;
    float *from = d->resident && !d->moves ? d->out : d->send;

    if (hand_in(d, from, send, r->tokens * r->topk, err))
        return -1;
    return done(d,
        mfk_device_unpermute(d->device, MFK_F32, r->tokens, r->topk, r->hidden,
            from, d->place, NULL, d->dx),
        err);
}

int mfr_layer_device_route_back(
    struct mfr_layer_device *d, struct mf_error *err)
{
    const struct mfr_router *r = d->router;
    const struct mfk_device_router how = router_of(d);
    const struct mfk_product to_dx = {
        .form = MFK_NN,
        .m = r->tokens,
        .n = r->hidden,
        .k = r->experts,
        .a = d->dlogits,
        .b = d->weight.router,
        .c = d->dx,
        .add = true,
    };
    const struct mfk_product to_weight = {
        .form = MFK_TN,
        .m = r->experts,
        .n = r->hidden,
        .k = r->tokens,
        .a = d->dlogits,
        .b = d->x,
        .c = d->gradient.router,
        .add = true,
    };

    if (done(d,
            mfk_device_route_backward(d->device, &how, d->scores, d->ids,
                d->dweights, NULL, d->dlogits),
            err) ||
        done(d, mfk_device_exact(d->device, &to_dx), err))
        return -1;
    return done(d, mfk_device_exact(d->device, &to_weight), err);
}

int mfr_layer_device_reduce(struct mfr_layer_device *d, enum mf_group_kind kind,
    int64_t n, float *values, double scale, struct mf_error *err)
{
    if (scale != 1 &&
        done(d, mfk_device_scale(d->device, MFK_F32, n, (float)scale, values),
            err))
        return -1;
    if (!d->comms->comm[kind])
        return 0;
    return done(d,
        d->device->api->comm_sum(d->device, d->comms->comm[kind], n, values),
        err);
}

/* HOST[n] += FROM[n], which is on the device. */
static int add_to_host(struct mfr_layer_device *d, int64_t n, const float *from,
    float *host, struct mf_error *err)
{
    if (download(d, d->scratch, from, bytes_of(n, 1), err))
        return -1;
    mfk_add(n, d->scratch, host);
    return 0;
}

int mfr_layer_device_gradients(struct mfr_layer_device *d,
    const struct mfr_tensors *host, struct mf_error *err)
{
    const int64_t h = d->router->hidden, n = d->local * d->ffn * h;
    const struct mfr_tensors *g = &d->gradient;

    if (d->gradients_old)
        return 0;
    d->gradients_old = true;
    return add_to_host(
               d, d->router->experts * h, g->router, host->router, err) ||
                   add_to_host(d, n, g->gate, host->gate, err) ||
                   add_to_host(d, n, g->up, host->up, err) ||
                   add_to_host(d, n, g->down, host->down, err)
               ? -1
               : 0;
}

int mfr_layer_device_received(
    struct mfr_layer_device *d, int64_t rows, float *host, struct mf_error *err)
{
    if (!d->resident)
        return 0;
    return download(d, host, d->rows, bytes_of(rows, d->router->hidden), err);
}
