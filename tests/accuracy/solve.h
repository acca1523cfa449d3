/* SPDX-License-Identifier: BSD-3-Clause
 * Small dense linear algebra for the fit.
 */
#ifndef MF_ACCURACY_SOLVE_H
#define MF_ACCURACY_SOLVE_H

#include <stddef.h>

/* Replace symmetric A [n][n] by its Cholesky factor (lower); -1: it is not
 * positive definite.
 */
int solve_factor(double *a, size_t n);
/* Replace B [n] by inverse(L) B, then by inverse(L L') B. */
void solve_forward(const double *l, size_t n, double *b);
void solve_whole(const double *l, size_t n, double *b);

#endif
