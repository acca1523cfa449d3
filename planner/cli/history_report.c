/* SPDX-License-Identifier: BSD-3-Clause
 * moefold history report: one page about all past runs.
 */
#include "config.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "launcher/file.h"
#include "planner/cli/database.h"
#include "planner/cli/history.h"
#include "planner/cli/history_verbs.h"
#include "planner/cli/report_page.h"

enum {
    BEST_EACH = 5,   /* layouts of a model */
    BARS = 10,       /* runs whose phases are shown */
    SERIES_MOST = 8, /* lines of a chart */
    NODES_MOST = 50,
    PARTS_MOST = 32, /* phases */
};

struct report {
    mfdb *db;
    FILE *page;
    struct mfdb_filter filter;
    struct mfdb_runs all, best;
    char text[MFDB_ERROR_TEXT];
};

static bool is_done(const struct mfdb_run *run)
{
    return !strcmp(run->status, "done") && run->layer_s > 0;
}

/* ---- the best layouts ---- */

static void best_row(FILE *page, const struct mfdb_runs *best, size_t i)
{
    const struct mfdb_run *run = &best->run[i];
    const struct mfdb_spread *spread = &best->spread[i];
    char range[64];

    fputs("<tr>", page);
    mf_page_cell(page, run->model);
    mf_page_cell(page, run->cluster);
    mf_page_cell(page, run->layout);
    mf_page_number(page, 0, run->ranks < 0 ? NAN : (double)run->ranks);
    mf_page_number(page, 3, run->layer_s * 1e3);
    mf_page_number(page, 3, run->predicted_s * 1e3);
    mf_page_number(page, 0, run->tokens_per_s);
    mf_page_number(page, 0, (double)spread->runs);
    snprintf(range, sizeof range, "%.3f to %.3f", spread->least_s * 1e3,
        spread->most_s * 1e3);
    mf_page_cell(page, range);
    fputs("</tr>\n", page);
}

/* How many before I are of its model. */
static size_t place_of(const struct mfdb_runs *runs, size_t i)
{
    size_t place = 0;

    for (size_t k = 0; k < i; k++)
        place += !strcmp(runs->run[k].model, runs->run[i].model);
    return place;
}

static void write_best(struct report *r)
{
    static const char *const head[] = {"model", "cluster", "layout", "ranks",
        "layer ms", "predicted ms", "tokens/s", "runs", "low to high ms", NULL};

    mf_page_section(r->page, "best", "Best layouts by model");
    mf_page_table(r->page,
        "Median of each layout's runs; most tokens a second first", head);
    for (size_t m = 0; m < r->best.count; m++) {
        if (place_of(&r->best, m) > 0)
            continue;
        for (size_t i = m; i < r->best.count; i++)
            if (!strcmp(r->best.run[i].model, r->best.run[m].model) &&
                place_of(&r->best, i) < BEST_EACH)
                best_row(r->page, &r->best, i);
    }
    mf_page_table_end(r->page);
    mf_page_section_end(r->page);
}

/* ---- charts ---- */

/* Names of the models that have most runs, for colours; their count. */
static size_t models(const struct report *r, const char *name[SERIES_MOST])
{
    size_t n = 0;

    for (size_t i = 0; i < r->best.count && n < SERIES_MOST; i++)
        if (place_of(&r->best, i) == 0)
            name[n++] = r->best.run[i].model;
    return n;
}

static size_t model_of(
    const struct mfdb_run *run, const char *const *name, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (!strcmp(name[i], run->model))
            return i;
    return count;
}

typedef bool point_of(
    const struct mfdb_runs *runs, size_t i, double *x, double *y);

static bool predicted_point(
    const struct mfdb_runs *runs, size_t i, double *x, double *y)
{
    *x = runs->run[i].predicted_s * 1e3;
    *y = runs->run[i].layer_s * 1e3;
    return is_done(&runs->run[i]);
}

