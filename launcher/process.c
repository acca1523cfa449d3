/* SPDX-License-Identifier: BSD-3-Clause
 * Programs that are run in the user's sight.
 */
#include "config.h"

#include "launcher/process.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

char *mfl_process_find(
    const char *program, const char *mend, struct mf_error *err)
{
    const char *path = getenv("PATH");
    char file[PATH_MAX];
    struct stat there;

    for (const char *p = path ? path : ""; *p;) {
        int length = (int)strcspn(p, ":");
        int n = snprintf(file, sizeof file, "%.*s/%s", length, p, program);

        if (*p == '/' && n > 0 && (size_t)n < sizeof file &&
            access(file, X_OK) == 0 && stat(file, &there) == 0 &&
            S_ISREG(there.st_mode)) {
            char *found = strdup(file);

            if (!found)
                mf_error_set(err, MF_FAILED, "out of memory");
            return found;
        }
        p += length + (p[length] == ':');
    }
    mf_error_set(err, MF_FAILED, "%s is not in PATH; %s", program, mend);
    return NULL;
}

/* What the parent watches while a program runs. */
struct watch {
    pid_t pid;
    int signals;   /* signalfd */
    int output;    /* read end, -1: not caught, or at its end */
    int failed;    /* read end: the errno of a failed exec */
    int handed_on; /* the last signal handed on, 0: none */
    char *text;
    size_t length, room;
};

