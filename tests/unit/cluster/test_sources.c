/* SPDX-License-Identifier: BSD-3-Clause
 * Readers of clusters: presets against published figures, GRES texts, the
 * order of nodes in a tree, joined sources, and this machine.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "planner/cluster_machine.h"
#include "planner/cluster_parts.h"

struct published {
    const char *source;
    size_t nodes;
    int64_t per_node, link_size;
    double memory_bytes, flops, hbm, link, nic;
};

/* Memory: A100, H100, H800 80 GiB (aiconfigurator a100_sxm.yaml,
 * h100_sxm.yaml), H200 141 GB, B200 180 GiB (h200_sxm.yaml, b200_sxm.yaml),
 * GB200 189,471 MiB as nvidia-smi shows (gb200.yaml); B300, GB300, MI355X 288
 * GB and MI300X 192 GB (vendor pages). Peaks: H100 989, B200 2250, GB200 and
 * GB300 2450 TFLOP/s (dgxc-benchmarking). NVLink 3, 4, 5: 300, 450, 900 GB/s
 * one way; H800 200; MI300X 7 links of 64 GB/s.
 */
static const struct published published[] = {
    {"dgx-a100:2", 2, 8, 8, 85899345920.0, 312e12, 2.039e12, 300e9, 25e9},
    {"dgx-h100:16", 16, 8, 8, 85899345920.0, 989e12, 3.35e12, 450e9, 50e9},
    {"dgx-h800:1", 1, 8, 8, 85899345920.0, 989e12, 3.35e12, 200e9, 50e9},
    {"dgx-h200:3", 3, 8, 8, 141e9, 989e12, 4.8e12, 450e9, 50e9},
    {"dgx-b200:4", 4, 8, 8, 193273528320.0, 2250e12, 7.7e12, 900e9, 50e9},
    {"dgx-b300:4", 4, 8, 8, 288e9, 2250e12, 8e12, 900e9, 100e9},
    {"gb200-nvl72:2", 36, 4, 72, 198674743296.0, 2450e12, 8e12, 900e9, 100e9},
    {"gb300-nvl72:1", 18, 4, 72, 288e9, 2450e12, 8e12, 900e9, 100e9},
    {"mi300x:2", 2, 8, 8, 192e9, 1307e12, 5.3e12, 448e9, 50e9},
    {"mi355x:2", 2, 8, 8, 288e9, 2500e12, 8e12, 538e9, 50e9},
};

static int read_sources(const char *const *source, int count, int64_t world,
    struct mf_cluster *c, struct mf_error *err)
{
    struct mf_cluster_ask ask = {.source = source,
        .sources = count,
        .world = world,
        .slurm_timeout_s = 5};

    return mf_cluster_read(&ask, c, err);
}

static void test_presets(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof published / sizeof *published; i++) {
        const struct published *p = &published[i];
        struct mf_cluster c;

        assert_int_equal(read_sources(&p->source, 1, 0, &c, NULL), 0);
        assert_string_equal(c.name, p->source);
        assert_int_equal(c.nodes, p->nodes);
        assert_int_equal(mf_cluster_gpus_per_node(&c), p->per_node);
        assert_true(c.gpu.memory_bytes == p->memory_bytes);
        assert_true(c.gpu.bf16_flops == p->flops);
        assert_true(c.gpu.hbm_bytes_per_s == p->hbm);
        assert_int_equal(c.tiers, 2);
        assert_int_equal(c.tier[0].size, p->link_size);
        assert_true(c.tier[0].bytes_per_s == p->link);
        assert_true(c.tier[1].bytes_per_s == p->nic);
        assert_int_equal(c.tier[1].size, p->per_node * (int64_t)p->nodes);
        for (size_t s = 0; s < c.sources; s++)
            assert_int_equal(c.source[s].how, MF_PRESET);
        mf_cluster_free(&c);
    }
}

