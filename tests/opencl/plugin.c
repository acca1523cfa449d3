/* SPDX-License-Identifier: BSD-3-Clause
 * A device plug-in over OpenCL, for tests on machines without a GPU: the
 * kernels' whole bodies run, with their barriers and shared memory.
 *
 * Memory is OpenCL's shared virtual memory, so that pointers are as on a GPU;
 * what is allocated begins as NaN bits, and so shows what was never written.
 * Each launch takes another number of blocks: results must not depend on it.
 */
#include "tests/opencl/plugin.h"

#include <fcntl.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define CL_TARGET_OPENCL_VERSION 200
#include <CL/cl.h>

#include "kernels/device/device.h"

enum { BLOCK_THREADS = 256 };

struct opencl {
    struct mfk_device base;
    cl_device_id id;
    cl_context context;
    cl_command_queue queue;
    cl_program program;
    cl_kernel kernel[MFK_DEVICE_KERNELS];
    double stamp[MFK_STAMPS]; /* seconds */
    unsigned launches;
};

static struct opencl *opencl_of(struct mfk_device *device)
{
    return (struct opencl *)device;
}

static int done(struct mfk_device *device, cl_int status, const char *what)
{
    if (status == CL_SUCCESS)
        return 0;
    device->out_of_memory = status == CL_MEM_OBJECT_ALLOCATION_FAILURE ||
                            status == CL_OUT_OF_RESOURCES;
    snprintf(device->error, sizeof device->error, "%s: OpenCL error %d", what,
        (int)status);
    return -1;
}

static int opencl_count(char *why, size_t size)
{
    cl_platform_id platform;
    cl_uint devices = 0;

    if (clGetPlatformIDs(1, &platform, NULL) != CL_SUCCESS ||
        clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 0, NULL, &devices) !=
            CL_SUCCESS ||
        devices == 0) {
        snprintf(why, size, "no OpenCL device (Debian: pocl-opencl-icd)");
        return -1;
    }
    return (int)devices;
}

static void opencl_close(struct mfk_device *device)
{
    struct opencl *cl = device ? opencl_of(device) : NULL;

    if (!cl)
        return;
    for (int i = 0; i < MFK_DEVICE_KERNELS; i++)
        if (cl->kernel[i])
            clReleaseKernel(cl->kernel[i]);
    if (cl->program)
        clReleaseProgram(cl->program);
    if (cl->queue)
        clReleaseCommandQueue(cl->queue);
    if (cl->context)
        clReleaseContext(cl->context);
    free(cl);
}

/* From SOURCE_DIR: an option -I would be cut at the blanks of a path. */
static cl_int build_in(struct opencl *cl, const char *source_dir)
{
    const int here = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    cl_int status = CL_INVALID_VALUE;

    if (here < 0)
        return status;
    if (chdir(source_dir) == 0)
        status = clBuildProgram(
            cl->program, 1, &cl->id, "-cl-std=CL1.2 -I.", NULL, NULL);
    if (fchdir(here))
        status = CL_INVALID_VALUE;
    close(here);
    return status;
}

static int build(struct opencl *cl, const char *source_dir)
{
    static const char *const text = "#include \"kernels/device/kernels.h\"\n";
    static const char *const names[MFK_DEVICE_KERNELS] = {
#define MFD_TEXT(name) #name,
        MFD_LIST(MFD_TEXT)
#undef MFD_TEXT
    };
    cl_int status;

    cl->program = clCreateProgramWithSource(
        cl->context, 1, (const char *[]){text}, NULL, &status);
    if (done(&cl->base, status, "clCreateProgramWithSource"))
        return -1;
    status = build_in(cl, source_dir);
    if (status != CL_SUCCESS) {
        char log[8192] = "";

        clGetProgramBuildInfo(cl->program, cl->id, CL_PROGRAM_BUILD_LOG,
            sizeof log - 1, log, NULL);
        fprintf(stderr, "%s\n", log);
        return done(&cl->base, status, "clBuildProgram");
    }
    for (int i = 0; i < MFK_DEVICE_KERNELS; i++) {
        cl->kernel[i] = clCreateKernel(cl->program, names[i], &status);
        if (done(&cl->base, status, names[i]))
            return -1;
    }
    return 0;
}

