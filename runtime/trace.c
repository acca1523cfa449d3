/* SPDX-License-Identifier: BSD-3-Clause
 * Writing the timeline.
 */
#include "runtime/trace.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/clock.h"

enum { PINGS = 16, TAG_PING = 31, TAG_EVENTS = 32 };

int mfr_trace_open(struct mfr_trace *trace, MPI_Comm world, const char *path,
    struct mf_error *err)
{
    int rank, rc = 0;

    *trace = (struct mfr_trace){.path = path};
    if (mfr_mpi(MPI_Comm_rank(world, &rank), "MPI_Comm_rank", err))
        return -1;
    if (rank == 0) {
        trace->file = fopen(path, "we");
        if (!trace->file)
            rc = mf_error_set(
                err, MF_FAILED, "--trace %s: %s", path, strerror(errno));
    }
    return mfr_agree(world, rc, err);
}

void mfr_trace_close(struct mfr_trace *trace)
{
    if (trace->file)
        fclose(trace->file);
    trace->file = NULL;
    free(trace->event);
    trace->event = NULL;
}

void mfr_trace_add(struct mfr_trace *trace, int phase, int direction,
    double begin, double end, double cpu)
{
    if (trace->events == trace->room) {
        const size_t room = trace->room ? 2 * trace->room : 1024;
        struct mfr_event *more =
            realloc(trace->event, room * sizeof *trace->event);

        if (!more) {
            trace->lost = true;
            return;
        }
        trace->event = more;
        trace->room = room;
    }
    trace->event[trace->events++] = (struct mfr_event){
        .begin = begin,
        .end = end,
        .cpu = cpu,
        .iteration = trace->iteration,
        .phase = phase,
        .direction = direction,
    };
}

/* Of rank PEER by rank 0: of several exchanges the quickest, whose middle both
 * clocks read at one time.
 */
static int ping(
    MPI_Comm world, int rank, int peer, double *offset, struct mf_error *err)
{
    double best = -1;

    for (int i = 0; i < PINGS; i++) {
        const double start = mfr_now();
        double theirs = start, spent;

        if (rank == 0) {
            if (mfr_mpi(MPI_Sendrecv_replace(&theirs, 1, MPI_DOUBLE, peer,
                            TAG_PING, peer, TAG_PING, world, MPI_STATUS_IGNORE),
                    "MPI_Sendrecv_replace", err))
                return -1;
            spent = mfr_now() - start;
            if (best < 0 || spent < best) {
                best = spent;
                *offset = start + spent / 2 - theirs;
            }
            continue;
        }
        if (mfr_mpi(MPI_Recv(&theirs, 1, MPI_DOUBLE, 0, TAG_PING, world,
                        MPI_STATUS_IGNORE),
                "MPI_Recv", err))
            return -1;
        theirs = mfr_now();
        if (mfr_mpi(MPI_Send(&theirs, 1, MPI_DOUBLE, 0, TAG_PING, world),
                "MPI_Send", err))
            return -1;
    }
    if (rank == 0)
        return mfr_mpi(MPI_Send(offset, 1, MPI_DOUBLE, peer, TAG_PING, world),
            "MPI_Send", err);
    return mfr_mpi(
        MPI_Recv(offset, 1, MPI_DOUBLE, 0, TAG_PING, world, MPI_STATUS_IGNORE),
        "MPI_Recv", err);
}

int mfr_trace_offset(MPI_Comm world, double *offset, struct mf_error *err)
{
    int rank, ranks;
    double theirs;

    *offset = 0;
    if (mfr_mpi(MPI_Comm_rank(world, &rank), "MPI_Comm_rank", err) ||
        mfr_mpi(MPI_Comm_size(world, &ranks), "MPI_Comm_size", err))
        return -1;
    if (rank > 0)
        return ping(world, rank, 0, offset, err);
    for (int peer = 1; peer < ranks; peer++)
        if (ping(world, rank, peer, &theirs, err))
            return -1;
    return 0;
}

struct from {
    int64_t events;
    double offset;
    char node[MPI_MAX_PROCESSOR_NAME];
};

