/* SPDX-License-Identifier: BSD-3-Clause
 * moefold-run --gate: may the router run before tokens are gathered?
 *
 * Three ways to route tokens whose sequence is split over ranks: on the local
 * shard; after gathering all hidden vectors; and with the hidden dimension
 * split, where partial logits are summed. The first two give the same bits; the
 * third adds in another order. Each is worked out forward and backward, with
 * the bytes that a rank hands to others and the time it takes.
 */
#ifndef MFR_GATE_H
#define MFR_GATE_H

#include <mpi.h>

#include "runtime/verify.h"

/* The plan's layout and (cut) shape, or without a plan all ranks of WORLD as
 * one sequence split with as much EP. Rank 0 prints. Collective; *HELD as for
 * mfr_verify_main.
 */
int mfr_gate_main(MPI_Comm world, const struct mfr_verify_options *options,
    bool *held, struct mf_error *err);

#endif