static void close_fd(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

/* Signals that are ignored stay so, as under nohup. */
static void watched_set(sigset_t *set)
{
    static const int handed_on[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
    struct sigaction now;

    sigemptyset(set);
    sigaddset(set, SIGCHLD);
    for (size_t i = 0; i < sizeof handed_on / sizeof *handed_on; i++)
        if (sigaction(handed_on[i], NULL, &now) == 0 &&
            now.sa_handler != SIG_IGN)
            sigaddset(set, handed_on[i]);
}

/* In the child; a process group of its own, so that a Ctrl-C at the terminal
 * reaches it once (handed on by the parent) and not twice.
 */
_Noreturn static void child_exec(char *const argv[], char *const env[],
    int output, int failed, const sigset_t *mask)
{
    int null = open("/dev/null", O_RDONLY | O_CLOEXEC), why;

    if (setpgid(0, 0) == 0 && null >= 0 && dup2(null, STDIN_FILENO) >= 0 &&
        (output < 0 || dup2(output, STDOUT_FILENO) >= 0) &&
        prctl(PR_SET_PDEATHSIG, SIGTERM) == 0 &&
        sigprocmask(SIG_SETMASK, mask, NULL) == 0)
        execve(argv[0], argv, env);
    why = errno;
    while (write(failed, &why, sizeof why) < 0 && errno == EINTR)
        ;
    _exit(127);
}

static int watch_read(struct watch *w)
{
    ssize_t n;

    if (w->room - w->length < 65536) {
        size_t room = w->room ? 2 * w->room : 131072;
        char *text = room > 2 * MFL_OUTPUT_MAX ? NULL : realloc(w->text, room);

        if (!text)
            return -1;
        w->text = text;
        w->room = room;
    }
    n = read(w->output, w->text + w->length, w->room - w->length - 1);
    if (n < 0 && errno != EINTR)
        return -1;
    if (n == 0)
        close_fd(&w->output);
    if (n > 0)
        w->length += (size_t)n;
    w->text[w->length] = 0;
    return w->length > MFL_OUTPUT_MAX ? -1 : 0;
}

/* True once the child has ended, with its wait status. */
static bool watch_signal(struct watch *w, int *wait_status)
{
    struct signalfd_siginfo info;

    if (read(w->signals, &info, sizeof info) != (ssize_t)sizeof info)
        return false;
    if (info.ssi_signo != SIGCHLD) {
        w->handed_on = (int)info.ssi_signo;
        kill(w->pid, w->handed_on);
        return false;
    }
    return waitpid(w->pid, wait_status, WNOHANG) == w->pid;
}

/* Until the child has ended and its output is read. */
static int watch_follow(struct watch *w, int *wait_status)
{
    bool ended = false;

    while (!ended || w->output >= 0) {
        struct pollfd p[2] = {{.fd = w->signals, .events = POLLIN},
            {.fd = w->output, .events = POLLIN}};
        int ready = poll(p, 2, ended ? 0 : -1);

        if (ready < 0 && errno != EINTR)
            return -1;
        /* A grandchild may hold the pipe open for longer than we care. */
        if (ready == 0)
            break;
        if (ready > 0 && p[1].revents && watch_read(w) < 0)
            return -1;
        if (ready > 0 && p[0].revents && watch_signal(w, wait_status))
            ended = true;
    }
    return 0;
}

/* Make sure that the child is gone, whatever went wrong. */
static void watch_kill(struct watch *w)
{
    kill(-w->pid, SIGKILL);
    kill(w->pid, SIGKILL);
    while (waitpid(w->pid, NULL, 0) < 0 && errno == EINTR)
        ;
}

static int watch_end(struct watch *w, const char *program, int wait_status,
    int *status, struct mf_error *err)
{
    int why = 0;

    if (read(w->failed, &why, sizeof why) == (ssize_t)sizeof why)
        return mf_error_set(
            err, MF_FAILED, "%s: cannot start it: %s", program, strerror(why));
    *status = WIFEXITED(wait_status) ? WEXITSTATUS(wait_status)
                                     : 128 + WTERMSIG(wait_status);
    if (*status != 0 && w->handed_on)
        *status = 128 + w->handed_on;
    return 0;
}

static int run_watched(struct watch *w, char *const argv[], char *const env[],
    bool catch, const sigset_t *mask, int *status, struct mf_error *err)
{
    int output[2] = {-1, -1}, failed[2] = {-1, -1}, wait_status = 0, rc = -1;

    if ((catch && pipe2(output, O_CLOEXEC) < 0) ||
        pipe2(failed, O_CLOEXEC) < 0 || (w->pid = fork()) < 0) {
        mf_error_set(err, MF_FAILED, "%s: cannot start it: %s", argv[0],
            strerror(errno));
        goto out;
    }
    if (w->pid == 0)
        child_exec(argv, env, output[1], failed[1], mask);
    close_fd(&output[1]);
    close_fd(&failed[1]);
    w->output = output[0];
    w->failed = failed[0];
    output[0] = failed[0] = -1;
    if (watch_follow(w, &wait_status) < 0) {
        mf_error_set(err, MF_FAILED,
            "%s: its output is too long or cannot be read", argv[0]);
        watch_kill(w);
        goto out;
    }
    rc = watch_end(w, argv[0], wait_status, status, err);
out:
    for (int i = 0; i < 2; i++) {
        close_fd(&output[i]);
        close_fd(&failed[i]);
    }
    return rc;
}

int mfl_process_run(char *const argv[], char *const env[], char **output,
    int *status, struct mf_error *err)
{
    struct watch w = {.signals = -1, .output = -1, .failed = -1};
    sigset_t watched, mask;
    int rc = -1;

    watched_set(&watched);
    fflush(NULL);
    /* Ignored, it would neither arrive nor leave a status behind. */
    if (signal(SIGCHLD, SIG_DFL) == SIG_ERR ||
        sigprocmask(SIG_BLOCK, &watched, &mask) < 0)
        return mf_error_set(err, MF_FAILED, "cannot block signals");
    w.signals = signalfd(-1, &watched, SFD_CLOEXEC | SFD_NONBLOCK);
    if (w.signals < 0)
        mf_error_set(
            err, MF_FAILED, "cannot watch signals: %s", strerror(errno));
    else
        rc = run_watched(&w, argv, env, output != NULL, &mask, status, err);
    close_fd(&w.signals);
    close_fd(&w.output);
    close_fd(&w.failed);
    if (sigprocmask(SIG_SETMASK, &mask, NULL) < 0 && rc == 0)
        rc = mf_error_set(err, MF_FAILED, "cannot restore signals");
    if (rc == 0 && output)
        *output = w.text;
    else
        free(w.text);
    return rc;
}
