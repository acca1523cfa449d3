/* SPDX-License-Identifier: BSD-3-Clause
 * Damaged plan files: whatever stands in one, reading, mapping, scripting and
 * pricing it end with a result that is sound or with a message.
 */
#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "launcher/map.h"
#include "launcher/script.h"
#include "planner/cost.h"
#include "tests/unit/launcher/fixture.h"

#define SEED UINT64_C(0x706c616e)
#define TREES 4000
#define TEXTS 2000

/* xorshift64: the same mutants on every machine. */
static uint64_t next(uint64_t *random)
{
    *random ^= *random << 13;
    *random ^= *random >> 7;
    *random ^= *random << 17;
    return *random;
}

/* A plan whose every part is there, priced. */
static json_t *whole_plan(void)
{
    struct mf_error err = {0};
    struct mf_coefficients set;
    struct mf_plan plan;
    json_t *json;

    fixture_plan("n1,n3,n2,n4", &plan);
    plan.cluster.gpu = (struct mf_gpu){"H100", 85e9, 989e12, 3.35e12};
    plan.cluster.tier[0] = (struct mf_tier){"node", 8, 450e9, 3e-6};
    plan.cluster.tier[1] = (struct mf_tier){"network", 32, 50e9, 14e-6};
    plan.cluster.tiers = 2;
    plan.cluster.node[1].switch_name = strdup("leaf2");
    plan.scope = MF_SCOPE_STEP;
    plan.enumerated = plan.priced = 3;
    plan.rejected[plan.reasons++] = (struct mf_reason){"memory", 2};
    mf_coefficients_prior(&plan.cluster, &set);
    for (size_t i = 0; i < plan.entries; i++) {
        plan.entry[i].settings.seq = 64;
        plan.entry[i].settings.global_batch = 64;
        if (mf_cost_predict(&plan.model, &plan.cluster, plan.scope, &set,
                &plan.entry[i], &err))
            fail_msg("%s", err.text);
    }
    json = mf_plan_to_json(&plan);
    assert_non_null(json);
    mf_plan_free(&plan);
    return json;
}

static json_t *odd_value(uint64_t *random)
{
    static const char *const text[] = {"", "$(touch pwned)", "'; exit; '",
        "a\nb", "\"\\", "n[1-3]", "-x", "tp2/ep8", "../..", "\xc3\xa9"};
    static const json_int_t whole[] = {0, 1, -1, 2, 3, 7, 8, 16777216,
        2147483648, 4611686018427387904, INT64_MAX, INT64_MIN};
    static const double real[] = {0.0, -1.0, 0.5, 1e-300, 1e300, -1e300, 1e19};

    switch (next(random) % 8) {
    case 0:
        return json_null();
    case 1:
        return json_true();
    case 2:
        return next(random) % 2 ? json_array() : json_object();
    case 3:
        return json_real(real[next(random) % (sizeof real / sizeof *real)]);
    case 4:
    case 5:
        return json_string(text[next(random) % (sizeof text / sizeof *text)]);
    default:
        return json_integer(
            whole[next(random) % (sizeof whole / sizeof *whole)]);
    }
}

/* Change one member of ARRAY: another value, gone, or there twice. */
static void mutate_array(json_t *array, uint64_t *random)
{
    size_t i = next(random) % json_array_size(array);

    switch (next(random) % 3) {
    case 0:
        assert_int_equal(json_array_remove(array, i), 0);
        break;
    case 1:
        assert_int_equal(json_array_append_new(
                             array, json_deep_copy(json_array_get(array, i))),
            0);
        break;
    default:
        assert_int_equal(json_array_set_new(array, i, odd_value(random)), 0);
    }
}

static void mutate_object(json_t *object, uint64_t *random)
{
    size_t n = next(random) % json_object_size(object);
    void *at = json_object_iter(object);

    while (n-- > 0)
        at = json_object_iter_next(object, at);
    if (next(random) % 5 == 0)
        assert_int_equal(json_object_del(object, json_object_iter_key(at)), 0);
    else
        assert_int_equal(
            json_object_iter_set_new(object, at, odd_value(random)), 0);
}

