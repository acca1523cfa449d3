/* SPDX-License-Identifier: BSD-3-Clause
 * What is inside a guard; for its own files only.
 */
#ifndef MFR_GUARD_STATE_H
#define MFR_GUARD_STATE_H

#include <pthread.h>
#include <sys/types.h>

#include "runtime/guard.h"

enum { MFR_GUARD_TAG = 21, MFR_WHAT = 64, MFR_NAME = 24 };

/* A process that others of its node can look at. */
struct mfr_place {
    char host[64];
    uint64_t pids;  /* the space that its number belongs to */
    uint64_t began; /* ticks; a number is given again */
    int64_t pid;
};

/* What a rank says of itself. */
struct mfr_word {
    int32_t rank;
    bool answers_wanted, leaves;
    uint64_t comm;       /* the calls below are of this communicator */
    uint64_t calls, log; /* entered so far */
    int32_t waits_for;   /* rank in base; -1: not known */
    double waited_s;
    char what[MFR_WHAT], name[MFR_NAME];
};

struct mfr_peer {
    double heard; /* at which time its word came; 0: never */
    struct mfr_word word, out;
    MPI_Request request;
};

struct mfr_watched {
    mfr_guard *guard; /* NULL: the guard is gone */
    struct mfr_watched *next;
    char name[MFR_NAME];
    uint64_t id, calls, log;
    int size, me;
    int *rank; /* [size] in base */
};

struct mfr_guard {
    struct mfr_guard_options options;
    MPI_Comm base, talk;
    int rank, ranks;
    struct mfr_place *place; /* [ranks] */
    struct mfr_peer *peer;   /* [ranks], made when first needed */
    struct mfr_watched *watched;
    int64_t iteration;
    const struct mfr_wait *now; /* the wait in progress */
    int waits_for;              /* who is to blame for it; -1 */
    double served;
    bool gave_up;
    bool leaves, told; /* this rank, another: ends and has said why */
    /* The thread that watches calls which only block. */
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool has_thread, leaving;
    double call_deadline; /* 0: no call */
    struct mf_error call_late;
};

enum mfr_blame {
    MFR_BLAME_NONE,
    MFR_BLAME_BUSY,    /* it computes, or does something else */
    MFR_BLAME_CHAIN,   /* it waits itself */
    MFR_BLAME_MUTUAL,  /* it waits for this rank */
    MFR_BLAME_SILENT,  /* no answer, and nobody knows why */
    MFR_BLAME_STOPPED, /* the system says so */
    MFR_BLAME_ORDER,   /* it entered another call in this one's stead */
    MFR_BLAME_GONE,    /* its process has ended */
};

/* Take what others said, and answer. */
int mfr_guard_listen(mfr_guard *guard, struct mf_error *err);
/* Ask those whom WAIT waits for. */
int mfr_guard_ask(
    mfr_guard *guard, const struct mfr_wait *wait, struct mf_error *err);
/* The place of one whose process has ended, -1: none is known to. */
int mfr_guard_gone(const mfr_guard *guard, const struct mfr_wait *wait);
/* Whom WAIT waits for, as a place of its communicator. */
enum mfr_blame mfr_guard_blame(
    const mfr_guard *guard, const struct mfr_wait *wait, int *place);
/* The same in words. */
void mfr_guard_describe(const mfr_guard *guard, const struct mfr_wait *wait,
    enum mfr_blame blame, int place, struct mf_error *err);
/* Nobody before this rank can say the same. */
bool mfr_guard_speaks(const mfr_guard *guard, const struct mfr_wait *wait);

void mfr_place_here(struct mfr_place *place);
/* 'T' stopped, 'R' running or in the kernel, 'S' asleep, 'X' ended, 0: not
 * known.
 */
char mfr_place_state(const struct mfr_place *mine, const struct mfr_place *it);

struct mfr_watched *mfr_watched_of(MPI_Comm comm);

#endif
