/* SPDX-License-Identifier: BSD-3-Clause
 * Judges the cost model on published runs that it was not fitted to.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/accuracy/fit.h"

#define FOLDS 5

struct judged {
    double log_ratio; /* predicted over measured */
    double physics;   /* the same without the correction */
    double sd;
    bool done;
};

static int compare(const void *a, const void *b)
{
    const double *x = a, *y = b;

    return (*x > *y) - (*x < *y);
}

static double quantile(double *v, size_t n, double q)
{
    double at = q * (double)(n - 1);
    size_t i = (size_t)at;

    if (!n)
        return NAN;
    qsort(v, n, sizeof *v, compare);
    if (i + 1 >= n)
        return v[n - 1];
    return v[i] + (at - (double)i) * (v[i + 1] - v[i]);
}

static double error_of(double log_ratio)
{
    return fabs(exp(log_ratio) - 1);
}

static void print_line(const char *name, const struct rows *rows,
    const struct judged *judged, bool (*in)(const struct row *, const void *),
    const void *arg)
{
    double *e = calloc(rows->count, sizeof *e), *p, bias = 0;
    double *ratio = calloc(rows->count, sizeof *ratio);
    size_t n = 0, covered = 0;

    p = calloc(rows->count, sizeof *p);
    if (!e || !p || !ratio)
        table_fail("out of memory");
    for (size_t i = 0; i < rows->count; i++) {
        if (!judged[i].done || !in(&rows->row[i], arg))
            continue;
        e[n] = error_of(judged[i].log_ratio);
        p[n] = error_of(judged[i].physics);
        ratio[n] = exp(2 * 1.645 * judged[i].sd);
        bias += judged[i].log_ratio;
        covered += fabs(judged[i].log_ratio) < 1.645 * judged[i].sd;
        n++;
    }
    if (n)
        printf("%-44.44s %4zu %6.1f %6.1f %+6.1f | %6.1f %6.1f | %4.0f %5.2f\n",
            name, n, 100 * quantile(e, n, 0.5), 100 * quantile(e, n, 0.9),
            100 * (exp(bias / (double)n) - 1), 100 * quantile(p, n, 0.5),
            100 * quantile(p, n, 0.9), 100.0 * (double)covered / (double)n,
            quantile(ratio, n, 0.5));
    free(e);
    free(p);
    free(ratio);
}

static bool in_all(const struct row *row, const void *arg)
{
    (void)arg;
    return !row->efa;
}

static bool in_efa(const struct row *row, const void *arg)
{
    (void)arg;
    return row->efa;
}

static bool in_source(const struct row *row, const void *arg)
{
    return !strcmp(row->source, arg);
}

static bool in_text(const struct row *row, const void *arg)
{
    return strstr(row->source, arg) != NULL;
}

static bool in_blackwell(const struct row *row, const void *arg)
{
    return strstr(row->source, arg) && fit_kind(row) != 1;
}

static void print_table(const struct rows *rows, const struct judged *judged)
{
    printf("%-44s %4s %6s %6s %6s | physics only  | held %% high/low\n",
        "source", "rows", "median", "p90", "bias");
    for (size_t i = 0; i < rows->count; i++) {
        bool before = false;

        for (size_t j = 0; j < i; j++)
            before |= !strcmp(rows->row[j].source, rows->row[i].source);
        if (!before) {
            const char *name = rows->row[i].source;
            size_t length = strlen(name);

            print_line(length > 44 ? name + length - 44 : name, rows, judged,
                in_source, name);
        }
    }
    print_line("= paper", rows, judged, in_text, "2504.14960");
    print_line("= dgxc", rows, judged, in_text, "dgxc");
    print_line(
        "= Bridge Blackwell", rows, judged, in_blackwell, "Megatron-Bridge");
    print_line("= EFA", rows, judged, in_efa, NULL);
    print_line("= all without EFA", rows, judged, in_all, NULL);
    double score = 0, big = 0;
    for (size_t i = 0; i < rows->count; i++)
        if (judged[i].done) {
            double z = judged[i].log_ratio / judged[i].sd;
            double a = fabs(judged[i].log_ratio);

            score += log(judged[i].sd) + log1p(z * z / 3) * 2;
            big += fmin(a, 0.3);
        }
    printf("score %.2f  capped %.3f\n", score, big);
}

static bool usable(const struct row *row)
{
    return row->status == ROW_OK && row->step_s > 0;
}

static void judge(struct fit_bed *bed, const struct fitted *fit,
    const struct row *row, struct judged *out)
{
    struct mf_plan_entry entry;
    double variance, shift;

    fit_price(bed, row, fit->x, &entry);
    shift = fit_krige(fit, row, &variance);
    out->physics = log(entry.cost.step_s / row->step_s);
    out->log_ratio = out->physics + shift;
    out->sd = sqrt(variance);
    out->done = true;
}

