/* SPDX-License-Identifier: BSD-3-Clause
 * hwloc's XML files, of versions 1 to 3.
 */
#include "config.h"

#include "planner/cluster_xml.h"

#ifdef HAVE_LIBXML2

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define KIB 1024.0
#define NICS_MAX 256
#define XGMI_ASSUMED 50e9
#define MATRIX_MAX 256

/* A PCI device, by the numbers of its pci_type "0302 [10de:2330] [...] a1". */
struct pci {
    unsigned class, vendor, device;
};

struct hwloc {
    struct mf_facts *facts;
    int gpus;
    long object[MF_FACTS_GPUS_MAX]; /* gp_index of one that stands for a GPU */
    xmlNodePtr pci[MF_FACTS_GPUS_MAX]; /* its PCIDev; NULL: none */
    int64_t unnamed;                   /* display devices of unknown maker */
    int64_t nics, dark;
    double nic_bytes_per_s;
    xmlNodePtr matrix;
};

static bool type_is(xmlNodePtr node, const char *type)
{
    char text[32];

    if (!mf_xml_is(node, "object"))
        return false;
    mf_xml_text(node, "type", text, sizeof text);
    return !strcmp(text, type);
}

static bool pci_read(xmlNodePtr node, struct pci *pci)
{
    char text[64];

    mf_xml_text(node, "pci_type", text, sizeof text);
    return sscanf(text, "%x [%x:%x]", &pci->class, &pci->vendor,
               &pci->device) == 3;
}

/* The info NAME of an object, or empty. */
static void info_text(
    xmlNodePtr object, const char *name, char *text, size_t size)
{
    text[0] = 0;
    for (xmlNodePtr c = object->children; c; c = c->next) {
        char key[64];

        if (!mf_xml_is(c, "info"))
            continue;
        mf_xml_text(c, "name", key, sizeof key);
        if (strcmp(key, name) != 0)
            continue;
        mf_xml_text(c, "value", text, size);
        return;
    }
}

static xmlNodePtr pci_above(xmlNodePtr node)
{
    for (xmlNodePtr at = node->parent; at; at = at->parent)
        if (type_is(at, "PCIDev"))
            return at;
    return NULL;
}

/* A GPU: a display controller or accelerator of their makers. */
static bool is_gpu(const struct pci *pci)
{
    unsigned base = pci->class >> 8;

    return (base == 0x03 || base == 0x12) &&
           (pci->vendor == 0x10de || pci->vendor == 0x1002);
}

/* Memory without cores, as that of a GPU on POWER, is no place for a process.
 */
static bool is_numa(xmlNodePtr node)
{
    char set[256];

    if (!type_is(node, "NUMANode"))
        return false;
    mf_xml_text(node, "cpuset", set, sizeof set);
    return set[strspn(set, "0x,")] != 0;
}

/* NUMA nodes right under OBJECT, or under its caches of memory; the number of
 * the last one in *INDEX.
 */
static int numa_children(xmlNodePtr object, long *index)
{
    int count = 0;

    for (xmlNodePtr c = object->children; c; c = c->next) {
        if (type_is(c, "MemCache"))
            for (xmlNodePtr d = c->children; d; d = d->next)
                if (is_numa(d)) {
                    count++;
                    *index = mf_xml_integer(d, "os_index", 10, -1);
                }
        if (is_numa(c)) {
            count++;
            *index = mf_xml_integer(c, "os_index", 10, -1);
        }
    }
    return count;
}

/* In hwloc 1 a NUMA node holds what is near it; since 2 it hangs beside that,
 * on the innermost object that it is near to.
 */
static int32_t numa_of(xmlNodePtr device)
{
    long index = -1;

    for (xmlNodePtr at = device->parent; at; at = at->parent) {
        int beside = numa_children(at, &index);

        if (is_numa(at)) {
            index = mf_xml_integer(at, "os_index", 10, -1);
            beside = 1;
        }
        if (beside > 0)
            return beside == 1 && index >= 0 && index < 65536 ? (int32_t)index
                                                              : -1;
    }
    return -1;
}

