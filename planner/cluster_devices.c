/* SPDX-License-Identifier: BSD-3-Clause
 * Published figures of devices, found by name or by PCI numbers.
 */
#include "config.h"

#include "planner/cluster_parts.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define MIB 1048576.0
#define GIB (1024 * MIB)
#define COUNT(list) (sizeof(list) / sizeof *(list))
#define SHEET "vendor data sheet"

/* Rates are for one direction. Peaks are those that published MFU figures were
 * made with. A variant is a further word of the name (pcie, nvl, 40gb) that
 * makes it another device; devices that do not compute in bf16 have no peak.
 * PCI numbers are vendor and device.
 */
static const struct mf_device devices[] = {
    {"a100", "40gb", "A100-40GB", 40 * GIB, 312e12, 1.555e12, "nvlink", 300e9,
        25e9, 25e9, SHEET, {0x10de20b0}, false},
    {"a100", "pcie", "A100-PCIe", 80 * GIB, 312e12, 1.935e12, NULL, NAN, 25e9,
        25e9, SHEET, {0x10de20b5, 0x10de20f1}, false},
    {"a100", NULL, "A100", 80 * GIB, 312e12, 2.039e12, "nvlink", 300e9, 25e9,
        25e9, "aiconfigurator a100_sxm.yaml", {0x10de20b2, 0x10de20b3}, false},
    {"h100", "pcie", "H100-PCIe", 80 * GIB, 756e12, 2.0e12, NULL, NAN, 25e9,
        50e9, SHEET, {0x10de2331}, false},
    {"h100", "nvl", "H100-NVL", 94 * GIB, 835e12, 3.9e12, NULL, NAN, 25e9, 50e9,
        SHEET, {0x10de2321}, false},
    {"h100", NULL, "H100", 80 * GIB, 989e12, 3.35e12, "nvlink", 450e9, 25e9,
        50e9, "aiconfigurator h100_sxm.yaml", {0x10de2330}, false},
    {"h800", NULL, "H800", 80 * GIB, 989e12, 3.35e12, "nvlink", 200e9, 25e9,
        50e9, "vendor tables: an H100 with a narrower NVLink", {0x10de2324},
        false},
    {"h200", "nvl", "H200-NVL", 141e9, 835e12, 4.8e12, NULL, NAN, 25e9, 50e9,
        SHEET, {0x10de233b}, false},
    {"h200", NULL, "H200", 141e9, 989e12, 4.8e12, "nvlink", 450e9, 25e9, 50e9,
        "aiconfigurator h200_sxm.yaml", {0x10de2335}, false},
    {"h20", NULL, "H20", 96e9, 148e12, 4.0e12, "nvlink", 450e9, 25e9, 50e9,
        SHEET, {0x10de2329}, false},
    {"gh200", NULL, "GH200", 96e9, 989e12, 4.0e12, "nvlink", 450e9, 25e9, 50e9,
        SHEET, {0x10de2342}, false},
    {"b200", NULL, "B200", 180 * GIB, 2250e12, 7.7e12, "nvlink", 900e9, 50e9,
        50e9, "aiconfigurator b200_sxm.yaml, 400G NIC", {0x10de2901}, false},
    {"b300", NULL, "B300", 288e9, 2250e12, 8e12, "nvlink", 900e9, 50e9, 100e9,
        "vendor tables; peak of dgxc-benchmarking", {0x10de3182}, false},
    {"gb200", NULL, "GB200", 189471 * MIB, 2450e12, 8e12, "nvlink", 900e9, 50e9,
        100e9, "aiconfigurator gb200.yaml; peak of dgxc-benchmarking",
        {0x10de2941}, true},
    {"gb300", NULL, "GB300", 288e9, 2450e12, 8e12, "nvlink", 900e9, 50e9, 100e9,
        "vendor tables; peak of dgxc-benchmarking", {0x10de31c2}, true},
    {"v100", "32gb", "V100-32GB", 32 * GIB, NAN, 0.9e12, "nvlink", 150e9, 25e9,
        12.5e9, SHEET, {0x10de1db5, 0x10de1db8}, false},
    {"v100", "pcie", "V100-PCIe", 16 * GIB, NAN, 0.9e12, NULL, NAN, 25e9,
        12.5e9, SHEET, {0x10de1db4, 0x10de1db6}, false},
    {"v100", NULL, "V100", 16 * GIB, NAN, 0.9e12, "nvlink", 150e9, 25e9, 12.5e9,
        SHEET, {0x10de1db1}, false},
    {"t4", NULL, "T4", 16e9, NAN, 0.32e12, NULL, NAN, 25e9, NAN, SHEET,
        {0x10de1eb8}, false},
    {"a10", NULL, "A10", 24e9, 125e12, 0.6e12, NULL, NAN, 25e9, NAN, SHEET,
        {0x10de2236}, false},
    {"a10g", NULL, "A10G", 24e9, 70e12, 0.6e12, NULL, NAN, 25e9, NAN, SHEET,
        {0x10de2237}, false},
    {"a30", NULL, "A30", 24e9, 165e12, 0.933e12, NULL, NAN, 25e9, NAN, SHEET,
        {0x10de20b7}, false},
    {"a40", NULL, "A40", 48e9, 149.7e12, 0.696e12, NULL, NAN, 25e9, NAN, SHEET,
        {0x10de2235}, false},
    {"l4", NULL, "L4", 24e9, 121e12, 0.3e12, NULL, NAN, 25e9, NAN, SHEET,
        {0x10de27b8}, false},
    {"l40", NULL, "L40", 48e9, 181e12, 0.864e12, NULL, NAN, 25e9, NAN, SHEET,
        {0x10de26b5}, false},
    {"l40s", NULL, "L40S", 48e9, 362e12, 0.864e12, NULL, NAN, 25e9, NAN, SHEET,
        {0x10de26b9}, false},
    {"m60", NULL, "M60", 8e9, NAN, 0.16e12, NULL, NAN, 25e9, NAN, SHEET,
        {0x10de13f2}, false},
    {"3090", NULL, "RTX3090", 24e9, 71e12, 0.936e12, NULL, NAN, 25e9, NAN,
        SHEET, {0x10de2204}, false},
    {"4090", NULL, "RTX4090", 24e9, 165e12, 1.008e12, NULL, NAN, 25e9, NAN,
        SHEET, {0x10de2684}, false},
    {"5090", NULL, "RTX5090", 32e9, 209e12, 1.792e12, NULL, NAN, 25e9, NAN,
        SHEET, {0x10de2b85}, false},
    {"gb10", NULL, "GB10", 128e9, NAN, 0.273e12, NULL, NAN, 25e9, NAN, SHEET,
        {0x10de2e12}, false},
    {"mi300x", NULL, "MI300X", 192e9, 1307e12, 5.3e12, "xgmi", 448e9, 64e9,
        50e9, "Primus mi300x.yaml, vendor pages", {0x100274a1, 0x100274b5},
        false},
    {"mi325x", NULL, "MI325X", 256e9, 1307e12, 6e12, "xgmi", 448e9, 64e9, 50e9,
        SHEET, {0x100274a5}, false},
    {"mi355x", NULL, "MI355X", 288e9, 2500e12, 8e12, "xgmi", 538e9, 76.8e9,
        50e9, "vendor pages", {0x100275a3}, false},
    {"mi300a", NULL, "MI300A", 128e9, 980e12, 5.3e12, "xgmi", 384e9, 64e9, 25e9,
        SHEET, {0x100274a0}, false},
    {"mi250x", NULL, "MI250X", 64 * GIB, 191.5e12, 1.6e12, "xgmi", 300e9, 50e9,
        25e9, "vendor data sheet, one of two dies", {0x10027408, 0x1002740c},
        false},
    {"mi210", NULL, "MI210", 64 * GIB, 181e12, 1.6e12, NULL, NAN, 50e9, 25e9,
        SHEET, {0x1002740f}, false},
    {"mi100", NULL, "MI100", 32e9, 92.3e12, 1.2e12, NULL, NAN, 46e9, 25e9,
        SHEET, {0x1002738c}, false},
    {"mi50", NULL, "MI50", 32e9, NAN, 1.0e12, NULL, NAN, 46e9, 12.5e9, SHEET,
        {0x100266a1}, false},
};

