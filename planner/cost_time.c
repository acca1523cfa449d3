/* SPDX-License-Identifier: BSD-3-Clause
 * Seconds of products, memory passes and exchanges from rates.
 */
#include "planner/cost_parts.h"

#include <math.h>

/* Ranks of a CPU backend share the cores of their node: beyond one rank a
 * core each gets its share of compute, memory and (through shared memory)
 * exchange rates.
 */
void mf_cost_rates_init(struct mf_cost_rates *rates,
    const struct mf_cluster *cluster, int64_t node_ranks,
    const struct mf_coefficients *set)
{
    const double *coef = set->value;
    double share = 1;

    if (cluster->cpu_ranks && cluster->cores > 0 && node_ranks > cluster->cores)
        share = (double)cluster->cores / (double)node_ranks;
    *rates = (struct mf_cost_rates){
        .peak_flops = cluster->gpu.bf16_flops * share,
        .memory_bytes_per_s =
            cluster->gpu.hbm_bytes_per_s * coef[MF_COEF_HBM] * share,
        .element_bytes = cluster->cpu_ranks ? 4 : 2,
        .share = share,
        .memory_bytes = cluster->gpu.memory_bytes,
        .cpu = cluster->cpu_ranks,
        .blackwell = mf_coefficients_blackwell(cluster),
        .coef = coef,
    };
    rates->gemm_flops = rates->peak_flops * coef[MF_COEF_GEMM];
    for (int t = 0; t < cluster->tiers; t++) {
        double rate = coef[t ? MF_COEF_TIER1 : MF_COEF_TIER0];

        rates->tier_bytes_per_s[t] =
            cluster->tier[t].bytes_per_s * rate * share;
        rates->tier_latency_s[t] =
            cluster->tier[t].latency_s * coef[MF_COEF_LATENCY] / share;
    }
}

/* (a^4 + b^4)^(1/4): the larger of two that mostly overlap. */
static double soft_max(double a, double b)
{
    double a2 = a * a, b2 = b * b;

    return sqrt(sqrt(a2 * a2 + b2 * b2));
}

double mf_time_gemm(
    const struct mf_cost_rates *rates, double m, double n, double k, bool low)
{
    double flops = rates->gemm_flops, compute, memory;

    if (m <= 0 || n <= 0 || k <= 0)
        return 0;
    if (low)
        flops *= rates->coef[MF_COEF_LOW_BITS];
    compute = 2 * m * n * k / flops;
    memory = rates->element_bytes * (m * n + m * k + n * k) /
             rates->memory_bytes_per_s;
    return rates->coef[MF_COEF_COMPUTE] *
           (rates->coef[MF_COEF_KERNEL_S] + soft_max(compute, memory));
}

/* Rows of an expert fill whole tiles (GPU: 64 rows at best, CPU: 4), so few
 * rows an expert cost as many as a tile; every touched expert's weights are
 * read once.
 */
double mf_time_grouped(const struct mf_cost_rates *rates, double rows,
    double local, double n, double k, double narrow, bool low)
{
    double tile = rates->cpu ? 4 : 64, each, compute, memory, flops;

    if (rows <= 0 || local <= 0)
        return 0;
    each = rows / local;
    if (each < 1) {
        local = rows;
        each = 1;
    }
    flops = rates->gemm_flops * rates->coef[MF_COEF_GROUPED] /
            (1 + rates->coef[MF_COEF_NARROW] / narrow);
    if (low)
        flops *= rates->coef[MF_COEF_LOW_BITS];
    /* The mean of rounding up: half a tile. */
    each = each + tile / 2 > tile ? each + tile / 2 : tile;
    compute = 2 * each * local * n * k / flops;
    memory = rates->element_bytes * (rows * (n + k) + local * n * k) /
             rates->memory_bytes_per_s;
    return rates->coef[MF_COEF_COMPUTE] *
           (rates->coef[MF_COEF_KERNEL_S] + hypot(compute, memory));
}

double mf_time_memory(const struct mf_cost_rates *rates, double bytes)
{
    if (bytes <= 0)
        return 0;
    return rates->coef[MF_COEF_MEMORY] *
           (rates->coef[MF_COEF_KERNEL_S] + bytes / rates->memory_bytes_per_s);
}

/* Seconds on the wire: the rate is only reached by long messages, which a
 * square root follows well from 512 bytes to 512 MiB.
 */
static double wire_seconds(const struct mf_cost_rates *rates, double wire)
{
    return wire + sqrt(rates->coef[MF_COEF_RAMP_S] * wire);
}

/* A ring passes all members one after another: n - 1 hops, as many over each
 * tier as there are more domains inside it than outside.
 */
static double ring_latency(
    const struct mf_cost_rates *rates, const struct mf_place *place)
{
    double latency = 0, before = (double)place->size;

    for (int t = 0; t <= place->outer; t++) {
        double here = (double)place->domains[t];

        latency += (before - here) * rates->tier_latency_s[t];
        before = here;
    }
    return latency + rates->coef[MF_COEF_MESSAGE_S] * (double)(place->size - 1);
}

double mf_time_gather(const struct mf_cost_rates *rates,
    const struct mf_place *place, double bytes, enum mf_coefficient factor)
{
    double each, wire = 0;

    if (place->outer < 0)
        return 0;
    each = bytes / (double)place->size;
    for (int t = 0; t <= place->outer; t++) {
        /* Inside the innermost tier all but its own part passes each rank. */
        double parts = t == 0 && place->away[0] > 0 ? (double)(place->size - 1)
                                                    : place->share[t];
        double seconds = each * parts / rates->tier_bytes_per_s[t];

        wire = seconds > wire ? seconds : wire;
    }
    return rates->coef[MF_COEF_KERNEL_S] + ring_latency(rates, place) +
           rates->coef[factor] * wire_seconds(rates, wire);
}

double mf_time_exchange(const struct mf_cost_rates *rates,
    const struct mf_place *place, const double bytes[MF_TIERS_MAX])
{
    double wire = 0, latency = 0;

    if (place->outer < 0)
        return 0;
    for (int t = 0; t <= place->outer; t++) {
        double seconds = bytes[t] / rates->tier_bytes_per_s[t];

        wire = seconds > wire ? seconds : wire;
        latency += rates->tier_latency_s[t] * log2(1 + place->away[t]);
    }
    return rates->coef[MF_COEF_KERNEL_S] + latency +
           rates->coef[MF_COEF_MESSAGE_S] * (double)(place->size - 1) +
           rates->coef[MF_COEF_EXCHANGE] * wire_seconds(rates, wire);
}

double mf_time_send(const struct mf_cost_rates *rates,
    const struct mf_place *place, double bytes)
{
    int t = place->outer;

    if (t < 0)
        return 0;
    return rates->coef[MF_COEF_KERNEL_S] + rates->tier_latency_s[t] +
           wire_seconds(rates, bytes / rates->tier_bytes_per_s[t]);
}
