/* SPDX-License-Identifier: BSD-3-Clause
 * The CUDA plug-in: memory, copies, kernels, cuBLAS products and events.
 */
#include "config.h"

#include <cublas_v2.h>
#include <cuda_runtime_api.h>
#include <limits.h>
#include <nvtx3/nvToolsExt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/cuda/launch.h"
#include "kernels/cuda/multiply.h"
#if HAVE_NCCL
#include "kernels/cuda/nccl.h"
#endif

struct cuda {
    struct mfk_device base;
    int index;
    cudaStream_t stream;
    cudaEvent_t stamp[MFK_STAMPS];
    cublasHandle_t blas;
};

static struct cuda *cuda_of(struct mfk_device *device)
{
    return (struct cuda *)device;
}

static int done(struct mfk_device *device, cudaError_t status, const char *what)
{
    if (status == cudaSuccess)
        return 0;
    device->out_of_memory = status == cudaErrorMemoryAllocation;
    snprintf(device->error, sizeof device->error, "%s: %s", what,
        cudaGetErrorString(status));
    return -1;
}

static int cuda_count(char *why, size_t size)
{
    int n = 0, driver = 0;
    const cudaError_t status = cudaGetDeviceCount(&n);

    if (status == cudaSuccess && n > 0)
        return n;
    if (cudaDriverGetVersion(&driver) != cudaSuccess || driver == 0)
        snprintf(why, size, "no CUDA driver");
    else if (status == cudaErrorInsufficientDriver)
        snprintf(why, size,
            "the CUDA driver is of version %d.%d, older than this build needs",
            driver / 1000, driver % 1000 / 10);
    else if (status == cudaErrorNoDevice || status == cudaSuccess)
        snprintf(why, size, "no CUDA device");
    else
        snprintf(why, size, "CUDA: %s", cudaGetErrorString(status));
    return -1;
}

static void cuda_close(struct mfk_device *device)
{
    struct cuda *cuda = device ? cuda_of(device) : NULL;

    if (!cuda)
        return;
    if (cuda->blas)
        cublasDestroy(cuda->blas);
    for (int i = 0; i < MFK_STAMPS; i++)
        if (cuda->stamp[i])
            cudaEventDestroy(cuda->stamp[i]);
    if (cuda->stream)
        cudaStreamDestroy(cuda->stream);
    free(cuda);
}

static int cuda_prepare(struct cuda *cuda)
{
    struct mfk_device *device = &cuda->base;

    if (done(device, cudaSetDevice(cuda->index), "cudaSetDevice") ||
        done(device,
            cudaStreamCreateWithFlags(&cuda->stream, cudaStreamNonBlocking),
            "cudaStreamCreate"))
        return -1;
    for (int i = 0; i < MFK_STAMPS; i++)
        if (done(device, cudaEventCreate(&cuda->stamp[i]), "cudaEventCreate"))
            return -1;
    if (mfk_cuda_blas_create(device, cuda->stream, &cuda->blas))
        return -1;
    return 0;
}

static struct mfk_device *cuda_open(int index, char *why, size_t size)
{
    const int n = cuda_count(why, size);
    struct cuda *cuda;

    if (n < 0)
        return NULL;
    if (index < 0 || index >= n) {
        snprintf(why, size, "CUDA device %d of %d", index, n);
        return NULL;
    }
    cuda = calloc(1, sizeof *cuda);
    if (!cuda) {
        snprintf(why, size, "out of memory");
        return NULL;
    }
    cuda->base.api = &mfk_device_plugin;
    cuda->index = index;
    if (cuda_prepare(cuda)) {
        snprintf(why, size, "%s", cuda->base.error);
        cuda_close(&cuda->base);
        return NULL;
    }
    return &cuda->base;
}

static int cuda_describe(
    struct mfk_device *device, struct mfk_device_facts *facts)
{
    struct cuda *cuda = cuda_of(device);
    struct cudaDeviceProp properties;
    size_t free_bytes = 0, all = 0;
    int driver = 0, runtime = 0, blas = 0;

    if (done(device, cudaGetDeviceProperties(&properties, cuda->index),
            "cudaGetDeviceProperties") ||
        done(device, cudaMemGetInfo(&free_bytes, &all), "cudaMemGetInfo") ||
        done(device, cudaDriverGetVersion(&driver), "cudaDriverGetVersion") ||
        done(device, cudaRuntimeGetVersion(&runtime), "cudaRuntimeGetVersion"))
        return -1;
    if (cublasGetVersion(cuda->blas, &blas) != CUBLAS_STATUS_SUCCESS)
        blas = 0;
    snprintf(facts->model, sizeof facts->model, "%.127s", properties.name);
    snprintf(facts->library, sizeof facts->library,
        "CUDA %d.%d, driver %d.%d, cuBLAS %d.%d.%d", runtime / 1000,
        runtime % 1000 / 10, driver / 1000, driver % 1000 / 10, blas / 10000,
        blas % 10000 / 100, blas % 100);
    facts->memory_bytes = (int64_t)all;
    facts->free_bytes = (int64_t)free_bytes;
    facts->processors = properties.multiProcessorCount;
    return 0;
}

static int cuda_alloc(struct mfk_device *device, size_t bytes, void **memory)
{
    return done(device, cudaMalloc(memory, bytes ? bytes : 1), "cudaMalloc");
}

