/* SPDX-License-Identifier: BSD-3-Clause
 * What the tests of the cost model share: clusters with round figures, models
 * from the data folder, random numbers with a seed.
 */
#ifndef TEST_COST_BED_H
#define TEST_COST_BED_H

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "planner/cost_parts.h"
#include "planner/model_read.h"

/* NODES nodes of 8 H100, 450 GB/s inside and 50 GB/s a GPU outside. */
void bed_h100(struct mf_cluster *cluster, int64_t nodes);
/* CPU ranks with as many cores, of FLOPS each, with the other rates given; one
 * tier and no latency.
 */
void bed_cpu(struct mf_cluster *cluster, int64_t ranks, double flops,
    double memory_bytes_per_s, double tier_bytes_per_s);
/* Coefficients that change nothing: every efficiency and factor 1, every
 * second and penalty 0.
 */
void bed_ideal(struct mf_coefficients *set);

/* Tiers of 4 and 8 devices and the whole, over nodes of SIZES. */
void bed_nodes(struct mf_cluster *cluster, const int64_t *sizes, int nodes);

/* The model NAME of tests/data/models. */
void bed_model(const char *name, struct mf_model *model);
/* A made-up MoE model of LAYERS layers, without embeddings to speak of. */
void bed_small(struct mf_model *model, int64_t layers, int64_t hidden,
    int64_t ffn, int64_t experts, int64_t topk);

/* TEXT resolved for WORLD. */
struct mf_layout bed_layout(const char *text, int64_t world, bool coupled);
/* Scope step: seq 4096, GLOBAL_BATCH, all else as predict has it. */
struct mf_settings bed_settings(int64_t global_batch);

uint64_t bed_random(uint64_t *state);
/* One of VALUES. */
int64_t bed_pick(uint64_t *state, const int64_t *values, int count);

#endif
