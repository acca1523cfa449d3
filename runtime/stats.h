/* SPDX-License-Identifier: BSD-3-Clause
 * Two figures of a list of numbers.
 */
#ifndef MFR_STATS_H
#define MFR_STATS_H

#include <stddef.h>
#include <stdint.h>

/* Median of VALUES, which are sorted in place; NAN of none. Even counts: the
 * mean of the middle two.
 */
double mfr_median(size_t n, double *values);

/* Gini coefficient of loads[n], sorted in place: 0 all equal, near 1 one has
 * all; 0 when there is no load.
 */
double mfr_gini(int64_t n, int64_t *loads);

#endif