static bool word_is(const char *word, size_t length, const char *key)
{
    return strlen(key) == length && !strncasecmp(word, key, length);
}

/* A slice of a GPU as MIG names it: "3g". */
static bool is_slice(const char *word, size_t length)
{
    return length == 2 && isdigit((unsigned char)word[0]) &&
           (word[1] == 'g' || word[1] == 'G');
}

static bool has_word(const char *text, const char *key)
{
    static const char breaks[] = "_-. ,:()/";

    while (*text) {
        size_t length = strcspn(text, breaks);

        if (key ? word_is(text, length, key) : is_slice(text, length))
            return true;
        text += length;
        text += strspn(text, breaks);
    }
    return false;
}

const struct mf_device *mf_device_find(const char *type)
{
    bool special = has_word(type, "pcie") || has_word(type, "nvl") ||
                   has_word(type, "pci");

    if (has_word(type, NULL) || strchr(type, ':'))
        return NULL;
    for (size_t i = 0; i < COUNT(devices); i++) {
        const struct mf_device *d = &devices[i];

        if (!has_word(type, d->key))
            continue;
        if (d->variant ? has_word(type, d->variant) : !special || !d->link)
            return d;
    }
    return NULL;
}

const struct mf_device *mf_device_pci(unsigned vendor, unsigned device)
{
    uint32_t id = (uint32_t)vendor << 16 | (device & 0xffff);

    for (size_t i = 0; i < COUNT(devices); i++)
        for (size_t j = 0; j < COUNT(devices[i].pci); j++)
            if (id && devices[i].pci[j] == id)
                return &devices[i];
    return NULL;
}

