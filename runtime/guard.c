/* SPDX-License-Identifier: BSD-3-Clause
 * Waiting under a watchdog.
 */
#include "runtime/guard_state.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/clock.h"
#include "runtime/comm.h"

#define NOTICE_S 3.0
#define SERVE_S 0.01 /* between two looks for words */
#define LOOK_S 0.1   /* between two looks at processes */
#define ASK_S 1.0
#define ANSWER_S 0.25 /* after the first question */
#define AGAIN_S 60.0  /* between two notices of one wait */
#define BUSY_S 30.0   /* before who computes is spoken of */

enum { SPINS = 50, CLOCK_EVERY = 64 };

/* MPI finds what belongs to a communicator by a key, which it hands out once a
 * process.
 */
static int attribute_key = MPI_KEYVAL_INVALID;

static int forget(MPI_Comm comm, int key, void *attribute, void *extra)
{
    struct mfr_watched *w = attribute;

    (void)comm, (void)key, (void)extra;
    if (w->guard) {
        struct mfr_watched **at = &w->guard->watched;

        while (*at && *at != w)
            at = &(*at)->next;
        if (*at)
            *at = w->next;
    }
    free(w->rank);
    free(w);
    return MPI_SUCCESS;
}

struct mfr_watched *mfr_watched_of(MPI_Comm comm)
{
    struct mfr_watched *w = NULL;
    int found = 0;

    if (attribute_key == MPI_KEYVAL_INVALID ||
        MPI_Comm_get_attr(comm, attribute_key, &w, &found) != MPI_SUCCESS)
        return NULL;
    return found && w->guard ? w : NULL;
}

/* FNV-1a. */
static uint64_t mix(uint64_t hash, const void *data, size_t bytes)
{
    const unsigned char *at = data;

    for (size_t i = 0; i < bytes; i++)
        hash = (hash ^ at[i]) * 0x100000001b3ULL;
    return hash;
}

/* The ranks of COMM in the guard's base, as COMM has them. */
static int find_ranks(
    mfr_guard *g, MPI_Comm comm, struct mfr_watched *w, struct mf_error *err)
{
    int *place = malloc((size_t)w->size * sizeof *place);
    MPI_Group all = MPI_GROUP_NULL, some = MPI_GROUP_NULL;
    int rc = -1;

    w->rank = calloc((size_t)w->size, sizeof *w->rank);
    if (!place || !w->rank) {
        mf_error_set(err, MF_FAILED, "out of memory for the watchdog");
        goto out;
    }
    for (int m = 0; m < w->size; m++)
        place[m] = m;
    if (mfr_mpi(MPI_Comm_group(g->base, &all), "MPI_Comm_group", err) ||
        mfr_mpi(MPI_Comm_group(comm, &some), "MPI_Comm_group", err) ||
        mfr_mpi(MPI_Group_translate_ranks(some, w->size, place, all, w->rank),
            "MPI_Group_translate_ranks", err))
        goto out;
    for (int m = 0; m < w->size; m++)
        if (w->rank[m] == MPI_UNDEFINED) {
            mf_error_set(err, MF_FAILED,
                "the watchdog knows not all ranks of the %s group", w->name);
            goto out;
        }
    rc = 0;
out:
    if (all != MPI_GROUP_NULL)
        MPI_Group_free(&all);
    if (some != MPI_GROUP_NULL)
        MPI_Group_free(&some);
    free(place);
    return rc;
}

static int watch(mfr_guard *g, MPI_Comm comm, const char *name, uint64_t born,
    struct mf_error *err)
{
    struct mfr_watched *w = calloc(1, sizeof *w);

    if (!w)
        return mf_error_set(err, MF_FAILED, "out of memory for the watchdog");
    snprintf(w->name, sizeof w->name, "%s", name);
    if (mfr_mpi(MPI_Comm_size(comm, &w->size), "MPI_Comm_size", err) ||
        mfr_mpi(MPI_Comm_rank(comm, &w->me), "MPI_Comm_rank", err) ||
        find_ranks(g, comm, w, err) ||
        mfr_mpi(MPI_Comm_set_attr(comm, attribute_key, w), "MPI_Comm_set_attr",
            err)) {
        free(w->rank);
        free(w);
        return -1;
    }
    w->id = mix(0xcbf29ce484222325ULL, w->name, sizeof w->name);
    w->id = mix(w->id, w->rank, (size_t)w->size * sizeof *w->rank);
    w->id = mix(w->id, &born, sizeof born);
    w->guard = g;
    w->next = g->watched;
    g->watched = w;
    return 0;
}

