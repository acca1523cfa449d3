/* SPDX-License-Identifier: BSD-3-Clause
 * Recent runs that are slower than earlier ones of their kind, the phases that
 * made them so, and the nodes that they waited for.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "db/internal.h"

#define EARLIER_MOST 50
#define PHASES_FROM 10 /* earlier runs whose phases are read */
#define SURE 3.0       /* times the noise */
#define MAD_TO_SIGMA 1.4826
/* Timers and other jobs move any run by about this. */
#define NOISE_LEAST 0.01
/* Over this part of the waiting, and twice an even share, is one node's. */
#define WAITED_SICK 0.5

/* ---- is it slow? ---- */

static int expect(struct mfdb_judged *j, const struct mfdb_runs *earlier)
{
    double *value = calloc(earlier->count + 1, sizeof *value);

    if (!value)
        return -1;
    for (size_t i = 0; i < earlier->count; i++)
        value[i] = earlier->run[i].layer_s;
    j->earlier = (int64_t)earlier->count;
    j->expected_s = mfdb_median(value, earlier->count);
    for (size_t i = 0; i < earlier->count; i++)
        value[i] = fabs(earlier->run[i].layer_s - j->expected_s);
    j->noise_s = MAD_TO_SIGMA * mfdb_median(value, earlier->count);
    free(value);
    return 0;
}

static bool is_slow(const struct mfdb_judged *j, double threshold)
{
    const double noise = fmax(j->noise_s, NOISE_LEAST * j->expected_s);

    return j->run.layer_s > (1 + threshold) * j->expected_s &&
           j->run.layer_s > j->expected_s + SURE * noise;
}

/* ---- its phases ---- */

static struct mfdb_difference *phase_of(
    struct mfdb_judged *j, const struct mfdb_phase *phase)
{
    for (size_t i = 0; i < j->phases; i++)
        if (strcmp(j->phase[i].phase, phase->phase) == 0 &&
            strcmp(j->phase[i].direction, phase->direction) == 0)
            return &j->phase[i];
    return NULL;
}

static int phases_begin(struct mfdb_judged *j, const struct mfdb_phases *now)
{
    j->phase = calloc(now->count + 1, sizeof *j->phase);
    if (!j->phase)
        return -1;
    for (size_t i = 0; i < now->count; i++) {
        struct mfdb_difference *d = &j->phase[j->phases++];

        memcpy(d->phase, now->phase[i].phase, sizeof d->phase);
        memcpy(d->direction, now->phase[i].direction, sizeof d->direction);
        d->b_n = now->phase[i].samples;
        d->b_s = now->phase[i].max_s;
        d->p = NAN;
    }
    return 0;
}

static int compare_added(const void *a, const void *b)
{
    const struct mfdb_difference *x = a, *y = b;
    const double p = x->b_s - x->a_s, q = y->b_s - y->a_s;

    /* What is not known comes last. */
    if (isnan(p) || isnan(q))
        return isnan(p) - isnan(q);
    return (p < q) - (p > q);
}

/* Medians over the earlier runs, in VALUE[phase][PHASES_FROM]. */
static int phases_read(mfdb *db, struct mfdb_judged *j,
    const struct mfdb_runs *earlier, double *value, char *err)
{
    for (size_t i = 0; i < earlier->count && i < PHASES_FROM; i++) {
        struct mfdb_phases then;

        if (mfdb_phases_of(db, earlier->run[i].run_id, &then, err))
            return -1;
        for (size_t k = 0; k < then.count; k++) {
            struct mfdb_difference *d = phase_of(j, &then.phase[k]);

            if (d && !isnan(then.phase[k].max_s))
                value[(d - j->phase) * PHASES_FROM + d->a_n++] =
                    then.phase[k].max_s;
        }
        mfdb_phases_free(&then);
    }
    for (size_t k = 0; k < j->phases; k++)
        j->phase[k].a_s =
            mfdb_median(value + k * PHASES_FROM, (size_t)j->phase[k].a_n);
    return 0;
}

