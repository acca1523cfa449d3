/* SPDX-License-Identifier: BSD-3-Clause
 * See preflight.h.
 */
#include "runtime/preflight.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "planner/layout/number.h"
#include "runtime/comm.h"
#include "runtime/collective.h"

#define HOST_CHARS                                                             \
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-"

/* What a rank says of itself; a negative number: it does not know. */
struct seat {
    char host[128], gpu[64]; /* gpu: what the system calls it, empty: none */
    int32_t local, seen;     /* seen: GPUs that it is shown */
};

/* The Kth name in LIST, joined by commas. */
static void nth_name(const char *list, int k, char *text, size_t size)
{
    while (k-- > 0 && *list) {
        list += strcspn(list, ",");
        list += *list == ',';
    }
    snprintf(text, size, "%.*s", (int)strcspn(list, ","), list);
}

/* SLURMD_NODENAME: the name that Slurm has for it, also where several of its
 * nodes are one machine.
 */
static void seat_here(struct seat *seat)
{
    const char *node = getenv("SLURMD_NODENAME");
    const char *local = getenv("SLURM_LOCALID");
    const char *gpus = getenv("CUDA_VISIBLE_DEVICES");
    struct mf_error unread;
    int64_t number = -1;

    memset(seat, 0, sizeof *seat);
    if (!node || !*node || !local) {
        local = getenv("OMPI_COMM_WORLD_LOCAL_RANK");
        if (gethostname(seat->host, sizeof seat->host - 1))
            seat->host[0] = 0;
        seat->host[strcspn(seat->host, ".")] = 0;
    } else {
        snprintf(seat->host, sizeof seat->host, "%s", node);
    }
    if (local &&
        mf_number_parse(local, "local rank", 0, INT32_MAX, &number, &unread))
        number = -1;
    seat->local = (int32_t)number;
    /* One that is seen alone is this rank's, whatever its number. */
    seat->seen = gpus && *gpus ? 1 : 0;
    for (const char *c = gpus; c && *c; c++)
        seat->seen += *c == ',';
    if (gpus && number >= 0)
        nth_name(gpus, strchr(gpus, ',') ? seat->local : 0, seat->gpu,
            sizeof seat->gpu);
}

/* The next "host*count" of *AT. */
static int read_item(const char **at, char *host, size_t size, int64_t *count,
    struct mf_error *err)
{
    const size_t name = strspn(*at, HOST_CHARS);
    const char *times = *at + name + 1;
    const size_t digits = (*at)[name] == '*' ? strspn(times, "0123456789") : 0;
    char text[16];

    if (name == 0 || name >= size || digits == 0 || digits >= sizeof text ||
        (times[digits] && times[digits] != ','))
        return mf_error_set(err, MF_INVALID,
            MFR_PREFLIGHT_MAP ": '%.60s' is not like n1*8,n2*8; unset it, or "
                              "let moefold set it",
            *at);
    snprintf(host, size, "%.*s", (int)name, *at);
    snprintf(text, sizeof text, "%.*s", (int)digits, times);
    *at = times + digits + (times[digits] == ',');
    return mf_number_parse(text, MFR_PREFLIGHT_MAP, 1, INT32_MAX, count, err);
}

static int check_seat(const struct seat *seat, int rank, const char *host,
    int64_t local, struct mf_error *err)
{
    if (strcmp(seat->host, host) != 0)
        return mf_error_set(err, MF_NO,
            "rank %d sits on %s, and the map puts it on %s; start it with "
            "--distribution=arbitrary and the host file of moefold map",
            rank, seat->host, host);
    if (seat->local >= 0 && seat->local != local)
        return mf_error_set(err, MF_NO,
            "rank %d is number %" PRId32 " on %s, and the map has it as "
            "number %" PRId64,
            rank, seat->local, host, local);
    return 0;
}

/* Ranks of a node stand together in the map, so that only they are compared. */
static int check_gpus(
    const struct seat *seat, int first, int rank, struct mf_error *err)
{
    if (seat[rank].seen > 1 && seat[rank].local >= seat[rank].seen)
        return mf_error_set(err, MF_NO,
            "rank %d is number %" PRId32 " on %s, which shows %" PRId32
            " GPUs: two ranks would share one",
            rank, seat[rank].local, seat[rank].host, seat[rank].seen);
    for (int r = first; r < rank; r++)
        if (seat[rank].gpu[0] && !strcmp(seat[r].gpu, seat[rank].gpu))
            return mf_error_set(err, MF_NO,
                "ranks %d and %d on %s have one GPU, %s; start as many tasks "
                "on a node as it has GPUs, without --gpu-bind",
                r, rank, seat[rank].host, seat[rank].gpu);
    return 0;
}

static int check_map(
    const char *map, const struct seat *seat, int ranks, struct mf_error *err)
{
    char host[sizeof seat->host];
    int64_t count, world = 0;

    for (const char *at = map; *at;) {
        if (read_item(&at, host, sizeof host, &count, err))
            return -1;
        world += count;
    }
    if (world != ranks)
        return mf_error_set(err, MF_NO,
            "%d tasks were started, and the map has %" PRId64
            " ranks; start it with --ntasks=%" PRId64,
            ranks, world, world);
    for (int first = 0; first < ranks; first += (int)count) {
        if (read_item(&map, host, sizeof host, &count, err))
            return -1;
        for (int r = first; r < first + (int)count; r++)
            if (check_seat(&seat[r], r, host, r - first, err) ||
                check_gpus(seat, first, r, err))
                return -1;
    }
    return 0;
}

/* A single GPU each is legal, and costs the way between them. */
static void warn_hidden(const struct seat *seat, int ranks)
{
    const char *gpus = getenv("CUDA_VISIBLE_DEVICES");

    if (gpus && *gpus && !strchr(gpus, ',') && ranks > 1 &&
        !strcmp(seat[0].host, seat[1].host))
        fputs("moefold-run: warning: rank 0 sees one GPU: those of its peers "
              "are hidden, which keeps NVLink from them; leave out "
              "--gpus-per-task and --gpu-bind\n",
            stderr);
}

int mfr_preflight(MPI_Comm world, const char *map, struct mf_error *err)
{
    struct seat mine, *all = NULL;
    int rank, ranks, has = map && *map, rc = 0;

    if (mfr_mpi(MPI_Comm_rank(world, &rank), "MPI_Comm_rank", err) ||
        mfr_mpi(MPI_Comm_size(world, &ranks), "MPI_Comm_size", err) ||
        mfr_bcast(&has, 1, MPI_INT, 0, world, "MPI_Bcast (map)", err))
        return -1;
    if (!has)
        return 0;
    seat_here(&mine);
    if (rank == 0 && !(all = calloc((size_t)ranks, sizeof *all)))
        rc = mf_error_set(err, MF_FAILED, "out of memory");
    rc = mfr_agree(world, rc, err);
    if (rc == 0)
        rc = mfr_gather(&mine, all, (int)sizeof mine, MPI_BYTE, 0, world,
            "MPI_Gather (places)", err);
    if (rc == 0 && rank == 0) {
        rc = check_map(map, all, ranks, err);
        if (rc == 0)
            warn_hidden(all, ranks);
    }
    free(all);
    return mfr_agree(world, rc, err);
}
