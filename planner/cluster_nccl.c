/* SPDX-License-Identifier: BSD-3-Clause
 * NCCL's and RCCL's topology files.
 */
#include "config.h"

#include "planner/cluster_xml.h"

#ifdef HAVE_LIBXML2

#include <math.h>
#include <stdio.h>
#include <string.h>

#define XGMI_ASSUMED 50e9

struct nccl {
    struct mf_facts *facts;
    xmlNodePtr gpu[MF_FACTS_GPUS_MAX]; /* pci elements */
    char busid[MF_FACTS_GPUS_MAX][32];
    int gpus;
    int64_t classless, nics, nets, dark; /* dark: a NIC of unknown rate */
    double net_bytes_per_s, nic_bytes_per_s;
    int64_t self_links;
};

static bool has_child(xmlNodePtr node, const char *name)
{
    for (xmlNodePtr c = node->children; c; c = c->next)
        if (mf_xml_is(c, name))
            return true;
    return false;
}

/* Display controllers and processing accelerators. */
static bool is_gpu(xmlNodePtr pci)
{
    long class = mf_xml_integer(pci, "class", 16, 0) >> 16;
    long vendor = mf_xml_integer(pci, "vendor", 16, 0);

    if (has_child(pci, "gpu"))
        return true;
    if (vendor != 0 && vendor != 0x10de && vendor != 0x1002)
        return false;
    return class == 0x03 || class == 0x12;
}

/* The NUMA node of the CPU that a PCI device hangs on; -1: not said. */
static int32_t numa_of(xmlNodePtr pci)
{
    long numa = -1;

    for (xmlNodePtr at = pci->parent; at; at = at->parent)
        if (mf_xml_is(at, "cpu")) {
            numa = mf_xml_integer(at, "numaid", 10, -1);
            break;
        }
    return numa >= 0 && numa < 65536 ? (int32_t)numa : -1;
}

static int gpu_take(struct nccl *n, xmlNodePtr pci, struct mf_error *err)
{
    if (n->gpus == MF_FACTS_GPUS_MAX)
        return mf_error_set(
            err, MF_INVALID, "over %d GPUs in a node", MF_FACTS_GPUS_MAX);
    n->facts->numa[n->gpus] = numa_of(pci);
    mf_xml_text(pci, "busid", n->busid[n->gpus], sizeof n->busid[0]);
    n->gpu[n->gpus++] = pci;
    return 0;
}

static void nic_take(struct nccl *n, xmlNodePtr pci)
{
    double rate = mf_nic_pci((unsigned)mf_xml_integer(pci, "vendor", 16, 0),
        (unsigned)mf_xml_integer(pci, "device", 16, 0));

    n->nics++;
    if (isnan(rate))
        n->dark++;
    else
        n->nic_bytes_per_s += rate;
}

static int element_take(struct nccl *n, xmlNodePtr node, struct mf_error *err)
{
    double speed;

    if (mf_xml_is(node, "cpu")) {
        n->facts->numa_nodes += mf_xml_integer(node, "numaid", 10, -1) >= 0;
        return 0;
    }
    if (mf_xml_is(node, "net")) {
        speed = mf_xml_number(node, "speed", 0);
        if (!(speed >= 0 && speed <= 1e8))
            return mf_error_set(err, MF_INVALID,
                "line %ld: net speed is not 0 to 10^8 Mbit/s",
                xmlGetLineNo(node));
        n->nets++;
        n->net_bytes_per_s += speed * 1e6 / 8;
        return 0;
    }
    if (!mf_xml_is(node, "pci"))
        return 0;
    if (is_gpu(node))
        return gpu_take(n, node, err);
    if (mf_xml_integer(node, "class", 16, 0) >> 16 == 0x02)
        nic_take(n, node);
    else if (mf_xml_integer(node, "class", 16, 0) == 0 && !node->children)
        n->classless++;
    return 0;
}

/* "16.0 GT/s PCIe" over 16 lanes, coded 128 of 130 from generation 3 on. */
static double pcie_rate(xmlNodePtr pci)
{
    double giga = mf_xml_number(pci, "link_speed", NAN);
    double lanes = mf_xml_number(pci, "link_width", NAN);

    if (!(giga > 0 && giga < 1000 && lanes > 0 && lanes <= 64))
        return NAN;
    return giga * 1e9 / 8 * lanes * (giga >= 8 ? 128.0 / 130 : 0.8);
}

static int gpu_find(const struct nccl *n, const char *busid)
{
    for (int i = 0; i < n->gpus; i++)
        if (busid[0] && !strcmp(n->busid[i], busid))
            return i;
    return -1;
}

static xmlNodePtr gpu_element(xmlNodePtr pci)
{
    for (xmlNodePtr c = pci->children; c; c = c->next)
        if (mf_xml_is(c, "gpu"))
            return c;
    return NULL;
}

