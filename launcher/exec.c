/* SPDX-License-Identifier: BSD-3-Clause
 * See exec.h.
 */
#include "config.h"

#include "launcher/exec.h"

#include <inttypes.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "launcher/map.h"
#include "launcher/start.h"
#include "planner/layout/number.h"

/* Below what systems hand out by themselves (32768 on Linux). */
#define PORT_FIRST 10000
#define PORTS 20000

/* ---- where this process is ---- */

static const struct starter {
    const char *rank, *world, *local, *local_world, *node;
} starters[] = {
    {"SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID", NULL, "SLURM_NODEID"},
    {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE",
        "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE",
        "OMPI_COMM_WORLD_NODE_RANK"},
};

static int read_count(const char *name, int64_t *value, struct mf_error *err)
{
    const char *text = name ? getenv(name) : NULL;

    if (!text)
        return 0;
    return mf_number_parse(text, name, 0, MF_WORLD_MAX, value, err);
}

/* SLURMD_NODENAME: the name that Slurm has for it, also where several of its
 * nodes are one machine.
 */
static const char *host_name(char *host, size_t size)
{
    const char *given = getenv("SLURMD_NODENAME");

    if (given && *given) {
        snprintf(host, size, "%s", given);
    } else if (gethostname(host, size) == 0) {
        host[size - 1] = '\0';
        host[strcspn(host, ".")] = '\0';
    } else {
        host[0] = '\0';
    }
    return host;
}

int mfl_exec_rank(
    struct mfl_rank *rank, char *host, size_t size, struct mf_error *err)
{
    for (size_t i = 0; i < sizeof starters / sizeof *starters; i++) {
        const struct starter *s = &starters[i];

        if (!getenv(s->rank) || !getenv(s->world))
            continue;
        *rank = (struct mfl_rank){.host = host_name(host, size)};
        return read_count(s->rank, &rank->rank, err) ||
                       read_count(s->world, &rank->world, err) ||
                       read_count(s->local, &rank->local, err) ||
                       read_count(s->local_world, &rank->local_world, err) ||
                       read_count(s->node, &rank->node, err)
                   ? -1
                   : 0;
    }
    return mf_error_set(err, MF_INVALID,
        "neither srun nor mpirun started this process: SLURM_PROCID and "
        "OMPI_COMM_WORLD_RANK are not set");
}

/* ---- is it the right place? ---- */

static int check_seat(const struct mfl_map *map, const struct mfl_rank *rank,
    struct mf_error *err)
{
    const char *node = mfl_map_node(map, rank->rank);
    const int64_t local = map->seat[rank->rank].local;

    if (strcmp(node, rank->host) != 0)
        return mf_error_set(err, MF_NO,
            "rank %" PRId64 " sits on %s, and the map puts it on %s; start it "
            "with --distribution=arbitrary and the host file of moefold map",
            rank->rank, rank->host, node);
    if (local != rank->local)
        return mf_error_set(err, MF_NO,
            "rank %" PRId64 " is number %" PRId64
            " on %s, and the map has it as number %" PRId64,
            rank->rank, rank->local, rank->host, local);
    return 0;
}

/* By the map: ranks on this node, and its number in the order of ranks. */
static void count_node(const struct mfl_map *map, struct mfl_rank *rank)
{
    const uint32_t node = map->seat[rank->rank].node;

    rank->node = node;
    rank->local_world = 0;
    for (int64_t r = 0; r < map->world; r++)
        rank->local_world += map->seat[r].node == node;
}

/* Devices that CUDA_VISIBLE_DEVICES names; -1: not set. */
static int64_t visible_devices(void)
{
    const char *text = getenv("CUDA_VISIBLE_DEVICES");
    int64_t count = 1;

    if (!text)
        return -1;
    if (!*text || !strcmp(text, "NoDevFiles"))
        return 0;
    for (; *text; text++)
        count += *text == ',';
    return count;
}

/* The device of this rank among those it sees. */
static int choose_device(
    const struct mfl_rank *rank, int64_t *device, struct mf_error *err)
{
    const int64_t seen = visible_devices();

    *device = rank->local;
    if (seen < 0)
        return 0;
    if (seen == 0)
        return mf_error_set(err, MF_NO,
            "rank %" PRId64 " on %s sees no GPU (CUDA_VISIBLE_DEVICES is "
            "empty)",
            rank->rank, rank->host);
    if (seen == 1) {
        *device = 0;
        if (rank->local_world > 1)
            fprintf(stderr,
                "moefold: exec: warning: rank %" PRId64
                " sees one GPU: those of its peers are hidden, which keeps "
                "NVLink from them; leave out --gpus-per-task and --gpu-bind\n",
                rank->rank);
        return 0;
    }
    if (rank->local < seen)
        return 0;
    return mf_error_set(err, MF_NO,
        "rank %" PRId64 " is number %" PRId64 " on %s, which shows %" PRId64
        " GPUs: two ranks would share one",
        rank->rank, rank->local, rank->host, seen);
}