static json_t *child_at(json_t *json, uint64_t *random)
{
    size_t size =
        json_is_array(json) ? json_array_size(json) : json_object_size(json);
    size_t n = size ? next(random) % size : 0;
    void *at;

    if (json_is_array(json))
        return json_array_get(json, n);
    at = json_object_iter(json);
    while (at && n-- > 0)
        at = json_object_iter_next(json, at);
    return at ? json_object_iter_value(at) : NULL;
}

/* Walk down at random, and change something on the way. */
static void mutate_tree(json_t *json, uint64_t *random)
{
    for (;;) {
        json_t *child = child_at(json, random);

        if (json_is_object(child) || json_is_array(child)) {
            if (next(random) % 8) {
                json = child;
                continue;
            }
        }
        if (json_is_array(json) && json_array_size(json))
            mutate_array(json, random);
        else if (json_object_size(json))
            mutate_object(json, random);
        return;
    }
}

static void check_error(int rc, const struct mf_error *err)
{
    if (rc >= 0)
        return;
    if (err->status < MF_FAILED || err->status > MF_NO || !err->text[0] ||
        strchr(err->text, '\n'))
        fail_msg("status %d, \"%s\"", (int)err->status, err->text);
}

static void use_map(const struct mf_plan *plan)
{
    struct mf_error err = {0};
    struct mfl_map map;
    int rc = mfl_map_make(plan, NULL, &map, &err);
    json_t *json;

    check_error(rc, &err);
    if (rc < 0)
        return;
    json = fixture_map_json(&map, &plan->entry[0].layout);
    assert_int_equal(
        json_array_size(json_object_get(json, "ranks")), plan->world);
    json_decref(json);
    mfl_map_free(&map);
}

static void use_script(const struct mf_plan *plan)
{
    struct mfl_wish wish = {.plan_file = "/dev/null", .picks = "all"};
    struct mf_error err = {0};
    struct mfl_job job;
    int rc = mfl_job_make(plan, &wish, &job, &err);
    char *text;

    check_error(rc, &err);
    if (rc < 0)
        return;
    text = mfl_script_text(&job, &err);
    assert_non_null(text);
    /* No text of the plan begins a line or a command. */
    assert_null(strstr(text, "\nb"));
    assert_null(strstr(text, "\n$("));
    free(text);
    mfl_job_free(&job);
}

/* As `explain --against` prices another layout under a plan's settings. */
static void use_price(struct mf_plan *plan)
{
    struct mf_coefficients set;

    mf_coefficients_prior(&plan->cluster, &set);
    for (size_t i = 0; i < plan->entries; i++) {
        struct mf_plan_entry own = {.layout = plan->entry[i].layout,
            .settings = plan->entry[i].settings};
        struct mf_error err = {0};
        int rc = mf_cost_predict(
            &plan->model, &plan->cluster, plan->scope, &set, &own, &err);

        check_error(rc, &err);
        if (rc == 0 &&
            !(isfinite(own.cost.peak_bytes) && own.cost.peak_bytes >= 0 &&
                isfinite(own.cost.layer_forward_s) &&
                own.cost.layer_forward_s >= 0))
            fail_msg("a price of %g bytes, %g s", own.cost.peak_bytes,
                own.cost.layer_forward_s);
        mf_cost_free(&own.cost);
    }
}

/* What was read is what is written, and is read again. */
static void use_json(const struct mf_plan *plan)
{
    json_t *first = mf_plan_to_json(plan), *second;
    struct mf_error err = {0};
    struct mf_plan again;

    assert_non_null(first);
    if (mf_plan_from_json(first, &again, &err))
        fail_msg("it is not read again: %s", err.text);
    second = mf_plan_to_json(&again);
    assert_true(json_equal(first, second));
    json_decref(first);
    json_decref(second);
    mf_plan_free(&again);
}

static void use_plan(struct mf_plan *plan)
{
    use_json(plan);
    use_script(plan);
    use_price(plan);
    /* Commands refuse a plan without a layout. */
    if (plan->entries)
        use_map(plan);
    mf_plan_free(plan);
}

