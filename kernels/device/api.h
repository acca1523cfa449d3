/* SPDX-License-Identifier: BSD-3-Clause
 * What a plug-in for a device offers: memory, copies, kernels, products and
 * time. The CUDA plug-in is loaded by moefold-run where it is asked for, so
 * that one installed program starts on machines with and without a driver; the
 * tests have one over OpenCL.
 *
 * Everything is queued on one stream, in order; wait() and copies to the host
 * wait for it. Functions that return int return 0, or -1 with the reason in
 * device->error.
 */
#ifndef MFK_DEVICE_API_H
#define MFK_DEVICE_API_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kernels/device/list.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Grows with every change of this header. */
#define MFK_DEVICE_ABI 2
/* The symbol of a plug-in: a const struct mfk_device_api. */
#define MFK_DEVICE_SYMBOL "mfk_device_plugin"

enum mfk_device_kernel {
#define MFD_ENUM(name) MFK_##name,
    MFD_LIST(MFD_ENUM)
#undef MFD_ENUM
        MFK_DEVICE_KERNELS
};

/* An argument of a kernel, of the width that the kernel declares. */
enum mfk_argument_kind {
    MFK_ARG_I64,
    MFK_ARG_I32,
    MFK_ARG_F32,
    MFK_ARG_MEMORY
};

struct mfk_argument {
    enum mfk_argument_kind kind;
    union {
        int64_t i64;
        int32_t i32;
        float f32;
        const void *memory;
    } as;
};

enum mfk_type { MFK_F32, MFK_BF16 };

/* c[m,n] = a[m,k] * b[n,k]^T; a[m,k] * b[k,n]; a[k,m]^T * b[k,n]. */
enum mfk_form { MFK_NT, MFK_NN, MFK_TN };

struct mfk_product {
    enum mfk_form form;
    enum mfk_type in, out; /* sums are in fp32 */
    int64_t m, n, k;
    const void *a, *b;
    void *c;
    bool add; /* += */
};

/* Ranks that exchange rows from device to device. */
struct mfk_comm;
#define MFK_COMM_ID 128 /* bytes that rank 0 makes and all ranks need */

/* Rows of WIDTH elements: SEND[p] of them from row SEND_AT[p] of FROM to peer
 * p, and TAKE[p] from it to row TAKE_AT[p] of TO; this rank is a peer too. The
 * arrays are the host's. No pair has more than MOST rows, the same number on
 * all ranks. PADDED: every pair exchanges MOST rows in one equal-count
 * call, through SCRATCH, of which mfk_exchange_scratch says the bytes; else
 * exact sends and receives in one group. The result is the same.
 */
struct mfk_exchange {
    enum mfk_type type;
    int64_t width, most;
    const void *from;
    void *to;
    const int *send, *send_at, *take, *take_at;
    bool padded;
    void *scratch;
};

struct mfk_device_facts {
    char model[128];   /* "NVIDIA H100 80GB HBM3" */
    char library[128]; /* versions of what computes */
    int64_t memory_bytes, free_bytes;
    int processors; /* multiprocessors */
};

struct mfk_device_api;

/* What every device begins with; the plug-in's own follows. */
struct mfk_device {
    const struct mfk_device_api *api;
    bool out_of_memory; /* of the last failure */
    char error[256];
};

struct mfk_device_api {
    int abi;
    const char *name; /* "cuda" */
    /* Devices that there are; -1 with the reason in WHY[size]. */
    int (*count)(char *why, size_t size);
    /* NULL with the reason in WHY[size]. */
    struct mfk_device *(*open)(int index, char *why, size_t size);
    void (*close)(struct mfk_device *device);
    int (*describe)(struct mfk_device *device, struct mfk_device_facts *facts);
    int (*alloc)(struct mfk_device *device, size_t bytes, void **memory);
    void (*free)(struct mfk_device *device, void *memory);
    /* Host memory that copies are fast from and to. */
    int (*host_alloc)(struct mfk_device *device, size_t bytes, void **memory);
    void (*host_free)(struct mfk_device *device, void *memory);
    int (*upload)(
        struct mfk_device *device, void *to, const void *from, size_t bytes);
    int (*download)(
        struct mfk_device *device, void *to, const void *from, size_t bytes);
    int (*fill)(struct mfk_device *device, void *to, int byte, size_t bytes);
    int (*wait)(struct mfk_device *device);
    /* BLOCKS blocks of MFD_BLOCK_THREADS threads. */
    int (*launch)(struct mfk_device *device, enum mfk_device_kernel kernel,
        int64_t blocks, const struct mfk_argument *args, int n);
    /* All of COUNT products; GROUPED: in one call, where there is one. */
    int (*multiply)(struct mfk_device *device,
        const struct mfk_product *product, int count, bool grouped);
    /* Note the time on the stream at SLOT (0 to MFK_STAMPS - 1). */
    int (*stamp)(struct mfk_device *device, int slot);
    /* Seconds between two stamps; waits for the second. */
    int (*elapsed)(
        struct mfk_device *device, int from, int to, double *seconds);
    /* Communication; NULL where the plug-in was built without. Calls are
     * queued, and made in the same order on all ranks of a COMM.
     */
    int (*comm_id)(struct mfk_device *device, unsigned char id[MFK_COMM_ID]);
    int (*comm_create)(struct mfk_device *device, const unsigned char *id,
        int ranks, int rank, struct mfk_comm **comm);
    /* Ranks of BASE with the same COLOR, by KEY. */
    int (*comm_split)(struct mfk_device *device, struct mfk_comm *base,
        int color, int key, struct mfk_comm **comm);
    void (*comm_free)(struct mfk_device *device, struct mfk_comm *comm);
    int (*comm_exchange)(struct mfk_device *device, struct mfk_comm *comm,
        const struct mfk_exchange *exchange);
    /* values[n], fp32, summed over COMM in place: the same on all ranks. */
    int (*comm_sum)(struct mfk_device *device, struct mfk_comm *comm, int64_t n,
        float *values);
    /* Wait for the stream, looking for errors of COMM; past TIMEOUT_S seconds
     * the communicator is aborted and that is an error.
     */
    int (*comm_wait)(
        struct mfk_device *device, struct mfk_comm *comm, double timeout_s);
    /* Named ranges for profilers. */
    void (*range_push)(struct mfk_device *device, const char *name);
    void (*range_pop)(struct mfk_device *device);
};

#define MFK_STAMPS 64

#ifdef __cplusplus
}
#endif

#endif
