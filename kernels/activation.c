/* SPDX-License-Identifier: BSD-3-Clause
 * Activations of gated experts, and biases.
 */
#include "kernels/kernels.h"

#include <math.h>

/* Of transformers' GptOssExperts: alpha and limit. */
#define CLAMPED_SLOPE 1.702f
#define CLAMPED_LIMIT 7.0f

static float sigmoid(float v)
{
    return 1.0f / (1.0f + expf(-v));
}

static float swiglu(float g, float u)
{
    return g / (1.0f + expf(-g)) * u;
}

static float gelu(float g)
{
    return 0.5f * g * (1.0f + erff(g * 0.70710678f));
}

static float clamped(float g, float u)
{
    g = fminf(g, CLAMPED_LIMIT);
    u = fmaxf(fminf(u, CLAMPED_LIMIT), -CLAMPED_LIMIT);
    return g * sigmoid(CLAMPED_SLOPE * g) * (u + 1);
}

void mfk_activate(enum mfk_activation kind, int64_t n, const float *gate,
    const float *up, float *out)
{
    switch (kind) {
    case MFK_SWIGLU:
        for (int64_t i = 0; i < n; i++)
            out[i] = swiglu(gate[i], up[i]);
        break;
    case MFK_GEGLU:
        for (int64_t i = 0; i < n; i++)
            out[i] = gelu(gate[i]) * up[i];
        break;
    case MFK_CLAMPED:
        for (int64_t i = 0; i < n; i++)
            out[i] = clamped(gate[i], up[i]);
        break;
    }
}

/* d is the gradient of the product. */

static void swiglu_back(float g, float u, float d, float *dg, float *du)
{
    const float s = sigmoid(g);

    *du = d * (g * s);
    *dg = d * u * (s * (1.0f + g * (1.0f - s)));
}

/* gelu'(g) = Phi(g) + g phi(g), of the normal distribution. */
static void geglu_back(float g, float u, float d, float *dg, float *du)
{
    const float density = 0.39894228f * expf(-0.5f * g * g);

    *du = d * gelu(g);
    *dg = d * u * (0.5f * (1.0f + erff(g * 0.70710678f)) + g * density);
}

static void clamped_back(float g, float u, float d, float *dg, float *du)
{
    const bool g_free = g <= CLAMPED_LIMIT, u_free = fabsf(u) <= CLAMPED_LIMIT;
    float s;

    g = fminf(g, CLAMPED_LIMIT);
    u = fmaxf(fminf(u, CLAMPED_LIMIT), -CLAMPED_LIMIT);
    s = sigmoid(CLAMPED_SLOPE * g);
    *du = u_free ? d * (g * s) : 0;
    *dg = g_free ? d * (u + 1) * (s * (1 + CLAMPED_SLOPE * g * (1 - s))) : 0;
}

void mfk_activate_backward(enum mfk_activation kind, int64_t n,
    const float *gate, const float *up, const float *dout, float *dgate,
    float *dup)
{
    switch (kind) {
    case MFK_SWIGLU:
        for (int64_t i = 0; i < n; i++)
            swiglu_back(gate[i], up[i], dout[i], &dgate[i], &dup[i]);
        break;
    case MFK_GEGLU:
        for (int64_t i = 0; i < n; i++)
            geglu_back(gate[i], up[i], dout[i], &dgate[i], &dup[i]);
        break;
    case MFK_CLAMPED:
        for (int64_t i = 0; i < n; i++)
            clamped_back(gate[i], up[i], dout[i], &dgate[i], &dup[i]);
        break;
    }
}

void mfk_bias(int64_t n, int64_t width, const float *bias, float *rows)
{
    for (int64_t r = 0; r < n; r++)
        for (int64_t i = 0; i < width; i++)
            rows[r * width + i] += bias[i];
}

void mfk_bias_backward(
    int64_t n, int64_t width, const float *drows, float *dbias)
{
    for (int64_t r = 0; r < n; r++)
        for (int64_t i = 0; i < width; i++)
            dbias[i] += drows[r * width + i];
}
