/* SPDX-License-Identifier: BSD-3-Clause
 * Eight fp32 lanes, the same arithmetic on every instruction set.
 *
 * Lanes are explicit and this folder is built with -ffp-contract=off, so that
 * the bits do not depend on the compiler's choice of instructions.
 */
#ifndef MFK_VECTOR_H
#define MFK_VECTOR_H

#include <stdint.h>
#include <string.h>

#define MFK_LANES 8

typedef float mfk_v8 __attribute__((vector_size(MFK_LANES * sizeof(float))));

#define MFK_INLINE static inline __attribute__((always_inline))

MFK_INLINE void mfk_v8_load(mfk_v8 *v, const float *from)
{
    memcpy(v, from, sizeof *v);
}

/* The first N of eight lanes, the others 0. */
MFK_INLINE void mfk_v8_load_part(mfk_v8 *v, const float *from, int64_t n)
{
    float lane[MFK_LANES] = {0};

    for (int64_t i = 0; i < n; i++)
        lane[i] = from[i];
    memcpy(v, lane, sizeof *v);
}

MFK_INLINE void mfk_v8_store(float *to, const mfk_v8 *v)
{
    memcpy(to, v, sizeof *v);
}

MFK_INLINE void mfk_v8_fill(mfk_v8 *v, float value)
{
    *v = (mfk_v8){value, value, value, value, value, value, value, value};
}

/* The lanes added as a tree of fixed shape. */
MFK_INLINE float mfk_v8_sum(const mfk_v8 *v)
{
    const mfk_v8 a = *v;

    return ((a[0] + a[4]) + (a[2] + a[6])) + ((a[1] + a[5]) + (a[3] + a[7]));
}

#endif