/* The most tokens a second of its model at its world; BEST has that order. */
static bool scaling_point(
    const struct mfdb_runs *runs, size_t i, double *x, double *y)
{
    for (size_t k = 0; k < i; k++)
        if (!strcmp(runs->run[k].model, runs->run[i].model) &&
            runs->run[k].ranks == runs->run[i].ranks)
            return false;
    *x = (double)runs->run[i].ranks;
    *y = runs->run[i].tokens_per_s;
    return true;
}

/* Beside what is the usual time of its kind, so that all fit one chart. */
static bool trend_point(
    const struct mfdb_runs *runs, size_t i, double *x, double *y)
{
    *x = runs->run[i].started_at;
    *y = runs->run[i].predicted_s > 0
             ? runs->run[i].layer_s / runs->run[i].predicted_s
             : (double)NAN;
    return is_done(&runs->run[i]);
}

static int compare_points(const void *a, const void *b)
{
    const double x = ((const struct mf_point *)a)->x;
    const double y = ((const struct mf_point *)b)->x;

    return (x > y) - (x < y);
}

enum { TITLE = 400 };

static int write_chart(struct report *r, const struct mfdb_runs *runs,
    point_of *point, const struct mf_chart *how)
{
    const char *name[SERIES_MOST];
    struct mf_chart chart = *how;
    struct mf_point *points = calloc(runs->count + 1, sizeof *points);
    char(*title)[TITLE] = calloc(runs->count + 1, sizeof *title);
    size_t n = 0;

    if (!points || !title) {
        free(points);
        free(title);
        return -1;
    }
    chart.series = name;
    chart.series_count = models(r, name);
    for (size_t i = 0; i < runs->count; i++) {
        const struct mfdb_run *run = &runs->run[i];
        struct mf_point *p = &points[n];

        p->series = model_of(run, name, chart.series_count);
        p->title = title[n];
        if (p->series == chart.series_count || !point(runs, i, &p->x, &p->y))
            continue;
        snprintf(title[n++], TITLE, "%s, %s, %.3f ms", run->model, run->layout,
            run->layer_s * 1e3);
    }
    qsort(points, n, sizeof *points, compare_points);
    mf_page_chart(r->page, &chart, points, n);
    free(points);
    free(title);
    return 0;
}

/* ---- time by phase ---- */

static size_t part_of(
    const char *parts[PARTS_MOST], size_t *count, const char *name)
{
    for (size_t i = 0; i < *count; i++)
        if (!strcmp(parts[i], name))
            return i;
    if (*count == PARTS_MOST)
        return PARTS_MOST - 1;
    parts[*count] = name;
    return (*count)++;
}

static double layer_sum(const struct mfdb_phases *phases)
{
    double sum = 0;

    for (size_t i = 0; i < phases->count; i++)
        if (isfinite(phases->phase[i].max_s))
            sum += phases->phase[i].max_s;
    return sum;
}

/* Relative to its own sum: runs differ by orders of magnitude. */
static void write_bar(FILE *page, const struct mfdb_run *run,
    const struct mfdb_phases *phases, const char *parts[PARTS_MOST],
    size_t count)
{
    double value[PARTS_MOST] = {0};
    size_t n = count;
    char name[TITLE];

    for (size_t i = 0; i < phases->count; i++)
        if (isfinite(phases->phase[i].max_s))
            value[part_of(parts, &n, phases->phase[i].phase)] +=
                phases->phase[i].max_s;
    snprintf(name, sizeof name, "%s, %s: %.3f ms", run->model, run->layout,
        run->layer_s * 1e3);
    mf_page_bar(page, name, layer_sum(phases), parts, value, count);
}

