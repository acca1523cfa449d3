/* SPDX-License-Identifier: BSD-3-Clause
 * A ridge that is robust to outliers, for a handful of terms.
 *
 * Least squares of relative residuals, each weighted down beyond HUBER, with a
 * penalty for leaving the prior: (value - prior)^2 over the square of how far
 * the prior lets a term go, in units of the noise. Runs of one layout differ
 * by about NOISE. No term may be negative.
 */
#include "planner/fit_rows.h"

#include <math.h>
#include <stdlib.h>

#define NOISE 0.08
#define HUBER 0.15
#define ROUNDS 12
#define SWEEPS 200

/* How far terms go: factors by 30 % around the common one, offsets by 10 % of
 * the layer's time.
 */
#define FACTOR_SPREAD 0.3
#define OFFSET_SPREAD 0.1
#define FACTOR_LEAST 0.02

static int compare_doubles(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

double mf_fit_median(double *values, size_t count)
{
    if (!count)
        return NAN;
    qsort(values, count, sizeof *values, compare_doubles);
    return (values[(count - 1) / 2] + values[count / 2]) / 2;
}

double mf_fit_row_value(
    const struct mf_fit_row *row, const double value[MF_FIT_TERMS])
{
    double sum = row->base;

    for (int i = 0; i < MF_FIT_TERMS; i++)
        sum += row->f[i] * value[i];
    return sum;
}

/* Measured over predicted, the median over whole layers. */
static double common_factor(const struct mf_fit_rows *rows, int64_t left_out,
    const double prior[MF_FIT_TERMS])
{
    double *ratio = calloc(rows->count + 1, sizeof *ratio), median;
    size_t n = 0;

    if (!ratio)
        return 1;
    for (size_t i = 0; i < rows->count; i++) {
        const struct mf_fit_row *row = &rows->row[i];

        if (row->whole && row->key != left_out)
            ratio[n++] = row->measured / mf_fit_row_value(row, prior);
    }
    median = mf_fit_median(ratio, n);
    free(ratio);
    return n && median > 0 ? median : 1;
}

/* Normal equations of the weighted rows. */
struct normal {
    double a[MF_FIT_TERMS][MF_FIT_TERMS], b[MF_FIT_TERMS];
};

static void normal_add(struct normal *n, const struct mf_fit_row *row,
    const double value[MF_FIT_TERMS])
{
    double residual =
        fabs(mf_fit_row_value(row, value) - row->measured) / row->layer_s;
    double weight = row->weight / (row->layer_s * row->layer_s);

    if (residual > HUBER)
        weight *= HUBER / residual;
    for (int i = 0; i < MF_FIT_TERMS; i++) {
        n->b[i] += weight * row->f[i] * (row->measured - row->base);
        for (int j = 0; j < MF_FIT_TERMS; j++)
            n->a[i][j] += weight * row->f[i] * row->f[j];
    }
}

/* How far each term may go from where it starts. An offset's is that part of
 * a layer's time, over what one unit of it adds.
 */
static void spreads(const struct mf_fit_rows *rows, const double start[],
    double spread[MF_FIT_TERMS])
{
    double sum[MF_FIT_TERMS] = {0}, layers = 0;

    for (size_t i = 0; i < rows->count; i++)
        if (rows->row[i].whole) {
            layers++;
            for (int t = 0; t < MF_FIT_TERMS; t++)
                sum[t] += rows->row[i].f[t] / rows->row[i].layer_s;
        }
    for (int t = 0; t < MF_FIT_TERMS; t++) {
        if (t < MF_FIT_MESSAGE)
            spread[t] = FACTOR_SPREAD * start[t];
        else
            spread[t] = sum[t] > 0 ? OFFSET_SPREAD * layers / sum[t] : 0;
    }
}

/* Coordinate descent, which keeps every term at or above its least value. */
static void normal_solve(const struct normal *n, const double start[],
    const double spread[], double value[MF_FIT_TERMS])
{
    for (int sweep = 0; sweep < SWEEPS; sweep++)
        for (int i = 0; i < MF_FIT_TERMS; i++) {
            double least = i < MF_FIT_MESSAGE ? FACTOR_LEAST : 0;
            double pull, sum = n->b[i];

            if (spread[i] <= 0)
                continue;
            pull = NOISE * NOISE / (spread[i] * spread[i]);
            for (int j = 0; j < MF_FIT_TERMS; j++)
                if (j != i)
                    sum -= n->a[i][j] * value[j];
            sum = (sum + pull * start[i]) / (n->a[i][i] + pull);
            value[i] = sum > least ? sum : least;
        }
}

void mf_fit_solve(const struct mf_fit_rows *rows, int64_t left_out,
    const double prior[MF_FIT_TERMS], double value[MF_FIT_TERMS])
{
    double common = common_factor(rows, left_out, prior);
    double start[MF_FIT_TERMS], spread[MF_FIT_TERMS];

    for (int i = 0; i < MF_FIT_TERMS; i++)
        start[i] = value[i] = i < MF_FIT_MESSAGE ? common * prior[i] : prior[i];
    spreads(rows, start, spread);
    for (int round = 0; round < ROUNDS; round++) {
        struct normal n = {0};

        for (size_t i = 0; i < rows->count; i++)
            if (rows->row[i].key != left_out)
                normal_add(&n, &rows->row[i], value);
        normal_solve(&n, start, spread, value);
    }
}
