/* SPDX-License-Identifier: BSD-3-Clause
 * Single kernels by a soft roofline, t0 + (compute^q + memory^q)^(1/q), whose
 * coefficients were fitted to the kernel tables of tests/data/measured;
 * collectives by the measured points themselves.
 */
#include "config.h"

#include "planner/kernel.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "planner/cluster_parts.h"
#include "planner/cost_parts.h"
#include "planner/kernel_table.h"
#include "planner/layout/number.h"

#define NUMBERS_MAX 7

static const struct roofline {
    const char *device;
    double start_s, compute, memory, power;
} gemm_table[] = {
    {"H100", 2.672e-6, 0.8402, 0.8835, 1.892},
    {"H200", 2.85e-6, 0.8118, 0.7919, 2.409},
    {"B200", 2.24e-6, 0.7184, 0.7444, 2.061},
};

/* Fitted to the balanced bf16 rows of H200. The rate of memory is beyond the
 * device's, since weights of the smaller shapes stay in its cache.
 */
static const struct roofline grouped_line = {
    "H200", 5.614e-5, 0.6636, 2.565, 1.381};
#define GROUPED_TILE 128
#define GROUPED_PASSES 5.977 /* over all copies of the tokens, to sort them */

/* Seconds of dispatch and combine of BYTES (one byte a number) a rank sends. */
static const struct {
    const char *device;
    double start_s, root, byte_s;
} deepep_table[] = {
    {"H100", 5.954e-5, 1.057e-8, 9.644e-12},
    {"H200", 5.822e-5, 9.681e-9, 9.815e-12},
    {"GB200", 7.129e-5, 7.1e-9, 7.45e-12},
};

#define COUNT(list) (sizeof(list) / sizeof *(list))

/* The numbers after the colon of TEXT, COUNT of them. */
static int numbers_read(
    const char *text, int count, double *value, struct mf_error *err)
{
    const char *at = strchr(text, ':') + 1;

    for (int i = 0; i < count; i++) {
        size_t length = strcspn(at, ",");
        int64_t number;
        char cell[32];

        if (length == 0 || length >= sizeof cell ||
            (at[length] == ',') != (i + 1 < count))
            return mf_error_set(err, MF_INVALID,
                "--kernel '%.64s' needs %d whole numbers after the colon", text,
                count);
        memcpy(cell, at, length);
        cell[length] = 0;
        if (mf_number_parse(
                cell, "--kernel", 1, (int64_t)1 << 40, &number, err))
            return -1;
        value[i] = (double)number;
        at += length + 1;
    }
    return 0;
}

static double roofline_seconds(const struct roofline *line,
    const struct mf_device *device, double flops, double bytes)
{
    double compute = flops / (line->compute * device->bf16_flops);
    double memory = bytes / (line->memory * device->hbm_bytes_per_s);

    return line->start_s +
           pow(pow(compute, line->power) + pow(memory, line->power),
               1 / line->power);
}

/* Devices without a table of their own: Blackwell as B200, others as H100. */
static const struct roofline *gemm_line(const struct mf_device *device)
{
    for (size_t i = 0; i < COUNT(gemm_table); i++)
        if (!strcmp(gemm_table[i].device, device->model))
            return &gemm_table[i];
    return &gemm_table[strstr(device->model, "B200") ||
                               strstr(device->model, "B300")
                           ? 2
                           : 0];
}

static double gemm_seconds(const struct mf_device *device, const double v[3])
{
    double flops = 2 * v[0] * v[1] * v[2];
    double bytes = 2 * (v[0] * v[1] + v[0] * v[2] + v[1] * v[2]);

    return roofline_seconds(gemm_line(device), device, flops, bytes);
}

/* Each expert's rows fill tiles; the weights of touched ones are read. */
static double grouped_seconds(const struct mf_device *device, const double v[7])
{
    double tokens = v[0], h = v[1], f = v[2] / v[5], k = v[3], e = v[4];
    double local = e / v[6], rows = tokens * k / v[6];
    double touched = local * (1 - pow(1 - k / e, tokens));
    double each = touched > 0 ? rows / touched : 0;
    double padded = touched * GROUPED_TILE * ceil(each / GROUPED_TILE);
    double flops = 6 * padded * h * f;
    double bytes = 2 * (touched * 3 * h * f + rows * (2 * h + 3 * f));

    return roofline_seconds(&grouped_line, device, flops, bytes) +
           GROUPED_PASSES * 2 * tokens * k * h / device->hbm_bytes_per_s;
}

