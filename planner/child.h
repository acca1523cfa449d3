/* SPDX-License-Identifier: BSD-3-Clause
 * Work that may hang, crash, print or exit, done in a child process with
 * limits: libslurm, imports of foreign files, programs that are run.
 *
 * The child is the head of a process group of its own. It hands its answer
 * back over a pipe; what it prints on standard output or error is caught
 * apart, so that a library that prints on its own cannot spoil the answer. On
 * a broken limit the whole group is told to end (SIGTERM), then killed.
 */
#ifndef MF_CHILD_H
#define MF_CHILD_H

#include <stdbool.h>
#include <stddef.h>

#include "planner/layout/error.h"

#define MF_CHILD_OUTPUT_MAX ((size_t)256 << 20)

struct mf_child_limits {
    double seconds;      /* wall clock; 0: none */
    size_t memory_bytes; /* of address space; 0: none */
    size_t output_bytes; /* of the answer; 0: MF_CHILD_OUTPUT_MAX */
};

enum mf_child_end {
    MF_CHILD_EXITED,   /* on its own, with status */
    MF_CHILD_CRASHED,  /* by signal */
    MF_CHILD_TIMEOUT,  /* it was ended: too slow */
    MF_CHILD_TOO_MUCH, /* it was ended: its answer is too long */
};

struct mf_child {
    enum mf_child_end end;
    int status, signal;
    char *output; /* the answer, `length` bytes and a final 0 */
    size_t length;
    char *noise; /* what it printed, the last 32 to 64 KiB and a final 0 */
};

/* Run FUNCTION(FD, ARG) in the child; it writes its answer to FD and returns
 * the exit status. 0 when a child was run, however it ended (see CHILD; free
 * with mf_child_free); -1 when none could be run.
 */
int mf_child_call(int (*function)(int fd, void *arg), void *arg,
    const struct mf_child_limits *limits, struct mf_child *child,
    struct mf_error *err);

/* Run the program ARGV[0] (looked up in PATH when it has no slash), with
 * ENV ("NAME=value", NULL-terminated, may be NULL) added to the environment.
 * Its standard output is the answer, standard error the noise. A program that
 * can't be started ends with status 127.
 */
int mf_child_program(char *const argv[], const char *const *env,
    const struct mf_child_limits *limits, struct mf_child *child,
    struct mf_error *err);

/* Write all LENGTH bytes of TEXT to FD; 0, or -1 with errno set. */
int mf_child_write(int fd, const char *text, size_t length);

/* How CHILD ended and the last line that it printed, in one line. */
void mf_child_explain(const struct mf_child *child, char *text, size_t size);

void mf_child_free(struct mf_child *child);

#endif