/* ---- where ranks meet ---- */

/* The first of the step's own ports; else one that all tasks work out alike
 * from job and step.
 */
static int meeting_port(int64_t *port, struct mf_error *err)
{
    const char *reserved = getenv("SLURM_STEP_RESV_PORTS");
    int64_t job = 0, step = 0;
    char first[8] = "";

    if (reserved) {
        snprintf(first, sizeof first, "%.*s",
            (int)strspn(reserved, "0123456789"), reserved);
        return mf_number_parse(
            first, "SLURM_STEP_RESV_PORTS", 1, 65535, port, err);
    }
    if (getenv("MASTER_PORT"))
        return mf_number_parse(
            getenv("MASTER_PORT"), "MASTER_PORT", 1, 65535, port, err);
    if (read_count("SLURM_JOB_ID", &job, err) ||
        read_count("SLURM_STEP_ID", &step, err))
        return -1;
    if (job == 0)
        job = getppid();
    *port = PORT_FIRST + (job * 131 + step) % PORTS;
    return 0;
}

/* Rank 0 alone can see whether the port is free. */
static int check_port(
    const struct mfl_rank *rank, int64_t port, struct mf_error *err)
{
    struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    const int one = 1;
    int fd, rc;

    if (rank->rank != 0)
        return 0;
    fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return 0;
    rc = setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    if (rc == 0)
        rc = bind(fd, (const struct sockaddr *)&address, sizeof address);
    close(fd);
    return rc == 0 ? 0
                   : mf_error_set(err, MF_FAILED,
                         "port %" PRId64 " on %s, where the ranks are to "
                         "meet, is taken; set MASTER_PORT",
                         port, rank->host);
}

static int check_address(const char *address, struct mf_error *err)
{
    const char *given = getenv("MASTER_ADDR");

    if (!given || !*given || !strcmp(given, address))
        return 0;
    return mf_error_set(err, MF_NO,
        "MASTER_ADDR is %.200s, and rank 0 sits on %s; unset it", given,
        address);
}

static int set_count(
    struct mfl_list *env, const char *name, int64_t value, struct mf_error *err)
{
    char text[24];

    snprintf(text, sizeof text, "%" PRId64, value);
    return mfl_list_set(env, name, text, err);
}

static int fill(const struct mfl_rank *rank, const char *address,
    struct mfl_list *env, struct mf_error *err)
{
    int64_t port, device;

    if (choose_device(rank, &device, err) || check_address(address, err) ||
        meeting_port(&port, err) || check_port(rank, port, err))
        return -1;
    return mfl_list_environment(env, err) < 0 ||
                   set_count(env, "RANK", rank->rank, err) < 0 ||
                   set_count(env, "WORLD_SIZE", rank->world, err) < 0 ||
                   set_count(env, "LOCAL_RANK", rank->local, err) < 0 ||
                   set_count(env, "LOCAL_WORLD_SIZE", rank->local_world, err) <
                       0 ||
                   set_count(env, "NODE_RANK", rank->node, err) < 0 ||
                   set_count(env, "MASTER_PORT", port, err) < 0 ||
                   set_count(env, "MOEFOLD_DEVICE", device, err) < 0 ||
                   mfl_list_set(env, "MASTER_ADDR", address, err) < 0
               ? -1
               : 0;
}

int mfl_exec_prepare(const struct mf_plan *plan, struct mfl_rank *rank,
    struct mfl_list *env, struct mf_error *err)
{
    struct mfl_map map;
    int rc = 0;

    if (rank->world != plan->world)
        return mf_error_set(err, MF_NO,
            "%" PRId64 " tasks were started, and the plan has %" PRId64
            " ranks; start it with --ntasks=%" PRId64,
            rank->world, plan->world, plan->world);
    if (rank->rank >= rank->world)
        return mf_error_set(err, MF_NO, "rank %" PRId64 " of %" PRId64,
            rank->rank, rank->world);
    if (!mfl_in_allocation())
        return fill(rank, "127.0.0.1", env, err);
    if (mfl_map_make(plan, NULL, &map, err))
        return -1;
    count_node(&map, rank);
    rc = check_seat(&map, rank, err);
    if (rc == 0)
        rc = fill(rank, mfl_map_node(&map, 0), env, err);
    mfl_map_free(&map);
    return rc;
}
