/* SPDX-License-Identifier: BSD-3-Clause
 * Generalized least squares over the coefficients, and kriging of the rest.
 */
#include "tests/accuracy/fit.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/accuracy/solve.h"

enum { HOPPER = 1, B200 = 2, B300 = 4, RACK = 8 };
#define BLACKWELL (B200 | B300 | RACK)
#define EFA FIT_EFA
#define EFA_HOPPER FIT_EFA_HOPPER
#define EVERY (HOPPER | BLACKWELL)

const struct parameter fit_parameters[] = {
    {MF_COEF_GEMM, HOPPER, 0.15},
    {MF_COEF_GEMM, BLACKWELL, 0.15},
    {MF_COEF_GROUPED, HOPPER, 0.2},
    {MF_COEF_GROUPED, BLACKWELL, 0.2},
    {MF_COEF_NARROW, HOPPER, 0.5},
    {MF_COEF_NARROW, BLACKWELL, 0.7},
    {MF_COEF_LOW_BITS, HOPPER, 0.2},
    {MF_COEF_LOW_BITS, BLACKWELL, 0.2},
    {MF_COEF_ATTENTION, HOPPER, 0.2},
    {MF_COEF_ATTENTION, BLACKWELL, 0.2},
    {MF_COEF_PASSES, HOPPER, 0.4},
    {MF_COEF_PASSES, BLACKWELL, 0.4},
    {MF_COEF_QUANTIZE, HOPPER, 0.6},
    {MF_COEF_QUANTIZE, BLACKWELL, 0.6},
    {MF_COEF_TIER0, EVERY, 0.15},
    {MF_COEF_TIER1, EVERY, 0.15},
    {MF_COEF_FLOOR_S, HOPPER, 0.3},
    {MF_COEF_FLOOR_S, B200, 0.3},
    {MF_COEF_FLOOR_S, B300, 0.3},
    {MF_COEF_FLOOR_S, RACK, 0.3},
    {MF_COEF_DENSE_FLOOR, EVERY, 0.4},
    {MF_COEF_EXPOSED, EVERY, 0.4},
    {MF_COEF_HOT, EVERY, 0.5},
    {MF_COEF_DEEPEP, EVERY, 0.5},
    {MF_COEF_HYBRIDEP, EVERY, 0.5},
    {MF_COEF_GATHERED, EVERY, 0.6},
    {MF_COEF_DROPPED, EVERY, 0.3},
    {MF_COEF_LIGHT, EVERY, 0.3},
    {MF_COEF_GRAPHED, EVERY, 0.4},
    {MF_COEF_UNGRAPHED, BLACKWELL, 0.4},
    {MF_COEF_REDUCE, EVERY, 0.5},
    {MF_COEF_STRAGGLE, EVERY, 1},
    {MF_COEF_STEP_S, EVERY, 1},
    {MF_COEF_TIER1, EFA, 0.7},
    {MF_COEF_DEEPEP, EFA_HOPPER, 0.7},
};
const int fit_parameter_count =
    (int)(sizeof fit_parameters / sizeof *fit_parameters);

struct mf_published_spreads fit_spreads = {
    0.03, 0.02, 0.16, 0.18, 0.0467, 6, 7};

struct fit_bed {
    struct rows *rows;
    mf_pricer **pricer; /* [rows->count] */
};

unsigned fit_kind(const struct row *row)
{
    const char *gpu = row->cluster.gpu.model;

    if (strstr(gpu, "GB200") || strstr(gpu, "GB300"))
        return RACK;
    if (strstr(gpu, "B200"))
        return B200;
    if (strstr(gpu, "B300"))
        return B300;
    return HOPPER;
}

static int parameters(void)
{
    return fit_parameter_count + mf_source_count;
}

static double prior_sd(int i)
{
    return i < fit_parameter_count ? fit_parameters[i].prior_sd : 0.35;
}

