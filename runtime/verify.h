/* SPDX-License-Identifier: BSD-3-Clause
 * moefold-run --verify PLAN: hold a plan's layout against the references.
 */
#ifndef MFR_VERIFY_H
#define MFR_VERIFY_H

#include <mpi.h>
#include <stdbool.h>
#include <stdint.h>

#include "planner/layout/plan.h"
#include "runtime/device.h"
#include "runtime/layer.h"

struct mfr_verify_options {
    const char *plan;     /* file */
    int64_t pick;         /* which of its layouts, from 1 */
    bool full;            /* the plan's shape as it is, however large */
    bool json;            /* one document, else a table */
    bool quiet;           /* no table when all is well */
    enum mfk_gemm kernel; /* of the experts */
    uint64_t seed;        /* of the weights and tokens */
    enum mfr_fault fault; /* seeded, to see that it is found */
    enum mf_dispatcher dispatcher; /* AUTO: the plan's */
    const struct mfr_transport *transport;
    const char *backend; /* as mfr_device_choose takes it */
    enum mfr_comm_kind comm;
    bool padded; /* exchanges between devices */
};

/* The shape of ENTRY's layer, cut down to bounded work unless FULL: experts
 * and topk are kept (up to 1024 experts), hidden, ffn and the micro batch
 * shrink. MF_INVALID: the model has no experts, or FULL does not divide.
 */
int mfr_verify_shape(const struct mf_plan *plan,
    const struct mf_plan_entry *entry, bool full, struct mfr_shape *shape,
    struct mf_error *err);

/* The whole command; rank 0 prints on standard output. Collective over WORLD,
 * all ranks return the same. *HELD: every check was ok (else exit MF_NO).
 */
int mfr_verify_main(MPI_Comm world, const struct mfr_verify_options *options,
    bool *held, struct mf_error *err);

#endif
