/* SPDX-License-Identifier: BSD-3-Clause
 * The figures that the cost model works with before it has seen any run.
 */
#include "planner/cost.h"

#include <stdio.h>
#include <string.h>

/* Priors for whole runs, by kind of device: efficiencies that published runs
 * showed when all of them were fitted together, kernel start and ramp from
 * NCCL and GEMM tables. Those of CPU ranks are fractions of rates that the
 * machine itself was measured at.
 */
enum device { HOPPER, BLACKWELL, CPU, DEVICES };

static const struct {
    const char *name;
    double prior[DEVICES];
} coefficient_table[MF_COEFS] = {
    [MF_COEF_GEMM] = {"gemm", {0.72, 0.69, 0.85}},
    [MF_COEF_GROUPED] = {"grouped", {0.95, 0.56, 0.95}},
    [MF_COEF_NARROW] = {"narrow", {210, 210, 8}},
    [MF_COEF_LOW_BITS] = {"low_bits", {1.5, 2.4, 1}},
    [MF_COEF_ATTENTION] = {"attention", {0.52, 0.60, 0.5}},
    [MF_COEF_HBM] = {"hbm", {0.67, 0.67, 0.6}},
    [MF_COEF_PASSES] = {"passes", {15, 15, 15}},
    [MF_COEF_TIER0] = {"tier0", {0.69, 0.69, 0.7}},
    [MF_COEF_TIER1] = {"tier1", {0.83, 0.83, 0.8}},
    [MF_COEF_RAMP_S] = {"ramp_s", {13.5e-6, 13.5e-6, 5e-6}},
    [MF_COEF_KERNEL_S] = {"kernel_s", {3.2e-6, 2.6e-6, 0.5e-6}},
    [MF_COEF_FLOOR_S] = {"floor_s", {9e-3, 8e-3, 0}},
    [MF_COEF_LATENCY] = {"latency", {1, 1, 1}},
    [MF_COEF_COMPUTE] = {"compute", {1, 1, 1}},
    [MF_COEF_MEMORY] = {"memory", {1, 1, 1}},
    [MF_COEF_EXCHANGE] = {"exchange", {1, 1, 1}},
    [MF_COEF_REDUCE] = {"reduce", {1, 1, 1}},
    [MF_COEF_MESSAGE_S] = {"message_s", {0, 0, 0}},
    [MF_COEF_LAYER_S] = {"layer_s", {0, 0, 0}},
    [MF_COEF_QUANTIZE] = {"quantize", {4, 4, 0}},
    [MF_COEF_EXPOSED] = {"exposed", {0.47, 0.47, 1}},
    [MF_COEF_HOT] = {"hot", {0.3, 0.3, 1}},
    [MF_COEF_DEEPEP] = {"deepep", {1, 1, 1}},
    [MF_COEF_HYBRIDEP] = {"hybridep", {1, 1, 1}},
    [MF_COEF_GATHERED] = {"gathered", {0.6, 0.6, 1}},
    [MF_COEF_DROPPED] = {"dropped", {0.66, 0.66, 1}},
    [MF_COEF_LIGHT] = {"light", {0.7, 0.7, 1}},
    [MF_COEF_GRAPHED] = {"graphed", {0.5, 0.5, 1}},
    [MF_COEF_UNGRAPHED] = {"ungraphed", {1, 2, 1}},
    [MF_COEF_STRAGGLE] = {"straggle", {0.005, 0.005, 0}},
    [MF_COEF_DENSE_FLOOR] = {"dense_floor", {0.4, 0.4, 1}},
    [MF_COEF_STEP_S] = {"step_s", {0.03, 0.03, 0}},
};

static void coefficients_fill(struct mf_coefficients *set, enum device device)
{
    *set = (struct mf_coefficients){.source = -1};
    snprintf(set->name, sizeof set->name, "prior");
    for (int i = 0; i < MF_COEFS; i++)
        set->value[i] = coefficient_table[i].prior[device];
}

void mf_coefficients_init(struct mf_coefficients *set)
{
    coefficients_fill(set, HOPPER);
}

void mf_coefficients_prior(
    const struct mf_cluster *cluster, struct mf_coefficients *set)
{
    static const struct {
        const char *part;
        double floor_s;
    } blackwell[] = {
        {"GB200", 3e-3},
        {"GB300", 3e-3},
        {"B200", 8e-3},
        {"B300", 10e-3},
    };

    coefficients_fill(set, cluster->cpu_ranks ? CPU : HOPPER);
    if (cluster->cpu_ranks)
        return;
    for (size_t i = 0; i < sizeof blackwell / sizeof *blackwell; i++) {
        if (!strstr(cluster->gpu.model, blackwell[i].part))
            continue;
        coefficients_fill(set, BLACKWELL);
        set->value[MF_COEF_FLOOR_S] = blackwell[i].floor_s;
        return;
    }
}

bool mf_coefficients_blackwell(const struct mf_cluster *cluster)
{
    const char *model = cluster->gpu.model;

    return !cluster->cpu_ranks &&
           (strstr(model, "B200") || strstr(model, "B300"));
}

const char *mf_coefficient_name(int index)
{
    if (index < 0 || index >= MF_COEFS)
        return NULL;
    return coefficient_table[index].name;
}

int mf_coefficient_find(const char *name)
{
    for (int i = 0; i < MF_COEFS; i++)
        if (!strcmp(coefficient_table[i].name, name))
            return i;
    return -1;
}