static int write_phases(struct report *r)
{
    struct mfdb_phases phases[BARS] = {{NULL, 0}};
    size_t of[BARS], bars = 0, count = 0;
    const char *parts[PARTS_MOST];
    int rc = 0;

    mf_page_section(r->page, "phases", "Time by phase");
    for (size_t i = 0; rc == 0 && i < r->best.count && bars < BARS; i++) {
        if (place_of(&r->best, i) > 1)
            continue;
        rc = mfdb_phases_of(
            r->db, r->best.run[i].run_id, &phases[bars], r->text);
        for (size_t k = 0; rc == 0 && k < phases[bars].count; k++)
            part_of(parts, &count, phases[bars].phase[k].phase);
        of[bars++] = i;
    }
    if (rc == 0 && count > 0)
        mf_page_legend(r->page, parts, count);
    for (size_t b = 0; rc == 0 && b < bars; b++)
        if (phases[b].count > 0)
            write_bar(r->page, &r->best.run[of[b]], &phases[b], parts, count);
    for (size_t b = 0; b < bars; b++)
        mfdb_phases_free(&phases[b]);
    mf_page_section_end(r->page);
    return rc;
}

/* ---- what got slower ---- */

static void write_slow(FILE *page, const struct mfdb_regress *g)
{
    static const char *const head[] = {"run", "model", "layout", "layer ms",
        "expected ms", "times", "phase that added most", NULL};

    mf_page_table(page, "Runs slower than earlier ones of their kind", head);
    for (size_t i = 0; i < g->count; i++) {
        const struct mfdb_judged *j = &g->judged[i];
        char id[9], phase[64] = "";

        if (!j->slow)
            continue;
        snprintf(id, sizeof id, "%.8s", j->run.run_id);
        if (j->phases > 0)
            snprintf(phase, sizeof phase, "%s %s", j->phase[0].phase,
                j->phase[0].direction);
        fputs("<tr>", page);
        mf_page_cell(page, id);
        mf_page_cell(page, j->run.model);
        mf_page_cell(page, j->run.layout);
        mf_page_number(page, 3, j->run.layer_s * 1e3);
        mf_page_number(page, 3, j->expected_s * 1e3);
        mf_page_number(page, 2, j->run.layer_s / j->expected_s);
        mf_page_cell(page, phase);
        fputs("</tr>\n", page);
    }
    mf_page_table_end(page);
}

static void write_nodes(FILE *page, const struct mfdb_regress *g)
{
    static const char *const head[] = {"node", "state", "runs", "slow ones",
        "usual ratio", "ratio without it", "waited for %", NULL};

    mf_page_table(page, "Nodes of the judged runs, sick ones first", head);
    for (size_t i = 0; i < g->nodes && i < NODES_MOST; i++) {
        const struct mfdb_node *n = &g->node[i];

        fputs("<tr>", page);
        mf_page_cell(page, n->name);
        fputs(n->sick ? "<td class=\"bad\">sick</td>" : "<td>well</td>", page);
        mf_page_number(page, 0, (double)n->runs);
        mf_page_number(page, 0, (double)n->slow);
        mf_page_number(page, 3, n->with_ratio);
        mf_page_number(page, 3, n->without_ratio);
        mf_page_number(page, 0, 100 * n->waited);
        fputs("</tr>\n", page);
    }
    mf_page_table_end(page);
}

static int write_regress(struct report *r)
{
    const struct mfdb_regress_rule rule = {
        .filter = r->filter, .least = 3, .threshold = 0.05};
    struct mfdb_regress g;

    mf_page_section(r->page, "slow", "Slow runs and sick nodes");
    if (mfdb_regress_find(r->db, &rule, &g, r->text))
        return -1;
    if (g.count == 0)
        fputs("<p>No kind of run has three earlier ones to judge by.</p>\n",
            r->page);
    else {
        write_slow(r->page, &g);
        write_nodes(r->page, &g);
    }
    mfdb_regress_free(&g);
    mf_page_section_end(r->page);
    return 0;
}

/* ---- the page ---- */

