/* SPDX-License-Identifier: BSD-3-Clause
 * Differences between what the layer computed and what it should have.
 *
 * Two measures: the largest difference over the largest entry of the
 * reference, held to a bound; and bits, where the same arithmetic must give
 * the same answer whatever the layout. Each rank adds what it sees of its own
 * shard; mfr_checks_settle joins the shards of a stage into whole tensors, and
 * the stages into one verdict.
 */
#ifndef MFR_VERIFY_CHECK_H
#define MFR_VERIFY_CHECK_H

#include <jansson.h>
#include <mpi.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "planner/layout/error.h"

#define MFR_BOUND_FP32 1e-5
#define MFR_CHECKS_MAX 64

enum mfr_bitwise { MFR_BITS_UNKNOWN = -1, MFR_BITS_DIFFER, MFR_BITS_EQUAL };

struct mfr_check {
    const char *name;                 /* a literal */
    bool bits;                        /* the bits must be equal */
    double bound;                     /* of max_rel; 0: no bound */
    double max_abs, max_ref, max_rel; /* NAN: nothing was measured */
    enum mfr_bitwise bitwise;
    bool ok; /* known once settled */
};

/* In the order in which they were added; the same on every rank. */
struct mfr_checks {
    struct mfr_check check[MFR_CHECKS_MAX];
    int n;
};

/* A check to which the functions below add. */
struct mfr_check *mfr_checks_add(
    struct mfr_checks *checks, const char *name, double bound, bool bits);

/* N entries of A against the reference B. An entry of A that is not finite
 * counts as infinitely far.
 */
void mfr_check_doubles(
    struct mfr_check *check, const float *a, const double *b, int64_t n);
void mfr_check_double(struct mfr_check *check, double a, double b);

/* A sum whose terms may cancel: SCALE, its usual size, counts as a reference
 * too, for no arithmetic keeps digits that cancelled.
 */
void mfr_check_sum(struct mfr_check *check, double a, double b, double scale);

/* The same, and the bits. */
void mfr_check_floats(
    struct mfr_check *check, const float *a, const float *b, int64_t n);

/* Bits alone, compared by the caller. */
void mfr_check_equal(struct mfr_check *check, bool equal);

/* Collective over BASE and, inside it, over each STAGE. Every rank must have
 * added the same checks in the same order; all hold the same afterwards, the
 * worst of the stages.
 */
int mfr_checks_settle(struct mfr_checks *checks, MPI_Comm stage, MPI_Comm base,
    struct mf_error *err);

/* The first check that is not ok, or NULL. */
const struct mfr_check *mfr_checks_failed(const struct mfr_checks *checks);

/* [{name, max_abs, max_rel, bitwise, ok}]; what is not known or not finite is
 * null. NULL: out of memory.
 */
json_t *mfr_checks_to_json(const struct mfr_checks *checks);

/* One line a check for a person to read. */
int mfr_checks_print(
    const struct mfr_checks *checks, FILE *file, struct mf_error *err);

#endif
