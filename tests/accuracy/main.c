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

static void print_sums(const struct rows *rows, const struct judged *judged)
{
    print_line("= folding paper", rows, judged, in_text, "2504.14960");
    print_line("= dgxc", rows, judged, in_text, "dgxc");
    print_line(
        "= Bridge Blackwell", rows, judged, in_blackwell, "Megatron-Bridge");
    print_line("= EFA", rows, judged, in_efa, NULL);
    print_line("= all without EFA", rows, judged, in_all, NULL);
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
    print_sums(rows, judged);
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

enum by { BY_CONFIGURATION, BY_SOURCE, BY_MODEL };

static int fold_of(const struct row *row, enum by by)
{
    if (by == BY_SOURCE)
        return row->run.source + 1;
    if (by == BY_MODEL)
        return row->family;
    return (int)(((unsigned)row->group * 2654435761u >> 8) % FOLDS);
}

/* Judge the rows of FOLD by a fit to all others; false: there are none. */
static bool judge_fold(struct fit_bed *bed, struct rows *rows, const double *x,
    enum by by, int fold, struct judged *judged)
{
    const struct row **row = calloc(rows->count, sizeof *row);
    struct fitted fit = {0};
    size_t n = 0, all = 0;

    if (!row)
        table_fail("out of memory");
    memcpy(fit.x, x, sizeof fit.x);
    for (size_t i = 0; i < rows->count; i++)
        if (usable(&rows->row[i])) {
            all++;
            if (fold_of(&rows->row[i], by) != fold)
                row[n++] = &rows->row[i];
        }
    if (n < all) {
        fit_run(bed, row, n, &fit, 3);
        for (size_t i = 0; i < rows->count; i++)
            if (usable(&rows->row[i]) && fold_of(&rows->row[i], by) == fold)
                judge(bed, &fit, &rows->row[i], &judged[i]);
        fit_free(&fit);
    }
    free(row);
    return n < all;
}

/* Each fit starts from the priors, so that nothing is seen. */
static void judge_folds(
    struct fit_bed *bed, struct rows *rows, enum by by, struct judged *judged)
{
    static const double priors[PARAMETERS_MAX];
    int folds = by == BY_CONFIGURATION ? FOLDS : (int)rows->count + 1;

    for (int fold = 0; fold < folds; fold++)
        judge_fold(bed, rows, priors, by, fold, judged);
}

/* Do two rows differ in their layout alone, or in the dispatcher too? */
static bool comparable(
    const struct row *a, const struct row *b, bool dispatcher)
{
    const struct mf_settings *s = &a->asked.settings, *t = &b->asked.settings;
    char x[MF_LAYOUT_TEXT], y[MF_LAYOUT_TEXT];

    mf_layout_format(&a->asked.layout, x, sizeof x);
    mf_layout_format(&b->asked.layout, y, sizeof y);
    return a->run.source == b->run.source && a->model == b->model &&
           !strcmp(a->gpu, b->gpu) && a->run.world == b->run.world &&
           s->seq == t->seq && s->global_batch == t->global_batch &&
           s->precision == t->precision && s->imbalance == t->imbalance &&
           strcmp(x, y) && (dispatcher || s->dispatcher == t->dispatcher);
}

static void print_pairs(
    const struct rows *rows, const struct judged *judged, bool dispatcher)
{
    int pairs = 0, right = 0;

    for (size_t i = 0; i < rows->count; i++)
        for (size_t j = 0; j < i; j++) {
            const struct row *a = &rows->row[i], *b = &rows->row[j];
            double measured, predicted;

            if (!judged[i].done || !judged[j].done ||
                !comparable(a, b, dispatcher))
                continue;
            measured = log(a->step_s / b->step_s);
            predicted = measured + judged[i].log_ratio - judged[j].log_ratio;
            if (fabs(measured) < log(1.05))
                continue;
            pairs++;
            right += measured * predicted > 0;
        }
    printf("pairs over 5 %% apart whose layouts differ%s: %d of %d in order\n",
        dispatcher ? "" : " and dispatchers don't", right, pairs);
}

/* Rows that ran, and such that ran out of memory, against `fits`. */
static void print_memory(struct fit_bed *bed, const struct rows *rows,
    const double *x, const char *what)
{
    int ran = 0, refused = 0, oom = 0, missed = 0;

    for (size_t i = 0; i < rows->count; i++) {
        const struct row *row = &rows->row[i];
        struct mf_plan_entry entry;

        if (row->status == ROW_LEFT_OUT ||
            (row->status == ROW_OOM && !row->complete))
            continue;
        fit_price(bed, row, x, &entry);
        if (row->status == ROW_OOM) {
            oom++;
            missed += entry.cost.fits;
        } else {
            ran++;
            refused += !entry.cost.fits;
        }
        if (entry.cost.fits == (row->status == ROW_OOM))
            printf("  line %zu: %s on %s, peak %.1f GiB\n", row->line,
                row->model_name, row->gpu,
                entry.cost.peak_bytes / 1073741824.0);
    }
    printf("%s: %d ran, %d of them called impossible; %d complete rows out of "
           "memory, %d missed\n",
        what, ran, refused, oom, missed);
}

static void print_parameters(const double *x)
{
    int own = 0;

    for (int i = 0; i < fit_parameter_count; i++)
        own += fit_parameters[i].kinds >= FIT_EFA;
    printf("%d fitted parameters are shared, and one belongs to each of %d "
           "sources (%d more to %s); besides them, the residuals of the runs "
           "are kriged with 7 spreads\n",
        fit_parameter_count - own, mf_source_count, own, "efa");
    for (int i = 0; i < fit_parameter_count; i++)
        printf("%s/%u %.3f%s", mf_coefficient_name(fit_parameters[i].coef),
            fit_parameters[i].kinds, exp(x[i]), i % 6 == 5 ? "\n" : "  ");
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

static void judge_all(
    struct fit_bed *bed, struct rows *rows, bool each, struct judged *judged)
{
    size_t room = rows->count * sizeof *judged;

    memset(judged, 0, room);
    judge_folds(bed, rows, BY_CONFIGURATION, judged);
    if (each)
        print_rows(rows, judged);
    printf("\n%d-fold by configuration inside each source\n", FOLDS);
    print_table(rows, judged);
    print_pairs(rows, judged, false);
    print_pairs(rows, judged, true);
    memset(judged, 0, room);
    judge_folds(bed, rows, BY_SOURCE, judged);
    puts("\nleave one source out");
    print_sums(rows, judged);
    memset(judged, 0, room);
    judge_folds(bed, rows, BY_MODEL, judged);
    puts("\nleave one model out");
    print_sums(rows, judged);
}

static void feasible(const char *folder, const double *x)
{
    struct fit_bed *bed;
    struct rows rows;

    rows_read(&rows, folder, "feasible.csv");
    bed = fit_bed_create(&rows);
    print_memory(bed, &rows, x, "feasible.csv");
    fit_bed_free(bed);
    rows_free(&rows);
}

/* accuracy FOLDER [rows | TABLE.c]: the tables' folder; each row on a line of
 * its own; or only write the table of what was fitted.
 */
int main(int argc, char **argv)
{
    const char *folder = argc > 1 ? argv[1] : "tests/data/measured";
    const char *what = argc > 2 ? argv[2] : "";
    const struct row **row;
    struct judged *judged;
    struct fitted fit = {0};
    struct fit_bed *bed;
    struct rows rows;
    size_t n = 0;

    rows_read(&rows, folder, "runs.csv");
    bed = fit_bed_create(&rows);
    row = calloc(rows.count, sizeof *row);
    judged = calloc(rows.count, sizeof *judged);
    if (!row || !judged)
        table_fail("out of memory");
    for (size_t i = 0; i < rows.count; i++)
        if (usable(&rows.row[i]))
            row[n++] = &rows.row[i];
    fit_run(bed, row, n, &fit, 8);
    if (strstr(what, ".c")) {
        write_table(what, &fit);
    } else {
        print_parameters(fit.x);
        judge_all(bed, &rows, !strcmp(what, "rows"), judged);
        putchar('\n');
        print_memory(bed, &rows, fit.x, "runs.csv");
        feasible(folder, fit.x);
    }
    fit_free(&fit);
    fit_bed_free(bed);
    rows_free(&rows);
    free(judged);
    free(row);
    return EXIT_SUCCESS;
}