int mfr_guard_watch(
    MPI_Comm parent, MPI_Comm comm, const char *name, struct mf_error *err)
{
    struct mfr_watched *w = mfr_watched_of(parent);

    return w ? watch(w->guard, comm, name, mix(w->id, &w->calls, 8), err) : 0;
}

void mfr_guard_iteration(MPI_Comm comm, int64_t iteration)
{
    struct mfr_watched *w = mfr_watched_of(comm);

    if (w)
        w->guard->iteration = iteration;
}

uint64_t mfr_guard_log(MPI_Comm comm, uint64_t *calls)
{
    const struct mfr_watched *w = mfr_watched_of(comm);

    *calls = w ? w->calls : 0;
    return w ? w->log : 0;
}

void mfr_wait_begin(
    struct mfr_wait *wait, MPI_Comm comm, int peer, const char *what)
{
    struct mfr_watched *w = mfr_watched_of(comm);

    *wait = (struct mfr_wait){.watched = w, .what = what, .peer = peer};
    if (!w)
        return;
    if (peer < 0) {
        w->calls++;
        w->log = mix(w->log, what, strlen(what));
    }
    w->guard->now = wait;
    w->guard->waits_for = -1;
}

void mfr_wait_end(struct mfr_wait *wait)
{
    if (wait->watched)
        wait->watched->guard->now = NULL;
}

/* Nothing is said where another rank has told why all end. */
static int give_up(mfr_guard *g, const struct mfr_wait *wait,
    enum mfr_blame blame, int place, struct mf_error *err)
{
    struct mf_error reason = {MF_FAILED, ""};

    g->gave_up = true;
    if (!g->told)
        mfr_guard_describe(g, wait, blame, place, &reason);
    if (err)
        *err = reason;
    if (g->options.give_up)
        g->options.give_up(g->options.with, &reason, false);
    return -1;
}

/* Whom the others should hear of. */
static int root(const mfr_guard *g, const struct mfr_wait *wait,
    enum mfr_blame blame, int place)
{
    const int rank = place < 0 ? -1 : wait->watched->rank[place];
    const int next = rank < 0 ? -1 : g->peer[rank].word.waits_for;

    return blame == MFR_BLAME_CHAIN && next >= 0 ? next : rank;
}

/* Once a second of a long wait. */
static int judge(mfr_guard *g, struct mfr_wait *wait, struct mf_error *err)
{
    const double now = mfr_now(), waited = now - wait->since;
    const bool first = wait->next <= 0;
    enum mfr_blame blame;
    struct mf_error told = {MF_FAILED, ""};
    bool tell;
    int place;

    wait->next = now + (first ? ANSWER_S : ASK_S);
    if (mfr_guard_ask(g, wait, err))
        return -1;
    /* Nobody can have answered yet. */
    if (first && waited < g->options.timeout_s)
        return 0;
    blame = mfr_guard_blame(g, wait, &place);
    g->waits_for = root(g, wait, blame, place);
    if (waited >= g->options.timeout_s)
        return give_up(g, wait, blame, place, err);
    tell = blame == MFR_BLAME_BUSY
               ? waited > BUSY_S
               : blame != MFR_BLAME_NONE && blame != MFR_BLAME_CHAIN;
    if (!tell || (wait->noticed > 0 && now - wait->noticed < AGAIN_S) ||
        !g->options.notice || !mfr_guard_speaks(g, wait))
        return 0;
    wait->noticed = now;
    mfr_guard_describe(g, wait, blame, place, &told);
    g->options.notice(g->options.with, told.text);
    return 0;
}

/* Nobody comes whose process has ended. Ranks look one after another, so that
 * the first can tell the others that it has said so.
 */
static int look(
    mfr_guard *g, struct mfr_wait *wait, double now, struct mf_error *err)
{
    const int me = wait->watched->me;
    int gone;

    if (now - wait->since < LOOK_S + LOOK_S / 4 * (me < 8 ? me : 8) ||
        now - wait->looked < LOOK_S)
        return 0;
    wait->looked = now;
    gone = mfr_guard_gone(g, wait);
    if (gone < 0)
        return 0;
    if (mfr_guard_listen(g, err))
        return -1;
    return give_up(g, wait, MFR_BLAME_GONE, gone, err);
}

