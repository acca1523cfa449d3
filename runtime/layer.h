/* SPDX-License-Identifier: BSD-3-Clause
 * One MoE layer, folded: the router on the local sequence shard, then
 * permute, dispatch (all-to-all over EP), gather (all-gather over ETP),
 * experts, reduce (reduce-scatter over ETP), combine (all-to-all back) and
 * un-permute; backward is the transpose of each.
 *
 * fp32, dropless, gated experts; shared experts, which every token goes
 * through, are cut over TP. The weights of the chosen experts are applied at
 * the un-permute: y = sum of w_k * row_k in the order of k.
 */
#ifndef MFR_LAYER_H
#define MFR_LAYER_H

#include "kernels/device/api.h"
#include "kernels/kernels.h"
#include "planner/layout/phase.h"
#include "planner/layout/plan.h"
#include "runtime/comm_device.h"
#include "runtime/shape.h"
#include "runtime/shard.h"
#include "runtime/tensors.h"

/* Faults that a test seeds, to show that verification finds them. */
enum mfr_fault {
    MFR_FAULT_NONE,
    MFR_FAULT_WRONG_GROUP,   /* expert gradients summed over the whole stage;
                                no fault when etp = ep = 1 */
    MFR_FAULT_SKIP_EDP_SUM,  /* expert gradients not summed; needs edp > 1 */
    MFR_FAULT_DROP_LAST_ROW, /* the last permuted row is sent as zeros */
};

/* "wrong-group", ...; "none" for none. The finder returns -1. */
const char *mfr_fault_name(enum mfr_fault fault);
int mfr_fault_find(const char *name);

/* What the last forward pass decided on this rank. */
struct mfr_routes {
    int64_t tokens;
    const int32_t *ids;    /* [tokens][topk] expert, best first */
    const float *weights;  /* [tokens][topk] */
    const int64_t *counts; /* [all experts], of the local tokens */
};

/* Rows that the local experts worked on, by local expert, and inside an expert
 * by ascending (micro batch, position, sequence): rows of all tokens of the
 * ETP x EP group of this rank. With etp > 1 every rank of the ETP group holds
 * the same rows.
 */
struct mfr_received {
    int64_t rows;
    const int64_t *first; /* [experts + 1]: rows of local expert l are
                             first[l] up to first[l + 1] */
    const float *row;     /* [rows][hidden] */
};

/* Seconds, bytes and FLOPs of each phase of the last pass; NAN in seconds: the
 * phase was not executed; NAN elsewhere: none. Bytes are those that this rank
 * reads and writes in permute and un-permute, and those it sends to others or
 * gets from them, whichever is more, in the exchanges.
 *
 * Dispatch and combine run when ep > 1, gather and reduce when etp > 1, each
 * gradient sum when its group has two ranks or more. The exchange of counts is
 * part of dispatch (of gather when ep is 1), sorting rows by expert part of
 * experts, and the copy that stands for combine when ep is 1 part of the
 * un-permute (backward: of the permute). Time spent waiting for a peer counts
 * where it is spent.
 */
struct mfr_use {
    double seconds, bytes, flops;
    double cpu_s;  /* of this thread meanwhile */
    double wait_s; /* of seconds, until all peers had come; NAN: not told */
};

struct mfr_trace;

struct mfr_times {
    struct mfr_trace *trace; /* where phases go besides; NULL: nowhere */
    struct mfr_use use[MF_PHASES][MF_DIRECTIONS];
    int marks; /* of both passes: how often the clocks were read */
    double pass_s[MF_DIRECTIONS]; /* all phases of the pass together */
    bool meet; /* peers meet before each exchange, so that it can be told */
};

typedef struct mfr_layer mfr_layer;

/* Is LAYOUT possible for SHAPE? MF_INVALID with the mend otherwise. */
int mfr_layer_check(const struct mfr_shape *shape,
    const struct mf_layout *layout, struct mf_error *err);

