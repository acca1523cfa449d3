/* SPDX-License-Identifier: BSD-3-Clause
 * Clusters as data: domains against lists written by hand, JSON and back, and
 * JSON that was damaged.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "planner/layout/cluster.h"

static void add_tier(struct mf_cluster *c, const char *name, int64_t size,
    double bytes_per_s, double latency_s)
{
    struct mf_tier *tier = &c->tier[c->tiers++];

    *tier = (struct mf_tier){
        .size = size, .bytes_per_s = bytes_per_s, .latency_s = latency_s};
    snprintf(tier->name, sizeof tier->name, "%s", name);
}

static void add_node(struct mf_cluster *c, const char *name, int64_t gpus,
    const char *leaf, enum mf_node_state state)
{
    assert_int_equal(mf_cluster_add_node(c, name, gpus, NULL), 0);
    c->node[c->nodes - 1].state = state;
    if (leaf)
        c->node[c->nodes - 1].switch_name = strdup(leaf);
}

static void assert_domains(const struct mf_cluster *c, int tier,
    const int32_t *expected, int64_t world)
{
    int32_t *domain = malloc((size_t)world * sizeof *domain);

    assert_non_null(domain);
    assert_int_equal(mf_cluster_domains(c, tier, world, domain, NULL), 0);
    assert_memory_equal(domain, expected, (size_t)world * sizeof *domain);
    free(domain);
}

/* Four nodes of two under two leaves. */
static void test_domains_even(void **state)
{
    struct mf_cluster c = {.name = "even"};
    static const int32_t node[] = {0, 0, 1, 1, 2, 2, 3, 3};
    static const int32_t leaf[] = {0, 0, 0, 0, 1, 1, 1, 1};
    static const int32_t spine[8] = {0};

    (void)state;
    for (int i = 0; i < 4; i++)
        add_node(
            &c, (const char *[]){"a", "b", "c", "d"}[i], 2, NULL, MF_NODE_UP);
    add_tier(&c, "nvlink", 2, 1, 1);
    add_tier(&c, "leaf", 4, 1, 1);
    add_tier(&c, "spine", 8, 1, 1);
    assert_domains(&c, 0, node, 8);
    assert_domains(&c, 1, leaf, 8);
    assert_domains(&c, 2, spine, 8);
    assert_domains(&c, 0, node, 5);
    mf_cluster_free(&c);
}

/* Nodes of 4, 2, 4 and 2; the second leaf begins with the third node. */
static void test_domains_uneven(void **state)
{
    struct mf_cluster c = {.name = "uneven"};
    static const int32_t node[] = {0, 0, 0, 0, 1, 1, 2, 2, 2, 2, 3, 3};
    static const int32_t pair[] = {0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5};
    static const int32_t leaf[] = {0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1};

    (void)state;
    add_node(&c, "a", 4, "x", MF_NODE_UP);
    add_node(&c, "b", 2, "x", MF_NODE_UP);
    add_node(&c, "c", 4, "y", MF_NODE_UP);
    add_node(&c, "d", 2, "y", MF_NODE_UP);
    add_tier(&c, "pair", 2, 1, 1);
    add_tier(&c, "nvlink", 4, 1, 1);
    add_tier(&c, "leaf", 6, 1, 1);
    add_tier(&c, "spine", 12, 1, 1);
    assert_domains(&c, 0, pair, 12);
    assert_domains(&c, 1, node, 12);
    assert_domains(&c, 2, leaf, 12);
    mf_cluster_free(&c);
}

/* A node that is down holds no rank, but keeps its place in a leaf: with or
 * without names of leaves, c and d stay under the second one.
 */
static void test_domains_with_nodes_down(void **state)
{
    static const int32_t leaf[] = {0, 0, 1, 1, 1, 1};

    (void)state;
    for (int named = 0; named < 2; named++) {
        struct mf_cluster c = {.name = "holes"};

        add_node(&c, "a", 2, named ? "x" : NULL, MF_NODE_UP);
        add_node(&c, "b", 2, named ? "x" : NULL, MF_NODE_DOWN);
        add_node(&c, "c", 2, named ? "y" : NULL, MF_NODE_UP);
        add_node(&c, "d", 2, named ? "y" : NULL, MF_NODE_UP);
        add_tier(&c, "nvlink", 2, 1, 1);
        add_tier(&c, "leaf", 4, 1, 1);
        add_tier(&c, "spine", 8, 1, 1);
        assert_int_equal(mf_cluster_devices(&c), 6);
        assert_domains(&c, 1, leaf, 6);
        mf_cluster_free(&c);
    }
}

