/* SPDX-License-Identifier: BSD-3-Clause
 * Times of iterations, gathered on rank 0 a batch at a time.
 */
#ifndef MFR_TIMING_H
#define MFR_TIMING_H

#include "runtime/layer.h"

#define MFR_BATCH 8 /* iterations between two gathers */
#define MFR_MEET 8  /* in every so manieth peers meet before each exchange */

/* One rank, one iteration. */
struct mfr_record {
    double layer_s; /* forward and backward, wall */
    struct mfr_times times;
};

/* One phase and direction over all ranks; seconds NAN: not executed. */
struct mfr_summary {
    double min_s, median_s, max_s;
    int64_t slowest_rank;
    double bytes, flops; /* of the hottest rank */
    /* Medians over ranks: thread CPU time; in an iteration whose exchanges
     * begin with a meeting, until all had come there, and the rest. NAN: not
     * told.
     */
    double cpu_s, wait_s, move_s;
};

/* One iteration over all ranks. */
struct mfr_iteration {
    struct mfr_summary layer; /* cpu_s and below: none */
    struct mfr_summary phase[MF_PHASES][MF_DIRECTIONS];
};

struct mfr_timing {
    MPI_Comm world;
    int rank, ranks;
    int64_t gathered; /* iterations */
    int marks;        /* in one of them */
    int waiting;
    struct mfr_record batch[MFR_BATCH];
    struct mfr_record *all;          /* [ranks][MFR_BATCH], rank 0 */
    double *sort;                    /* [ranks], rank 0 */
    struct mfr_iteration *iteration; /* [iterations], rank 0 */
};

/* Room for ITERATIONS. Collective; all return the same. */
int mfr_timing_init(struct mfr_timing *timing, MPI_Comm world,
    int64_t iterations, struct mf_error *err);
void mfr_timing_free(struct mfr_timing *timing);

/* Keep RECORD; every MFR_BATCH of them, and with FLUSH, gather them: then rank
 * 0 has timing->gathered iterations. Collective.
 */
int mfr_timing_add(struct mfr_timing *timing, const struct mfr_record *record,
    bool flush, struct mf_error *err);

/* Medians over iterations; the slowest rank is the one that most often was. */
struct mfr_timing_report {
    struct mfr_summary layer, phase[MF_PHASES][MF_DIRECTIONS];
    double overhead; /* of layer time, by taking times; NAN: not known */
};

/* Rank 0; -1 out of memory. */
int mfr_timing_report(
    const struct mfr_timing *timing, struct mfr_timing_report *report);

#endif
