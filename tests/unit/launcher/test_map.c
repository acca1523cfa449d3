/* SPDX-License-Identifier: BSD-3-Clause
 * The rank map: node orders, uneven nodes, and files that read back the same.
 */
#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "launcher/map.h"
#include "tests/unit/launcher/fixture.h"

static int clean_environment(void **state)
{
    (void)state;
    unsetenv("SLURM_JOB_NODELIST");
    unsetenv("SLURM_TASKS_PER_NODE");
    unsetenv("SLURM_GPUS_ON_NODE");
    return 0;
}

static void make(
    const struct mf_plan *plan, const char *list, struct mfl_map *map)
{
    struct mf_error err = {0};

    if (mfl_map_make(plan, list, map, &err) < 0)
        fail_msg("%s", err.text);
}

/* Ranks first..first+count-1 sit on NODE with local numbers from 0. */
static void sit(
    const struct mfl_map *map, const char *node, int64_t first, int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        assert_string_equal(mfl_map_node(map, first + i), node);
        assert_int_equal(map->seat[first + i].local, i);
    }
}

static void test_plan_order(void **state)
{
    struct mf_plan plan;
    struct mfl_map map;

    (void)state;
    fixture_plan("n1,n3,n2,n4", &plan);
    make(&plan, NULL, &map);
    assert_string_equal(map.places.from, "plan");
    sit(&map, "n1", 0, 8);
    sit(&map, "n3", 8, 8);
    sit(&map, "n2", 16, 8);
    sit(&map, "n4", 24, 8);
    mfl_map_free(&map);
    mf_plan_free(&plan);
}

static void test_down_nodes_are_left_out(void **state)
{
    struct mf_plan plan;
    struct mfl_map map;

    (void)state;
    fixture_plan("n1,n2,n3,n4,n5", &plan);
    plan.cluster.node[1].state = MF_NODE_DRAINED;
    make(&plan, NULL, &map);
    sit(&map, "n1", 0, 8);
    sit(&map, "n3", 8, 8);
    sit(&map, "n5", 24, 8);
    mfl_map_free(&map);
    mf_plan_free(&plan);
}

static void test_list_order_is_kept(void **state)
{
    struct mf_plan plan;
    struct mfl_map map;

    (void)state;
    fixture_plan("n1,n2,n3,n4", &plan);
    make(&plan, "z,n[4,2],a", &map);
    assert_string_equal(map.places.from, "list");
    sit(&map, "z", 0, 8);
    sit(&map, "n4", 8, 8);
    sit(&map, "n2", 16, 8);
    sit(&map, "a", 24, 8);
    mfl_map_free(&map);
    mf_plan_free(&plan);
}

/* Slurm lists an allocation by name; the plan's order is switch by switch. */
static void test_allocation_takes_the_plans_order(void **state)
{
    struct mf_plan plan;
    struct mfl_map map;

    (void)state;
    fixture_plan("n1,n3,n2,n4,n5", &plan);
    setenv("SLURM_JOB_NODELIST", "n[2-5]", 1);
    setenv("SLURM_TASKS_PER_NODE", "8(x4)", 1);
    make(&plan, NULL, &map);
    assert_string_equal(map.places.from, "allocation");
    sit(&map, "n3", 0, 8);
    sit(&map, "n2", 8, 8);
    sit(&map, "n4", 16, 8);
    sit(&map, "n5", 24, 8);
    mfl_map_free(&map);
    mf_plan_free(&plan);
}

static void test_nodes_unknown_to_the_plan(void **state)
{
    struct mf_plan plan;
    struct mfl_map map;

    (void)state;
    fixture_plan("n2,n1", &plan);
    plan.world = 32;
    setenv("SLURM_JOB_NODELIST", "b,a,n[1-2]", 1);
    make(&plan, NULL, &map);
    sit(&map, "n2", 0, 8);
    sit(&map, "n1", 8, 8);
    sit(&map, "b", 16, 8);
    sit(&map, "a", 24, 8);
    mfl_map_free(&map);
    mf_plan_free(&plan);
}

/* 5 + 9 + 9 + 9 = 32: task counts stay with their nodes when these are
 * sorted.
 */
static void test_uneven_tasks(void **state)
{
    struct mf_plan plan;
    struct mfl_map map;

    (void)state;
    fixture_plan("n4,n3,n2,n1", &plan);
    setenv("SLURM_JOB_NODELIST", "n[1-4]", 1);
    setenv("SLURM_TASKS_PER_NODE", "5,9(x3)", 1);
    make(&plan, NULL, &map);
    sit(&map, "n4", 0, 9);
    sit(&map, "n2", 18, 9);
    sit(&map, "n1", 27, 5);
    mfl_map_free(&map);
    mf_plan_free(&plan);
}

/* Without a task count a job's tasks are its cores: not where GPU ranks go. */
static void test_gpus_beat_cores(void **state)
{
    struct mf_plan plan;
    struct mfl_map map;

    (void)state;
    fixture_plan("n1,n2,n3,n4", &plan);
    setenv("SLURM_JOB_NODELIST", "n[1-8]", 1);
    setenv("SLURM_TASKS_PER_NODE", "128(x8)", 1);
    setenv("SLURM_GPUS_ON_NODE", "4", 1);
    make(&plan, NULL, &map);
    sit(&map, "n1", 0, 4);
    sit(&map, "n2", 4, 4);
    mfl_map_free(&map);
    mf_plan_free(&plan);
}

