/* SPDX-License-Identifier: BSD-3-Clause
 * What this machine is: cores, memory, caches and name.
 */
#include "config.h"

#include "planner/cluster_machine.h"

#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#ifdef HAVE_HWLOC
#include <hwloc.h>
#endif

static int64_t sysconf_or(int name, int64_t otherwise)
{
    long value = sysconf(name);

    return value > 0 ? value : otherwise;
}

static void text_trim(char *text)
{
    size_t length = strlen(text);

    while (length > 0 && (unsigned char)text[length - 1] <= ' ')
        text[--length] = 0;
}

static void cpu_from_proc(char *cpu, size_t size)
{
    FILE *file = fopen("/proc/cpuinfo", "re");
    char line[512];

    snprintf(cpu, size, "CPU");
    while (file && fgets(line, sizeof line, file)) {
        const char *value = strchr(line, ':');

        if (strncmp(line, "model name", 10) || !value)
            continue;
        value += 1 + strspn(value + 1, " \t");
        snprintf(cpu, size, "%.*s", (int)strcspn(value, "\r\n"), value);
        break;
    }
    if (file)
        fclose(file);
    text_trim(cpu);
}

static void machine_from_sysconf(struct mf_machine *machine)
{
    cpu_set_t allowed;

    machine->from = "sysconf";
    machine->cores = sysconf_or(_SC_NPROCESSORS_ONLN, 1);
    if (sched_getaffinity(0, sizeof allowed, &allowed) == 0 &&
        CPU_COUNT(&allowed) > 0)
        machine->cores = CPU_COUNT(&allowed);
    if (__builtin_mul_overflow(sysconf_or(_SC_PHYS_PAGES, 0),
            sysconf_or(_SC_PAGESIZE, 4096), &machine->memory_bytes))
        machine->memory_bytes = 0;
    machine->cache_bytes = sysconf_or(_SC_LEVEL3_CACHE_SIZE, 32 << 20);
    cpu_from_proc(machine->cpu, sizeof machine->cpu);
}

/* Memory stays what the kernel says: where it was added to a running machine,
 * the NUMA nodes that hwloc sums know only the part there at the start.
 */
#ifdef HAVE_HWLOC

/* Cores of which this process may use at least one thread. */
static int64_t cores_allowed(hwloc_topology_t topology)
{
    hwloc_bitmap_t mine = hwloc_bitmap_alloc();
    int count = hwloc_get_nbobjs_by_type(topology, HWLOC_OBJ_CORE);
    int64_t cores = 0;

    if (!mine ||
        hwloc_get_cpubind(topology, mine, HWLOC_CPUBIND_PROCESS) != 0 ||
        hwloc_bitmap_iszero(mine)) {
        hwloc_bitmap_free(mine);
        return count;
    }
    for (int i = 0; i < count; i++) {
        hwloc_obj_t core =
            hwloc_get_obj_by_type(topology, HWLOC_OBJ_CORE, (unsigned)i);

        cores += core && hwloc_bitmap_intersects(core->cpuset, mine);
    }
    hwloc_bitmap_free(mine);
    return cores;
}

static int64_t last_cache_bytes(hwloc_topology_t topology)
{
    static const hwloc_obj_type_t type[] = {
        HWLOC_OBJ_L4CACHE, HWLOC_OBJ_L3CACHE, HWLOC_OBJ_L2CACHE};

    for (size_t t = 0; t < sizeof type / sizeof *type; t++) {
        int count = hwloc_get_nbobjs_by_type(topology, type[t]);
        int64_t bytes = 0;

        for (int i = 0; i < count; i++) {
            hwloc_obj_t cache =
                hwloc_get_obj_by_type(topology, type[t], (unsigned)i);

            bytes += cache ? (int64_t)cache->attr->cache.size : 0;
        }
        if (bytes > 0)
            return bytes;
    }
    return 0;
}

static void machine_from_hwloc(struct mf_machine *machine)
{
    hwloc_topology_t topology;
    hwloc_obj_t package;
    const char *name = NULL;
    int64_t cores, cache;

    if (hwloc_topology_init(&topology) != 0)
        return;
    if (hwloc_topology_load(topology) != 0)
        goto out;
    machine->from = "hwloc";
    package = hwloc_get_obj_by_type(topology, HWLOC_OBJ_PACKAGE, 0);
    cores = cores_allowed(topology);
    cache = last_cache_bytes(topology);
    if (cores > 0)
        machine->cores = cores;
    if (cache > 0)
        machine->cache_bytes = cache;
    if (package)
        name = hwloc_obj_get_info_by_name(package, "CPUModel");
    if (name && *name) {
        snprintf(machine->cpu, sizeof machine->cpu, "%s", name);
        text_trim(machine->cpu);
    }
out:
    hwloc_topology_destroy(topology);
}

#else

static void machine_from_hwloc(struct mf_machine *machine)
{
    (void)machine;
}

#endif

static void host_read(char *host, size_t size)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyz"
                                "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";

    if (gethostname(host, size) != 0)
        host[0] = 0;
    host[size - 1] = 0;
    if (!host[0] || host[0] == '-' || host[strspn(host, plain)])
        snprintf(host, size, "localhost");
}

void mf_machine_read(struct mf_machine *machine)
{
    *machine = (struct mf_machine){0};
    machine_from_sysconf(machine);
    machine_from_hwloc(machine);
    mf_machine_limit("/proc/self/cgroup", "/sys/fs/cgroup", machine);
    host_read(machine->host, sizeof machine->host);
}