static int explain(
    mfdb *db, struct mfdb_judged *j, const struct mfdb_runs *earlier, char *err)
{
    struct mfdb_phases now;
    double *value = NULL;
    int rc = -1;

    if (mfdb_phases_of(db, j->run.run_id, &now, err))
        return -1;
    value = calloc((now.count + 1) * PHASES_FROM, sizeof *value);
    if (!value || phases_begin(j, &now))
        mfdb_error(err, "out of memory");
    else
        rc = phases_read(db, j, earlier, value, err);
    if (rc == 0)
        qsort(j->phase, j->phases, sizeof *j->phase, compare_added);
    free(value);
    mfdb_phases_free(&now);
    return rc;
}

static int judge(mfdb *db, const struct mfdb_regress_rule *rule,
    const struct mfdb_run *run, struct mfdb_regress *out, char *err)
{
    struct mfdb_judged *j = &out->judged[out->count];
    struct mfdb_runs earlier;
    int rc = 0;

    if (strcmp(run->status, "done") != 0 || !(run->layer_s > 0))
        return 0;
    if (mfdb_earlier(db, run, EARLIER_MOST, &earlier, err))
        return -1;
    if ((int64_t)earlier.count < rule->least) {
        out->unjudged++;
    } else if (expect(j, &earlier)) {
        rc = mfdb_error(err, "out of memory");
    } else {
        j->run = *run;
        j->slow = is_slow(j, rule->threshold);
        out->count++;
        if (j->slow)
            rc = explain(db, j, &earlier, err);
    }
    mfdb_runs_free(&earlier);
    return rc;
}

/* ---- its nodes ---- */

static struct mfdb_node *node_named(
    struct mfdb_regress *out, const char *name, size_t length)
{
    struct mfdb_node *node;

    for (size_t i = 0; i < out->nodes; i++)
        if (strlen(out->node[i].name) == length &&
            memcmp(out->node[i].name, name, length) == 0)
            return &out->node[i];
    node = reallocarray(out->node, out->nodes + 1, sizeof *node);
    if (!node)
        return NULL;
    out->node = node;
    node = &node[out->nodes++];
    memset(node, 0, sizeof *node);
    memcpy(node->name, name, length);
    return node;
}

/* The Ith name of a list joined by commas, and its length; NULL: no more. */
static const char *name_at(const char *list, int64_t i, size_t *length)
{
    for (; i > 0 && *list; i--) {
        list += strcspn(list, ",");
        list += *list == ',';
    }
    *length = strcspn(list, ",");
    return *length > 0 && *length < sizeof((struct mfdb_node *)0)->name ? list
                                                                        : NULL;
}

static int nodes_count(struct mfdb_regress *out)
{
    for (size_t i = 0; i < out->count; i++) {
        const struct mfdb_judged *j = &out->judged[i];
        const char *name;
        size_t length;

        for (int64_t k = 0;
             (name = name_at(j->run.node_list, k, &length)) != NULL; k++) {
            struct mfdb_node *node = node_named(out, name, length);

            if (!node)
                return -1;
            node->runs++;
            node->slow += j->slow;
        }
    }
    return 0;
}

static bool is_on(const struct mfdb_run *run, const char *node)
{
    const char *name;
    size_t length;

    for (int64_t k = 0; (name = name_at(run->node_list, k, &length)); k++)
        if (strlen(node) == length && memcmp(name, node, length) == 0)
            return true;
    return false;
}

static int nodes_ratio(struct mfdb_regress *out)
{
    double *with = calloc(out->count + 1, sizeof *with);
    double *without = calloc(out->count + 1, sizeof *without);
    int rc = with && without ? 0 : -1;

    for (size_t n = 0; rc == 0 && n < out->nodes; n++) {
        struct mfdb_node *node = &out->node[n];
        size_t w = 0, o = 0;

        for (size_t i = 0; i < out->count; i++) {
            const struct mfdb_judged *j = &out->judged[i];
            const double ratio = j->run.layer_s / j->expected_s;

            if (is_on(&j->run, node->name))
                with[w++] = ratio;
            else
                without[o++] = ratio;
        }
        node->with_ratio = mfdb_median(with, w);
        node->without_ratio = mfdb_median(without, o);
    }
    free(with);
    free(without);
    return rc;
}