/* 72 GPUs of a rack are one NVLink domain, the 73rd is in the next. */
static void test_rack_domain(void **state)
{
    const char *source = "gb200-nvl72";
    struct mf_cluster c;
    int32_t domain[144];

    (void)state;
    assert_int_equal(read_sources(&source, 1, 73, &c, NULL), 0);
    assert_int_equal(c.nodes, 36);
    assert_int_equal(mf_cluster_domains(&c, 0, 144, domain, NULL), 0);
    assert_int_equal(domain[0], 0);
    assert_int_equal(domain[71], 0);
    assert_int_equal(domain[72], 1);
    assert_int_equal(domain[143], 1);
    mf_cluster_free(&c);
}

static void test_refused(void **state)
{
    static const struct {
        const char *source, *word;
    } bad[] = {{"dgx-h100:0", "zero GPUs"}, {"dgx-h100", "--world"},
        {"dgx-h100:x", "dgx-h100:x"}, {"dgx-h100:-2", "-2"},
        {"dgx-h100:99999999999999999999", "dgx-h100"},
        {"dgx-k80:2", "dgx-h100"}, {"", "gb200-nvl72"}};

    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct mf_error err = {0};
        struct mf_cluster c;

        assert_int_equal(read_sources(&bad[i].source, 1, 0, &c, &err), -1);
        assert_int_equal(err.status, MF_INVALID);
        assert_non_null(strstr(err.text, bad[i].word));
    }
}

static void test_no_slurm_conf(void **state)
{
    static const char *const slurm = "slurm";
    struct mf_error err = {0};
    struct mf_cluster c;

    (void)state;
    assert_int_equal(setenv("SLURM_CONF", "/nowhere/slurm.conf", 1), 0);
    assert_int_equal(read_sources(&slurm, 1, 0, &c, &err), -1);
    assert_int_equal(err.status, MF_INVALID);
    assert_non_null(strstr(err.text, "/nowhere/slurm.conf"));
    assert_int_equal(read_sources(NULL, 0, 0, &c, &err), -1);
    assert_int_equal(err.status, MF_INVALID);
    assert_non_null(strstr(err.text, "/nowhere/slurm.conf"));
    assert_non_null(strstr(err.text, "dgx-h100"));
    assert_int_equal(unsetenv("SLURM_CONF"), 0);
}

/* The second source says more and less; the first stays. */
static void test_join(void **state)
{
    static const char *const two[] = {"dgx-h100:2", "dgx-h200:3"};
    struct mf_cluster c, other;
    bool memory = false, nodes = false;

    (void)state;
    assert_int_equal(read_sources(two, 2, 0, &c, NULL), 0);
    assert_int_equal(c.nodes, 2);
    assert_true(c.gpu.memory_bytes == 85899345920.0);
    for (size_t i = 0; c.warning && c.warning[i]; i++) {
        memory |= strstr(c.warning[i], "gpu.memory_bytes is") != NULL;
        nodes |= !strcmp(c.warning[i], "2 nodes, but dgx-h200:3 says 3");
    }
    assert_true(memory && nodes);
    c.gpu.memory_bytes = NAN;
    c.tier[1].bytes_per_s = NAN;
    assert_int_equal(mf_preset_read("dgx-a100:2", 0, &other, NULL), 0);
    assert_int_equal(mf_cluster_join(&c, &other, "dgx-a100:2", NULL), 0);
    assert_true(c.gpu.memory_bytes == 85899345920.0);
    assert_true(c.tier[1].bytes_per_s == 25e9);
    for (size_t i = 0; i < c.sources; i++)
        if (!strcmp(c.source[i].field, "tiers.network.bytes_per_s"))
            assert_non_null(strstr(c.source[i].from, "a100"));
    mf_cluster_free(&other);
    mf_cluster_free(&c);
}

