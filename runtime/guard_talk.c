/* SPDX-License-Identifier: BSD-3-Clause
 * What ranks that wait tell each other, and whom they blame.
 */
#include "runtime/guard_state.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/clock.h"
#include "runtime/comm.h"

/* An answer comes at once from who waits; older words tell nothing. */
#define FRESH_S 2.5

static int make_peers(mfr_guard *g, struct mf_error *err)
{
    if (g->peer)
        return 0;
    g->peer = calloc((size_t)g->ranks, sizeof *g->peer);
    if (!g->peer)
        return mf_error_set(err, MF_FAILED, "out of memory for the watchdog");
    for (int r = 0; r < g->ranks; r++)
        g->peer[r].request = MPI_REQUEST_NULL;
    return 0;
}

static const struct mfr_watched *find(const mfr_guard *g, uint64_t id)
{
    const struct mfr_watched *w = g->watched;

    while (w && w->id != id)
        w = w->next;
    return w;
}

/* To rank TO, of what was done on communicator ID. A word that is still under
 * way is not followed by another, so that nothing piles up.
 */
static int say(
    mfr_guard *g, int to, uint64_t id, bool asks, struct mf_error *err)
{
    struct mfr_peer *peer = &g->peer[to];
    const struct mfr_watched *w = find(g, id);
    int sent = 1;

    if (mfr_mpi(MPI_Test(&peer->request, &sent, MPI_STATUS_IGNORE), "MPI_Test",
            err))
        return -1;
    if (!sent)
        return 0;
    peer->out = (struct mfr_word){
        .rank = g->rank,
        .answers_wanted = asks,
        .leaves = g->leaves,
        .comm = id,
        .calls = w ? w->calls : 0,
        .log = w ? w->log : 0,
        .waits_for = g->waits_for,
    };
    if (g->now) {
        peer->out.waited_s = mfr_now() - g->now->since;
        snprintf(peer->out.what, sizeof peer->out.what, "%s", g->now->what);
        snprintf(
            peer->out.name, sizeof peer->out.name, "%s", g->now->watched->name);
    }
    return mfr_mpi(MPI_Isend(&peer->out, (int)sizeof peer->out, MPI_BYTE, to,
                       MFR_GUARD_TAG, g->talk, &peer->request),
        "MPI_Isend (watchdog)", err);
}

static int take(mfr_guard *g, const struct mfr_word *word, struct mf_error *err)
{
    struct mfr_peer *peer;

    if (word->rank < 0 || word->rank >= g->ranks || make_peers(g, err))
        return word->rank < 0 || word->rank >= g->ranks ? 0 : -1;
    peer = &g->peer[word->rank];
    if (word->leaves)
        g->told = true;
    if (g->now && word->comm == g->now->watched->id) {
        peer->word = *word;
        peer->word.what[MFR_WHAT - 1] = 0;
        peer->word.name[MFR_NAME - 1] = 0;
        peer->heard = mfr_now();
    }
    return word->answers_wanted ? say(g, word->rank, word->comm, false, err)
                                : 0;
}

int mfr_guard_listen(mfr_guard *g, struct mf_error *err)
{
    struct mfr_word word;
    int there = 1;

    for (;;) {
        if (mfr_mpi(MPI_Iprobe(MPI_ANY_SOURCE, MFR_GUARD_TAG, g->talk, &there,
                        MPI_STATUS_IGNORE),
                "MPI_Iprobe (watchdog)", err))
            return -1;
        if (!there)
            return 0;
        if (mfr_mpi(MPI_Recv(&word, (int)sizeof word, MPI_BYTE, MPI_ANY_SOURCE,
                        MFR_GUARD_TAG, g->talk, MPI_STATUS_IGNORE),
                "MPI_Recv (watchdog)", err) ||
            take(g, &word, err))
            return -1;
    }
}

static bool awaited(const struct mfr_wait *wait, int place)
{
    return place != wait->watched->me &&
           (wait->peer < 0 || wait->peer == place);
}

int mfr_guard_ask(
    mfr_guard *g, const struct mfr_wait *wait, struct mf_error *err)
{
    const struct mfr_watched *w = wait->watched;

    if (make_peers(g, err))
        return -1;
    for (int m = 0; m < w->size; m++)
        if (awaited(wait, m) && say(g, w->rank[m], w->id, true, err))
            return -1;
    return 0;
}

static bool fresh(const mfr_guard *g, const struct mfr_wait *wait, int place)
{
    const struct mfr_peer *peer = &g->peer[wait->watched->rank[place]];

    return peer->heard > 0 && mfr_now() - peer->heard < FRESH_S &&
           peer->word.comm == wait->watched->id;
}

/* Of a rank that answered. */
static enum mfr_blame blame_word(
    const mfr_guard *g, const struct mfr_wait *wait, int place)
{
    const struct mfr_watched *w = wait->watched;
    const struct mfr_word *word = &g->peer[w->rank[place]].word;

    if (wait->peer < 0 && word->calls > w->calls)
        return MFR_BLAME_NONE;
    if (wait->peer < 0 && word->calls == w->calls)
        return word->log == w->log ? MFR_BLAME_NONE : MFR_BLAME_ORDER;
    return word->waits_for == g->rank ? MFR_BLAME_MUTUAL : MFR_BLAME_CHAIN;
}

