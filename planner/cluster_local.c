/* SPDX-License-Identifier: BSD-3-Clause
 * This machine as a cluster of CPU ranks.
 *
 * Figures of gpu{} are those of one core while its peers work too; with more
 * ranks than cores the cost model divides them. Rates are measured once a day
 * and kept in the database, if there is one that can be written.
 */
#include "config.h"

#include "planner/cluster_parts.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "db/db.h"
#include "planner/child.h"
#include "planner/cluster_local_gpu.h"
#include "planner/cluster_machine.h"
#include "planner/layout/layout.h"

#define DAY_S 86400.0
#define PROBE_S 20
#define ASSUMED_LATENCY_S 1e-6

/* Through shared memory a byte is read and written twice, so the copy rate,
 * which counts both, is four times that of an exchange.
 */
#define COPIES 4

enum figure { COPY, SGEMM, EXCHANGE, LATENCY, FIGURES };

static const char *const figure_name[] = {
    "copy_bytes_per_s", "sgemm_flops", "exchange_bytes_per_s", "latency_s"};

struct local {
    struct mf_machine machine;
    int64_t devices, busy; /* ranks, and cores that they keep busy */
    double value[FIGURES];
    bool probed; /* value[EXCHANGE] and [LATENCY] are measured */
    bool cached;
};

/* ---- the cache; without it all is measured anew ---- */

static mfdb *cache_open(const char *file)
{
    char text[MFDB_ERROR_TEXT];
    char *path = file ? NULL : mfdb_default_path(text);
    mfdb *db = NULL;

    if (file || path)
        db = mfdb_open(file ? file : path, MFDB_UPDATE, text);
    free(path);
    return db;
}

static void cache_key(
    const struct local *local, int figure, char *key, size_t size)
{
    snprintf(key, size, "local/%s/%s/%lld cores/%s/%s", local->machine.host,
        local->machine.cpu, (long long)local->busy, mf_machine_sgemm_name(),
        figure_name[figure]);
}

static bool cache_get(
    mfdb *db, const struct local *local, int figure, double *value)
{
    char key[512], text[MFDB_ERROR_TEXT];

    if (!db)
        return false;
    cache_key(local, figure, key, sizeof key);
    return mfdb_cache_get(db, key, DAY_S, value, text) == 1 &&
           isfinite(*value) && *value > 0;
}

static void cache_put(mfdb *db, const struct local *local, int figure)
{
    char key[512], text[MFDB_ERROR_TEXT];

    if (!db)
        return;
    cache_key(local, figure, key, sizeof key);
    /* A figure that cannot be kept is measured again. */
    (void)mfdb_cache_put(db, key, local->value[figure], text);
}

/* ---- the exchange rate between two ranks ---- */

static bool probe_read(const struct mf_child *child, struct local *local)
{
    json_t *json;
    double rate, latency;

    if (child->end != MF_CHILD_EXITED || child->status != 0)
        return false;
    json =
        json_loadb(child->output, child->length, JSON_DISABLE_EOF_CHECK, NULL);
    rate = json_number_value(json_object_get(json, "bytes_per_s"));
    latency = json_number_value(json_object_get(json, "latency_s"));
    json_decref(json);
    if (!(rate > 0) || !(latency > 0) || !isfinite(rate + latency))
        return false;
    local->value[EXCHANGE] = rate;
    local->value[LATENCY] = latency;
    return true;
}

static bool probe_run(const char *runner, struct local *local)
{
    char mpirun[] = "mpirun", n[] = "-n", two[] = "2", probe[] = "--probe";
    char *path = strdup(runner), *argv[6] = {mpirun, n, two, path, probe, NULL};
    const char *env[8] = {"OPENBLAS_NUM_THREADS=1"};
    struct mf_child_limits limits = {
        .seconds = PROBE_S, .output_bytes = (size_t)1 << 20};
    struct mf_error ignored;
    struct mf_child child;
    bool ok = false;
    int used = 1;

    if (geteuid() == 0) {
        env[used++] = "OMPI_ALLOW_RUN_AS_ROOT=1";
        env[used++] = "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1";
    }
    if (local->machine.cores < 2)
        env[used++] = "OMPI_MCA_rmaps_base_oversubscribe=1";
    if (local->devices > local->machine.cores || local->machine.cores < 2)
        env[used++] = "OMPI_MCA_mpi_yield_when_idle=1";
    if (path && mf_child_program(argv, env, &limits, &child, &ignored) == 0) {
        ok = probe_read(&child, local);
        mf_child_free(&child);
    }
    free(path);
    return ok;
}

/* ---- all figures ---- */

static int rates_get(mfdb *db, struct local *local, struct mf_error *err)
{
    struct mf_rates rates;

    if (cache_get(db, local, COPY, &local->value[COPY]) &&
        cache_get(db, local, SGEMM, &local->value[SGEMM])) {
        local->cached = true;
        return 0;
    }
    if (mf_machine_measure(&local->machine, local->busy, &rates, err) < 0)
        return -1;
    local->value[COPY] = rates.copy_bytes_per_s;
    local->value[SGEMM] = rates.sgemm_flops;
    cache_put(db, local, COPY);
    cache_put(db, local, SGEMM);
    return 0;
}

static void exchange_get(mfdb *db, const char *runner, struct local *local)
{
    if (cache_get(db, local, EXCHANGE, &local->value[EXCHANGE]) &&
        cache_get(db, local, LATENCY, &local->value[LATENCY])) {
        local->probed = true;
        return;
    }
    if (runner && probe_run(runner, local)) {
        local->probed = true;
        cache_put(db, local, EXCHANGE);
        cache_put(db, local, LATENCY);
        return;
    }
    local->value[EXCHANGE] = local->value[COPY] / COPIES;
    local->value[LATENCY] = ASSUMED_LATENCY_S;
}