static void test_gres(void **state)
{
    static const struct {
        const char *gres, *type;
        int64_t gpus;
    } row[] = {
        {NULL, "", 0},
        {"", "", 0},
        {"(null)", "", 0},
        {"gpu", "", 1},
        {"gpu:4", "", 4},
        {"gpu:h100:8(S:0-1)", "h100", 8},
        {"gpu:h100:8(S:0,1),mps:400", "h100", 8},
        {"license:2,gpu:a100:2,gpu:a100:2", "a100", 4},
        {"gpu:nvidia_h100_80gb_hbm3:8(IDX:0-7)", "nvidia_h100_80gb_hbm3", 8},
        {"gpumem:80", "", 0},
        {"gpu:tesla:no_consume:2", "tesla", 2},
        {"gpu:5090:8", "5090", 8},
        {"gpu:a100:3(S:0),gpu:a100_3g.20gb:2(S:1)", "a100:3,a100_3g.20gb:2", 5},
        {"gpu:a40:1(S:0,2,4,6,8,10)", "a40", 1},
        {"gpu:v100:4(S:0-1),min-vram:no_consume:32G", "v100", 4},
    };
    char type[64];

    (void)state;
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        assert_int_equal(
            mf_slurm_gres_gpus(row[i].gres, type, sizeof type), row[i].gpus);
        assert_string_equal(type, row[i].type);
    }
}

static void test_device_names(void **state)
{
    (void)state;
    assert_string_equal(mf_device_find("h100")->model, "H100");
    assert_string_equal(mf_device_find("H100")->model, "H100");
    assert_string_equal(mf_device_find("nvidia_h100_80gb_hbm3")->model, "H100");
    assert_string_equal(mf_device_find("gb200")->model, "GB200");
    assert_null(mf_device_find("nvidia_h100_pcie")->link);
    assert_string_equal(mf_device_find("h100_nvl")->model, "H100-NVL");
    assert_string_equal(
        mf_device_find("Tesla V100-SXM3-32GB-H")->model, "V100-32GB");
    assert_string_equal(mf_device_find("5090")->model, "RTX5090");
    assert_null(mf_device_find("b200_pcie"));
    assert_null(mf_device_find("a100_3g.20gb"));
    assert_null(mf_device_find("h1000"));
    assert_null(mf_device_find(""));
}

/* Two pods; names within a leaf in natural order, not that of the alphabet. */
static void test_topology_order(void **state)
{
    static const char *const name[] = {"n1", "n2", "n10", "n3", "login", "n4"};
    static const char *const expected[] = {
        "n3", "n4", "n2", "n10", "n1", "login"};
    struct mf_cluster c = {0};
    struct mf_net net = {0};

    (void)state;
    for (size_t i = 0; i < 6; i++) {
        assert_int_equal(mf_cluster_add_node(&c, name[i], 4, NULL), 0);
        assert_int_equal(
            mf_cluster_label(&c.node[i].gpu_type, "h100", NULL), 0);
    }
    assert_int_equal(
        mf_net_add(&net, MF_NET_SWITCH, "top", NULL, "pod[1-2]", NULL), 0);
    assert_int_equal(
        mf_net_add(&net, MF_NET_SWITCH, "pod1", NULL, "leafB,leafA", NULL), 0);
    assert_int_equal(
        mf_net_add(&net, MF_NET_SWITCH, "pod2", NULL, "leaf9", NULL), 0);
    assert_int_equal(
        mf_net_add(&net, MF_NET_SWITCH, "leafB", "n[2,10]", NULL, NULL), 0);
    assert_int_equal(
        mf_net_add(&net, MF_NET_SWITCH, "leafA", "n[3-4]", NULL, NULL), 0);
    assert_int_equal(
        mf_net_add(&net, MF_NET_SWITCH, "leaf9", "n1", NULL, NULL), 0);
    assert_int_equal(mf_slurm_finish(&c, &net, false, NULL), 0);
    for (size_t i = 0; i < 6; i++)
        assert_string_equal(c.node[i].name, expected[i]);
    assert_string_equal(c.node[0].switch_name, "leafA");
    assert_string_equal(c.node[4].pod, "pod2");
    assert_null(c.node[4].block);
    assert_null(c.node[5].switch_name);
    assert_int_equal(c.tiers, 4);
    assert_int_equal(c.tier[0].size, 4);
    assert_int_equal(c.tier[1].size, 8);
    assert_int_equal(c.tier[2].size, 16);
    assert_int_equal(c.tier[3].size, 24);
    mf_net_free(&net);
    mf_cluster_free(&c);
}

