/* SPDX-License-Identifier: BSD-3-Clause
 * Cholesky's factor and what it solves.
 */
#include "tests/accuracy/solve.h"

#include <math.h>

int solve_factor(double *a, size_t n)
{
    for (size_t j = 0; j < n; j++) {
        double sum = a[j * n + j];

        for (size_t k = 0; k < j; k++)
            sum -= a[j * n + k] * a[j * n + k];
        if (!(sum > 0))
            return -1;
        a[j * n + j] = sqrt(sum);
        for (size_t i = j + 1; i < n; i++) {
            sum = a[i * n + j];
            for (size_t k = 0; k < j; k++)
                sum -= a[i * n + k] * a[j * n + k];
            a[i * n + j] = sum / a[j * n + j];
        }
    }
    return 0;
}

void solve_forward(const double *l, size_t n, double *b)
{
    for (size_t i = 0; i < n; i++) {
        for (size_t k = 0; k < i; k++)
            b[i] -= l[i * n + k] * b[k];
        b[i] /= l[i * n + i];
    }
}

void solve_whole(const double *l, size_t n, double *b)
{
    solve_forward(l, n, b);
    for (size_t i = n; i-- > 0;) {
        for (size_t k = i + 1; k < n; k++)
            b[i] -= l[k * n + i] * b[k];
        b[i] /= l[i * n + i];
    }
}
