/* SPDX-License-Identifier: BSD-3-Clause
 * Fits coefficients and judges them on layouts that were left out.
 */
#include "config.h"

#include "planner/fit.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "planner/fit_rows.h"

#define LAYOUTS_LEAST 2
/* What the error must fall by, as rounding alone moves it too. */
#define GAIN_LEAST 1e-3

static double row_error(
    const struct mf_fit_row *row, const double value[MF_FIT_TERMS])
{
    return fabs(mf_fit_row_value(row, value) / row->measured - 1);
}

/* Median error over whole layers: of PRIOR as it is, or of a fit to all
 * layouts but the row's own.
 */
static int median_error(const struct mf_fit_rows *rows,
    const double prior[MF_FIT_TERMS], bool fitted, double *error,
    struct mf_error *err)
{
    double *errors = calloc(rows->count + 1, sizeof *errors);
    double value[MF_FIT_TERMS];
    int64_t key = -1;
    size_t n = 0;

    if (!errors)
        return mf_error_set(err, MF_FAILED, "out of memory");
    for (size_t i = 0; i < rows->count; i++) {
        const struct mf_fit_row *row = &rows->row[i];

        if (!row->whole)
            continue;
        if (fitted && row->key != key) {
            key = row->key;
            mf_fit_solve(rows, key, prior, value);
        }
        errors[n++] = row_error(row, fitted ? value : prior);
    }
    *error = mf_fit_median(errors, n);
    free(errors);
    return 0;
}

/* The reductions of gradients are no part of the layer; a few runs move their
 * factor half the way, in proportion, and many all of it.
 */
static void fit_reductions(
    const struct mf_fit_rows *rows, struct mf_coefficients *set)
{
    double runs = (double)rows->runs, way = runs / (runs + 1);

    if (isfinite(rows->reduce_ratio) && rows->reduce_ratio > 0)
        set->value[MF_COEF_REDUCE] *= pow(rows->reduce_ratio, way);
}

int mf_fit_run(mfdb *db, const struct mf_cluster *cluster,
    const struct mf_coefficients *prior, struct mf_fit *fit,
    struct mf_error *err)
{
    double start[MF_FIT_TERMS], value[MF_FIT_TERMS];
    struct mf_fit_rows rows = {0};
    int rc = -1;

    *fit = (struct mf_fit){.set = *prior};
    if (mf_fit_rows_read(db, cluster, prior, &rows, err))
        goto out;
    fit->runs = rows.runs;
    fit->layouts = rows.keys;
    fit->samples = rows.samples;
    fit->skipped = rows.skipped;
    if (rows.keys < LAYOUTS_LEAST) {
        mf_error_set(err, MF_FAILED,
            "cluster %s: usable finished runs %" PRId64 ", different layouts "
            "%" PRId64 "; a fit needs at least %d layouts",
            cluster->name, rows.runs, rows.keys, LAYOUTS_LEAST);
        goto out;
    }
    for (int i = 0; i < MF_FIT_TERMS; i++)
        start[i] = prior->value[mf_fit_coefficient((enum mf_fit_term)i)];
    if (median_error(&rows, start, false, &fit->error_before, err) ||
        median_error(&rows, start, true, &fit->error_after, err))
        goto out;
    fit->improved = fit->error_after + GAIN_LEAST < fit->error_before;
    if (fit->improved) {
        mf_fit_solve(&rows, -1, start, value);
        for (int i = 0; i < MF_FIT_TERMS; i++)
            fit->set.value[mf_fit_coefficient((enum mf_fit_term)i)] = value[i];
        fit_reductions(&rows, &fit->set);
        fit->set.name[0] = 0;
    }
    rc = 0;
out:
    mf_fit_rows_free(&rows);
    return rc;
}