int mfr_wait_poll(struct mfr_wait *wait, struct mf_error *err)
{
    mfr_guard *g = wait->watched ? wait->watched->guard : NULL;
    double now;

    if (++wait->polls < SPINS)
        return 0;
    sched_yield();
    if (!g || wait->polls % CLOCK_EVERY)
        return 0;
    if (g->gave_up)
        return mf_error_set(err, MF_FAILED, "%s: given up", wait->what);
    now = mfr_now();
    if (wait->since <= 0)
        wait->since = now;
    if (now - g->served < SERVE_S)
        return 0;
    g->served = now;
    if (mfr_guard_listen(g, err))
        return -1;
    if (look(g, wait, now, err))
        return -1;
    if (now - wait->since < g->options.notice_s ||
        (now < wait->next && now - wait->since < g->options.timeout_s))
        return 0;
    return judge(g, wait, err);
}

int mfr_wait_all(MPI_Comm comm, int peer, int n, MPI_Request *request,
    const char *what, struct mf_error *err)
{
    struct mfr_wait wait;
    int done = 0, rc = 0;

    mfr_wait_begin(&wait, comm, peer, what);
    while (rc == 0) {
        rc = mfr_mpi(
            MPI_Testall(n, request, &done, MPI_STATUSES_IGNORE), what, err);
        if (rc || done)
            break;
        rc = mfr_wait_poll(&wait, err);
    }
    mfr_wait_end(&wait);
    return rc;
}

/* Calls that only block. */

static struct timespec moment(double seconds)
{
    const double whole = floor(seconds);

    return (struct timespec){(time_t)whole, (long)((seconds - whole) * 1e9)};
}

static void *watch_calls(void *with)
{
    mfr_guard *g = with;

    pthread_mutex_lock(&g->lock);
    while (!g->leaving) {
        const double deadline = g->call_deadline;
        const struct timespec at = moment(deadline);

        if (deadline <= 0)
            pthread_cond_wait(&g->changed, &g->lock);
        else if (pthread_cond_timedwait(&g->changed, &g->lock, &at) ==
                     ETIMEDOUT &&
                 g->call_deadline == deadline) {
            g->call_deadline = 0;
            if (g->options.give_up)
                g->options.give_up(g->options.with, &g->call_late, true);
        }
    }
    pthread_mutex_unlock(&g->lock);
    return NULL;
}

static int start_thread(mfr_guard *g, struct mf_error *err)
{
    pthread_condattr_t how;
    int code = pthread_condattr_init(&how);

    if (code == 0)
        code = pthread_condattr_setclock(&how, CLOCK_MONOTONIC);
    if (code == 0)
        code = pthread_cond_init(&g->changed, &how);
    if (code == 0)
        code = pthread_mutex_init(&g->lock, NULL);
    if (code == 0)
        code = pthread_create(&g->thread, NULL, watch_calls, g);
    g->has_thread = code == 0;
    return code ? mf_error_set(err, MF_FAILED, "watchdog: %s", strerror(code))
                : 0;
}

static void arm(mfr_guard *g, const char *what, const char *name)
{
    pthread_mutex_lock(&g->lock);
    if (what)
        mf_error_set(&g->call_late, MF_FAILED,
            "rank %d: %s, %s group: no end within %.0f s", g->rank, what, name,
            g->options.timeout_s);
    g->call_deadline = what ? mfr_now() + g->options.timeout_s : 0;
    pthread_cond_signal(&g->changed);
    pthread_mutex_unlock(&g->lock);
}

int mfr_block_begin(MPI_Comm comm, const char *what, struct mf_error *err)
{
    struct mfr_watched *w = mfr_watched_of(comm);
    MPI_Request request;

    if (!w)
        return 0;
    if (mfr_mpi(MPI_Ibarrier(comm, &request), what, err) ||
        mfr_wait_all(comm, -1, 1, &request, what, err))
        return -1;
    arm(w->guard, what, w->name);
    return 0;
}

void mfr_block_end(MPI_Comm comm)
{
    struct mfr_watched *w = mfr_watched_of(comm);

    if (w)
        arm(w->guard, NULL, NULL);
}

