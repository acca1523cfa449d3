/* SPDX-License-Identifier: BSD-3-Clause
 * Past runs as rows of a linear model, and its robust solution.
 */
#ifndef MF_FIT_ROWS_H
#define MF_FIT_ROWS_H

#include "db/db.h"
#include "planner/cost.h"

/* What a fit moves. */
enum mf_fit_term {
    MF_FIT_COMPUTE,
    MF_FIT_MEMORY,
    MF_FIT_EXCHANGE,
    MF_FIT_MESSAGE,
    MF_FIT_LAYER,
    MF_FIT_TERMS
};

/* MEASURED = base + sum of coefficient[i] * f[i], all seconds. A run gives one
 * row for its layer time, and one for each group of phases.
 */
struct mf_fit_row {
    double f[MF_FIT_TERMS];
    double base, measured;
    double layer_s; /* residuals are relative to this */
    double weight;
    bool whole;  /* the layer, not a group of phases */
    int64_t key; /* runs of one layout share it */
};

struct mf_fit_rows {
    struct mf_fit_row *row;
    size_t count, room;
    int64_t runs, keys, samples, skipped;
    double reduce_ratio; /* measured over predicted gradient reductions,
                            median; NAN: none */
};

/* Rows of all finished runs in DB on CLUSTER. */
int mf_fit_rows_read(mfdb *db, const struct mf_cluster *cluster,
    const struct mf_coefficients *prior, struct mf_fit_rows *rows,
    struct mf_error *err);
void mf_fit_rows_free(struct mf_fit_rows *rows);

/* Which coefficient a term is. */
enum mf_coefficient mf_fit_coefficient(enum mf_fit_term term);

/* Solve for VALUE from the rows whose key is not LEFT_OUT (-1: all), around
 * PRIOR's values.
 */
void mf_fit_solve(const struct mf_fit_rows *rows, int64_t left_out,
    const double prior[MF_FIT_TERMS], double value[MF_FIT_TERMS]);

double mf_fit_row_value(
    const struct mf_fit_row *row, const double value[MF_FIT_TERMS]);

/* The median of VALUES, which are sorted; NAN when there are none. */
double mf_fit_median(double *values, size_t count);

#endif