static void write_top(struct report *r)
{
    static const char *const links[][2] = {{"best", "Best layouts"},
        {"predicted", "Predicted and measured"}, {"phases", "Time by phase"},
        {"scaling", "Scaling"}, {"trend", "Trend"}, {"slow", "Slow runs"}};
    size_t done = 0;

    for (size_t i = 0; i < r->all.count; i++)
        done += is_done(&r->all.run[i]);
    mf_page_begin(r->page, "Past runs of MoE layers");
    fprintf(r->page,
        "<p>%zu runs, %zu of them finished with a time.</p>\n"
        "<nav aria-label=\"Sections\"><ul>",
        r->all.count, done);
    for (size_t i = 0; i < sizeof links / sizeof *links; i++)
        fprintf(r->page, "<li><a href=\"#%s\">%s</a></li>", links[i][0],
            links[i][1]);
    fputs("</ul></nav>\n<main id=\"main\">\n", r->page);
}

static int write_charts(struct report *r)
{
    static const struct mf_chart predicted = {
        .title =
            "Measured against predicted layer time; on the line they agree",
        .x_label = "predicted ms",
        .y_label = "measured ms",
        .log_x = true,
        .log_y = true,
        .diagonal = true};
    static const struct mf_chart scaling = {
        .title = "Most tokens a second at each number of ranks",
        .x_label = "ranks",
        .y_label = "tokens/s",
        .log_x = true,
        .log_y = true,
        .lines = true};
    static const struct mf_chart trend = {
        .title = "Measured over predicted layer time, run by run",
        .x_label = "started (UTC)",
        .y_label = "measured / predicted",
        .dates = true};

    mf_page_section(r->page, "predicted", "Predicted and measured");
    if (write_chart(r, &r->all, predicted_point, &predicted))
        return -1;
    mf_page_section_end(r->page);
    if (write_phases(r))
        return -1;
    mf_page_section(r->page, "scaling", "Scaling");
    if (write_chart(r, &r->best, scaling_point, &scaling))
        return -1;
    mf_page_section_end(r->page);
    mf_page_section(r->page, "trend", "Trend over time");
    if (write_chart(r, &r->all, trend_point, &trend))
        return -1;
    mf_page_section_end(r->page);
    return 0;
}

static int write_page(struct report *r, struct mf_error *err)
{
    snprintf(r->text, sizeof r->text, "no memory");
    if (mfdb_list(r->db, &r->filter, &r->all, r->text) ||
        mfdb_best(r->db, &r->filter, &r->best, r->text))
        return mf_error_set(err, MF_FAILED, "%s", r->text);
    write_top(r);
    write_best(r);
    if (write_charts(r) || write_regress(r))
        return mf_error_set(err, MF_FAILED, "%s", r->text);
    mf_page_end(r->page);
    return 0;
}

int mf_history_report(const struct mf_cli *cli, struct mf_error *err)
{
    const char *path = mf_cli_value(cli, "html");
    char layout[MF_LAYOUT_TEXT], *text = NULL;
    struct report r = {0};
    size_t length = 0;
    int rc = -1;

    if (!path)
        return mf_error_set(err, MF_INVALID, "report wants --html FILE");
    if (mf_history_filter(cli, &r.filter, layout, err) ||
        mf_history_open(cli, &r.db, err))
        return -1;
    r.page = open_memstream(&text, &length);
    if (r.page)
        rc = write_page(&r, err);
    else
        mf_error_set(err, MF_FAILED, "no memory");
    if (r.page && fclose(r.page) && rc == 0)
        rc = mf_error_set(err, MF_FAILED, "no memory");
    if (rc == 0)
        rc = mfl_file_write(path, text, 0666, true, err);
    if (rc == 0 && mf_cli_json(cli))
        rc = mf_cli_print_json(json_pack("{s:s, s:I}", "html", path, "runs",
                                   (json_int_t)r.all.count),
            err);
    else if (rc == 0)
        printf("%s: %zu runs\n", path, r.all.count);
    free(text);
    mfdb_runs_free(&r.all);
    mfdb_runs_free(&r.best);
    mfdb_close(r.db);
    return rc;
}