static int local_measure(
    const struct mf_cluster_ask *ask, struct local *local, struct mf_error *err)
{
    mfdb *db = cache_open(ask->db_file);
    int rc = rates_get(db, local, err);

    if (rc == 0)
        exchange_get(db, ask->runner, local);
    mfdb_close(db);
    return rc;
}

static int local_sources(
    const struct local *local, struct mf_cluster *cluster, struct mf_error *err)
{
    const char *kept = local->cached ? ", at most a day ago" : "";
    char copy[128], sgemm[128];

    snprintf(copy, sizeof copy, "memcpy on %lld cores at once%s",
        (long long)local->busy, kept);
    snprintf(sgemm, sizeof sgemm, "SGEMM by %s, %lld cores at once%s",
        mf_machine_sgemm_name(), (long long)local->busy, kept);
    if (mf_cluster_add_source(
            cluster, "gpu.model", MF_READ, local->machine.from, err) < 0 ||
        mf_cluster_add_source(
            cluster, "cores", MF_READ, local->machine.from, err) < 0 ||
        mf_cluster_add_source(cluster, "gpu.memory_bytes", MF_READ,
            "the machine's memory, shared among the ranks", err) < 0 ||
        mf_cluster_add_source(
            cluster, "gpu.hbm_bytes_per_s", MF_MEASURED, copy, err) < 0)
        return -1;
    return mf_cluster_add_source(
        cluster, "gpu.bf16_flops", MF_MEASURED, sgemm, err);
}

static int local_tier(
    const struct local *local, struct mf_cluster *cluster, struct mf_error *err)
{
    struct mf_tier node = {.name = "node",
        .size = local->devices,
        .bytes_per_s = local->value[EXCHANGE],
        .latency_s = local->value[LATENCY]};

    if (local->probed)
        return mf_cluster_add_tier(cluster, &node, MF_MEASURED,
            "moefold-run --probe, 2 ranks", "moefold-run --probe, 2 ranks",
            err);
    return mf_cluster_add_tier(cluster, &node, MF_ASSUMED,
        "a quarter of the measured copy rate: two copies, read and written",
        "shared memory, not measured: no moefold-run under mpirun", err);
}

static int local_describe(
    const struct local *local, struct mf_cluster *cluster, struct mf_error *err)
{
    const struct mf_machine *machine = &local->machine;

    snprintf(cluster->name, sizeof cluster->name, "local");
    cluster->cpu_ranks = true;
    cluster->cores = machine->cores;
    snprintf(cluster->gpu.model, sizeof cluster->gpu.model, "%s", machine->cpu);
    cluster->gpu.memory_bytes =
        machine->memory_bytes > 0
            ? floor((double)machine->memory_bytes / (double)local->devices)
            : NAN;
    cluster->gpu.bf16_flops = local->value[SGEMM];
    cluster->gpu.hbm_bytes_per_s = local->value[COPY];
    if (mf_cluster_add_node(cluster, machine->host, local->devices, err) < 0 ||
        local_tier(local, cluster, err) < 0 ||
        local_sources(local, cluster, err) < 0)
        return -1;
    if (local->devices <= machine->cores)
        return 0;
    return mf_cluster_warn(cluster, err,
        "oversubscribed: %lld ranks share %lld cores",
        (long long)local->devices, (long long)machine->cores);
}

/* This machine's GPUs, where it has as many as the world asks. *GPUS: how many
 * there are, 0: CPU ranks are to be described.
 */
static int gpus_describe(int64_t world, int64_t *gpus,
    struct mf_cluster *cluster, struct mf_error *err)
{
    struct mf_facts *facts = malloc(sizeof *facts);
    struct mf_machine machine;
    int rc = 0;

    *gpus = 0;
    if (!facts)
        return mf_error_set(err, MF_FAILED, "cluster: out of memory");
    *gpus = mf_local_gpus(facts);
    if (*gpus > 0 && *gpus >= world) {
        mf_machine_read(&machine);
        snprintf(facts->host, sizeof facts->host, "%s", machine.host);
        rc = mf_facts_cluster(facts, "local", "nvidia-smi", cluster, err);
    }
    free(facts);
    return rc;
}

int mf_local_read(const struct mf_cluster_ask *ask, struct mf_cluster *cluster,
    struct mf_error *err)
{
    struct local local = {0};
    int64_t gpus;

    *cluster = (struct mf_cluster){0};
    if (ask->world < 0 || ask->world > MF_WORLD_MAX)
        return mf_error_set(err, MF_INVALID, "world is %lld, not 1 to %lld",
            (long long)ask->world, (long long)MF_WORLD_MAX);
    if (gpus_describe(ask->world, &gpus, cluster, err) < 0)
        return -1;
    if (cluster->nodes > 0)
        return 0;
    mf_machine_read(&local.machine);
    local.devices = ask->world ? ask->world : local.machine.cores;
    local.busy = local.devices < local.machine.cores ? local.devices
                                                     : local.machine.cores;
    if (local_measure(ask, &local, err) < 0)
        return -1;
    if (local_describe(&local, cluster, err) == 0 &&
        (gpus == 0 ||
            mf_cluster_warn(cluster, err,
                "this machine has %lld GPUs, fewer than the %lld devices asked "
                "for: these are CPU ranks",
                (long long)gpus, (long long)ask->world) == 0))
        return 0;
    mf_cluster_free(cluster);
    return -1;
}