static bool use(const json_t *json)
{
    struct mf_error err = {0};
    struct mf_plan plan;
    int rc = mf_plan_from_json(json, &plan, &err);

    check_error(rc, &err);
    if (rc < 0)
        return false;
    use_plan(&plan);
    return true;
}

static void damaged_trees(void **state)
{
    json_t *plan = whole_plan();
    uint64_t random = SEED;
    int read = 0;

    (void)state;
    assert_true(use(plan));
    for (int i = 0; i < TREES; i++) {
        json_t *mutant = json_deep_copy(plan);

        for (uint64_t n = 1 + next(&random) % 3; n > 0; n--)
            mutate_tree(mutant, &random);
        read += use(mutant);
        json_decref(mutant);
    }
    /* The damage is neither always fatal nor always harmless. */
    assert_in_range(read, TREES / 20, TREES * 19 / 20);
    json_decref(plan);
}

/* Every figure of the cluster at once, from nearly nothing to beyond reason:
 * a price is finite or refused.
 */
static void extreme_figures(void **state)
{
    static const double value[] = {1e-300, 1e-30, 1, 1e30, 1e300};
    static const char *const tier[] = {"bytes_per_s", "latency_s"};
    static const char *const gpu[] = {
        "memory_bytes", "bf16_flops", "hbm_bytes_per_s"};
    int read = 0;

    (void)state;
    for (int i = 0; i < 5 * 5 * 5; i++) {
        json_t *plan = whole_plan();
        json_t *cluster = json_object_get(plan, "cluster");
        json_t *tiers = json_object_get(cluster, "tiers"), *item;
        size_t k;

        for (k = 0; k < 3; k++)
            json_object_set_new(json_object_get(cluster, "gpu"), gpu[k],
                json_real(value[i % 5]));
        json_array_foreach(tiers, k, item)
        {
            json_object_set_new(item, tier[0], json_real(value[i / 5 % 5]));
            json_object_set_new(item, tier[1], json_real(value[i / 25]));
        }
        read += use(plan);
        json_decref(plan);
    }
    assert_int_equal(read, 3 * 3 * 3);
}

/* A byte changed, a byte gone, or the rest gone. */
static size_t mutate_text(char *text, size_t size, uint64_t *random)
{
    size_t at = next(random) % size;

    switch (next(random) % 4) {
    case 0:
        text[at] = (char)next(random);
        return size;
    case 1:
        text[at] = "0123456789-eE.,:[]{}\"\\"[next(random) % 22];
        return size;
    case 2:
        memmove(text + at, text + at + 1, size - at - 1);
        return size - 1;
    default:
        return at + 1;
    }
}

static void damaged_texts(void **state)
{
    char file[] = "/tmp/moefold-mutant.XXXXXX", *whole;
    json_t *plan = whole_plan();
    uint64_t random = SEED;
    size_t size;
    int fd = mkstemp(file), read = 0;

    (void)state;
    assert_true(fd >= 0);
    whole = json_dumps(plan, JSON_INDENT(1));
    size = strlen(whole);
    for (int i = 0; i < TEXTS; i++) {
        struct mf_error err = {0};
        char *mutant = strdup(whole);
        size_t left = mutate_text(mutant, size, &random);
        struct mf_plan read_plan;

        assert_int_equal(pwrite(fd, mutant, left, 0), left);
        assert_int_equal(ftruncate(fd, (off_t)left), 0);
        free(mutant);
        if (mf_plan_read(file, &read_plan, &err)) {
            check_error(-1, &err);
            assert_int_equal(strncmp(err.text, file, strlen(file)), 0);
            continue;
        }
        read++;
        use_plan(&read_plan);
    }
    assert_in_range(read, TEXTS / 20, TEXTS * 19 / 20);
    close(fd);
    unlink(file);
    free(whole);
    json_decref(plan);
}

static int clean_environment(void **state)
{
    (void)state;
    unsetenv("SLURM_JOB_NODELIST");
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(damaged_trees),
        cmocka_unit_test(extreme_figures),
        cmocka_unit_test(damaged_texts),
    };

    return cmocka_run_group_tests_name(
        "plan mutants", tests, clean_environment, NULL);
}