static int prepare(struct opencl *cl)
{
    const char *source_dir = getenv("MOEFOLD_SRCDIR");
    cl_platform_id platform;
    cl_int status;

    if (done(&cl->base, clGetPlatformIDs(1, &platform, NULL),
            "clGetPlatformIDs") ||
        done(&cl->base,
            clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &cl->id, NULL),
            "clGetDeviceIDs"))
        return -1;
    cl->context = clCreateContext(NULL, 1, &cl->id, NULL, NULL, &status);
    if (done(&cl->base, status, "clCreateContext"))
        return -1;
    cl->queue =
        clCreateCommandQueueWithProperties(cl->context, cl->id, NULL, &status);
    if (done(&cl->base, status, "clCreateCommandQueue"))
        return -1;
    return build(cl, source_dir ? source_dir : ".");
}

static struct mfk_device *opencl_open(int index, char *why, size_t size)
{
    struct opencl *cl;

    if (opencl_count(why, size) < 0)
        return NULL;
    cl = calloc(1, sizeof *cl);
    if (!cl || index != 0) {
        snprintf(why, size, "OpenCL device %d cannot be had", index);
        free(cl);
        return NULL;
    }
    cl->base.api = &mfk_device_plugin;
    if (prepare(cl)) {
        snprintf(why, size, "%s", cl->base.error);
        opencl_close(&cl->base);
        return NULL;
    }
    return &cl->base;
}

static int opencl_describe(
    struct mfk_device *device, struct mfk_device_facts *facts)
{
    struct opencl *cl = opencl_of(device);
    cl_ulong bytes = 0;
    cl_uint units = 0;

    if (done(device,
            clGetDeviceInfo(cl->id, CL_DEVICE_NAME, sizeof facts->model,
                facts->model, NULL),
            "CL_DEVICE_NAME") ||
        done(device,
            clGetDeviceInfo(cl->id, CL_DRIVER_VERSION, sizeof facts->library,
                facts->library, NULL),
            "CL_DRIVER_VERSION") ||
        done(device,
            clGetDeviceInfo(
                cl->id, CL_DEVICE_GLOBAL_MEM_SIZE, sizeof bytes, &bytes, NULL),
            "CL_DEVICE_GLOBAL_MEM_SIZE") ||
        done(device,
            clGetDeviceInfo(cl->id, CL_DEVICE_MAX_COMPUTE_UNITS, sizeof units,
                &units, NULL),
            "CL_DEVICE_MAX_COMPUTE_UNITS"))
        return -1;
    facts->memory_bytes = facts->free_bytes = (int64_t)bytes;
    facts->processors = (int)units;
    return 0;
}

static int opencl_wait(struct mfk_device *device)
{
    return done(device, clFinish(opencl_of(device)->queue), "clFinish");
}

static int opencl_fill(
    struct mfk_device *device, void *to, int byte, size_t bytes)
{
    const unsigned char pattern = (unsigned char)byte;

    if (bytes == 0)
        return 0;
    return done(device,
        clEnqueueSVMMemFill(opencl_of(device)->queue, to, &pattern,
            sizeof pattern, bytes, 0, NULL, NULL),
        "clEnqueueSVMMemFill");
}

static int opencl_alloc(struct mfk_device *device, size_t bytes, void **memory)
{
    const size_t room = bytes < 16 ? 16 : bytes;

    *memory =
        clSVMAlloc(opencl_of(device)->context, CL_MEM_READ_WRITE, room, 0);
    if (!*memory) {
        device->out_of_memory = true;
        snprintf(device->error, sizeof device->error, "clSVMAlloc failed");
        return -1;
    }
    return opencl_fill(device, *memory, 0xff, room);
}

static void opencl_free(struct mfk_device *device, void *memory)
{
    if (!memory)
        return;
    opencl_wait(device);
    clSVMFree(opencl_of(device)->context, memory);
}

static int opencl_host_alloc(
    struct mfk_device *device, size_t bytes, void **memory)
{
    *memory = malloc(bytes ? bytes : 1);
    if (*memory)
        return 0;
    snprintf(device->error, sizeof device->error, "out of memory");
    return -1;
}

static void opencl_host_free(struct mfk_device *device, void *memory)
{
    (void)device;
    free(memory);
}

static int opencl_copy(
    struct mfk_device *device, void *to, const void *from, size_t bytes)
{
    if (bytes == 0)
        return 0;
    return done(device,
        clEnqueueSVMMemcpy(
            opencl_of(device)->queue, CL_TRUE, to, from, bytes, 0, NULL, NULL),
        "clEnqueueSVMMemcpy");
}