void fit_coefficients(const struct mf_cluster *cluster, unsigned kind,
    int source, const double x[PARAMETERS_MAX], struct mf_coefficients *set)
{
    bool efa = source >= 0 && mf_sources[source].efa;
    double own = source < 0 ? 1 : exp(x[fit_parameter_count + source]);

    mf_coefficients_prior(cluster, set);
    for (int i = 0; i < fit_parameter_count; i++) {
        unsigned kinds = fit_parameters[i].kinds;

        if (kinds & kind || (kinds == EFA && efa))
            set->value[fit_parameters[i].coef] *= exp(x[i]);
        if (kinds == EFA_HOPPER && efa && kind == HOPPER)
            own = exp(x[i]);
    }
    set->value[efa ? MF_COEF_DEEPEP : MF_COEF_FLOOR_S] *= own;
}

static void coefficients_of(const struct row *row,
    const double x[PARAMETERS_MAX], struct mf_coefficients *set)
{
    fit_coefficients(&row->cluster, fit_kind(row), row->run.source, x, set);
}

struct fit_bed *fit_bed_create(struct rows *rows)
{
    struct fit_bed *bed = calloc(1, sizeof *bed);
    struct mf_plan_entry entry;
    struct mf_coefficients set;
    struct mf_error err = {0};

    if (bed)
        bed->pricer = calloc(rows->count, sizeof *bed->pricer);
    if (!bed || !bed->pricer)
        table_fail("out of memory");
    bed->rows = rows;
    for (size_t i = 0; i < rows->count; i++) {
        struct row *row = &rows->row[i];

        if (row->status == ROW_LEFT_OUT)
            continue;
        mf_coefficients_prior(&row->cluster, &set);
        bed->pricer[i] = mf_pricer_create(row->model, &row->cluster,
            mf_layout_world(&row->asked.layout), MF_SCOPE_STEP, &set, &err);
        if (!bed->pricer[i])
            table_fail("line %zu: %s", row->line, err.text);
        fit_price(bed, row, (double[PARAMETERS_MAX]){0}, &entry);
        mf_published_describe(row->model, row->cluster.gpu.model,
            row->run.source, &row->asked.layout, &entry.settings, &row->run);
    }
    return bed;
}

void fit_bed_free(struct fit_bed *bed)
{
    for (size_t i = 0; i < bed->rows->count; i++)
        mf_pricer_free(bed->pricer[i]);
    free(bed->pricer);
    free(bed);
}

static void price(struct fit_bed *bed, const struct row *row,
    const double x[PARAMETERS_MAX], struct mf_plan_entry *entry)
{
    mf_pricer *pricer = bed->pricer[row - bed->rows->row];
    struct mf_coefficients set;
    struct mf_error err = {0};

    coefficients_of(row, x, &set);
    mf_pricer_use(pricer, &set);
    if (mf_pricer_price(pricer, entry, NULL, NULL, &err))
        table_fail("line %zu: %s", row->line, err.text);
    mf_cost_free(&entry->cost);
}

void fit_price(struct fit_bed *bed, const struct row *row,
    const double x[PARAMETERS_MAX], struct mf_plan_entry *out)
{
    *out = row->asked;
    price(bed, row, x, out);
}

static double covariance(const struct row *a, const struct row *b)
{
    return mf_published_covariance(&fit_spreads, &a->run, &b->run);
}

static void factor_covariance(struct fitted *fit)
{
    size_t n = fit->n;

    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < n; j++)
            fit->factor[i * n + j] = covariance(fit->row[i], fit->row[j]) +
                                     (i == j ? fit->noise[i] : 0);
    if (solve_factor(fit->factor, n))
        table_fail("the covariance is singular");
}

/* Residuals at X; with SETTLE, settings that are auto are settled there. */
static void residuals(struct fit_bed *bed, struct fitted *fit, const double *x,
    struct mf_plan_entry *settled, bool settle, double *out)
{
    for (size_t i = 0; i < fit->n; i++) {
        if (settle)
            settled[i] = fit->row[i]->asked;
        price(bed, fit->row[i], x, &settled[i]);
        out[i] = log(fit->row[i]->step_s / settled[i].cost.step_s);
    }
}

/* One Gauss-Newton step; COLUMNS [parameters][n] is scratch. */
static void step(struct fit_bed *bed, struct fitted *fit,
    struct mf_plan_entry *settled, double *columns)
{
    size_t n = fit->n, p = (size_t)parameters();
    static double normal[PARAMETERS_MAX * PARAMETERS_MAX];
    double right[PARAMETERS_MAX];
    double *white = malloc(n * sizeof *white), h = 0.01;