static int gpu_take(struct hwloc *h, xmlNodePtr at, xmlNodePtr pci, long object,
    struct mf_error *err)
{
    if (h->gpus == MF_FACTS_GPUS_MAX)
        return mf_error_set(
            err, MF_INVALID, "over %d GPUs in a node", MF_FACTS_GPUS_MAX);
    h->facts->numa[h->gpus] = numa_of(at);
    h->pci[h->gpus] = pci;
    h->object[h->gpus++] = object;
    return 0;
}

/* What CUDA, NVML and RSMI say of a GPU; they may say it more than once. */
static void gpu_infos(struct hwloc *h, xmlNodePtr osdev)
{
    static const char *const memory[] = {"CUDAGlobalMemorySize", "RSMIVRAMSize",
        "LevelZeroHBMSize", "NVMLMemorySize"};
    struct mf_facts *f = h->facts;
    char text[64];

    info_text(osdev, "GPUModel", text, sizeof text);
    if (text[0] && !f->model[0])
        snprintf(f->model, sizeof f->model, "%s", text);
    for (size_t i = 0; i < sizeof memory / sizeof *memory; i++) {
        double kib;

        info_text(osdev, memory[i], text, sizeof text);
        kib = strtod(text, NULL);
        if (kib > 0 && kib < 1e12 && isnan(f->memory_bytes))
            f->memory_bytes = kib * KIB;
    }
}

static void nic_take(struct hwloc *h, xmlNodePtr osdev)
{
    struct pci pci;
    xmlNodePtr above = pci_above(osdev);
    double rate = NAN;
    char state[16];

    info_text(osdev, "Port1State", state, sizeof state);
    if (state[0] && strcmp(state, "4") != 0) /* its port is not active */
        return;
    if (above && pci_read(above, &pci))
        rate = mf_nic_pci(pci.vendor, pci.device);
    h->nics++;
    if (isnan(rate))
        h->dark++;
    else
        h->nic_bytes_per_s += rate;
}

/* A GPU without a PCI device, as on a package that holds both: counted by the
 * first of its names that the drivers number.
 */
static int osdev_take(struct hwloc *h, xmlNodePtr osdev, struct mf_error *err)
{
    static const char *const numbered[] = {"cuda", "nvml", "rsmi"};
    xmlNodePtr above = pci_above(osdev);
    char name[64];
    struct pci pci;

    mf_xml_text(osdev, "name", name, sizeof name);
    if (!strncmp(name, "mlx", 3) || !strncmp(name, "rdmap", 5) ||
        !strncmp(name, "bnxt_re", 7) || !strncmp(name, "efa", 3) ||
        !strncmp(name, "hfi", 3)) {
        nic_take(h, osdev);
        return 0;
    }
    gpu_infos(h, osdev);
    for (int i = 0; i < h->gpus; i++)
        if (above && h->pci[i] == above &&
            (!strncmp(name, "nvml", 4) || !strncmp(name, "rsmi", 4)))
            h->object[i] = mf_xml_integer(osdev, "gp_index", 10, -1);
    if (above && pci_read(above, &pci))
        return 0;
    for (size_t i = 0; i < sizeof numbered / sizeof *numbered; i++)
        if (!strncmp(name, numbered[i], 4) && isdigit((unsigned char)name[4]) &&
            (h->gpus == 0 || strtol(name + 4, NULL, 10) >= h->gpus))
            return gpu_take(
                h, osdev, NULL, mf_xml_integer(osdev, "gp_index", 10, -1), err);
    return 0;
}

static int object_take(struct hwloc *h, xmlNodePtr node, struct mf_error *err)
{
    struct pci pci;
    char name[32];

    if (type_is(node, "OSDev"))
        return osdev_take(h, node, err);
    h->facts->numa_nodes += is_numa(node);
    if (mf_xml_is(node, "distances2") || mf_xml_is(node, "distances2hetero")) {
        mf_xml_text(node, "name", name, sizeof name);
        if (!strcmp(name, "NVLinkBandwidth") || !strcmp(name, "XGMIBandwidth"))
            h->matrix = node;
        return 0;
    }
    if (!type_is(node, "PCIDev") || !pci_read(node, &pci))
        return 0;
    if (is_gpu(&pci))
        return gpu_take(h, node, node, -1, err);
    h->unnamed += pci.class >> 8 == 0x03 && pci.vendor == 0;
    return 0;
}

/* ---- the bandwidth matrix ---- */

