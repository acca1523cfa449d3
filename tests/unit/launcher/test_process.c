/* SPDX-License-Identifier: BSD-3-Clause
 * Programs run in the user's sight: statuses, output, signals, no strays.
 */
#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "launcher/process.h"

static char *env[] = {"PATH=/usr/bin:/bin", "WORD=given", NULL};

static int run_shell(const char *script, char **output)
{
    char *argv[] = {"/bin/sh", "-c", (char *)script, NULL};
    struct mf_error err = {0};
    int status = -1;

    if (mfl_process_run(argv, env, output, &status, &err) < 0)
        fail_msg("%s", err.text);
    return status;
}

static void test_statuses(void **state)
{
    (void)state;
    assert_int_equal(run_shell("exit 0", NULL), 0);
    assert_int_equal(run_shell("exit 3", NULL), 3);
    assert_int_equal(run_shell("kill -ABRT $$", NULL), 128 + SIGABRT);
}

static void test_output(void **state)
{
    char *output = NULL;

    (void)state;
    assert_int_equal(run_shell("echo one; echo $WORD$HOME", &output), 0);
    assert_string_equal(output, "one\ngiven\n");
    free(output);
    output = NULL;
    assert_int_equal(
        run_shell("head -c 3000000 /dev/zero | tr '\\0' x", &output), 0);
    assert_int_equal(strlen(output), 3000000);
    free(output);
}

static void test_standard_input_is_empty(void **state)
{
    char *output = NULL;

    (void)state;
    assert_int_equal(run_shell("cat; echo end", &output), 0);
    assert_string_equal(output, "end\n");
    free(output);
}

static void test_missing_program(void **state)
{
    char *argv[] = {"/nonexistent/program", NULL};
    struct mf_error err = {0};
    int status;

    (void)state;
    assert_int_equal(mfl_process_run(argv, env, NULL, &status, &err), -1);
    assert_int_equal(err.status, MF_FAILED);
    assert_non_null(strstr(err.text, "/nonexistent/program"));
}

/* A process that runs a shell and is told to end: the shell gets the signal,
 * its trap runs, and the status says which signal it was.
 */
static void test_signals_are_handed_on(void **state)
{
    char *argv[] = {"/bin/sh", "-c",
        "trap 'echo bye; exit 1' TERM; echo ready; while :; do sleep 0.05; "
        "done",
        NULL};
    int ready[2], status;
    char text[64];
    pid_t pid;

    (void)state;
    assert_int_equal(pipe(ready), 0);
    pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        dup2(ready[1], STDOUT_FILENO);
        close(ready[0]);
        close(ready[1]);
        _exit(
            mfl_process_run(argv, env, NULL, &status, NULL) < 0 ? 99 : status);
    }
    close(ready[1]);
    assert_int_equal(read(ready[0], text, 6), 6);
    assert_int_equal(kill(pid, SIGTERM), 0);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 128 + SIGTERM);
    assert_int_equal(read(ready[0], text, sizeof text), 4);
    assert_memory_equal(text, "bye\n", 4);
    close(ready[0]);
}

static void test_find(void **state)
{
    struct mf_error err = {0};
    char *path, *before = strdup(getenv("PATH"));

    (void)state;
    setenv("PATH", "relative:/bin:/usr/bin", 1);
    path = mfl_process_find("sh", "mend", &err);
    assert_non_null(path);
    assert_string_equal(path, "/bin/sh");
    free(path);
    setenv("PATH", "/nonexistent", 1);
    assert_null(mfl_process_find("sh", "install a shell", &err));
    assert_int_equal(err.status, MF_FAILED);
    assert_non_null(strstr(err.text, "install a shell"));
    setenv("PATH", before, 1);
    free(before);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_statuses),
        cmocka_unit_test(test_output),
        cmocka_unit_test(test_standard_input_is_empty),
        cmocka_unit_test(test_missing_program),
        cmocka_unit_test(test_signals_are_handed_on),
        cmocka_unit_test(test_find),
    };

    return cmocka_run_group_tests_name("process", tests, NULL, NULL);
}