/* Adapters by PCI numbers: what their ports carry together, one direction. */
double mf_nic_pci(unsigned vendor, unsigned device)
{
    static const struct {
        uint32_t pci;
        double bytes_per_s;
    } nic[] = {{0x15b31013, 12.5e9}, {0x15b31015, 3.125e9},
        {0x15b31017, 12.5e9}, {0x15b31019, 12.5e9}, {0x15b3101b, 25e9},
        {0x15b3101d, 12.5e9}, {0x15b3101f, 3.125e9}, {0x15b31021, 50e9},
        {0x15b31023, 100e9}, {0x15b3a2d6, 25e9}, {0x15b3a2dc, 50e9},
        {0x1d0fefa0, 12.5e9}, {0x1d0fefa1, 12.5e9}, {0x1d0fefa2, 25e9},
        {0x1d0fefa3, 50e9}};
    uint32_t id = (uint32_t)vendor << 16 | (device & 0xffff);

    for (size_t i = 0; i < COUNT(nic); i++)
        if (nic[i].pci == id)
            return nic[i].bytes_per_s;
    return NAN;
}

int mf_device_describe(struct mf_cluster *cluster,
    const struct mf_device *device, struct mf_error *err)
{
    static const char *const field[] = {"gpu.model", "gpu.memory_bytes",
        "gpu.bf16_flops", "gpu.hbm_bytes_per_s"};

    cluster->gpu = (struct mf_gpu){.memory_bytes = device->memory_bytes,
        .bf16_flops = device->bf16_flops,
        .hbm_bytes_per_s = device->hbm_bytes_per_s};
    snprintf(
        cluster->gpu.model, sizeof cluster->gpu.model, "%s", device->model);
    for (size_t i = 0; i < COUNT(field); i++)
        if (mf_cluster_add_source(
                cluster, field[i], MF_PRESET, device->from, err) < 0)
            return -1;
    return 0;
}

int mf_cluster_add_tier(struct mf_cluster *cluster, const struct mf_tier *tier,
    enum mf_how how, const char *rate_from, const char *latency_from,
    struct mf_error *err)
{
    char field[96];

    if (cluster->tiers >= MF_TIERS_MAX)
        return mf_error_set(
            err, MF_INVALID, "cluster: more than %d tiers", MF_TIERS_MAX);
    cluster->tier[cluster->tiers++] = *tier;
    if (isfinite(tier->bytes_per_s)) {
        snprintf(field, sizeof field, "tiers.%s.bytes_per_s", tier->name);
        if (mf_cluster_add_source(cluster, field, how, rate_from, err) < 0)
            return -1;
    }
    if (!isfinite(tier->latency_s))
        return 0;
    snprintf(field, sizeof field, "tiers.%s.latency_s", tier->name);
    return mf_cluster_add_source(cluster, field, how, latency_from, err);
}