struct numbers {
    double value[MATRIX_MAX * MATRIX_MAX];
    size_t count;
};

/* The numbers in the elements NAME; "OSDev:802" counts as 802. -1: not so. */
static int numbers_read(
    xmlNodePtr matrix, const char *name, size_t most, struct numbers *numbers)
{
    numbers->count = 0;
    for (xmlNodePtr c = matrix->children; c; c = c->next) {
        const char *at;

        if (!mf_xml_is(c, name) || !c->children || !c->children->content)
            continue;
        at = (const char *)c->children->content;
        for (at += strspn(at, " \t\r\n"); *at; at += strspn(at, " \t\r\n")) {
            const char *colon = at + strcspn(at, ": \t\r\n");
            char *end;
            double value = strtod(*colon == ':' ? colon + 1 : at, &end);

            if (end == at || numbers->count == most || !(value >= 0) ||
                value > 1e12)
                return -1;
            numbers->value[numbers->count++] = value;
            at = end;
        }
    }
    return 0;
}

static int gpu_of_object(const struct hwloc *h, double object)
{
    for (int i = 0; i < h->gpus; i++)
        if ((double)h->object[i] == object)
            return i;
    return -1;
}

/* hwloc gives MB/s, of NVLink those of all links of a pair. Of xGMI it only
 * says that there is a link, with one figure for all.
 */
static void matrix_use(struct hwloc *h, size_t n, const struct numbers *object,
    const struct numbers *value, bool xgmi)
{
    const struct mf_device *d = h->facts->device;
    double link = d && d->link_bytes_per_s > 0 && h->gpus > 1
                      ? d->link_bytes_per_s / (h->gpus - 1)
                      : XGMI_ASSUMED;

    for (size_t i = 0; i < n; i++) {
        int a = gpu_of_object(h, object->value[i]);

        for (size_t j = 0; a >= 0 && j < n; j++) {
            int b = gpu_of_object(h, object->value[j]);
            double rate = value->value[i * n + j] * 1e6;

            if (a == b || !(rate > 0))
                continue;
            if (b >= 0)
                h->facts->link[a][b] = xgmi ? link : rate;
            else
                h->facts->fabric[a] += rate;
        }
    }
    h->facts->links_known = true;
    h->facts->xgmi = xgmi;
    h->facts->link_how = xgmi ? MF_ASSUMED : MF_READ;
    snprintf(h->facts->link_from, sizeof h->facts->link_from, "hwloc XML, %s",
        xgmi ? "which GPUs are joined; as fast as the device's sheet says"
             : "NVLinkBandwidth");
}

static int matrix_read(struct hwloc *h, struct mf_error *err)
{
    struct numbers *object, *value;
    long n = h->matrix ? mf_xml_integer(h->matrix, "nbobjs", 10, 0) : 0;
    char name[32];
    int rc = -1;

    if (!h->matrix)
        return 0;
    object = malloc(sizeof *object);
    value = malloc(sizeof *value);
    if (!object || !value)
        mf_error_set(err, MF_FAILED, "out of memory");
    else if (n < 1 || n > MATRIX_MAX ||
             numbers_read(h->matrix, "indexes", (size_t)n, object) < 0 ||
             numbers_read(h->matrix, "u64values", (size_t)(n * n), value) < 0 ||
             object->count != (size_t)n || value->count != (size_t)(n * n))
        mf_error_set(err, MF_INVALID,
            "line %ld: the bandwidth matrix is not one of 1 to %d objects, "
            "with a number for each pair",
            xmlGetLineNo(h->matrix), MATRIX_MAX);
    else {
        mf_xml_text(h->matrix, "name", name, sizeof name);
        matrix_use(h, (size_t)n, object, value, name[0] == 'X');
        rc = 0;
    }
    free(object);
    free(value);
    return rc;
}

/* On POWER the links of a GPU go to the CPU and to the GPUs of its package, as
 * many to each; hwloc does not say so.
 */