static int set_argument(
    cl_kernel kernel, cl_uint at, const struct mfk_argument *arg)
{
    switch (arg->kind) {
    case MFK_ARG_I64:
        return clSetKernelArg(kernel, at, sizeof arg->as.i64, &arg->as.i64);
    case MFK_ARG_I32:
        return clSetKernelArg(kernel, at, sizeof arg->as.i32, &arg->as.i32);
    case MFK_ARG_F32:
        return clSetKernelArg(kernel, at, sizeof arg->as.f32, &arg->as.f32);
    case MFK_ARG_MEMORY:
        return clSetKernelArgSVMPointer(kernel, at, arg->as.memory);
    }
    return CL_INVALID_ARG_VALUE;
}

static int opencl_launch(struct mfk_device *device,
    enum mfk_device_kernel kernel, int64_t blocks,
    const struct mfk_argument *args, int n)
{
    static const int64_t most[] = {1, 3, 16, 2};
    struct opencl *cl = opencl_of(device);
    const int64_t limit = most[cl->launches++ % 4];
    const size_t local = BLOCK_THREADS;
    const size_t global = local * (size_t)(blocks < limit ? blocks : limit);

    for (int i = 0; i < n; i++)
        if (done(device, set_argument(cl->kernel[kernel], (cl_uint)i, &args[i]),
                "clSetKernelArg"))
            return -1;
    return done(device,
        clEnqueueNDRangeKernel(cl->queue, cl->kernel[kernel], 1, NULL, &global,
            &local, 0, NULL, NULL),
        "clEnqueueNDRangeKernel");
}

/* N values of TYPE at FROM as fp32: themselves, or a copy that *MADE gets. */
static const void *widened(struct mfk_device *device, enum mfk_type type,
    int64_t n, const void *from, void **made)
{
    if (type == MFK_F32)
        return from;
    if (opencl_alloc(device, (size_t)n * sizeof(float), made) ||
        mfk_device_widen(device, n, from, *made))
        return NULL;
    return *made;
}

static int multiply_one(
    struct mfk_device *device, const struct mfk_product *product)
{
    const int64_t m = product->m, n = product->n, k = product->k;
    struct mfk_product wide = *product;
    void *a = NULL, *b = NULL, *c = NULL;
    int rc = -1;

    wide.in = wide.out = MFK_F32;
    wide.a = widened(device, product->in, m * k, product->a, &a);
    wide.b = widened(device, product->in, k * n, product->b, &b);
    wide.c = (void *)widened(device, product->out, m * n, product->c, &c);
    if (wide.a && wide.b && wide.c)
        rc = mfk_device_exact(device, &wide);
    if (rc == 0 && product->out == MFK_BF16)
        rc = mfk_device_narrow(device, m * n, wide.c, product->c);
    opencl_free(device, a);
    opencl_free(device, b);
    opencl_free(device, c);
    return rc;
}

static int opencl_multiply(struct mfk_device *device,
    const struct mfk_product *product, int count, bool grouped)
{
    (void)grouped;
    for (int i = 0; i < count; i++)
        if (multiply_one(device, &product[i]))
            return -1;
    return 0;
}

