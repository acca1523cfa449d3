/* SPDX-License-Identifier: BSD-3-Clause
 * Two runs beside each other, phase by phase, with how sure a difference is.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "db/internal.h"

/* ---- the rank test ---- */

/* Above this many on a side the normal approximation is good to 1e-3. */
#define EXACT_MOST 30

struct ranked {
    double value;
    bool of_a;
};

static int compare_ranked(const void *a, const void *b)
{
    const double x = ((const struct ranked *)a)->value;
    const double y = ((const struct ranked *)b)->value;

    return (x > y) - (x < y);
}

/* The sum of A's ranks, ties sharing theirs; TIES: the sum of t^3 - t. */
static double rank_sum(const struct ranked *all, size_t n, double *ties)
{
    double sum = 0;

    *ties = 0;
    for (size_t i = 0; i < n;) {
        size_t j = i;
        double equal, of_a = 0;

        for (; j < n && all[j].value <= all[i].value; j++)
            of_a += all[j].of_a;
        equal = (double)(j - i);
        sum += of_a * ((double)(i + j + 1) / 2);
        *ties += equal * equal * equal - equal;
        i = j;
    }
    return sum;
}

/* How many ways A of A + B values can be picked so that U is at most LARGEST,
 * over all ways: counts[k][u], k picked so far, built value by value.
 */
static double exact_tail(size_t a, size_t b, size_t largest)
{
    const size_t most = a * b;
    double *count = calloc((a + 1) * (most + 1), sizeof *count);
    double below = 0, all = 0;

    if (!count)
        return NAN;
    count[0] = 1;
    /* A pick of the value that has V others of B below it adds V to U. */
    for (size_t v = 0; v <= b; v++)
        for (size_t k = 1; k <= a; k++)
            for (size_t u = v; u <= most; u++)
                count[k * (most + 1) + u] +=
                    count[(k - 1) * (most + 1) + u - v];
    for (size_t u = 0; u <= most; u++) {
        all += count[a * (most + 1) + u];
        if (u <= largest)
            below = all;
    }
    free(count);
    return below / all;
}

static double normal_p(double u, double a, double b, double ties)
{
    const double n = a + b, mean = a * b / 2;
    const double variance =
        a * b / 12 * (n + 1 - (n > 1 ? ties / (n * (n - 1)) : 0));
    const double away = fabs(u - mean) - 0.5;

    if (!(variance > 0) || away <= 0)
        return 1;
    return erfc(away / sqrt(2 * variance));
}

double mfdb_rank_test(const double *a, size_t a_n, const double *b, size_t b_n)
{
    const double an = (double)a_n, bn = (double)b_n;
    struct ranked *all;
    double ties, u, p;

    if (a_n == 0 || b_n == 0)
        return NAN;
    all = calloc(a_n + b_n, sizeof *all);
    if (!all)
        return NAN;
    for (size_t i = 0; i < a_n + b_n; i++)
        all[i] = (struct ranked){i < a_n ? a[i] : b[i - a_n], i < a_n};
    qsort(all, a_n + b_n, sizeof *all, compare_ranked);
    u = rank_sum(all, a_n + b_n, &ties) - an * (an + 1) / 2;
    free(all);
    if (ties > 0 || a_n > EXACT_MOST || b_n > EXACT_MOST)
        return normal_p(u, an, bn, ties);
    p = 2 * exact_tail(a_n, b_n, (size_t)fmin(u, an * bn - u));
    return p > 1 ? 1 : p;
}

/* ---- phases ---- */

/* The times of one phase in one run. */
struct series {
    double *value;
    size_t count;
};