static void power_links(struct hwloc *h, xmlNodePtr root)
{
    const struct mf_device *d = h->facts->device;
    xmlNodePtr package[MF_FACTS_GPUS_MAX] = {NULL};
    char architecture[32] = "";

    for (xmlNodePtr c = root->children; c; c = c->next)
        if (mf_xml_is(c, "object"))
            info_text(c, "Architecture", architecture, sizeof architecture);
    if (h->facts->links_known || !d || !d->link ||
        strncmp(architecture, "ppc64", 5) != 0)
        return;
    for (int i = 0; i < h->gpus; i++)
        for (xmlNodePtr at = h->pci[i]; at && !package[i]; at = at->parent)
            package[i] = type_is(at, "Package") ? at : NULL;
    for (int a = 0; a < h->gpus; a++) {
        int here = 0;

        for (int b = 0; b < h->gpus; b++)
            here += package[b] && package[b] == package[a];
        for (int b = 0; b < h->gpus; b++)
            if (a != b && package[b] && package[b] == package[a])
                h->facts->link[a][b] = d->link_bytes_per_s / here;
    }
    h->facts->links_known = true;
    h->facts->link_how = MF_ASSUMED;
    snprintf(h->facts->link_from, sizeof h->facts->link_from,
        "POWER: links shared among the GPUs of a package and its CPU");
}

/* ---- all of it ---- */

static void device_read(struct hwloc *h)
{
    struct mf_facts *f = h->facts;

    for (int i = 0; i < h->gpus; i++) {
        double pcie =
            h->pci[i] ? mf_xml_number(h->pci[i], "pci_link_speed", 0) : 0;
        struct pci pci;

        if (h->pci[i] && !f->device && pci_read(h->pci[i], &pci))
            f->device = mf_device_pci(pci.vendor, pci.device);
        if (pcie > 0 && pcie < 1e4 && !(f->pcie_bytes_per_s <= pcie * 1e9))
            f->pcie_bytes_per_s = pcie * 1e9;
    }
    if (!f->device && f->model[0])
        f->device = mf_device_find(f->model);
}

static void nics_finish(struct hwloc *h)
{
    struct mf_facts *f = h->facts;

    f->nics = h->nics;
    f->nic_how = MF_PRESET;
    if (h->nics > 0 && h->dark == 0)
        f->nic_bytes_per_s = h->nic_bytes_per_s;
    snprintf(f->nic_from, sizeof f->nic_from,
        "%lld adapters for %d GPUs, rates by their PCI numbers",
        (long long)h->nics, h->gpus);
}

static void host_read(xmlNodePtr root, struct mf_facts *facts)
{
    for (xmlNodePtr c = root->children; c; c = c->next)
        if (mf_xml_is(c, "object"))
            info_text(c, "HostName", facts->host, sizeof facts->host);
    if (!facts->host[0])
        info_text(root, "HostName", facts->host, sizeof facts->host);
}

/* No GPU was seen: because there is none, or because it is not shown. */
static int none_settle(struct hwloc *h, xmlNodePtr root,
    struct mf_cluster *notes, struct mf_error *err)
{
    char product[64] = "";

    if (h->gpus > 0)
        return 0;
    for (xmlNodePtr c = root->children; c; c = c->next)
        if (mf_xml_is(c, "object"))
            info_text(c, "DMIProductName", product, sizeof product);
    if (strstr(product, "DGX_Spark")) {
        h->facts->gpus = 1;
        h->facts->device = mf_device_find("gb10");
        return mf_cluster_warn(notes, err,
            "no GPU is shown; a DGX Spark has one GB10 on its package");
    }
    h->facts->gpus = MF_GPUS_UNKNOWN;
    if (h->unnamed > 0)
        return mf_cluster_warn(notes, err,
            "%lld display devices of unknown maker: how many of them are GPUs "
            "is not known",
            (long long)h->unnamed);
    return mf_cluster_warn(notes, err,
        "no GPU is shown; lstopo shows them with --whole-io and the drivers' "
        "libraries at hand");
}

int mf_hwloc_facts(xmlNodePtr root, struct mf_facts *facts,
    struct mf_cluster *notes, struct mf_error *err)
{
    struct hwloc h = {.facts = facts};

    for (xmlNodePtr at = root; at; at = mf_xml_next(root, at))
        if (object_take(&h, at, err) < 0)
            return -1;
    facts->gpus = h.gpus;
    device_read(&h);
    if (matrix_read(&h, err) < 0)
        return -1;
    power_links(&h, root);
    host_read(root, facts);
    nics_finish(&h);
    return none_settle(&h, root, notes, err);
}

#endif
