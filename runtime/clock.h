/* SPDX-License-Identifier: BSD-3-Clause
 * Seconds of a clock that only goes forward.
 */
#ifndef MFR_CLOCK_H
#define MFR_CLOCK_H

#include <time.h>

static inline double mfr_now(void)
{
    struct timespec t = {0, 0};

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Of the calling thread alone. */
static inline double mfr_thread_cpu(void)
{
    struct timespec t = {0, 0};

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

#endif