static void test_too_few_places(void **state)
{
    struct mf_error err = {0};
    struct mf_plan plan;
    struct mfl_map map;

    (void)state;
    fixture_plan("n1,n2,n3,n4", &plan);
    assert_int_equal(mfl_map_make(&plan, "n[1-3]", &map, &err), -1);
    assert_int_equal(err.status, MF_NO);
    assert_non_null(strstr(err.text, "32"));
    assert_non_null(strstr(err.text, "24"));
    mf_plan_free(&plan);
}

/* tp2.cp1.dp4.pp4/etp1.ep8.edp1 in Megatron's order, worked out by hand:
 * rank 13 = tp 1 + 2 * (dp 2 + 4 * pp 1), and as expert rank ep 5 + 8 * pp 1.
 */
static void test_json(void **state)
{
    const char *node;
    int rank, local, gpu, tp, dp, pp, etp, ep, edp;
    struct mf_plan plan;
    struct mfl_map map;
    json_t *json, *ranks;

    (void)state;
    fixture_plan("n1,n3,n2,n4", &plan);
    make(&plan, NULL, &map);
    json = fixture_map_json(&map, &plan.entry[0].layout);
    ranks = json_object_get(json, "ranks");
    assert_int_equal(json_array_size(ranks), 32);
    assert_int_equal(
        json_unpack(json_array_get(ranks, 13),
            "{s:i, s:s, s:i, s:i, s:{s:i, s:i, s:i, s:i, s:i, s:i}}", "rank",
            &rank, "node", &node, "local", &local, "gpu", &gpu, "coords", "tp",
            &tp, "dp", &dp, "pp", &pp, "etp", &etp, "ep", &ep, "edp", &edp),
        0);
    assert_int_equal(rank, 13);
    assert_string_equal(node, "n3");
    assert_int_equal(local, 5);
    assert_int_equal(gpu, 5);
    assert_int_equal(tp, 1);
    assert_int_equal(dp, 2);
    assert_int_equal(pp, 1);
    assert_int_equal(etp, 0);
    assert_int_equal(ep, 5);
    assert_int_equal(edp, 0);
    json_decref(json);
    mfl_map_free(&map);
    mf_plan_free(&plan);
}

static void test_cpu_ranks_have_no_gpu(void **state)
{
    struct mf_plan plan;
    struct mfl_map map;
    json_t *json;

    (void)state;
    fixture_cpu_plan(&plan);
    make(&plan, NULL, &map);
    json = fixture_map_json(&map, &plan.entry[0].layout);
    assert_true(json_is_null(json_object_get(
        json_array_get(json_object_get(json, "ranks"), 7), "gpu")));
    json_decref(json);
    mfl_map_free(&map);
    mf_plan_free(&plan);
}

/* A host file and a rank file say what the table says. */
static void test_files_read_back(void **state)
{
    char *hosts = NULL, *ranks = NULL, *save = NULL, *line;
    size_t size;
    struct mf_plan plan;
    struct mfl_map map;
    FILE *out;
    int64_t rank = 0;

    (void)state;
    fixture_plan("n1,n3,n2,n4", &plan);
    make(&plan, NULL, &map);
    out = open_memstream(&hosts, &size);
    mfl_map_print_hostfile(&map, out);
    fclose(out);
    for (line = strtok_r(hosts, "\n", &save); line;
         line = strtok_r(NULL, "\n", &save))
        assert_string_equal(line, mfl_map_node(&map, rank++));
    assert_int_equal(rank, 32);
    out = open_memstream(&ranks, &size);
    mfl_map_print_rankfile(&map, out);
    fclose(out);
    rank = 0;
    for (line = strtok_r(ranks, "\n", &save); line;
         line = strtok_r(NULL, "\n", &save), rank++) {
        char node[64];
        unsigned number, slot;

        assert_int_equal(
            sscanf(line, "rank %u=%63s slot=%u", &number, node, &slot), 3);
        assert_int_equal(number, rank);
        assert_string_equal(node, mfl_map_node(&map, rank));
        assert_int_equal(slot, map.seat[rank].local);
    }
    assert_int_equal(rank, 32);
    free(hosts);
    free(ranks);
    mfl_map_free(&map);
    mf_plan_free(&plan);
}

static void test_a_plans_node_names_are_checked(void **state)
{
    struct mf_error err = {0};
    struct mf_plan plan;
    struct mfl_map map;

    (void)state;
    fixture_plan("n1,n2,n3,n4", &plan);
    free(plan.cluster.node[1].name);
    plan.cluster.node[1].name = strdup("n2\nn9");
    assert_int_equal(mfl_map_make(&plan, NULL, &map, &err), -1);
    assert_int_equal(err.status, MF_INVALID);
    mf_plan_free(&plan);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_plan_order, clean_environment),
        cmocka_unit_test_setup(test_down_nodes_are_left_out, clean_environment),
        cmocka_unit_test_setup(test_list_order_is_kept, clean_environment),
        cmocka_unit_test_setup(
            test_allocation_takes_the_plans_order, clean_environment),
        cmocka_unit_test_setup(
            test_nodes_unknown_to_the_plan, clean_environment),
        cmocka_unit_test_setup(test_uneven_tasks, clean_environment),
        cmocka_unit_test_setup(test_gpus_beat_cores, clean_environment),
        cmocka_unit_test_setup(test_too_few_places, clean_environment),
        cmocka_unit_test_setup(test_json, clean_environment),
        cmocka_unit_test_setup(test_cpu_ranks_have_no_gpu, clean_environment),
        cmocka_unit_test_setup(test_files_read_back, clean_environment),
        cmocka_unit_test_setup(
            test_a_plans_node_names_are_checked, clean_environment),
    };

    return cmocka_run_group_tests_name("map", tests, NULL, NULL);
}