    if (!white)
        table_fail("out of memory");
    residuals(bed, fit, fit->x, settled, true, fit->residual);
    for (size_t k = 0; k < p; k++) {
        double x[PARAMETERS_MAX];

        memcpy(x, fit->x, sizeof x);
        x[k] += h;
        residuals(bed, fit, x, settled, false, columns + k * n);
        for (size_t i = 0; i < n; i++)
            columns[k * n + i] = (fit->residual[i] - columns[k * n + i]) / h;
        solve_forward(fit->factor, n, columns + k * n);
    }
    memcpy(white, fit->residual, n * sizeof *white);
    solve_forward(fit->factor, n, white);
    for (size_t a = 0; a < p; a++) {
        double sd = prior_sd((int)a);

        right[a] = -fit->x[a] / (sd * sd);
        for (size_t i = 0; i < n; i++)
            right[a] += columns[a * n + i] * white[i];
        for (size_t b = 0; b < p; b++) {
            double sum = a == b ? 1 / (sd * sd) : 0;

            for (size_t i = 0; i < n; i++)
                sum += columns[a * n + i] * columns[b * n + i];
            normal[a * p + b] = sum;
        }
    }
    if (solve_factor(normal, p))
        table_fail("the normal equations are singular");
    solve_whole(normal, p, right);
    for (size_t a = 0; a < p; a++)
        fit->x[a] += fmax(-0.3, fmin(0.3, right[a]));
    free(white);
}

/* A row whose own error is beyond 2 spreads of the noise gets more of it. */
static void reweigh(struct fitted *fit)
{
    double base = fit_spreads.noise;

    memcpy(fit->weight, fit->residual, fit->n * sizeof *fit->weight);
    solve_whole(fit->factor, fit->n, fit->weight);
    for (size_t i = 0; i < fit->n; i++) {
        double own = fabs(fit->weight[i] * fit->noise[i]);

        fit->noise[i] = base * fmax(base, own / 1.5);
    }
    factor_covariance(fit);
}

void fit_run(struct fit_bed *bed, const struct row **row, size_t n,
    struct fitted *out, int rounds)
{
    struct mf_plan_entry *settled = calloc(n, sizeof *settled);
    double *columns = malloc(n * (size_t)parameters() * sizeof *columns);

    out->n = n;
    out->row = row;
    out->residual = calloc(n, sizeof *out->residual);
    out->noise = calloc(n, sizeof *out->noise);
    out->weight = calloc(n, sizeof *out->weight);
    out->factor = calloc(n * n, sizeof *out->factor);
    if (!settled || !columns || !out->residual || !out->noise || !out->weight ||
        !out->factor)
        table_fail("out of memory");
    for (size_t i = 0; i < n; i++)
        out->noise[i] = fit_spreads.noise * fit_spreads.noise;
    factor_covariance(out);
    for (int i = 0; i < rounds; i++) {
        step(bed, out, settled, columns);
        residuals(bed, out, out->x, settled, true, out->residual);
        reweigh(out);
    }
    memcpy(out->weight, out->residual, n * sizeof *out->weight);
    solve_whole(out->factor, n, out->weight);
    free(columns);
    free(settled);
}

double fit_krige(
    const struct fitted *fit, const struct row *row, double *variance)
{
    double *k = calloc(fit->n, sizeof *k), sum = 0;

    if (!k)
        table_fail("out of memory");
    for (size_t i = 0; i < fit->n; i++) {
        k[i] = covariance(row, fit->row[i]);
        sum += k[i] * fit->weight[i];
    }
    *variance = covariance(row, row) + fit_spreads.noise * fit_spreads.noise;
    solve_forward(fit->factor, fit->n, k);
    for (size_t i = 0; i < fit->n; i++)
        *variance -= k[i] * k[i];
    free(k);
    return sum;
}

void fit_free(struct fitted *fit)
{
    free(fit->residual);
    free(fit->noise);
    free(fit->weight);
    free(fit->factor);
}
