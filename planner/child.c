/* SPDX-License-Identifier: BSD-3-Clause
 * Work in a child process with limits.
 */
#include "config.h"

#include "planner/child.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define NOISE_BYTES ((size_t)64 << 10)
#define CHUNKS 128  /* more than a pipe holds */
#define SLICE_MS 50 /* how often the child is looked at while pipes rest */
#define GRACE_S 1.0 /* between SIGTERM and SIGKILL */
#define NOT_STARTED 127

struct stream {
    int fd; /* -1 when at its end */
    char *text;
    size_t length, room, most;
    bool keep_last; /* forget the oldest over MOST, else it is a broken limit */
    bool over;
};

static double now_s(void)
{
    struct timespec t;

    if (clock_gettime(CLOCK_MONOTONIC, &t) != 0)
        return 0;
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void close_fd(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

static int stream_append(struct stream *s, const char *data, size_t n)
{
    if (n > s->most - s->length && s->keep_last) {
        size_t keep = s->length < s->most / 2 ? s->length : s->most / 2;

        memmove(s->text, s->text + s->length - keep, keep);
        s->length = keep;
    }
    if (n > s->most - s->length) {
        s->over = true;
        n = s->most - s->length;
    }
    if (s->length + n + 1 > s->room) {
        size_t room = s->room ? s->room : 4096;
        char *text;

        while (room < s->length + n + 1)
            room *= 2;
        text = realloc(s->text, room);
        if (!text)
            return -1;
        s->text = text;
        s->room = room;
    }
    memcpy(s->text + s->length, data, n);
    s->length += n;
    s->text[s->length] = 0;
    return 0;
}

/* Take what is there now, at most CHUNKS times, since a writer may be as fast
 * as its reader.
 */
static int stream_read(struct stream *s)
{
    char data[16384];

    for (int i = 0; i < CHUNKS && s->fd >= 0; i++) {
        ssize_t n = read(s->fd, data, sizeof data);

        if (n > 0 && stream_append(s, data, (size_t)n) < 0)
            return -1;
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
            return 0;
        if (n <= 0)
            close_fd(&s->fd);
    }
    return 0;
}

/* ---- in the child ---- */

static int limit(int what, size_t value)
{
    struct rlimit r = {.rlim_cur = value, .rlim_max = value};

    return setrlimit(what, &r);
}

static int memory_limit(size_t bytes)
{
#ifdef __SANITIZE_ADDRESS__
    /* Its shadow takes far more address space than is used. */
    (void)bytes;
    return 0;
#else
    return bytes ? limit(RLIMIT_AS, bytes) : 0;
#endif
}

/* No handler of the parent runs here, and nothing is blocked or ignored. */
static int signals_reset(void)
{
    struct sigaction plain = {.sa_handler = SIG_DFL};
    sigset_t none;

    for (int i = 1; i < NSIG; i++)
        if (i != SIGKILL && i != SIGSTOP && sigaction(i, &plain, NULL) != 0 &&
            errno != EINVAL)
            return -1;
    if (sigemptyset(&none) != 0)
        return -1;
    return sigprocmask(SIG_SETMASK, &none, NULL);
}

static int child_prepare(const struct mf_child_limits *limits, int noise)
{
    int null = open("/dev/null", O_RDONLY | O_CLOEXEC);

    if (null < 0 || dup2(null, STDIN_FILENO) < 0 ||
        dup2(noise, STDOUT_FILENO) < 0 || dup2(noise, STDERR_FILENO) < 0)
        return -1;
    if (signals_reset() != 0 || prctl(PR_SET_PDEATHSIG, SIGTERM) != 0 ||
        limit(RLIMIT_CORE, 0) != 0)
        return -1;
    return memory_limit(limits->memory_bytes);
}

_Noreturn static void child_main(int (*function)(int fd, void *arg), void *arg,
    const struct mf_child_limits *limits, int out, int noise)
{
    int status = NOT_STARTED;

    setpgid(0, 0);
    if (child_prepare(limits, noise) == 0)
        status = function(out, arg);
    else
        perror("cannot prepare the child process");
    fflush(NULL);
    _exit(status);
}

/* ---- in the parent ---- */

static int set_nonblocking(int fd)
{
    int flags = fcntl(fd, F_GETFL);

    return flags < 0 ? -1 : fcntl(fd, F_SETFL, flags | O_NONBLOCK);
}

/* Has it ended? It stays a zombie, so that its group's number stays its own
 * until the group is killed.
 */
static bool child_has_ended(pid_t pid)
{
    siginfo_t info = {0};

    return waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
           info.si_pid == pid;
}

/* Read both pipes until both end or the child does; false: a limit broke
 * (*END says which) or memory ran out (*END is MF_CHILD_EXITED).
 */
static bool child_follow(pid_t pid, double deadline, struct stream *out,
    struct stream *noise, enum mf_child_end *end)
{
    bool ended = false;

    *end = MF_CHILD_EXITED;
    for (;;) {
        struct pollfd p[2] = {{.fd = out->fd, .events = POLLIN},
            {.fd = noise->fd, .events = POLLIN}};
        double left_ms = (deadline - now_s()) * 1e3;

        if (deadline > 0 && left_ms <= 0) {
            *end = MF_CHILD_TIMEOUT;
            return false;
        }
        ended = child_has_ended(pid);
        if (!ended) {
            int slice = SLICE_MS;

            if (deadline > 0 && left_ms < SLICE_MS)
                slice = 1 + (int)left_ms;
            if (poll(p, 2, slice) < 0 && errno != EINTR)
                return false;
        }
        if (stream_read(out) < 0 || stream_read(noise) < 0)
            return false;
        if (out->over) {
            *end = MF_CHILD_TOO_MUCH;
            return false;
        }
        if (ended)
            return true;
    }
}

/* End the group gently, then not; pipes are read on so that nobody waits. */
static void child_stop(pid_t pid, struct stream *noise)
{
    double deadline = now_s() + GRACE_S;

    kill(-pid, SIGTERM);
    while (!child_has_ended(pid) && now_s() < deadline) {
        struct timespec rest = {.tv_nsec = 5000000};

        (void)stream_read(noise);
        nanosleep(&rest, NULL);
    }
}

static int child_reap(pid_t pid, struct mf_child *child)
{
    int status;

    kill(-pid, SIGKILL);
    while (waitpid(pid, &status, 0) < 0)
        if (errno != EINTR)
            return -1;
    if (WIFEXITED(status))
        child->status = WEXITSTATUS(status);
    else if (WIFSIGNALED(status))
        child->signal = WTERMSIG(status);
    if (child->end == MF_CHILD_EXITED && WIFSIGNALED(status))
        child->end = MF_CHILD_CRASHED;
    return 0;
}

static int child_watch(pid_t pid, const struct mf_child_limits *limits,
    struct stream *out, struct stream *noise, struct mf_child *child,
    struct mf_error *err)
{
    double deadline = limits->seconds > 0 ? now_s() + limits->seconds : 0;
    bool memory_short = false;

    if (!child_follow(pid, deadline, out, noise, &child->end)) {
        memory_short = child->end == MF_CHILD_EXITED;
        child_stop(pid, noise);
    }
    if (child_reap(pid, child) < 0 || memory_short)
        return mf_error_set(err, MF_FAILED, "cannot follow a child process: %s",
            memory_short ? "out of memory" : strerror(errno));
    return 0;
}

static void pipes_close(int pipe_out[2], int pipe_noise[2])
{
    for (int i = 0; i < 2; i++) {
        close_fd(&pipe_out[i]);
        close_fd(&pipe_noise[i]);
    }
}

static int pipes_open(int pipe_out[2], int pipe_noise[2])
{
    if (pipe2(pipe_out, O_CLOEXEC) != 0 || pipe2(pipe_noise, O_CLOEXEC) != 0)
        return -1;
    return set_nonblocking(pipe_out[0]) < 0 ? -1
                                            : set_nonblocking(pipe_noise[0]);
}

int mf_child_call(int (*function)(int fd, void *arg), void *arg,
    const struct mf_child_limits *limits, struct mf_child *child,
    struct mf_error *err)
{
    int pipe_out[2] = {-1, -1}, pipe_noise[2] = {-1, -1}, rc = -1;
    struct stream out = {.fd = -1}, noise = {.fd = -1};
    pid_t pid;

    *child = (struct mf_child){0};
    if (pipes_open(pipe_out, pipe_noise) < 0) {
        mf_error_set(err, MF_FAILED, "cannot make a pipe: %s", strerror(errno));
        goto out;
    }
    fflush(NULL);
    pid = fork();
    if (pid < 0) {
        mf_error_set(
            err, MF_FAILED, "cannot start a process: %s", strerror(errno));
        goto out;
    }
    if (pid == 0)
        child_main(function, arg, limits, pipe_out[1], pipe_noise[1]);
    setpgid(pid, pid);
    close_fd(&pipe_out[1]);
    close_fd(&pipe_noise[1]);
    out = (struct stream){.fd = pipe_out[0],
        .most =
            limits->output_bytes ? limits->output_bytes : MF_CHILD_OUTPUT_MAX};
    noise = (struct stream){
        .fd = pipe_noise[0], .most = NOISE_BYTES, .keep_last = true};
    pipe_out[0] = pipe_noise[0] = -1;
    rc = child_watch(pid, limits, &out, &noise, child, err);
    if (rc == 0 &&
        (stream_append(&out, "", 0) < 0 || stream_append(&noise, "", 0) < 0))
        rc = mf_error_set(err, MF_FAILED, "out of memory");
    child->output = out.text;
    child->length = out.length;
    child->noise = noise.text;
out:
    close_fd(&out.fd);
    close_fd(&noise.fd);
    pipes_close(pipe_out, pipe_noise);
    if (rc < 0)
        mf_child_free(child);
    return rc;
}

struct program {
    char *const *argv;
    const char *const *env;
};

static int program_exec(int fd, void *arg)
{
    const struct program *program = arg;

    if (dup2(fd, STDOUT_FILENO) < 0)
        return NOT_STARTED;
    for (int i = 0; program->env && program->env[i]; i++) {
        char *entry = strdup(program->env[i]);

        if (!entry || putenv(entry) != 0)
            return NOT_STARTED;
    }
    execvp(program->argv[0], program->argv);
    perror(program->argv[0]);
    return NOT_STARTED;
}

int mf_child_program(char *const argv[], const char *const *env,
    const struct mf_child_limits *limits, struct mf_child *child,
    struct mf_error *err)
{
    struct program program = {.argv = argv, .env = env};

    return mf_child_call(program_exec, &program, limits, child, err);
}

int mf_child_write(int fd, const char *text, size_t length)
{
    while (length > 0) {
        ssize_t n = write(fd, text, length);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -1;
        text += n;
        length -= (size_t)n;
    }
    return 0;
}

static const char *last_line(const char *text, int *length)
{
    size_t end = text ? strlen(text) : 0, start;

    while (end > 0 && (unsigned char)text[end - 1] <= ' ')
        end--;
    for (start = end; start > 0 && text[start - 1] != '\n';)
        start--;
    *length = end - start > 400 ? 400 : (int)(end - start);
    return text ? text + start : "";
}

void mf_child_explain(const struct mf_child *child, char *text, size_t size)
{
    int length = 0, used = 0;
    const char *line = last_line(child->noise, &length);

    switch (child->end) {
    case MF_CHILD_EXITED:
        used = snprintf(text, size, "exit status %d", child->status);
        break;
    case MF_CHILD_CRASHED:
        used = snprintf(text, size, "crashed with signal %d (%s)",
            child->signal, strsignal(child->signal));
        break;
    case MF_CHILD_TIMEOUT:
        used = snprintf(text, size, "ended at its time limit");
        break;
    case MF_CHILD_TOO_MUCH:
        used = snprintf(text, size, "ended: its answer is too long");
        break;
    }
    if (length > 0 && used > 0 && (size_t)used < size)
        snprintf(text + used, size - (size_t)used, ": %.*s", length, line);
}

void mf_child_free(struct mf_child *child)
{
    if (!child)
        return;
    free(child->output);
    free(child->noise);
    *child = (struct mf_child){0};
}
