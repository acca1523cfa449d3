/* SPDX-License-Identifier: BSD-3-Clause
 * Seeded data by hashing global indices.
 */
#include "runtime/data.h"

#include <math.h>

/* The finaliser of SplitMix64 (Steele, Lea, Flood, OOPSLA 2014). */
static uint64_t mix(uint64_t z)
{
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

static uint64_t hash(uint64_t state, uint64_t value)
{
    return mix(state + UINT64_C(0x9e3779b97f4a7c15) + mix(value));
}

/* Biases move things by about a fifth of what they are added to. */
#define BIAS_FAN 25

/* Length of the sum that a weight takes part in. */
static double fan(const struct mfr_shape *shape, enum mfr_tensor tensor)
{
    switch (tensor) {
    case MFR_ROUTER:
    case MFR_GATE:
    case MFR_UP:
    case MFR_SHARED_GATE:
    case MFR_SHARED_UP:
    case MFR_SHARED_ROUTER:
        return (double)shape->hidden;
    case MFR_DOWN:
        return (double)shape->ffn;
    case MFR_SHARED_DOWN:
        return (double)shape->shared_ffn;
    case MFR_ROUTER_BIAS:
    case MFR_SELECT_BIAS:
    case MFR_GATE_BIAS:
    case MFR_UP_BIAS:
    case MFR_DOWN_BIAS:
        return BIAS_FAN;
    case MFR_INPUT:
    case MFR_OUTPUT_GRAD:
        break;
    }
    return 1;
}

void mfr_data_row(const struct mfr_shape *shape, uint64_t seed,
    enum mfr_tensor tensor, int64_t stage, int64_t block, int64_t row,
    int64_t first, int64_t columns, float *out)
{
    /* Uniform in [-w, w) has variance w^2 / 3. */
    const float width = (float)sqrt(3 / fan(shape, tensor));
    uint64_t state = hash(hash(seed, (uint64_t)tensor), (uint64_t)stage);

    state = hash(hash(state, (uint64_t)block), (uint64_t)row);
    for (int64_t i = 0; i < columns; i++) {
        const uint64_t bits = hash(state, (uint64_t)(first + i)) >> 40;
        out[i] = ((float)bits * 0x1p-23f - 1) * width;
    }
}