/* Bytes that a rank needs with balanced experts; -1: more than 64 bits. */
int64_t mfr_layer_bytes(const struct mfr_shape *shape,
    const struct mf_layout *layout, int64_t rank);

/* The same with the dispatcher's own. */
int64_t mfr_layer_copies_bytes(const struct mfr_shape *shape,
    const struct mf_layout *layout, int64_t rank,
    enum mf_dispatcher dispatcher);

/* How rows move between the ranks of a node and others. */
struct mfr_transport {
    bool mpi_only;      /* no shared memory */
    int64_t node_ranks; /* > 0: as if a node held so many ranks, for tests */
};

/* How a layer is worked out. */
struct mfr_layer_options {
    enum mfk_gemm kernel; /* of the experts */
    enum mfr_fault fault;
    struct mfk_device *device; /* does the work of a rank; NULL: the CPU */
    /* Its own exchanges; NULL: rows travel through host memory and MPI. */
    const struct mfr_device_comms *device_comms;
    /* Alltoall, allgather or dedup; on a device alltoall. */
    enum mf_dispatcher dispatcher;
    const struct mfr_transport *transport; /* NULL: the best there is */
    bool observed; /* the host reads routes, received rows and gradients */
};

/* Weights and gradients begin as zeros. COMMS and what OPTIONS point to must
 * outlive the layer. Collective over the ETP x EP group, whose ranks all return
 * the same.
 */
int mfr_layer_create(const struct mfr_shape *shape,
    const struct mf_layout *layout, const struct mfr_comms *comms,
    const struct mfr_layer_options *options, mfr_layer **layer,
    struct mf_error *err);
void mfr_layer_free(mfr_layer *layer);

/* Fill the weights from SEED, for the pipeline stage of this rank. */
void mfr_layer_seed(mfr_layer *layer, uint64_t seed);
/* Fill x or dy [tokens][hidden] of this rank (MFR_INPUT or MFR_OUTPUT_GRAD). */
void mfr_layer_seed_input(const mfr_layer *layer, uint64_t seed, float *x);
void mfr_layer_seed_output_grad(
    const mfr_layer *layer, uint64_t seed, float *dy);

const struct mfr_shard *mfr_layer_shard(const mfr_layer *layer);
/* To be read and written between passes. */
struct mfr_tensors mfr_layer_weights(mfr_layer *layer);
/* As they are after mfr_layer_reduce_gradients. */
struct mfr_tensors mfr_layer_gradients(mfr_layer *layer);
struct mfr_routes mfr_layer_routes(const mfr_layer *layer);
struct mfr_received mfr_layer_received(const mfr_layer *layer);
/* "shared": all moves through shared memory; "mixed": those inside a node;
 * "mpi": none; "device": between GPUs. Known after a forward pass.
 */
const char *mfr_layer_transport(const mfr_layer *layer);
/* Phases on the host's clock go to TRACE besides. */
/* From the next pass on, peers meet before each exchange, or do not. */
void mfr_layer_meet(mfr_layer *layer, bool meet);
void mfr_layer_trace(mfr_layer *layer, struct mfr_trace *trace);
const struct mfr_times *mfr_layer_times(const mfr_layer *layer);

/* x[tokens][hidden] to y of the same shape; collective over the ETP x EP
 * group, nobody else. X must stay as it is until the backward pass is over.
 */
int mfr_layer_forward(
    mfr_layer *layer, const float *x, float *y, struct mf_error *err);
/* dy to dx; adds to the gradients. Follows a forward pass. */
int mfr_layer_backward(
    mfr_layer *layer, const float *dy, float *dx, struct mf_error *err);
/* Gradients times SCALE: those of experts summed over EDP, of shared experts
 * over DP and CP, the router's and other small ones over the stage (TP, DP and
 * CP). Collective over the stage. Replicas hold the same bits afterwards.
 */
int mfr_layer_reduce_gradients(
    mfr_layer *layer, double scale, struct mf_error *err);
void mfr_layer_zero_gradients(mfr_layer *layer);

#endif
