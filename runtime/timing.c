/* SPDX-License-Identifier: BSD-3-Clause
 * Times of iterations, gathered on rank 0 a batch at a time.
 */
#include "runtime/timing.h"

#include <math.h>
#include <stdlib.h>

#include "runtime/stats.h"
#include "runtime/collective.h"

int mfr_timing_init(struct mfr_timing *timing, MPI_Comm world,
    int64_t iterations, struct mf_error *err)
{
    int rc = 0;

    *timing = (struct mfr_timing){.world = world};
    if (mfr_mpi(MPI_Comm_rank(world, &timing->rank), "MPI_Comm_rank", err) ||
        mfr_mpi(MPI_Comm_size(world, &timing->ranks), "MPI_Comm_size", err))
        return -1;
    if (timing->rank == 0) {
        timing->all =
            calloc((size_t)timing->ranks * MFR_BATCH, sizeof *timing->all);
        timing->sort = calloc((size_t)timing->ranks, sizeof *timing->sort);
        timing->iteration =
            calloc((size_t)iterations, sizeof *timing->iteration);
        if (!timing->all || !timing->sort || !timing->iteration)
            rc = mf_error_set(err, MF_FAILED, "out of memory for the times");
    }
    return mfr_agree(world, rc, err);
}

void mfr_timing_free(struct mfr_timing *timing)
{
    free(timing->all);
    free(timing->sort);
    free(timing->iteration);
}

/* The larger, taking NAN for none. */
static double more(double a, double b)
{
    return isnan(a) || b > a ? b : a;
}

static struct mfr_summary summarise(
    struct mfr_timing *timing, int i, int phase, int direction)
{
    struct mfr_summary sum = {NAN, NAN, NAN, -1, NAN, NAN};
    size_t n = 0;

    for (int r = 0; r < timing->ranks; r++) {
        const struct mfr_use *use =
            &timing->all[r * MFR_BATCH + i].times.use[phase][direction];
        if (isnan(use->seconds))
            continue;
        if (n == 0 || use->seconds > sum.max_s) {
            sum.max_s = use->seconds;
            sum.slowest_rank = r;
        }
        sum.bytes = more(sum.bytes, use->bytes);
        sum.flops = more(sum.flops, use->flops);
        timing->sort[n++] = use->seconds;
    }
    sum.median_s = mfr_median(n, timing->sort);
    sum.min_s = n > 0 ? timing->sort[0] : NAN;
    return sum;
}

static void summarise_iteration(struct mfr_timing *timing, int i)
{
    struct mfr_iteration *it = &timing->iteration[timing->gathered + i];

    it->layer_s = NAN;
    for (int r = 0; r < timing->ranks; r++)
        it->layer_s = more(it->layer_s, timing->all[r * MFR_BATCH + i].layer_s);
    for (int phase = 0; phase < MF_PHASES; phase++)
        for (int d = 0; d < MF_DIRECTIONS; d++)
            it->phase[phase][d] = summarise(timing, i, phase, d);
}

int mfr_timing_add(struct mfr_timing *timing, const struct mfr_record *record,
    bool flush, struct mf_error *err)
{
    const int bytes = (int)sizeof timing->batch;

    timing->batch[timing->waiting++] = *record;
    if (timing->waiting < MFR_BATCH && !flush)
        return 0;
    if (mfr_gather(timing->batch, timing->all, bytes, MPI_BYTE, 0,
            timing->world, "MPI_Gather (times)", err))
        return -1;
    for (int i = 0; timing->rank == 0 && i < timing->waiting; i++)
        summarise_iteration(timing, i);
    timing->gathered += timing->waiting;
    timing->waiting = 0;
    return 0;
}

static double phase_median(
    const struct mfr_timing *timing, int phase, int direction, double *sort)
{
    size_t n = 0;

    for (int64_t i = 0; i < timing->gathered; i++) {
        const double s = timing->iteration[i].phase[phase][direction].max_s;
        if (!isnan(s))
            sort[n++] = s;
    }
    return mfr_median(n, sort);
}

int mfr_timing_medians(const struct mfr_timing *timing, double *layer_s,
    double phase_s[MF_PHASES][MF_DIRECTIONS])
{
    const size_t n = (size_t)timing->gathered;
    double *sort = malloc((n + 1) * sizeof *sort);

    if (!sort)
        return -1;
    for (size_t i = 0; i < n; i++)
        sort[i] = timing->iteration[i].layer_s;
    *layer_s = mfr_median(n, sort);
    for (int phase = 0; phase < MF_PHASES; phase++)
        for (int d = 0; d < MF_DIRECTIONS; d++)
            phase_s[phase][d] = phase_median(timing, phase, d, sort);
    free(sort);
    return 0;
}