static void write_rank(FILE *file, int rank, const struct from *from,
    const struct mfr_event *event, double zero)
{
    fprintf(file,
        "%s{\"name\": \"process_name\", \"ph\": \"M\", \"pid\": %d, "
        "\"args\": {\"name\": \"rank %d (%s)\"}}",
        rank ? ",\n" : "\n", rank, rank, from->node);
    for (int64_t i = 0; i < from->events; i++)
        fprintf(file,
            ",\n{\"name\": \"%s\", \"cat\": \"%s\", \"ph\": \"X\", "
            "\"ts\": %.3f, \"dur\": %.3f, \"pid\": %d, \"tid\": 0, "
            "\"args\": {\"iteration\": %" PRId64 ", \"cpu_us\": %.3f}}",
            mf_phase_name((enum mf_phase)event[i].phase),
            mf_direction_name((enum mf_direction)event[i].direction),
            1e6 * (event[i].begin + from->offset - zero),
            1e6 * (event[i].end - event[i].begin), rank, event[i].iteration,
            1e6 * event[i].cpu);
}

/* One peer's events; only as many at a time as one rank has. */
static int write_peer(struct mfr_trace *trace, MPI_Comm world, int peer,
    double zero, struct mf_error *err)
{
    struct mfr_event *event;
    struct from from;
    int rc;

    if (mfr_mpi(MPI_Recv(&from, (int)sizeof from, MPI_BYTE, peer, TAG_EVENTS,
                    world, MPI_STATUS_IGNORE),
            "MPI_Recv", err))
        return -1;
    event = calloc((size_t)from.events + 1, sizeof *event);
    if (!event)
        return mf_error_set(err, MF_FAILED, "out of memory for the trace");
    rc = mfr_mpi(MPI_Recv(event, (int)(from.events * (int64_t)sizeof *event),
                     MPI_BYTE, peer, TAG_EVENTS, world, MPI_STATUS_IGNORE),
        "MPI_Recv", err);
    if (rc == 0)
        write_rank(trace->file, peer, &from, event, zero);
    free(event);
    return rc;
}

static int write_all(struct mfr_trace *trace, MPI_Comm world, int ranks,
    const struct from *mine, struct mf_error *err)
{
    const double zero = trace->events ? trace->event[0].begin : 0;

    fputs("{\"displayTimeUnit\": \"ms\", \"traceEvents\": [", trace->file);
    write_rank(trace->file, 0, mine, trace->event, zero);
    for (int peer = 1; peer < ranks; peer++)
        if (write_peer(trace, world, peer, zero, err))
            return -1;
    fputs("\n]}\n", trace->file);
    if (ferror(trace->file) | fclose(trace->file)) {
        trace->file = NULL;
        return mf_error_set(err, MF_FAILED,
            "--trace %s: cannot write it; is the disk full?", trace->path);
    }
    trace->file = NULL;
    return 0;
}

int mfr_trace_write(
    struct mfr_trace *trace, MPI_Comm world, struct mf_error *err)
{
    const int64_t most = INT_MAX / (int64_t)sizeof *trace->event;
    struct from mine = {.events = (int64_t)trace->events};
    int rank, ranks, length, rc = 0;

    if (mfr_mpi(MPI_Comm_rank(world, &rank), "MPI_Comm_rank", err) ||
        mfr_mpi(MPI_Comm_size(world, &ranks), "MPI_Comm_size", err) ||
        mfr_mpi(MPI_Get_processor_name(mine.node, &length),
            "MPI_Get_processor_name", err) ||
        mfr_trace_offset(world, &mine.offset, err))
        return -1;
    if (mine.events > most)
        mine.events = most;
    if (rank == 0)
        rc = write_all(trace, world, ranks, &mine, err);
    else
        rc = mfr_mpi(MPI_Send(&mine, (int)sizeof mine, MPI_BYTE, 0, TAG_EVENTS,
                         world),
                 "MPI_Send", err) ||
             mfr_mpi(MPI_Send(trace->event,
                         (int)(mine.events * (int64_t)sizeof *trace->event),
                         MPI_BYTE, 0, TAG_EVENTS, world),
                 "MPI_Send", err);
    if (rc == 0 && trace->lost)
        rc = mf_error_set(
            err, MF_FAILED, "rank %d: out of memory for the trace", rank);
    return mfr_agree(world, rc ? -1 : 0, err);
}