/* Held-out judging: a fold is a number by configuration. */
static void judge_folds(struct fit_bed *bed, struct rows *rows, const double *x,
    int rounds, struct judged *judged)
{
    const struct row **row = calloc(rows->count, sizeof *row);

    if (!row)
        table_fail("out of memory");
    for (int fold = 0; fold < FOLDS; fold++) {
        struct fitted fit = {0};
        size_t n = 0;

        memcpy(fit.x, x, sizeof fit.x);
        for (size_t i = 0; i < rows->count; i++)
            if (usable(&rows->row[i]) &&
                (rows->row[i].group * 2654435761u >> 8) % FOLDS !=
                    (unsigned)fold)
                row[n++] = &rows->row[i];
        fit_run(bed, row, n, &fit, rounds);
        for (size_t i = 0; i < rows->count; i++)
            if (usable(&rows->row[i]) &&
                (rows->row[i].group * 2654435761u >> 8) % FOLDS ==
                    (unsigned)fold)
                judge(bed, &fit, &rows->row[i], &judged[i]);
        fit_free(&fit);
    }
    free(row);
}

static void print_parameters(const double *x)
{
    for (int i = 0; i < fit_parameter_count; i++)
        printf("%s/%u %.3f  ", mf_coefficient_name(fit_parameters[i].coef),
            fit_parameters[i].kinds, exp(x[i]));
    for (int i = fit_parameter_count; i < PARAMETERS_MAX && x[i] != 0; i++)
        printf("s%d %.2f ", i - fit_parameter_count, exp(x[i]));
    putchar('\n');
}

static void print_rows(const struct rows *rows, const struct judged *judged)
{
    for (size_t i = 0; i < rows->count; i++) {
        const struct row *r = &rows->row[i];
        char text[MF_LAYOUT_TEXT];

        if (!judged[i].done) {
            printf("%4zu left out: %s %s\n", r->line, r->model_name,
                r->why ? r->why : "");
            continue;
        }
        mf_layout_format(&r->asked.layout, text, sizeof text);
        printf("%4zu %+6.1f %+6.1f %-20.20s %-18.18s %-6.6s %s%s %s mb%lld %s "
               "%s%s\n",
            r->line, 100 * judged[i].log_ratio, 100 * judged[i].physics,
            r->source + (strlen(r->source) > 20 ? strlen(r->source) - 20 : 0),
            r->model_name, r->gpu, text, r->asked.layout.coupled ? "c" : "",
            mf_precision_name(r->asked.settings.precision),
            (long long)r->asked.settings.micro_batch,
            mf_dispatcher_name(r->asked.settings.dispatcher),
            r->asked.settings.ep_overlap ? "ovl " : "",
            r->asked.settings.shard == MF_SHARD_FULL ? "fsdp" : "");
    }
}

int main(int argc, char **argv)
{
    const char *folder = argc > 1 ? argv[1] : "tests/data/measured";
    bool folds = argc > 2 && strstr(argv[2], "folds");
    int rounds = argc > 3 ? atoi(argv[3]) : 4;
    const struct row **row;
    struct judged *judged;
    struct fitted fit = {0};
    struct fit_bed *bed;
    struct rows rows;
    size_t n = 0;

    if (argc > 8)
        fit_spreads = (struct mf_published_spreads){atof(argv[4]),
            atof(argv[5]), atof(argv[6]), atof(argv[7]), atof(argv[8]),
            argc > 9 ? atof(argv[9]) : 2, argc > 10 ? atof(argv[10]) : 2};
    rows_read(&rows, folder, "runs.csv");
    bed = fit_bed_create(&rows);
    row = calloc(rows.count, sizeof *row);
    judged = calloc(rows.count, sizeof *judged);
    if (!row || !judged)
        table_fail("out of memory");
    for (size_t i = 0; i < rows.count; i++)
        if (usable(&rows.row[i]))
            row[n++] = &rows.row[i];
    fit_run(bed, row, n, &fit, rounds);
    print_parameters(fit.x);
    if (argc > 11)
        write_table(argv[11], &fit);
    for (size_t i = 0; i < n; i++)
        judge(bed, &fit, row[i], &judged[row[i] - rows.row]);
    if (folds)
        judge_folds(bed, &rows, fit.x, 2, judged);
    if (argc > 2 && strstr(argv[2], "rows"))
        print_rows(&rows, judged);
    print_table(&rows, judged);
    fit_free(&fit);
    fit_bed_free(bed);
    rows_free(&rows);
    free(judged);
    free(row);
    return EXIT_SUCCESS;
}
