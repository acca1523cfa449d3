/* SPDX-License-Identifier: BSD-3-Clause
 * Times of iterations, gathered on rank 0 a batch at a time.
 */
#include "runtime/timing.h"

#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/clock.h"
#include "runtime/stats.h"
#include "runtime/watch.h"
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

/* What one rank says of one phase, or of the layer. */
static struct mfr_use use_of(
    const struct mfr_record *record, int phase, int direction)
{
    if (phase >= 0)
        return record->times.use[phase][direction];
    return (struct mfr_use){record->layer_s, NAN, NAN, NAN, NAN};
}

/* Median over ranks of what VALUE takes out of a use. */
static double over_ranks(struct mfr_timing *timing, int i, int phase,
    int direction, double (*value)(const struct mfr_use *use))
{
    size_t n = 0;

    for (int r = 0; r < timing->ranks; r++) {
        const struct mfr_use use =
            use_of(&timing->all[r * MFR_BATCH + i], phase, direction);
        const double v = value(&use);

        if (!isnan(v))
            timing->sort[n++] = v;
    }
    return mfr_median(n, timing->sort);
}

static double seconds_of(const struct mfr_use *use)
{
    return use->seconds;
}

static double cpu_of(const struct mfr_use *use)
{
    return use->cpu_s;
}

static double wait_of(const struct mfr_use *use)
{
    return use->wait_s;
}

static double move_of(const struct mfr_use *use)
{
    return use->seconds - use->wait_s;
}

/* PHASE -1: the layer. */
static struct mfr_summary summarise(
    struct mfr_timing *timing, int i, int phase, int direction)
{
    struct mfr_summary sum = {NAN, NAN, NAN, -1, NAN, NAN, NAN, NAN, NAN};

    for (int r = 0; r < timing->ranks; r++) {
        const struct mfr_use use =
            use_of(&timing->all[r * MFR_BATCH + i], phase, direction);

        if (isnan(use.seconds))
            continue;
        if (isnan(sum.max_s) || use.seconds > sum.max_s) {
            sum.max_s = use.seconds;
            sum.slowest_rank = r;
        }
        if (isnan(sum.min_s) || use.seconds < sum.min_s)
            sum.min_s = use.seconds;
        sum.bytes = more(sum.bytes, use.bytes);
        sum.flops = more(sum.flops, use.flops);
    }
    sum.median_s = over_ranks(timing, i, phase, direction, seconds_of);
    sum.cpu_s = over_ranks(timing, i, phase, direction, cpu_of);
    sum.wait_s = over_ranks(timing, i, phase, direction, wait_of);
    sum.move_s = over_ranks(timing, i, phase, direction, move_of);
    return sum;
}

static void summarise_iteration(struct mfr_timing *timing, int i)
{
    struct mfr_iteration *it = &timing->iteration[timing->gathered + i];

    it->layer = summarise(timing, i, -1, 0);
    for (int phase = 0; phase < MF_PHASES; phase++)
        for (int d = 0; d < MF_DIRECTIONS; d++)
            it->phase[phase][d] = summarise(timing, i, phase, d);
}

int mfr_timing_add(struct mfr_timing *timing, const struct mfr_record *record,
    bool flush, struct mf_error *err)
{
    const int bytes = (int)sizeof timing->batch;

    timing->marks = record->times.marks;
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

static const struct mfr_summary *summary_of(
    const struct mfr_iteration *it, int phase, int direction)
{
    return phase < 0 ? &it->layer : &it->phase[phase][direction];
}

/* Median over iterations of the double at OFFSET of a summary. */
static double over_iterations(const struct mfr_timing *timing, int phase,
    int direction, size_t offset, double *sort)
{
    size_t n = 0;

    for (int64_t i = 0; i < timing->gathered; i++) {
        const char *sum =
            (const char *)summary_of(&timing->iteration[i], phase, direction);
        double value;

        memcpy(&value, sum + offset, sizeof value);
        if (!isnan(value))
            sort[n++] = value;
    }
    return mfr_median(n, sort);
}

/* TIMES: [ranks] scratch. */
static int64_t most_often(
    const struct mfr_timing *timing, int phase, int direction, int64_t *times)
{
    int64_t most = -1;

    memset(times, 0, (size_t)timing->ranks * sizeof *times);
    for (int64_t i = 0; i < timing->gathered; i++) {
        const int64_t rank =
            summary_of(&timing->iteration[i], phase, direction)->slowest_rank;

        if (rank >= 0)
            times[rank]++;
    }
    for (int64_t r = 0; r < timing->ranks; r++)
        if (times[r] > (most < 0 ? 0 : times[most]))
            most = r;
    return most;
}

static struct mfr_summary medians(const struct mfr_timing *timing, int phase,
    int direction, double *sort, int64_t *times)
{
#define MEDIAN(member)                                                         \
    over_iterations(                                                           \
        timing, phase, direction, offsetof(struct mfr_summary, member), sort)
    return (struct mfr_summary){
        .min_s = MEDIAN(min_s),
        .median_s = MEDIAN(median_s),
        .max_s = MEDIAN(max_s),
        .slowest_rank = most_often(timing, phase, direction, times),
        .bytes = MEDIAN(bytes),
        .flops = MEDIAN(flops),
        .cpu_s = MEDIAN(cpu_s),
        .wait_s = MEDIAN(wait_s),
        .move_s = MEDIAN(move_s),
    };
#undef MEDIAN
}

/* Seconds that one mark of a watch takes on this machine. */
static double mark_seconds(void)
{
    enum { MARKS = 1000 };
    struct mfr_times times = {.trace = NULL};
    struct mfr_watch watch;
    double start;

    mfr_watch_start(&watch, &times, MF_FORWARD, NULL);
    start = mfr_now();
    for (int i = 0; i < MARKS; i++)
        mfr_watch_mark(&watch, MF_PHASE_ROUTE, NAN, NAN);
    return (mfr_now() - start) / MARKS;
}

int mfr_timing_report(
    const struct mfr_timing *timing, struct mfr_timing_report *report)
{
    double *sort = malloc(((size_t)timing->gathered + 1) * sizeof *sort);
    int64_t *times = malloc((size_t)timing->ranks * sizeof *times);
    int rc = sort && times ? 0 : -1;

    if (rc)
        goto out;
    report->layer = medians(timing, -1, 0, sort, times);
    for (int phase = 0; phase < MF_PHASES; phase++)
        for (int d = 0; d < MF_DIRECTIONS; d++)
            report->phase[phase][d] = medians(timing, phase, d, sort, times);
    report->overhead = timing->marks * mark_seconds() / report->layer.max_s;
out:
    free(sort);
    free(times);
    return rc;
}