static void file_write(const char *folder, const char *name, const char *text)
{
    char path[256];
    FILE *file;

    snprintf(path, sizeof path, "%s/%s", folder, name);
    file = fopen(path, "we");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

static void path_remove(const char *folder, const char *name)
{
    char path[256];

    snprintf(path, sizeof path, "%s/%s", folder, name);
    assert_int_equal(remove(path), 0);
}

/* A job's group has 2.5 cores, the one over it less memory than the machine. */
static void test_control_groups(void **state)
{
    char folder[] = "/tmp/moefold-test-XXXXXX", file[64], over[64], job[64];
    struct mf_machine machine = {.cores = 16, .memory_bytes = 64};

    (void)state;
    assert_non_null(mkdtemp(folder));
    snprintf(file, sizeof file, "%s/self", folder);
    snprintf(over, sizeof over, "%s/slurm", folder);
    snprintf(job, sizeof job, "%s/slurm/job_1", folder);
    assert_int_equal(mkdir(over, 0700), 0);
    assert_int_equal(mkdir(job, 0700), 0);
    file_write(folder, "self", "3:pids:/x\n0::/slurm/job_1\n");
    file_write(job, "cpu.max", "250000 100000\n");
    file_write(job, "memory.max", "max\n");
    file_write(over, "cpu.max", "max 100000\n");
    file_write(over, "memory.max", "48\n");
    mf_machine_limit(file, folder, &machine);
    assert_int_equal(machine.cores, 3);
    assert_int_equal(machine.memory_bytes, 48);
    mf_machine_limit("/nowhere/cgroup", folder, &machine);
    assert_int_equal(machine.cores, 3);
    path_remove(job, "cpu.max");
    path_remove(job, "memory.max");
    path_remove(over, "cpu.max");
    path_remove(over, "memory.max");
    path_remove(folder, "self");
    path_remove(over, "job_1");
    path_remove(folder, "slurm");
    assert_int_equal(rmdir(folder), 0);
}

/* No figure is asserted: they are this machine's. */
static void test_local(void **state)
{
    static const char *const local = "local";
    char folder[] = "/tmp/moefold-test-XXXXXX", file[64];
    struct mf_cluster_ask ask = {
        .source = &local, .sources = 1, .world = 5000, .db_file = file};
    struct mf_cluster c, again;

    (void)state;
    assert_non_null(mkdtemp(folder));
    snprintf(file, sizeof file, "%s/history.db", folder);
    assert_int_equal(mf_cluster_read(&ask, &c, NULL), 0);
    assert_true(c.cpu_ranks);
    assert_int_equal(c.nodes, 1);
    assert_int_equal(mf_cluster_devices(&c), 5000);
    assert_true(c.cores >= 1 && c.cores < 5000);
    assert_non_null(strstr(c.warning[0], "oversubscribed: 5000 ranks"));
    assert_true(c.gpu.memory_bytes > 0 && c.gpu.bf16_flops > 0);
    assert_true(c.gpu.hbm_bytes_per_s > 0);
    assert_int_equal(c.source[0].how, MF_ASSUMED);
    assert_int_equal(mf_cluster_read(&ask, &again, NULL), 0);
    assert_true(again.gpu.bf16_flops == c.gpu.bf16_flops);
    assert_true(again.gpu.hbm_bytes_per_s == c.gpu.hbm_bytes_per_s);
    mf_cluster_free(&again);
    mf_cluster_free(&c);
    assert_int_equal(unlink(file), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_presets),
        cmocka_unit_test(test_rack_domain),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_no_slurm_conf),
        cmocka_unit_test(test_join),
        cmocka_unit_test(test_gres),
        cmocka_unit_test(test_device_names),
        cmocka_unit_test(test_topology_order),
        cmocka_unit_test(test_control_groups),
        cmocka_unit_test(test_local),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