static int deepep_seconds(const struct mf_device *device, const double v[5],
    double *seconds, struct mf_error *err)
{
    double ranks =
        mf_balance_distinct((int64_t)v[2], (int64_t)v[3], (int64_t)v[4]);
    double bytes = v[0] * v[1] * ranks;

    if (v[3] > v[2])
        return mf_error_set(err, MF_INVALID,
            "--kernel deepep: more experts a token than experts");
    for (size_t i = 0; i < COUNT(deepep_table); i++)
        if (!strcmp(deepep_table[i].device, device->model)) {
            *seconds = deepep_table[i].start_s +
                       deepep_table[i].root * sqrt(bytes) +
                       deepep_table[i].byte_s * bytes;
            return 0;
        }
    return mf_error_set(err, MF_INVALID,
        "--kernel deepep is known for h100, h200 and gb200, not for %s",
        device->model);
}

/* Along the measured points, both axes as logarithms; beyond the largest, as
 * fast as there.
 */
static double points_seconds(
    const struct mf_kernel_point *point, int count, double bytes)
{
    int i = 1;
    double part;

    if (bytes <= point[0].bytes)
        return point[0].seconds;
    if (bytes >= point[count - 1].bytes)
        return point[count - 1].seconds * bytes / point[count - 1].bytes;
    while (point[i].bytes < bytes)
        i++;
    part = log(bytes / point[i - 1].bytes) /
           log((double)point[i].bytes / point[i - 1].bytes);
    return exp(
        (1 - part) * log(point[i - 1].seconds) + part * log(point[i].seconds));
}

static int collective_seconds(const struct mf_device *device, const char *text,
    const double v[2], double *seconds, struct mf_error *err)
{
    size_t length = strcspn(text, ":");

    for (int i = 0; i < mf_kernel_point_count; i++) {
        const struct mf_kernel_point *p = &mf_kernel_points[i];
        int count = 1;

        if (strcmp(p->device, device->model) || strlen(p->op) != length ||
            strncmp(p->op, text, length) || p->ranks != (int)v[0])
            continue;
        while (i + count < mf_kernel_point_count &&
               p[count].bytes > p[count - 1].bytes &&
               !strcmp(p[count].op, p->op) && p[count].ranks == p->ranks)
            count++;
        *seconds = points_seconds(p, count, v[1]);
        return 0;
    }
    return mf_error_set(err, MF_INVALID,
        "--kernel %.*s of %.0f ranks on %s was not measured; there are 2, 4 "
        "and 8 ranks on a100, h100, h200 and b200, fewer on gb200",
        (int)length, text, v[0], device->model);
}

/* Which kind TEXT is, with how many numbers and how wide its interval is. */
static const struct {
    const char *name;
    int numbers;
    double spread;
} kind_table[] = {
    {"gemm", 3, 0.25},
    {"grouped", 7, 0.45},
    {"deepep", 5, 0.2},
    {"all_gather", 2, 0.15},
    {"reduce_scatter", 2, 0.15},
    {"all_reduce", 2, 0.15},
    {"alltoall", 2, 0.15},
};

static int kind_find(const char *text)
{
    size_t length = strcspn(text, ":");

    for (size_t i = 0; text[length] && i < COUNT(kind_table); i++)
        if (strlen(kind_table[i].name) == length &&
            !strncmp(kind_table[i].name, text, length))
            return (int)i;
    return -1;
}

int mf_kernel_price(const char *text, const char *gpu,
    struct mf_kernel_price *out, struct mf_error *err)
{
    const struct mf_device *device = mf_device_find(gpu);
    int kind = kind_find(text);
    double v[NUMBERS_MAX] = {0};

    if (kind < 0)
        return mf_error_set(err, MF_INVALID,
            "--kernel '%.64s' is none of gemm:M,N,K, "
            "grouped:TOKENS,H,F,TOPK,E,ETP,EP, all_gather:RANKS,BYTES (or "
            "reduce_scatter, all_reduce, alltoall), "
            "deepep:TOKENS,H,E,TOPK,RANKS",
            text);
    if (!device || !(device->bf16_flops > 0) || !(device->hbm_bytes_per_s > 0))
        return mf_error_set(err, MF_INVALID,
            "--gpu '%.64s' is not known; give one such as h100 or b200", gpu);
    if (numbers_read(text, kind_table[kind].numbers, v, err))
        return -1;
    if (kind == 0)
        out->seconds = gemm_seconds(device, v);
    else if (kind == 1)
        out->seconds = grouped_seconds(device, v);
    else if (kind == 2
                 ? deepep_seconds(device, v, &out->seconds, err)
                 : collective_seconds(device, text, v, &out->seconds, err))
        return -1;
    out->low = out->seconds / (1 + kind_table[kind].spread);
    out->high = out->seconds * (1 + kind_table[kind].spread);
    return 0;
}