/* An NVLink domain over two nodes, whose nodes do not stand side by side. */
static void test_domains_over_nodes(void **state)
{
    struct mf_cluster c = {.name = "racks"};
    static const int32_t rack[] = {0, 0, 1, 1, 0, 0, 1, 1};

    (void)state;
    for (int i = 0; i < 4; i++) {
        add_node(
            &c, (const char *[]){"a", "b", "c", "d"}[i], 2, NULL, MF_NODE_UP);
        c.node[i].block = strdup(i % 2 ? "odd" : "even");
    }
    add_tier(&c, "nvlink", 4, 1, 1);
    add_tier(&c, "network", 8, 1, 1);
    assert_domains(&c, 0, rack, 8);
    mf_cluster_free(&c);
}

static void test_domains_refused(void **state)
{
    struct mf_cluster c = {.name = "small"};
    struct mf_error err = {0};
    int32_t domain[8];

    (void)state;
    add_node(&c, "a", 4, NULL, MF_NODE_UP);
    add_node(&c, "b", 4, NULL, MF_NODE_DRAINED);
    add_tier(&c, "nvlink", 4, 1, 1);
    assert_int_equal(mf_cluster_domains(&c, 0, 5, domain, &err), -1);
    assert_int_equal(err.status, MF_NO);
    assert_int_equal(mf_cluster_domains(&c, 1, 4, domain, &err), -1);
    assert_int_equal(err.status, MF_INVALID);
    assert_int_equal(mf_cluster_domains(&c, 0, 0, domain, &err), -1);
    assert_int_equal(err.status, MF_INVALID);
    mf_cluster_free(&c);
}

/* n1, n2, n5 hang on one leaf; n3 and n4 on none that is known. */
static void test_unlabelled_are_alone(void **state)
{
    static const char *const name[] = {"n1", "n2", "n3", "n4", "n5"};
    static const int32_t expected[] = {0, 0, 0, 0, 1, 1, 2, 2, 0, 0};
    struct mf_cluster c = {.tiers = 2,
        .tier = {{.name = "leaf", .size = 6}, {.name = "spine", .size = 10}}};
    int32_t domain[10];

    (void)state;
    for (size_t i = 0; i < 5; i++) {
        assert_int_equal(mf_cluster_add_node(&c, name[i], 2, NULL), 0);
        if (i != 2 && i != 3)
            assert_int_equal(
                mf_cluster_label(&c.node[i].switch_name, "leaf1", NULL), 0);
    }
    assert_int_equal(mf_cluster_domains(&c, 0, 10, domain, NULL), 0);
    for (size_t i = 0; i < 10; i++)
        assert_int_equal(domain[i], expected[i]);
    c.node[1].gpus = MF_GPUS_UNKNOWN;
    assert_int_equal(mf_cluster_devices(&c), 8);
    assert_int_equal(mf_cluster_gpus_per_node(&c), -1);
    mf_cluster_free(&c);
}

static void test_names_refused(void **state)
{
    static const char *const bad[] = {
        "", "-a", "a b", "a;b", "a/b", "$(x)", "a\n"};
    struct mf_cluster c = {0};

    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_int_equal(mf_cluster_add_node(&c, bad[i], 1, NULL), -1);
    assert_int_equal(mf_cluster_add_node(&c, "a", -2, NULL), -1);
    assert_int_equal(c.nodes, 0);
    mf_cluster_free(&c);
}

static const char example[] =
    "{\"name\": \"pair\", \"nodes\": 2, \"gpus_per_node\": null,"
    " \"cpu_ranks\": false, \"cores\": null, \"gpu\": {\"model\": \"H100\","
    " \"memory_bytes\": 85899345920.0, \"bf16_flops\": 989e12,"
    " \"hbm_bytes_per_s\": null}, \"tiers\": [{\"name\": \"nvlink\","
    " \"size\": 8, \"bytes_per_s\": 450e9, \"latency_s\": 3.4e-6},"
    " {\"name\": \"network\", \"size\": 12, \"bytes_per_s\": 50e9,"
    " \"latency_s\": null}], \"node_list\": [{\"name\": \"n1\","
    " \"state\": \"up\", \"switch\": \"leaf1\", \"pod\": \"p\","
    " \"block\": null, \"partitions\": \"main,all\", \"features\": \"ib\","
    " \"gpu_type\": \"h100\", \"gpus\": 8, \"numa\": {\"nodes\": 2,"
    " \"of_gpu\": [0, 0, 0, 0, 1, 1, 1, null]}}, {\"name\": \"n2\","
    " \"state\": \"drained\", \"switch\": null, \"pod\": null,"
    " \"block\": \"b\", \"partitions\": null, \"features\": null,"
    " \"gpu_type\": null, \"gpus\": null, \"numa\": null}], \"sources\": "
    "[{\"field\":"
    " \"gpu.model\", \"how\": \"read\", \"from\": \"slurmctld ctl\"}],"
    " \"warnings\": [\"one\", \"two\"]}";

static json_t *example_load(void)
{
    json_t *json = json_loads(example, 0, NULL);

    assert_non_null(json);
    return json;
}

