/* SPDX-License-Identifier: BSD-3-Clause
 * How uneven the experts' loads are, and how many copies of a token travel.
 */
#include "planner/cost_parts.h"

#include <math.h>

/* Gini coefficient of shares drawn from a symmetric Dirichlet(alpha), for many
 * experts: Gamma(alpha + 1/2) / (sqrt(pi) Gamma(alpha + 1)).
 */
static double gini_of_alpha(double alpha)
{
    static const double log_sqrt_pi = 0.57236494292470008707;

    return exp(lgamma(alpha + 0.5) - lgamma(alpha + 1) - log_sqrt_pi);
}

/* The inverse, by halving the interval of log(alpha). */
double mf_balance_alpha(double gini)
{
    double low = -7, high = 14;

    if (!(gini > 0))
        return INFINITY;

    for (int i = 0; i < 60; i++) {
        double middle = (low + high) / 2;

        if (gini_of_alpha(exp(middle)) > gini)
            low = middle;
        else
            high = middle;
    }
    return exp((low + high) / 2);
}

/* Closed form for the largest of RANKS sums of shares: their spread, from the
 * Dirichlet and from sampling, times what the largest of that many normal
 * variables reaches. At most all copies go to one rank, as far as its experts
 * can take them.
 */
double mf_balance_hottest(
    double alpha, int64_t experts, int64_t topk, int64_t ranks, double tokens)
{
    double e = (double)ranks, n = (double)experts, k = (double)topk;
    double spread, most, hot;

    if (ranks < 2 || isinf(alpha) || topk < 1 || experts < 2 || tokens <= 0)
        return 1;
    spread = (1 - 1 / e) * e / (alpha * n + 1) +
             (1 - 1 / e) * e * (n - k) / ((n - 1) * k * tokens);
    hot = 1 + sqrt(2 * log(e) * spread);
    most = n / k < e ? n / k : e;
    return hot < most ? hot : most;
}

/* bins * (1 - C(E - E/bins, k) / C(E, k)), the quotient as a product. */
double mf_balance_distinct(int64_t experts, int64_t topk, int64_t bins)
{
    double missed = 1, each;

    if (bins < 1 || experts < 1)
        return 0;
    each = (double)experts / (double)bins;
    for (int64_t i = 0; i < topk; i++) {
        double left = (double)(experts - i);

        missed *= left - each > 0 ? (left - each) / left : 0;
    }
    return (double)bins * (1 - missed);
}
