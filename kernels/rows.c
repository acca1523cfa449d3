/* SPDX-License-Identifier: BSD-3-Clause
 * Moving and adding rows: permute, un-permute, and the activation.
 */
#include "kernels/kernels.h"

#include <math.h>
#include <string.h>
#ifdef __SSE__
#include <xmmintrin.h>
#endif

#include "kernels/vector.h"

/* More than a share of the last-level cache. */
#define STREAM_BYTES ((int64_t)32 << 20)

/* to[n] = factor * from[n], or += with ADD: a product and a sum, each rounded.
 */
MFK_INLINE void scaled(
    int64_t n, float factor, const float *from, bool add, float *to)
{
    const int64_t whole = n - n % MFK_LANES;
    mfk_v8 f, x, old;

    mfk_v8_fill(&f, factor);
    for (int64_t i = 0; i < whole; i += MFK_LANES) {
        mfk_v8_load(&x, from + i);
        x = f * x;
        if (add) {
            mfk_v8_load(&old, to + i);
            x = old + x;
        }
        mfk_v8_store(to + i, &x);
    }
    for (int64_t i = whole; i < n; i++) {
        const float one = factor * from[i];
        to[i] = add ? to[i] + one : one;
    }
}

#ifdef __SSE__
/* Past the caches, as memcpy does with large blocks: rows this many are not
 * read again before they are gone, and lines need not be fetched to be
 * overwritten.
 */
static void copy_streaming(int64_t n, const float *from, float *to)
{
    for (int64_t i = 0; i < n; i += 4)
        _mm_stream_ps(to + i, _mm_loadu_ps(from + i));
}

static bool streams(int64_t rows, int64_t hidden, const float *to)
{
    return hidden % 4 == 0 && (uintptr_t)to % 16 == 0 &&
           rows > (STREAM_BYTES / (int64_t)sizeof *to) / hidden;
}
#else
static void copy_streaming(int64_t n, const float *from, float *to)
{
    memcpy(to, from, (size_t)n * sizeof *to);
}

static bool streams(int64_t rows, int64_t hidden, const float *to)
{
    (void)rows, (void)hidden, (void)to;
    return false;
}
#endif

void mfk_permute(int64_t tokens, int64_t topk, int64_t hidden, const float *x,
    const int64_t *place, float *rows)
{
    const bool stream = hidden > 0 && streams(tokens * topk, hidden, rows);
    const size_t bytes = (size_t)hidden * sizeof *x;

    for (int64_t t = 0; t < tokens; t++)
        for (int64_t j = 0; j < topk; j++) {
            float *to = rows + place[t * topk + j] * hidden;

            if (stream)
                copy_streaming(hidden, x + t * hidden, to);
            else
                memcpy(to, x + t * hidden, bytes);
        }
#ifdef __SSE__
    /* Others may be told of the rows next. */
    if (stream)
        _mm_sfence();
#endif
}

void mfk_permute_to(int64_t tokens, int64_t topk, int64_t hidden,
    const float *x, const int32_t *ids, const int64_t *place,
    const int64_t *shift, float *const *base)
{
    const size_t bytes = (size_t)hidden * sizeof *x;

    for (int64_t t = 0; t < tokens; t++)
        for (int64_t j = 0; j < topk; j++) {
            const int64_t i = t * topk + j;

            if (place[i] >= 0 && base[ids[i]])
                memcpy(base[ids[i]] + (place[i] + shift[ids[i]]) * hidden,
                    x + t * hidden, bytes);
        }
}

void mfk_unpermute(int64_t tokens, int64_t topk, int64_t hidden,
    const float *rows, const int64_t *place, const float *weights, float *y)
{
    for (int64_t t = 0; t < tokens; t++)
        for (int64_t j = 0; j < topk; j++) {
            const int64_t i = t * topk + j;
            scaled(hidden, weights ? weights[i] : 1.0f,
                rows + place[i] * hidden, j > 0, y + t * hidden);
        }
}

void mfk_unpermute_backward(int64_t tokens, int64_t topk, int64_t hidden,
    const float *rows, const int64_t *place, const float *weights,
    const float *dy, float *drows, float *dweights)
{
    for (int64_t t = 0; t < tokens; t++)
        for (int64_t j = 0; j < topk; j++) {
            const int64_t i = t * topk + j, at = place[i] * hidden;
            scaled(hidden, weights[i], dy + t * hidden, false, drows + at);
            dweights[i] = mfk_dot(hidden, rows + at, dy + t * hidden);
        }
}

void mfk_add(int64_t n, const float *part, float *sum)
{
    scaled(n, 1.0f, part, true, sum);
}

void mfk_scale(int64_t n, float factor, float *values)
{
    scaled(n, factor, values, false, values);
}
