/* SPDX-License-Identifier: BSD-3-Clause
 * Timing the phases of a pass.
 */
#include "runtime/watch.h"

#include <math.h>

#include "runtime/clock.h"
#include "runtime/collective.h"
#include "runtime/device.h"
#include "runtime/trace.h"

void mfr_watch_resume(struct mfr_watch *watch, struct mfr_times *times,
    enum mf_direction direction, struct mfk_device *device)
{
    *watch = (struct mfr_watch){
        .times = times, .direction = direction, .device = device};
    if (device)
        watch->lost = device->api->stamp(device, 0) != 0;
    else
        watch->at = mfr_now();
    watch->cpu = mfr_thread_cpu();
}

void mfr_watch_start(struct mfr_watch *watch, struct mfr_times *times,
    enum mf_direction direction, struct mfk_device *device)
{
    for (int phase = 0; phase < MF_PHASES; phase++)
        times->use[phase][direction] =
            (struct mfr_use){NAN, NAN, NAN, NAN, NAN};
    times->pass_s[direction] = 0;
    if (direction == MF_FORWARD)
        times->marks = 0;
    mfr_watch_resume(watch, times, direction, device);
}

static void add(struct mfr_watch *watch, enum mf_phase phase, double spent)
{
    struct mfr_use *use = &watch->times->use[phase][watch->direction];

    use->seconds = isnan(use->seconds) ? spent : use->seconds + spent;
    watch->times->pass_s[watch->direction] += spent;
}

void mfr_watch_mark(
    struct mfr_watch *watch, enum mf_phase phase, double bytes, double flops)
{
    struct mfr_use *use = &watch->times->use[phase][watch->direction];

    watch->times->marks++;
    use->bytes = bytes;
    use->flops = flops;
    if (watch->device) {
        if (watch->marks + 1 >= MFK_STAMPS ||
            watch->device->api->stamp(watch->device, watch->marks + 1)) {
            watch->lost = true;
            return;
        }
        watch->phase[watch->marks++] = phase;
    } else {
        const double now = mfr_now(), cpu = mfr_thread_cpu();

        add(watch, phase, now - watch->at);
        use->cpu_s = (isnan(use->cpu_s) ? 0 : use->cpu_s) + cpu - watch->cpu;
        if (watch->times->trace)
            mfr_trace_add(watch->times->trace, (int)phase,
                (int)watch->direction, watch->at, now, cpu - watch->cpu);
        watch->at = now;
        watch->cpu = cpu;
    }
}

int mfr_watch_meet(struct mfr_watch *watch, MPI_Comm comm, enum mf_phase phase,
    struct mf_error *err)
{
    struct mfr_use *use = &watch->times->use[phase][watch->direction];
    double start;

    if (!watch->times->meet || watch->device)
        return 0;
    start = mfr_now();
    if (mfr_barrier(comm, "MPI_Barrier (before an exchange)", err))
        return -1;
    use->wait_s = (isnan(use->wait_s) ? 0 : use->wait_s) + mfr_now() - start;
    return 0;
}

int mfr_watch_end(struct mfr_watch *watch, struct mf_error *err)
{
    struct mfk_device *device = watch->device;

    if (!device)
        return 0;
    for (int i = 0; i < watch->marks && !watch->lost; i++) {
        double seconds = 0;

        if (device->api->elapsed(device, i, i + 1, &seconds))
            watch->lost = true;
        else
            add(watch, watch->phase[i], seconds);
    }
    return watch->lost ? mfr_device_failed(device, err) : 0;
}