/* Seconds that a slow run's ranks waited for one of NODE's, of all. */
static int waited(mfdb *db, struct mfdb_regress *out,
    const struct mfdb_run *run, double *all, double *seconds, char *err)
{
    struct mfdb_samples samples;

    /* Ranks lie evenly on nodes, in the order of the list, or it is not known
     * which node a rank was on.
     */
    if (run->nodes < 2 || run->ranks % run->nodes)
        return 0;
    if (mfdb_samples_of(db, run->run_id, &samples, err))
        return -1;
    for (size_t i = 0; i < samples.count; i++) {
        const struct mfdb_sample *s = &samples.sample[i];
        const double wait = s->max_s - s->median_s;
        const char *name;
        size_t length;

        if (!(wait > 0) || s->slowest_rank < 0 || s->slowest_rank >= run->ranks)
            continue;
        name = name_at(run->node_list,
            s->slowest_rank / (run->ranks / run->nodes), &length);
        *all += wait;
        for (size_t n = 0; name && n < out->nodes; n++)
            if (strlen(out->node[n].name) == length &&
                memcmp(out->node[n].name, name, length) == 0)
                seconds[n] += wait;
    }
    mfdb_samples_free(&samples);
    return 0;
}

static int nodes_waited(mfdb *db, struct mfdb_regress *out, char *err)
{
    double *seconds = calloc(out->nodes + 1, sizeof *seconds), all = 0;
    int rc = seconds ? 0 : mfdb_error(err, "out of memory");

    for (size_t i = 0; rc == 0 && i < out->count; i++)
        if (out->judged[i].slow)
            rc = waited(db, out, &out->judged[i].run, &all, seconds, err);
    for (size_t n = 0; rc == 0 && n < out->nodes; n++)
        out->node[n].waited = all > 0 ? seconds[n] / all : (double)NAN;
    free(seconds);
    return rc;
}

/* Its runs are slow where those without it are not, or the slow runs waited
 * for it most of the time.
 */
static bool is_sick(
    const struct mfdb_node *node, size_t nodes, double threshold)
{
    const bool apart = node->slow > 1 && node->with_ratio > 1 + threshold &&
                       node->without_ratio < 1 + threshold / 2;
    const bool waited_for = node->slow > 0 && node->waited > WAITED_SICK &&
                            node->waited > 2.0 / (double)nodes;

    if (nodes < 2)
        return false;
    return waited_for || (apart && !(node->waited < 1.0 / (double)nodes));
}

static int compare_nodes(const void *a, const void *b)
{
    const struct mfdb_node *x = a, *y = b;

    return x->sick != y->sick ? y->sick - x->sick : strcmp(x->name, y->name);
}

static int find_nodes(mfdb *db, const struct mfdb_regress_rule *rule,
    struct mfdb_regress *out, char *err)
{
    if (nodes_count(out) || nodes_ratio(out))
        return mfdb_error(err, "out of memory");
    if (nodes_waited(db, out, err))
        return -1;
    for (size_t n = 0; n < out->nodes; n++)
        out->node[n].sick = is_sick(&out->node[n], out->nodes, rule->threshold);
    if (out->nodes > 0)
        qsort(out->node, out->nodes, sizeof *out->node, compare_nodes);
    return 0;
}

int mfdb_regress_find(mfdb *db, const struct mfdb_regress_rule *rule,
    struct mfdb_regress *regress, char err[MFDB_ERROR_TEXT])
{
    struct mfdb_runs recent;
    int rc = 0;

    *regress = (struct mfdb_regress){0};
    if (mfdb_list(db, &rule->filter, &recent, err))
        return -1;
    regress->judged = calloc(recent.count + 1, sizeof *regress->judged);
    if (!regress->judged)
        rc = mfdb_error(err, "out of memory");
    for (size_t i = 0; rc == 0 && i < recent.count; i++)
        rc = judge(db, rule, &recent.run[i], regress, err);
    mfdb_runs_free(&recent);
    if (rc == 0)
        rc = find_nodes(db, rule, regress, err);
    if (rc)
        mfdb_regress_free(regress);
    return rc;
}

void mfdb_regress_free(struct mfdb_regress *regress)
{
    if (!regress)
        return;
    for (size_t i = 0; i < regress->count; i++)
        free(regress->judged[i].phase);
    free(regress->judged);
    free(regress->node);
    *regress = (struct mfdb_regress){0};
}