/* What one link of the GPU carries: of its device, else of the generation. */
static double one_link(const struct nccl *n, xmlNodePtr gpu, bool xgmi)
{
    if (n->facts->device && n->facts->device->one_link_bytes_per_s > 0)
        return n->facts->device->one_link_bytes_per_s;
    if (xgmi)
        return XGMI_ASSUMED;
    return mf_xml_integer(gpu, "sm", 10, 0) >= 100 ? 50e9 : 25e9;
}

static int link_take(
    struct nccl *n, int from, xmlNodePtr gpu, xmlNodePtr link, bool xgmi)
{
    long count = mf_xml_integer(link, "count", 10, 1);
    long class = mf_xml_integer(link, "tclass", 16, 0) >> 8;
    char target[32];
    double rate;
    int to;

    if (count < 1 || count > 1000)
        return -1;
    rate = (double)count * one_link(n, gpu, xgmi);
    mf_xml_text(link, "target", target, sizeof target);
    to = gpu_find(n, target);
    if (to == from)
        n->self_links++;
    else if (to >= 0)
        n->facts->link[from][to] += rate;
    else if (class == 0x0680)
        n->facts->fabric[from] += rate;
    n->facts->xgmi = xgmi;
    return 0;
}

static int links_read(struct nccl *n, struct mf_error *err)
{
    bool any = false;

    for (int i = 0; i < n->gpus; i++) {
        xmlNodePtr gpu = gpu_element(n->gpu[i]);

        for (xmlNodePtr c = gpu ? gpu->children : NULL; c; c = c->next) {
            bool xgmi = mf_xml_is(c, "xgmi");

            if (!xgmi && !mf_xml_is(c, "nvlink"))
                continue;
            any = true;
            if (link_take(n, i, gpu, c, xgmi) < 0)
                return mf_error_set(err, MF_INVALID,
                    "line %ld: the count of links is not 1 to 1000",
                    xmlGetLineNo(c));
        }
    }
    n->facts->links_known = any;
    if (!n->facts->device)
        n->facts->link_how = MF_ASSUMED;
    snprintf(n->facts->link_from, sizeof n->facts->link_from,
        "NCCL topology XML: links counted, each as of %s",
        n->facts->device ? n->facts->device->model : "its generation");
    return 0;
}

static int device_read(
    struct nccl *n, struct mf_cluster *notes, struct mf_error *err)
{
    struct mf_facts *f = n->facts;

    for (int i = 0; i < n->gpus; i++) {
        unsigned vendor = (unsigned)mf_xml_integer(n->gpu[i], "vendor", 16, 0);
        unsigned device = (unsigned)mf_xml_integer(n->gpu[i], "device", 16, 0);
        double pcie = pcie_rate(n->gpu[i]);
        const struct mf_device *found = mf_device_pci(vendor, device);

        if (i == 0)
            f->device = found;
        else if (found != f->device &&
                 mf_cluster_warn(notes, err,
                     "the GPUs of the node are of several types; the first's "
                     "figures are taken") < 0)
            return -1;
        if (i == 0 && !found && vendor)
            snprintf(f->model, sizeof f->model, "PCI device %04x:%04x",
                vendor & 0xffff, device & 0xffff);
        if (pcie > 0 && !(f->pcie_bytes_per_s <= pcie))
            f->pcie_bytes_per_s = pcie;
    }
    return 0;
}

static void nics_finish(struct nccl *n)
{
    struct mf_facts *f = n->facts;

    if (n->nets > 0) {
        f->nics = n->nets;
        f->nic_bytes_per_s = n->net_bytes_per_s > 0 ? n->net_bytes_per_s : NAN;
        snprintf(f->nic_from, sizeof f->nic_from,
            "NCCL topology XML: %lld ports for %d GPUs", (long long)n->nets,
            n->gpus);
        return;
    }
    f->nics = n->nics;
    if (n->nics > 0 && n->dark == 0)
        f->nic_bytes_per_s = n->nic_bytes_per_s;
    f->nic_how = MF_PRESET;
    snprintf(f->nic_from, sizeof f->nic_from,
        "%lld adapters for %d GPUs, rates by their PCI numbers",
        (long long)n->nics, n->gpus);
}

int mf_nccl_facts(xmlNodePtr root, struct mf_facts *facts,
    struct mf_cluster *notes, struct mf_error *err)
{
    struct nccl n = {.facts = facts};

    for (xmlNodePtr at = root; at; at = mf_xml_next(root, at))
        if (element_take(&n, at, err) < 0)
            return -1;
    facts->gpus = n.gpus;
    if (n.gpus == 0 && n.classless > 0) {
        facts->gpus = MF_GPUS_UNKNOWN;
        if (mf_cluster_warn(notes, err,
                "%lld PCI devices without a class: how many of them are GPUs "
                "is not known",
                (long long)n.classless) < 0)
            return -1;
    }
    if (device_read(&n, notes, err) < 0 || links_read(&n, err) < 0)
        return -1;
    nics_finish(&n);
    if (n.self_links > 0)
        return mf_cluster_warn(notes, err,
            "%lld GPUs have an NVLink to themselves; it counts for nothing",
            (long long)n.self_links);
    return 0;
}

#endif
