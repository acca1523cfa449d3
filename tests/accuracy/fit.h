/* SPDX-License-Identifier: BSD-3-Clause
 * Fits the coefficients of the cost model to published runs.
 *
 * log(measured) = log(model) + what a source, a source and model shape, and a
 * model shape, device and precision have in common + noise. The last four are
 * normal with known spreads, so the coefficients follow from generalized least
 * squares, and what is common is the best linear prediction from the residuals
 * (kriging). A row far off counts less (Huber).
 */
#ifndef MF_ACCURACY_FIT_H
#define MF_ACCURACY_FIT_H

#include "planner/published.h"
#include "tests/accuracy/rows.h"

#define PARAMETERS_MAX 128

/* Kinds of devices, 1 << enum mf_kind; and what only EFA's runs have. */
#define FIT_EFA 16u
#define FIT_EFA_HOPPER 32u

struct parameter {
    int coef;
    unsigned kinds; /* of devices, see fit_kind */
    double prior_sd;
};

extern const struct parameter fit_parameters[];
extern const int fit_parameter_count;

extern struct mf_published_spreads fit_spreads;

struct fitted {
    double x[PARAMETERS_MAX]; /* log of the factor on each prior */
    size_t n;
    const struct row **row; /* [n] */
    double *residual;       /* [n] log(measured / model) */
    double *noise;          /* [n] its own variance */
    double *weight;         /* [n] inverse(K) residual */
    double *factor;         /* [n][n] of K */
};

struct fit_bed; /* a pricer for each row */

struct fit_bed *fit_bed_create(struct rows *rows);
void fit_bed_free(struct fit_bed *bed);
/* The price of ROW by X alone. */
void fit_price(struct fit_bed *bed, const struct row *row,
    const double x[PARAMETERS_MAX], struct mf_plan_entry *out);
/* Fit to ROW[N], starting from X in OUT. */
void fit_run(struct fit_bed *bed, const struct row **row, size_t n,
    struct fitted *out, int rounds);
/* Expected log(measured / model) of ROW and its variance. */
double fit_krige(
    const struct fitted *fit, const struct row *row, double *variance);
/* Write NAME as planner/published_table.c. */
void write_table(const char *name, const struct fitted *fit);
void fit_free(struct fitted *fit);
void fit_coefficients(const struct mf_cluster *cluster, unsigned kind,
    int source, const double x[PARAMETERS_MAX], struct mf_coefficients *set);
unsigned fit_kind(const struct row *row);

#endif