static int compare_doubles(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

double mfdb_median(double *value, size_t count)
{
    if (count == 0)
        return (double)NAN;
    qsort(value, count, sizeof *value, compare_doubles);
    if (count % 2)
        return value[count / 2];
    return value[count / 2 - 1] + (value[count / 2] - value[count / 2 - 1]) / 2;
}

bool mfdb_phase_in_layer(const char *phase)
{
    return strncmp(phase, "grad_reduce", 11) != 0 &&
           strcmp(phase, "optimizer") != 0;
}

static bool is_of(
    const struct mfdb_sample *s, const char *phase, const char *direction)
{
    return strcmp(s->phase, phase) == 0 && strcmp(s->direction, direction) == 0;
}

/* Samples of one iteration stand together. */
static void series_layer(const struct mfdb_samples *samples, struct series *out)
{
    int64_t iteration = -1;

    for (size_t i = 0; i < samples->count; i++) {
        const struct mfdb_sample *s = &samples->sample[i];

        if (!mfdb_phase_in_layer(s->phase) || isnan(s->max_s))
            continue;
        if (out->count == 0 || s->iteration != iteration)
            out->value[out->count++] = 0;
        iteration = s->iteration;
        out->value[out->count - 1] += s->max_s;
    }
}

static void series_phase(const struct mfdb_samples *samples, const char *phase,
    const char *direction, struct series *out)
{
    for (size_t i = 0; i < samples->count; i++)
        if (is_of(&samples->sample[i], phase, direction) &&
            !isnan(samples->sample[i].max_s))
            out->value[out->count++] = samples->sample[i].max_s;
}

static int series_take(const struct mfdb_samples *samples, const char *phase,
    const char *direction, struct series *out)
{
    *out = (struct series){calloc(samples->count + 1, sizeof(double)), 0};
    if (!out->value)
        return -1;
    if (*direction)
        series_phase(samples, phase, direction, out);
    else
        series_layer(samples, out);
    return 0;
}

static int add(struct mfdb_differences *d, const struct mfdb_samples *a,
    const struct mfdb_samples *b, const char *phase, const char *direction)
{
    struct mfdb_difference *row =
        reallocarray(d->row, d->count + 1, sizeof *row);
    struct series of_a = {0}, of_b = {0};
    int rc = -1;

    if (!row)
        return -1;
    d->row = row;
    row = &row[d->count];
    if (series_take(a, phase, direction, &of_a) ||
        series_take(b, phase, direction, &of_b))
        goto out;
    memset(row, 0, sizeof *row);
    memcpy(row->phase, phase, strlen(phase) + 1);
    memcpy(row->direction, direction, strlen(direction) + 1);
    row->a_n = (int64_t)of_a.count;
    row->b_n = (int64_t)of_b.count;
    row->p = mfdb_rank_test(of_a.value, of_a.count, of_b.value, of_b.count);
    row->a_s = mfdb_median(of_a.value, of_a.count);
    row->b_s = mfdb_median(of_b.value, of_b.count);
    d->count++;
    rc = 0;
out:
    free(of_a.value);
    free(of_b.value);
    return rc;
}

static bool has(const struct mfdb_differences *d, const struct mfdb_sample *s)
{
    for (size_t i = 0; i < d->count; i++)
        if (is_of(s, d->row[i].phase, d->row[i].direction))
            return true;
    return false;
}

/* A row for each phase of OF that has none yet. */
static int add_phases(struct mfdb_differences *d, const struct mfdb_samples *of,
    const struct mfdb_samples *a, const struct mfdb_samples *b)
{
    for (size_t i = 0; i < of->count; i++) {
        const struct mfdb_sample *s = &of->sample[i];

        if (!has(d, s) && add(d, a, b, s->phase, s->direction))
            return -1;
    }
    return 0;
}

int mfdb_compare(mfdb *db, const char *a, const char *b,
    struct mfdb_differences *differences, char err[MFDB_ERROR_TEXT])
{
    struct mfdb_samples of_a = {0}, of_b = {0};
    int rc = -1;

    *differences = (struct mfdb_differences){0};
    if (mfdb_samples_of(db, a, &of_a, err) ||
        mfdb_samples_of(db, b, &of_b, err))
        goto out;
    if (add(differences, &of_a, &of_b, "layer", "") ||
        add_phases(differences, &of_a, &of_a, &of_b) ||
        add_phases(differences, &of_b, &of_a, &of_b))
        mfdb_error(err, "out of memory");
    else
        rc = 0;
out:
    mfdb_samples_free(&of_a);
    mfdb_samples_free(&of_b);
    if (rc)
        mfdb_differences_free(differences);
    return rc;
}

void mfdb_differences_free(struct mfdb_differences *differences)
{
    if (!differences)
        return;
    free(differences->row);
    *differences = (struct mfdb_differences){0};
}
