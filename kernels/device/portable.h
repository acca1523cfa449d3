/* SPDX-License-Identifier: BSD-3-Clause
 * What the kernels of this folder are written in: the common part of CUDA C
 * and OpenCL C, so that one text runs on a GPU and, through PoCL, in the tests
 * of a machine that has none.
 *
 * A kernel is launched on one axis: a grid of blocks of MFD_THREADS threads.
 * Every kernel walks its work with a stride of the grid, so any grid gives the
 * same result, bit for bit. Products and sums are rounded one by one (CUDA is
 * built with --fmad=false, OpenCL with contraction off), as on the CPU.
 */
#ifndef MFD_PORTABLE_H
#define MFD_PORTABLE_H

/* Threads of a block, always; reductions rely on its being a power of two. */
#define MFD_BLOCK_THREADS 256

#ifdef __OPENCL_VERSION__

#pragma OPENCL FP_CONTRACT OFF

#define MFD_KERNEL __kernel void
#define MFD_FN static
#define MFD_GLOBAL __global
#define MFD_SHARED __local
#define MFD_SHARED_PTR __local
#define MFD_THREAD ((mfd_i64)get_local_id(0))
#define MFD_THREADS ((mfd_i64)get_local_size(0))
#define MFD_BLOCK ((mfd_i64)get_group_id(0))
#define MFD_BLOCKS ((mfd_i64)get_num_groups(0))
#define MFD_BARRIER() barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE)
#define MFD_EXP(x) exp(x)
#define MFD_LOG(x) log(x)
#define MFD_TANH(x) tanh(x)
#define MFD_ERF(x) erf(x)
#define MFD_BITS(x) as_uint(x)
#define MFD_FLOAT(x) as_float(x)
#define MFD_ISNAN(x) isnan(x)

typedef long mfd_i64;
typedef int mfd_i32;
typedef uint mfd_u32;
typedef ushort mfd_u16;

#else

#define MFD_KERNEL extern "C" __global__ void
#define MFD_FN static __device__ __forceinline__
#define MFD_GLOBAL
#define MFD_SHARED __shared__
#define MFD_SHARED_PTR
#define MFD_THREAD ((mfd_i64)threadIdx.x)
#define MFD_THREADS ((mfd_i64)blockDim.x)
#define MFD_BLOCK ((mfd_i64)blockIdx.x)
#define MFD_BLOCKS ((mfd_i64)gridDim.x)
#define MFD_BARRIER() __syncthreads()
#define MFD_EXP(x) expf(x)
#define MFD_LOG(x) logf(x)
#define MFD_TANH(x) tanhf(x)
#define MFD_ERF(x) erff(x)
#define MFD_BITS(x) __float_as_uint(x)
#define MFD_FLOAT(x) __uint_as_float(x)
#define MFD_ISNAN(x) isnan(x)

typedef long long mfd_i64;
typedef int mfd_i32;
typedef unsigned int mfd_u32;
typedef unsigned short mfd_u16;

#endif

/* bf16 is held as 16 bits and worked on as fp32: the upper step of an fp32,
 * rounded to nearest even; a NaN stays one.
 */
MFD_FN float mfd_from_bf16(mfd_u16 bits)
{
    return MFD_FLOAT((mfd_u32)bits << 16);
}

MFD_FN mfd_u16 mfd_to_bf16(float value)
{
    const mfd_u32 bits = MFD_BITS(value);

    if (MFD_ISNAN(value))
        return (mfd_u16)(bits >> 16 | 0x40u);
    return (mfd_u16)((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);
}

/* Element types: how kernels written once in rows.h are built for each. */
#define MFD_LOAD_f32(from, i) ((from)[i])
#define MFD_STORE_f32(to, i, value) ((to)[i] = (value))
#define MFD_LOAD_bf16(from, i) mfd_from_bf16((from)[i])
#define MFD_STORE_bf16(to, i, value) ((to)[i] = mfd_to_bf16(value))

/* The sum of one value a thread, the same on every thread, in the order of a
 * tree of fixed shape. SCRATCH has room for a block.
 */
MFD_FN float mfd_block_sum(float value, MFD_SHARED_PTR float *scratch)
{
    const mfd_i64 me = MFD_THREAD;
    float sum;

    scratch[me] = value;
    MFD_BARRIER();
    for (mfd_i64 step = MFD_THREADS / 2; step > 0; step /= 2) {
        if (me < step)
            scratch[me] += scratch[me + step];
        MFD_BARRIER();
    }
    sum = scratch[0];
    MFD_BARRIER();
    return sum;
}

MFD_FN float mfd_block_max(float value, MFD_SHARED_PTR float *scratch)
{
    const mfd_i64 me = MFD_THREAD;
    float most;

    scratch[me] = value;
    MFD_BARRIER();
    for (mfd_i64 step = MFD_THREADS / 2; step > 0; step /= 2) {
        if (me < step && scratch[me + step] > scratch[me])
            scratch[me] = scratch[me + step];
        MFD_BARRIER();
    }
    most = scratch[0];
    MFD_BARRIER();
    return most;
}

#endif
