/* SPDX-License-Identifier: BSD-3-Clause
 * All kernels of this folder, as CUDA C and as OpenCL C.
 *
 * Arguments are as in kernels/kernels.h, the CPU's; sizes are 64-bit, so that
 * no product of sizes overflows. A buffer that is not used may be anything.
 * Memory of a result must not overlap that of an argument, unless said.
 */
#include "kernels/device/portable.h"

#include "kernels/device/place.h"
#include "kernels/device/product.h"
#include "kernels/device/route.h"

/* The gradients of silu(gate) * up in place of gate and up, where DOUT is that
 * of the product times WEIGHT; returns the weight's.
 */
MFD_FN float mfd_swiglu_gradient(
    float weight, float dout, float *gate, float *up)
{
    const float g = *gate, u = *up, s = 1.0f / (1.0f + MFD_EXP(-g));
    const float d = weight * dout, dweight = dout * (g * s * u);

    *gate = d * u * (s * (1.0f + g * (1.0f - s)));
    *up = d * (g * s);
    return dweight;
}

/* bf16 to fp32 and back. */
MFD_KERNEL mfd_widen(
    mfd_i64 n, MFD_GLOBAL const mfd_u16 *from, MFD_GLOBAL float *to)
{
    for (mfd_i64 i = MFD_BLOCK * MFD_THREADS + MFD_THREAD; i < n;
         i += MFD_BLOCKS * MFD_THREADS)
        to[i] = mfd_from_bf16(from[i]);
}

MFD_KERNEL mfd_narrow(
    mfd_i64 n, MFD_GLOBAL const float *from, MFD_GLOBAL mfd_u16 *to)
{
    for (mfd_i64 i = MFD_BLOCK * MFD_THREADS + MFD_THREAD; i < n;
         i += MFD_BLOCKS * MFD_THREADS)
        to[i] = mfd_to_bf16(from[i]);
}

/* Kernels written once, built for fp32 and for bf16. */
#define MFD_JOIN_(a, b) a##b
#define MFD_JOIN(a, b) MFD_JOIN_(a, b)
#define MFD_NAME(base) MFD_JOIN(base, MFD_T)
#define MFD_LOAD(from, i) MFD_JOIN(MFD_LOAD_, MFD_T)(from, i)
#define MFD_STORE(to, i, value) MFD_JOIN(MFD_STORE_, MFD_T)(to, i, value)

#define MFD_T f32
#define MFD_E float
#define MFD_PACK 4
#include "kernels/device/rows.h"

#include "kernels/device/activation.h"
#undef MFD_T
#undef MFD_E
#undef MFD_PACK

#define MFD_T bf16
#define MFD_E mfd_u16
#define MFD_PACK 8
#include "kernels/device/rows.h"

#include "kernels/device/activation.h"
#undef MFD_T
#undef MFD_E
#undef MFD_PACK