/* Of one that did not. */
static enum mfr_blame blame_process(
    const mfr_guard *g, const struct mfr_wait *wait, int place)
{
    const int rank = wait->watched->rank[place];

    switch (mfr_place_state(&g->place[g->rank], &g->place[rank])) {
    case 'X':
        return MFR_BLAME_GONE;
    case 'T':
        return MFR_BLAME_STOPPED;
    case 'R':
        return MFR_BLAME_BUSY;
    default:
        return MFR_BLAME_SILENT;
    }
}

enum mfr_blame mfr_guard_blame(
    const mfr_guard *g, const struct mfr_wait *wait, int *place)
{
    enum mfr_blame worst = MFR_BLAME_NONE;

    *place = -1;
    for (int m = 0; m < wait->watched->size; m++) {
        enum mfr_blame blame;

        if (!awaited(wait, m))
            continue;
        blame = fresh(g, wait, m) ? blame_word(g, wait, m)
                                  : blame_process(g, wait, m);
        if (blame > worst) {
            worst = blame;
            *place = m;
        }
    }
    return worst;
}

int mfr_guard_gone(const mfr_guard *g, const struct mfr_wait *wait)
{
    const struct mfr_watched *w = wait->watched;

    for (int m = 0; m < w->size; m++)
        if (awaited(wait, m) &&
            mfr_place_state(&g->place[g->rank], &g->place[w->rank[m]]) == 'X')
            return m;
    return -1;
}

void mfr_guard_farewell(mfr_guard *g)
{
    if (!g || !g->place || make_peers(g, NULL))
        return;
    g->leaves = true;
    for (int r = 0; r < g->ranks; r++)
        if (r != g->rank && say(g, r, 0, false, NULL))
            return;
}

bool mfr_guard_speaks(const mfr_guard *g, const struct mfr_wait *wait)
{
    const struct mfr_watched *w = wait->watched;

    for (int m = 0; m < w->me; m++)
        if (awaited(wait, m) && fresh(g, wait, m) &&
            blame_word(g, wait, m) == MFR_BLAME_NONE)
            return false;
    return true;
}

/* "ranks 0,1,2"; long lists end in "...". */
static void list_ranks(const struct mfr_watched *w, char *text, size_t room)
{
    int at = 0;

    for (int m = 0; m < w->size && at >= 0 && (size_t)at < room; m++) {
        if (m == 8) {
            snprintf(text + at, room - (size_t)at, ",... (%d ranks)", w->size);
            return;
        }
        at += snprintf(
            text + at, room - (size_t)at, "%s%d", m ? "," : "", w->rank[m]);
    }
}

static void describe_cause(const mfr_guard *g, const struct mfr_wait *wait,
    enum mfr_blame blame, int place, char *text, size_t room)
{
    const struct mfr_watched *w = wait->watched;
    const struct mfr_word none = {.waits_for = -1},
                          *word =
                              g->peer ? &g->peer[w->rank[place]].word : &none;

    switch (blame) {
    case MFR_BLAME_GONE:
        snprintf(text, room, "which has ended");
        break;
    case MFR_BLAME_STOPPED:
        snprintf(text, room, "which is stopped");
        break;
    case MFR_BLAME_BUSY:
        snprintf(text, room, "which is busy and has not come");
        break;
    case MFR_BLAME_ORDER:
        snprintf(text, room,
            "which, as call %" PRIu64 " of the group, is in %s", w->calls,
            word->what[0] ? word->what : "none");
        break;
    case MFR_BLAME_MUTUAL:
    case MFR_BLAME_CHAIN:
        snprintf(text, room, "which is in %s (%s group) and waits for rank %d",
            word->what[0] ? word->what : "no call",
            word->name[0] ? word->name : "no", word->waits_for);
        break;
    case MFR_BLAME_NONE:
    case MFR_BLAME_SILENT:
        snprintf(text, room, "which does not answer");
        break;
    }
}

void mfr_guard_describe(const mfr_guard *g, const struct mfr_wait *wait,
    enum mfr_blame blame, int place, struct mf_error *err)
{
    const struct mfr_watched *w = wait->watched;
    const double waited = mfr_now() - wait->since;
    char when[40] = "", ranks[96] = "", why[192] = "";
    const struct mfr_place *it;

    if (g->iteration != INT64_MIN)
        snprintf(when, sizeof when, "iteration %" PRId64 ": ", g->iteration);
    list_ranks(w, ranks, sizeof ranks);
    if (place < 0) {
        mf_error_set(err, MF_FAILED,
            "%s%s, %s group of ranks %s: rank %d has waited %.*f s; all have "
            "come",
            when, wait->what, w->name, ranks, g->rank, waited < 1, waited);
        return;
    }
    it = &g->place[w->rank[place]];
    describe_cause(g, wait, blame, place, why, sizeof why);
    mf_error_set(err, MF_FAILED,
        "%s%s, %s group of ranks %s: rank %d has waited %.*f s for rank %d "
        "(process %" PRId64 " on %.63s), %s",
        when, wait->what, w->name, ranks, g->rank, waited < 1, waited,
        w->rank[place], it->pid, it->host, why);
}