static int make_key(struct mf_error *err)
{
    if (attribute_key != MPI_KEYVAL_INVALID)
        return 0;
    return mfr_mpi(MPI_Comm_create_keyval(
                       MPI_COMM_NULL_COPY_FN, forget, &attribute_key, NULL),
        "MPI_Comm_create_keyval", err);
}

/* A communicator of the guard's own, and who is who. */
static int meet_all(mfr_guard *g, struct mf_error *err)
{
    struct mfr_place mine;
    const int bytes = (int)sizeof mine;

    mfr_place_here(&mine);
    if (mfr_mpi(MPI_Comm_dup(g->base, &g->talk), "MPI_Comm_dup", err) ||
        mfr_mpi(MPI_Comm_set_errhandler(g->talk, MPI_ERRORS_RETURN),
            "MPI_Comm_set_errhandler", err))
        return -1;
    g->place = calloc((size_t)g->ranks, sizeof *g->place);
    if (mfr_agree(g->talk,
            g->place ? 0
                     : mf_error_set(
                           err, MF_FAILED, "out of memory for the watchdog"),
            err))
        return -1;
    return mfr_mpi(MPI_Allgather(&mine, bytes, MPI_BYTE, g->place, bytes,
                       MPI_BYTE, g->talk),
        "MPI_Allgather", err);
}

int mfr_guard_create(MPI_Comm base, const struct mfr_guard_options *options,
    mfr_guard **guard, struct mf_error *err)
{
    mfr_guard *g = calloc(1, sizeof *g);

    *guard = g;
    if (!g)
        return mf_error_set(err, MF_FAILED, "out of memory for the watchdog");
    *g = (struct mfr_guard){
        .options = *options,
        .base = base,
        .talk = MPI_COMM_NULL,
        .iteration = INT64_MIN,
        .waits_for = -1,
    };
    if (g->options.notice_s <= 0)
        g->options.notice_s = NOTICE_S;
    if (g->options.notice_s > g->options.timeout_s / 2)
        g->options.notice_s = g->options.timeout_s / 2;
    if (start_thread(g, err) || make_key(err) ||
        mfr_mpi(MPI_Comm_rank(base, &g->rank), "MPI_Comm_rank", err) ||
        mfr_mpi(MPI_Comm_size(base, &g->ranks), "MPI_Comm_size", err))
        return -1;
    arm(g, "start", "world");
    if (meet_all(g, err) || watch(g, base, "world", 0, err))
        return -1;
    arm(g, NULL, NULL);
    return 0;
}

/* Nobody speaks any more: take what is still under way. */
static void fall_silent(mfr_guard *g)
{
    struct mfr_word word;
    int there = 1;

    if (mfr_block_begin(g->base, "MPI_Finalize", NULL))
        return;
    while (there && MPI_Iprobe(MPI_ANY_SOURCE, MFR_GUARD_TAG, g->talk, &there,
                        MPI_STATUS_IGNORE) == MPI_SUCCESS)
        if (there &&
            MPI_Recv(&word, (int)sizeof word, MPI_BYTE, MPI_ANY_SOURCE,
                MFR_GUARD_TAG, g->talk, MPI_STATUS_IGNORE) != MPI_SUCCESS)
            return;
    for (int r = 0; g->peer && r < g->ranks; r++)
        if (g->peer[r].request != MPI_REQUEST_NULL)
            MPI_Wait(&g->peer[r].request, MPI_STATUS_IGNORE);
}

void mfr_guard_free(mfr_guard *g)
{
    if (!g)
        return;
    if (g->watched && !g->gave_up)
        fall_silent(g);
    for (struct mfr_watched *w = g->watched; w; w = w->next)
        w->guard = NULL;
    if (g->has_thread) {
        pthread_mutex_lock(&g->lock);
        g->leaving = true;
        pthread_cond_signal(&g->changed);
        pthread_mutex_unlock(&g->lock);
        pthread_join(g->thread, NULL);
        pthread_cond_destroy(&g->changed);
        pthread_mutex_destroy(&g->lock);
    }
    if (attribute_key != MPI_KEYVAL_INVALID)
        MPI_Comm_delete_attr(g->base, attribute_key);
    if (g->talk != MPI_COMM_NULL && !g->gave_up)
        MPI_Comm_free(&g->talk);
    free(g->place);
    free(g->peer);
    free(g);
}
