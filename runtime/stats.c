/* SPDX-License-Identifier: BSD-3-Clause
 * Two figures of a list of numbers.
 */
#include "runtime/stats.h"

#include <math.h>
#include <stdlib.h>

static int compare_seconds(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

double mfr_median(size_t n, double *values)
{
    if (n == 0)
        return NAN;
    qsort(values, n, sizeof *values, compare_seconds);
    return n % 2 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
}

static int compare_loads(const void *a, const void *b)
{
    const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

    return (x > y) - (x < y);
}

/* G = 2 sum i*x_i / (n sum x_i) - (n + 1) / n, x ascending, i from 1. */
double mfr_gini(int64_t n, int64_t *loads)
{
    double sum = 0, weighted = 0;

    qsort(loads, (size_t)n, sizeof *loads, compare_loads);
    for (int64_t i = 0; i < n; i++) {
        sum += (double)loads[i];
        weighted += (double)(i + 1) * (double)loads[i];
    }
    if (sum <= 0)
        return 0;
    return 2 * weighted / ((double)n * sum) - (double)(n + 1) / (double)n;
}
