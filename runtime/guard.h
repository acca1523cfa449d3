/* SPDX-License-Identifier: BSD-3-Clause
 * A watchdog over everything a rank waits for.
 *
 * A rank waits by asking MPI again and again (guard's mfr_wait), never inside
 * a blocking call, so that meanwhile it can speak: after a few seconds it asks
 * the other ranks of the communicator how far they are, on a communicator of
 * the guard's own. Who has entered fewer calls there is who all wait for; who
 * entered as many but other ones has left the fixed order; who does not answer
 * is busy, stopped or lost, and on the same node the system tells which.
 *
 * A communicator that is not watched is waited for like any other, without
 * limit.
 */
#ifndef MFR_GUARD_H
#define MFR_GUARD_H

#include <mpi.h>
#include <stdbool.h>
#include <stdint.h>

#include "planner/layout/error.h"

struct mfr_guard_options {
    double notice_s;  /* waited before the others are asked; 0: 3 */
    double timeout_s; /* waited before it is given up */
    void *with;       /* for the two below */
    /* One line about a wait that is long; NULL: said to nobody. */
    void (*notice)(void *with, const char *text);
    /* The wait is over, and MPI may yet write to what is being waited for: not
     * to return. IN_CALL: the rank is inside a blocking MPI call and this is
     * another thread, which must not call MPI. NULL: the wait fails.
     */
    void (*give_up)(void *with, const struct mf_error *err, bool in_call);
};

typedef struct mfr_guard mfr_guard;

/* Watches BASE as "world"; collective over it. BASE must outlive the guard. */
int mfr_guard_create(MPI_Comm base, const struct mfr_guard_options *options,
    mfr_guard **guard, struct mf_error *err);
/* Collective, and not after a wait failed. */
void mfr_guard_free(mfr_guard *guard);

/* Watch COMM, whose ranks are among those of PARENT, as NAME; nothing when
 * PARENT is not watched. It is watched until it is freed. Collective.
 */
int mfr_guard_watch(
    MPI_Comm parent, MPI_Comm comm, const char *name, struct mf_error *err);

/* What messages call the present iteration; INT64_MIN: none. */
void mfr_guard_iteration(MPI_Comm comm, int64_t iteration);

/* A hash of the calls entered on COMM so far, and how many; 0: not watched. */
uint64_t mfr_guard_log(MPI_Comm comm, uint64_t *calls);

/* This rank has said why it fails and ends: so that nobody says of it that it
 * has ended.
 */
void mfr_guard_farewell(mfr_guard *guard);

/* One wait. PEER: a place in COMM when that one alone is waited for; -1: all
 * of them, and then each of them must enter the same call, in the same order.
 * WHAT: a literal.
 */
struct mfr_wait {
    struct mfr_watched *watched; /* NULL: not watched */
    const char *what;
    int peer;
    int64_t polls;
    double since, looked, next, noticed;
};

void mfr_wait_begin(
    struct mfr_wait *wait, MPI_Comm comm, int peer, const char *what);
/* Nothing came yet. -1: it was given up. */
int mfr_wait_poll(struct mfr_wait *wait, struct mf_error *err);
void mfr_wait_end(struct mfr_wait *wait);

/* Wait for all N requests of a call that is known to COMM by WHAT. */
int mfr_wait_all(MPI_Comm comm, int peer, int n, MPI_Request *request,
    const char *what, struct mf_error *err);

/* Around a call that can only block: a thread gives up for it. All ranks of
 * COMM are there when it begins.
 */
int mfr_block_begin(MPI_Comm comm, const char *what, struct mf_error *err);
void mfr_block_end(MPI_Comm comm);

#endif