static void test_json_and_back(void **state)
{
    json_t *json = example_load(), *back;
    struct mf_cluster c;

    (void)state;
    assert_int_equal(mf_cluster_from_json(json, &c, NULL), 0);
    assert_int_equal(c.nodes, 2);
    assert_int_equal(c.node[1].state, MF_NODE_DRAINED);
    assert_string_equal(c.node[0].switch_name, "leaf1");
    assert_int_equal(mf_cluster_gpus_per_node(&c), -1);
    assert_true(c.gpu.hbm_bytes_per_s != c.gpu.hbm_bytes_per_s);
    assert_string_equal(c.warning[1], "two");
    back = mf_cluster_to_json(&c);
    assert_true(json_equal(json, back));
    mf_cluster_free(&c);
    json_decref(back);
    json_decref(json);
}

/* KEY of the object at PATH (an index into a list follows a name) set to TEXT
 * must be refused with a message that names WORD.
 */
static void assert_refused(
    const char *list, const char *key, const char *text, const char *word)
{
    json_t *json = example_load(), *at = json;
    struct mf_error err = {0};
    struct mf_cluster c;

    if (list)
        at = json_object_get(json, list);
    if (json_is_array(at))
        at = json_array_get(at, json_array_size(at) - 1);
    json_object_set_new(at, key, json_loads(text, JSON_DECODE_ANY, NULL));
    assert_int_equal(mf_cluster_from_json(json, &c, &err), -1);
    assert_int_equal(err.status, MF_INVALID);
    assert_non_null(strstr(err.text, word));
    json_decref(json);
}

static void test_json_refused(void **state)
{
    (void)state;
    assert_refused(NULL, "nodes", "3", "nodes is 3, but node_list has 2");
    assert_refused(NULL, "gpus_per_node", "8", "gpus_per_node");
    assert_refused(NULL, "name", "7", "cluster.name");
    assert_refused(NULL, "cores", "0", "cluster.cores");
    assert_refused(NULL, "node_list", "{}", "node_list");
    assert_refused(NULL, "tiers", "[1,2,3,4,5,6,7]", "cluster.tiers");
    assert_refused("gpu", "memory_bytes", "-1", "memory_bytes");
    assert_refused("gpu", "bf16_flops", "0", "bf16_flops");
    assert_refused("gpu", "model", "\"a\\u0007\"", "model");
    assert_refused("tiers", "size", "7", "tiers[1].size");
    assert_refused("tiers", "size", "1.5", "tiers[1].size");
    assert_refused("tiers", "bytes_per_s", "\"fast\"", "bytes_per_s");
    assert_refused("node_list", "state", "\"gone\"", "node_list[1].state");
    assert_refused("node_list", "gpus", "-4", "node_list[1].gpus");
    assert_refused("node_list", "name", "\"a;rm\"", "node name");
    assert_refused("node_list", "numa", "7", "node_list[1].numa");
    assert_refused("node_list", "numa", "{\"nodes\": 0}", "nodes");
    assert_refused(
        "node_list", "numa", "{\"nodes\": 1, \"of_gpu\": [-1]}", "numa.of_gpu");
    assert_refused("sources", "how", "\"guessed\"", "sources[0].how");
}

/* Small generator, so that a seed gives the same edits everywhere. */
static uint32_t draw(uint32_t *seed)
{
    *seed = *seed * 1664525u + 1013904223u;
    return *seed >> 8;
}

/* Damage a few bytes; what still is JSON is refused or read, never a crash. */
static void test_json_damaged(void **state)
{
    static const char bytes[] = "0123456789-.eE{}[],:\"nulltruefalse\\ ";
    uint32_t seed = 20261201;
    int loaded = 0, accepted = 0;

    (void)state;
    for (int round = 0; round < 20000; round++) {
        char text[sizeof example];
        struct mf_error err = {0};
        struct mf_cluster c;
        json_t *json;

        memcpy(text, example, sizeof example);
        for (uint32_t n = 1 + draw(&seed) % 4; n > 0; n--)
            text[draw(&seed) % (sizeof example - 1)] =
                bytes[draw(&seed) % (sizeof bytes - 1)];
        json = json_loads(text, JSON_DECODE_ANY, NULL);
        if (!json)
            continue;
        loaded++;
        if (mf_cluster_from_json(json, &c, &err) == 0) {
            accepted++;
            mf_cluster_free(&c);
        } else {
            assert_int_equal(err.status, MF_INVALID);
            assert_true(err.text[0] != 0);
        }
        json_decref(json);
    }
    assert_true(loaded > accepted && accepted > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_domains_even),
        cmocka_unit_test(test_domains_uneven),
        cmocka_unit_test(test_domains_with_nodes_down),
        cmocka_unit_test(test_domains_over_nodes),
        cmocka_unit_test(test_domains_refused),
        cmocka_unit_test(test_unlabelled_are_alone),
        cmocka_unit_test(test_names_refused),
        cmocka_unit_test(test_json_and_back),
        cmocka_unit_test(test_json_refused),
        cmocka_unit_test(test_json_damaged),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