static void cuda_free(struct mfk_device *device, void *memory)
{
    (void)device;
    if (memory)
        cudaFree(memory);
}

static int cuda_host_alloc(
    struct mfk_device *device, size_t bytes, void **memory)
{
    return done(
        device, cudaMallocHost(memory, bytes ? bytes : 1), "cudaMallocHost");
}

static void cuda_host_free(struct mfk_device *device, void *memory)
{
    (void)device;
    if (memory)
        cudaFreeHost(memory);
}

static int cuda_copy(struct mfk_device *device, void *to, const void *from,
    size_t bytes, enum cudaMemcpyKind kind)
{
    if (bytes == 0)
        return 0;
    return done(device,
        cudaMemcpyAsync(to, from, bytes, kind, cuda_of(device)->stream),
        "cudaMemcpyAsync");
}

static int cuda_wait(struct mfk_device *device)
{
    return done(device, cudaStreamSynchronize(cuda_of(device)->stream),
        "cudaStreamSynchronize");
}

static int cuda_upload(
    struct mfk_device *device, void *to, const void *from, size_t bytes)
{
    return cuda_copy(device, to, from, bytes, cudaMemcpyHostToDevice);
}

static int cuda_download(
    struct mfk_device *device, void *to, const void *from, size_t bytes)
{
    if (cuda_copy(device, to, from, bytes, cudaMemcpyDeviceToHost))
        return -1;
    return cuda_wait(device);
}

static int cuda_fill(
    struct mfk_device *device, void *to, int byte, size_t bytes)
{
    if (bytes == 0)
        return 0;
    return done(device,
        cudaMemsetAsync(to, byte, bytes, cuda_of(device)->stream),
        "cudaMemsetAsync");
}

enum { ARGUMENTS_MAX = 24 };

static int cuda_launch(struct mfk_device *device, enum mfk_device_kernel kernel,
    int64_t blocks, const struct mfk_argument *args, int n)
{
    struct mfk_argument copy[ARGUMENTS_MAX];
    void *pointer[ARGUMENTS_MAX];

    if (n > ARGUMENTS_MAX || blocks > INT_MAX) {
        snprintf(device->error, sizeof device->error, "kernel %d: too large",
            (int)kernel);
        return -1;
    }
    for (int i = 0; i < n; i++) {
        copy[i] = args[i];
        pointer[i] = &copy[i].as;
    }
    return done(device,
        mfk_cuda_launch(kernel, blocks, pointer, cuda_of(device)->stream),
        "a kernel's launch");
}

static int cuda_multiply(struct mfk_device *device,
    const struct mfk_product *product, int count, bool grouped)
{
    return grouped ? mfk_cuda_multiply_grouped(
                         device, cuda_of(device)->blas, product, count)
                   : mfk_cuda_multiply_each(
                         device, cuda_of(device)->blas, product, count);
}

static int cuda_stamp(struct mfk_device *device, int slot)
{
    struct cuda *cuda = cuda_of(device);

    return done(device, cudaEventRecord(cuda->stamp[slot], cuda->stream),
        "cudaEventRecord");
}

static int cuda_elapsed(
    struct mfk_device *device, int from, int to, double *seconds)
{
    struct cuda *cuda = cuda_of(device);
    float milliseconds = 0;

    if (done(device, cudaEventSynchronize(cuda->stamp[to]),
            "cudaEventSynchronize") ||
        done(device,
            cudaEventElapsedTime(
                &milliseconds, cuda->stamp[from], cuda->stamp[to]),
            "cudaEventElapsedTime"))
        return -1;
    *seconds = (double)milliseconds / 1e3;
    return 0;
}

#if HAVE_NCCL
static int cuda_comm_create(struct mfk_device *device, const unsigned char *id,
    int ranks, int rank, struct mfk_comm **comm)
{
    return mfk_nccl_create(
        device, cuda_of(device)->stream, id, ranks, rank, comm);
}

static void cuda_comm_free(struct mfk_device *device, struct mfk_comm *comm)
{
    (void)device;
    mfk_nccl_free(comm);
}
#endif

static void cuda_range_push(struct mfk_device *device, const char *name)
{
    (void)device;
    nvtxRangePushA(name);
}

static void cuda_range_pop(struct mfk_device *device)
{
    (void)device;
    nvtxRangePop();
}

__attribute__((visibility("default")))
const struct mfk_device_api mfk_device_plugin = {
    .abi = MFK_DEVICE_ABI,
    .name = "cuda",
    .count = cuda_count,
    .open = cuda_open,
    .close = cuda_close,
    .describe = cuda_describe,
    .alloc = cuda_alloc,
    .free = cuda_free,
    .host_alloc = cuda_host_alloc,
    .host_free = cuda_host_free,
    .upload = cuda_upload,
    .download = cuda_download,
    .fill = cuda_fill,
    .wait = cuda_wait,
    .launch = cuda_launch,
    .multiply = cuda_multiply,
    .stamp = cuda_stamp,
    .elapsed = cuda_elapsed,
#if HAVE_NCCL
    .comm_id = mfk_nccl_id,
    .comm_create = cuda_comm_create,
    .comm_split = mfk_nccl_split,
    .comm_free = cuda_comm_free,
    .comm_exchange = mfk_nccl_exchange,
    .comm_sum = mfk_nccl_sum,
    .comm_wait = mfk_nccl_wait,
#endif
    .range_push = cuda_range_push,
    .range_pop = cuda_range_pop,
};