static int opencl_stamp(struct mfk_device *device, int slot)
{
    struct timespec now;

    if (opencl_wait(device))
        return -1;
    timespec_get(&now, TIME_UTC);
    opencl_of(device)->stamp[slot] =
        (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
    return 0;
}

static int opencl_elapsed(
    struct mfk_device *device, int from, int to, double *seconds)
{
    const struct opencl *cl = opencl_of(device);

    *seconds = cl->stamp[to] - cl->stamp[from];
    return 0;
}

/* Ranks of a test exchange by MPI, on memory that both can see. */
struct mfk_comm {
    MPI_Comm comm;
    int ranks;
};

static int mpi_done(struct mfk_device *device, int code, const char *what)
{
    if (code == MPI_SUCCESS)
        return 0;
    snprintf(
        device->error, sizeof device->error, "%s: MPI error %d", what, code);
    return -1;
}

static int opencl_comm_id(
    struct mfk_device *device, unsigned char id[MFK_COMM_ID])
{
    (void)device;
    memset(id, 0x5a, MFK_COMM_ID);
    return 0;
}

static int comm_split(struct mfk_device *device, MPI_Comm base, int color,
    int key, struct mfk_comm **comm)
{
    *comm = calloc(1, sizeof **comm);
    if (!*comm)
        return -1;
    return mpi_done(device, MPI_Comm_split(base, color, key, &(*comm)->comm),
               "MPI_Comm_split") ||
                   mpi_done(device,
                       MPI_Comm_size((*comm)->comm, &(*comm)->ranks),
                       "MPI_Comm_size")
               ? -1
               : 0;
}

static int opencl_comm_create(struct mfk_device *device,
    const unsigned char *id, int ranks, int rank, struct mfk_comm **comm)
{
    if (comm_split(device, MPI_COMM_WORLD, 0, rank, comm))
        return -1;
    if (id[0] == 0x5a && id[MFK_COMM_ID - 1] == 0x5a && (*comm)->ranks == ranks)
        return 0;
    snprintf(device->error, sizeof device->error, "another id or other ranks");
    return -1;
}

static int opencl_comm_split(struct mfk_device *device, struct mfk_comm *base,
    int color, int key, struct mfk_comm **comm)
{
    return comm_split(device, base->comm, color, key, comm);
}

static void opencl_comm_free(struct mfk_device *device, struct mfk_comm *comm)
{
    (void)device;
    MPI_Comm_free(&comm->comm);
    free(comm);
}

static int exchange_exact(struct mfk_device *device, struct mfk_comm *comm,
    const struct mfk_exchange *x, MPI_Datatype row)
{
    return mpi_done(device,
        MPI_Alltoallv(x->from, x->send, x->send_at, row, x->to, x->take,
            x->take_at, row, comm->comm),
        "MPI_Alltoallv");
}

static int exchange_padded(struct mfk_device *device, struct mfk_comm *comm,
    const struct mfk_exchange *x, MPI_Datatype row)
{
    const size_t bytes = (size_t)x->width * (x->type == MFK_BF16 ? 2 : 4);
    const size_t slot = (size_t)x->most * bytes;
    char *out = x->scratch, *in = out + (size_t)comm->ranks * slot;

    for (int p = 0; p < comm->ranks; p++)
        memcpy(out + (size_t)p * slot,
            (const char *)x->from + (size_t)x->send_at[p] * bytes,
            (size_t)x->send[p] * bytes);
    if (mpi_done(device,
            MPI_Alltoall(
                out, (int)x->most, row, in, (int)x->most, row, comm->comm),
            "MPI_Alltoall"))
        return -1;
    for (int p = 0; p < comm->ranks; p++)
        memcpy((char *)x->to + (size_t)x->take_at[p] * bytes,
            in + (size_t)p * slot, (size_t)x->take[p] * bytes);
    return 0;
}

static int opencl_comm_exchange(struct mfk_device *device,
    struct mfk_comm *comm, const struct mfk_exchange *x)
{
    MPI_Datatype row;
    int rc;

    if (opencl_wait(device) ||
        mpi_done(device,
            MPI_Type_contiguous((int)x->width,
                x->type == MFK_BF16 ? MPI_UINT16_T : MPI_FLOAT, &row),
            "MPI_Type_contiguous") ||
        mpi_done(device, MPI_Type_commit(&row), "MPI_Type_commit"))
        return -1;
    rc = x->padded ? exchange_padded(device, comm, x, row)
                   : exchange_exact(device, comm, x, row);
    MPI_Type_free(&row);
    return rc;
}

static int opencl_comm_sum(
    struct mfk_device *device, struct mfk_comm *comm, int64_t n, float *values)
{
    if (opencl_wait(device))
        return -1;
    return mpi_done(device,
        MPI_Allreduce(
            MPI_IN_PLACE, values, (int)n, MPI_FLOAT, MPI_SUM, comm->comm),
        "MPI_Allreduce");
}

static int opencl_comm_wait(
    struct mfk_device *device, struct mfk_comm *comm, double timeout_s)
{
    (void)comm;
    (void)timeout_s;
    return opencl_wait(device);
}

static void opencl_range_push(struct mfk_device *device, const char *name)
{
    (void)device;
    (void)name;
}

static void opencl_range_pop(struct mfk_device *device)
{
    (void)device;
}

const struct mfk_device_api mfk_device_plugin = {
    .abi = MFK_DEVICE_ABI,
    .name = "opencl",
    .count = opencl_count,
    .open = opencl_open,
    .close = opencl_close,
    .describe = opencl_describe,
    .alloc = opencl_alloc,
    .free = opencl_free,
    .host_alloc = opencl_host_alloc,
    .host_free = opencl_host_free,
    .upload = opencl_copy,
    .download = opencl_copy,
    .fill = opencl_fill,
    .wait = opencl_wait,
    .launch = opencl_launch,
    .multiply = opencl_multiply,
    .stamp = opencl_stamp,
    .elapsed = opencl_elapsed,
    .comm_id = opencl_comm_id,
    .comm_create = opencl_comm_create,
    .comm_split = opencl_comm_split,
    .comm_free = opencl_comm_free,
    .comm_exchange = opencl_comm_exchange,
    .comm_sum = opencl_comm_sum,
    .comm_wait = opencl_comm_wait,
    .range_push = opencl_range_push,
    .range_pop = opencl_range_pop,
};
