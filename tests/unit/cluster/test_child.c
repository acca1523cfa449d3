/* SPDX-License-Identifier: BSD-3-Clause
 * Work in a child process: whatever it does, its parent goes on and knows.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "planner/child.h"

static int answer(int fd, void *arg)
{
    const char *text = arg;

    printf("this is not the answer\n");
    return mf_child_write(fd, text, strlen(text));
}

static int hang(int fd, void *arg)
{
    (void)arg;
    if (mf_child_write(fd, "half", 4) < 0)
        return 1;
    while (pause() < 0)
        ;
    return 0;
}

static int hang_deaf(int fd, void *arg)
{
    if (signal(SIGTERM, SIG_IGN) == SIG_ERR)
        return 1;
    return hang(fd, arg);
}

static int crash(int fd, void *arg)
{
    (void)fd;
    raise(*(int *)arg);
    return 0;
}

/* As libslurm does. */
static int leave(int fd, void *arg)
{
    (void)fd, (void)arg;
    fprintf(stderr, "first line\nno configuration here\n");
    exit(1);
}

static int flood_answer(int fd, void *arg)
{
    static const char block[4096];

    (void)arg;
    while (mf_child_write(fd, block, sizeof block) == 0)
        ;
    return 0;
}

static int flood_noise(int fd, void *arg)
{
    (void)arg;
    for (int i = 0; i < 200000; i++)
        printf("line %d\n", i);
    return mf_child_write(fd, "done", 4);
}

static int eat_memory(int fd, void *arg)
{
    size_t size = (size_t)1 << 32;
    void *memory = malloc(size);

    (void)arg;
    free(memory);
    return mf_child_write(fd, memory ? "had" : "none", 4 - !!memory);
}

static void run(int (*function)(int, void *), void *arg,
    const struct mf_child_limits *limits, struct mf_child *child)
{
    struct mf_error err = {0};

    assert_int_equal(mf_child_call(function, arg, limits, child, &err), 0);
}

static void test_answer(void **state)
{
    struct mf_child_limits limits = {.seconds = 60};
    char text[] = "42";
    struct mf_child child;

    (void)state;
    run(answer, text, &limits, &child);
    assert_int_equal(child.end, MF_CHILD_EXITED);
    assert_int_equal(child.status, 0);
    assert_string_equal(child.output, "42");
    assert_string_equal(child.noise, "this is not the answer\n");
    mf_child_free(&child);
}

static void test_hang(void **state)
{
    struct mf_child_limits limits = {.seconds = 0.2};
    struct mf_child child;

    (void)state;
    run(hang, NULL, &limits, &child);
    assert_int_equal(child.end, MF_CHILD_TIMEOUT);
    assert_string_equal(child.output, "half");
    mf_child_free(&child);
    run(hang_deaf, NULL, &limits, &child);
    assert_int_equal(child.end, MF_CHILD_TIMEOUT);
    assert_int_equal(child.signal, SIGKILL);
    mf_child_free(&child);
}

static void test_crash(void **state)
{
    struct mf_child_limits limits = {.seconds = 60};
    int signals[] = {SIGABRT, SIGSEGV, SIGKILL};
    struct mf_child child;

    (void)state;
    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++) {
        run(crash, &signals[i], &limits, &child);
        assert_int_equal(child.end, MF_CHILD_CRASHED);
        assert_int_equal(child.signal, signals[i]);
        mf_child_free(&child);
    }
}

static void test_exit(void **state)
{
    struct mf_child_limits limits = {.seconds = 60};
    struct mf_child child;
    char text[200];

    (void)state;
    run(leave, NULL, &limits, &child);
    assert_int_equal(child.end, MF_CHILD_EXITED);
    assert_int_equal(child.status, 1);
    mf_child_explain(&child, text, sizeof text);
    assert_string_equal(text, "exit status 1: no configuration here");
    mf_child_free(&child);
}

static void test_flood(void **state)
{
    struct mf_child_limits limits = {.seconds = 60, .output_bytes = 100000};
    struct mf_child child;

    (void)state;
    run(flood_answer, NULL, &limits, &child);
    assert_int_equal(child.end, MF_CHILD_TOO_MUCH);
    assert_int_equal(child.length, 100000);
    mf_child_free(&child);
    run(flood_noise, NULL, &limits, &child);
    assert_int_equal(child.end, MF_CHILD_EXITED);
    assert_string_equal(child.output, "done");
    assert_true(strlen(child.noise) <= 65536);
    assert_non_null(strstr(child.noise, "line 199999\n"));
    mf_child_free(&child);
}

static void test_memory(void **state)
{
    struct mf_child_limits limits = {.seconds = 60, .memory_bytes = 1 << 30};
    struct mf_child child;

    (void)state;
#ifdef __SANITIZE_ADDRESS__
    skip(); /* its shadow needs more address space than the limit */
#endif
    run(eat_memory, NULL, &limits, &child);
    assert_string_equal(child.output, "none");
    mf_child_free(&child);
}

/* A grandchild that holds the pipes does not hold the parent. */
static void test_program(void **state)
{
    struct mf_child_limits limits = {.seconds = 60};
    const char *const env[] = {"MF_TEST=four", NULL};
    char *sh[] = {
        "sh", "-c", "sleep 100 & echo $MF_TEST; echo bad >&2; exit 3", NULL};
    char *none[] = {"/nowhere/at/all", NULL};
    struct mf_child child;

    (void)state;
    assert_int_equal(mf_child_program(sh, env, &limits, &child, NULL), 0);
    assert_int_equal(child.end, MF_CHILD_EXITED);
    assert_int_equal(child.status, 3);
    assert_string_equal(child.output, "four\n");
    assert_string_equal(child.noise, "bad\n");
    mf_child_free(&child);
    assert_int_equal(mf_child_program(none, NULL, &limits, &child, NULL), 0);
    assert_int_equal(child.status, 127);
    assert_non_null(strstr(child.noise, "/nowhere/at/all"));
    mf_child_free(&child);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_answer),
        cmocka_unit_test(test_hang),
        cmocka_unit_test(test_crash),
        cmocka_unit_test(test_exit),
        cmocka_unit_test(test_flood),
        cmocka_unit_test(test_memory),
        cmocka_unit_test(test_program),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
