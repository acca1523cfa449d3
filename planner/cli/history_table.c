/* SPDX-License-Identifier: BSD-3-Clause
 * Past runs for people.
 */
#include "config.h"

#include "planner/cli/history.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

/* TEXT without what could steer a terminal; "-" for none. */
const char *mf_history_plain(const char *text, char cell[MF_HISTORY_CELL])
{
    size_t i;

    for (i = 0; text[i] && i < MF_HISTORY_CELL - 1; i++) {
        unsigned char c = (unsigned char)text[i];

        cell[i] = (char)(c < 0x20 || c == 0x7f ? '?' : text[i]);
    }
    cell[i] = '\0';
    if (i == 0)
        snprintf(cell, MF_HISTORY_CELL, "-");
    return cell;
}

static const char *number(int width, int64_t value, char cell[MF_HISTORY_CELL])
{
    if (value >= 0)
        snprintf(cell, MF_HISTORY_CELL, "%*" PRId64, width, value);
    else
        snprintf(cell, MF_HISTORY_CELL, "%*s", width, "-");
    return cell;
}

/* VALUE, or "-" in the same width. */
const char *mf_history_figure(
    int width, int digits, double value, char cell[MF_HISTORY_CELL])
{
    if (isfinite(value))
        snprintf(cell, MF_HISTORY_CELL, "%*.*f", width, digits, value);
    else
        snprintf(cell, MF_HISTORY_CELL, "%*s", width, "-");
    return cell;
}

const char *mf_history_percent(double fraction, char cell[MF_HISTORY_CELL])
{
    if (isfinite(fraction))
        snprintf(cell, MF_HISTORY_CELL, "%+8.1f%%", 100 * fraction);
    else
        snprintf(cell, MF_HISTORY_CELL, "%9s", "-");
    return cell;
}

static const char *date(double unix_s, char cell[MF_HISTORY_CELL])
{
    const double year_10000_s = 253402300800.0;
    time_t seconds = 0;
    struct tm utc;

    if (unix_s >= 0 && unix_s < year_10000_s)
        seconds = (time_t)unix_s;
    if (seconds == 0 || !gmtime_r(&seconds, &utc) ||
        !strftime(cell, MF_HISTORY_CELL, "%Y-%m-%d %H:%M:%S", &utc))
        snprintf(cell, MF_HISTORY_CELL, "-");
    return cell;
}

/* The layout, and what else makes its groups. */
static const char *layout(
    const struct mfdb_run *run, char cell[MF_HISTORY_CELL])
{
    char text[MF_HISTORY_CELL], order[MF_HISTORY_CELL];
    bool usual =
        !run->rank_order[0] || strcmp(run->rank_order, "tp-cp-ep-dp-pp") == 0;

    mf_history_plain(run->layout, text);
    mf_history_plain(run->rank_order, order);
    snprintf(cell, MF_HISTORY_CELL, "%.160s%s%s%.32s", text,
        run->coupled ? " coupled" : "", usual ? "" : " ", usual ? "" : order);
    return cell;
}

static int widest(int width, const char *cell)
{
    int length = (int)strlen(cell);

    return length > width ? length : width;
}

void mf_history_table(const struct mfdb_runs *runs)
{
    char a[MF_HISTORY_CELL], b[MF_HISTORY_CELL], c[MF_HISTORY_CELL],
        d[MF_HISTORY_CELL], e[MF_HISTORY_CELL], f[MF_HISTORY_CELL],
        g[MF_HISTORY_CELL];
    char h[MF_HISTORY_CELL], k[MF_HISTORY_CELL];
    int model = 5, place = 6, job = 3;

    for (size_t i = 0; i < runs->count; i++) {
        model = widest(model, mf_history_plain(runs->run[i].model, a));
        place = widest(place, layout(&runs->run[i], a));
        job = widest(job, mf_history_plain(runs->run[i].job_id, a));
    }
    printf("%-8s  %-19s  %-*s  %-*s  %5s  %-*s  %-7s  %11s  %12s  %9s  %9s%s\n",
        "run", "started (UTC)", model, "model", place, "layout", "ranks", job,
        "job", "status", "measured ms", "predicted ms", "error", "tokens/s",
        runs->spread ? "  runs  low to high ms" : "");
    for (size_t i = 0; i < runs->count; i++) {
        const struct mfdb_run *run = &runs->run[i];

        printf("%.8s  %-19s  %-*s  %-*s  %s  %-*s  %-7s  %s  %s  %s  %s",
            run->run_id, date(run->started_at, a), model,
            mf_history_plain(run->model, b), place, layout(run, c),
            number(5, run->ranks, h), job, mf_history_plain(run->job_id, d),
            run->status, mf_history_figure(11, 3, run->layer_s * 1e3, e),
            mf_history_figure(12, 3, run->predicted_s * 1e3, f),
            mf_history_percent(
                mf_history_error(run->predicted_s, run->layer_s), g),
            mf_history_figure(9, 0, run->tokens_per_s, k));
        if (runs->spread)
            printf("  %4" PRId64 "  %.3f to %.3f", runs->spread[i].runs,
                runs->spread[i].least_s * 1e3, runs->spread[i].most_s * 1e3);
        putchar('\n');
    }
}

static void line(const char *name, const char *text)
{
    char cell[MF_HISTORY_CELL];

    if (*text)
        printf("%-14s %s\n", name, mf_history_plain(text, cell));
}

static void count(const char *name, int64_t value)
{
    if (value >= 0)
        printf("%-14s %" PRId64 "\n", name, value);
}

static void amount(const char *name, double value, const char *unit)
{
    if (isfinite(value))
        printf("%-14s %.6g %s\n", name, value, unit);
}

static void show_what(const struct mfdb_run *run)
{
    char cell[MF_HISTORY_CELL];

    line("run", run->run_id);
    line("status", run->status);
    line("started (UTC)", date(run->started_at, cell));
    line("ended (UTC)", date(run->ended_at, cell));
    line("model", run->model);
    line("cluster", run->cluster);
    line("layout", layout(run, cell));
    line("order", run->rank_order);
    count("ranks", run->ranks);
    count("nodes", run->nodes);
    line("node list", run->node_list);
    line("job", run->job_id);
    line("user", run->user);
    line("command", run->command);
    line("version", run->version);
    line("backend", run->backend);
    line("communication", run->comm);
    line("experts", run->experts_kernel);
    line("dispatcher", run->dispatcher);
    line("device", run->device);
    line("libraries", run->libraries);
}

static void show_figures(const struct mfdb_run *run)
{
    double error = mf_history_error(run->predicted_s, run->layer_s);

    count("hidden", run->hidden);
    count("expert width", run->ffn);
    count("experts", run->experts);
    count("top-k", run->topk);
    count("sequence", run->seq);
    count("micro batch", run->micro_batch);
    count("iterations", run->iterations);
    amount("imbalance", run->imbalance, "(Gini)");
    amount("layer", run->layer_s * 1e3, "ms");
    amount("predicted", run->predicted_s * 1e3, "ms");
    if (isfinite(error))
        printf("%-14s %+.1f%%\n", "error", 100 * error);
    line("coefficients", run->coefficients);
    amount("speed", run->tokens_per_s, "tokens/s");
}

void mf_history_show(
    const struct mfdb_run *run, const struct mfdb_phases *phases)
{
    char a[MF_HISTORY_CELL], b[MF_HISTORY_CELL], c[MF_HISTORY_CELL],
        d[MF_HISTORY_CELL], e[MF_HISTORY_CELL], f[MF_HISTORY_CELL],
        g[MF_HISTORY_CELL];

    show_what(run);
    show_figures(run);
    if (phases->count == 0)
        return;
    printf("\n%-18s  %-9s  %7s  %9s  %9s  %9s  %12s  %9s\n", "phase",
        "direction", "samples", "min ms", "median ms", "max ms", "predicted ms",
        "error");
    for (size_t i = 0; i < phases->count; i++) {
        const struct mfdb_phase *p = &phases->phase[i];

        printf("%-18s  %-9s  %7" PRId64 "  %s  %s  %s  %s  %s\n",
            mf_history_plain(p->phase, a), mf_history_plain(p->direction, b),
            p->samples, mf_history_figure(9, 3, p->min_s * 1e3, c),
            mf_history_figure(9, 3, p->median_s * 1e3, d),
            mf_history_figure(9, 3, p->max_s * 1e3, e),
            mf_history_figure(12, 3, p->predicted_s * 1e3, f),
            mf_history_percent(mf_history_error(p->predicted_s, p->max_s), g));
    }
    puts("\nminimum, median and maximum over ranks; medians over iterations");
}

/* Parts of 8 that a bar's last cell may have. */
static void bar(double part, int width)
{
    static const char *const ends[] = {"", "\u258f", "\u258e", "\u258d",
        "\u258c", "\u258b", "\u258a", "\u2589"};
    const int eighths = (int)lround(part * 8 * width);

    for (int i = 0; i < eighths / 8; i++)
        fputs("\u2588", stdout);
    fputs(ends[eighths % 8], stdout);
}

void mf_history_plot(const struct mfdb_phases *phases)
{
    enum { WIDTH = 40 };
    double longest = 0;
    char a[MF_HISTORY_CELL], b[MF_HISTORY_CELL];

    for (size_t i = 0; i < phases->count; i++)
        longest = fmax(longest, phases->phase[i].max_s);
    for (size_t i = 0; longest > 0 && i < phases->count; i++) {
        const struct mfdb_phase *p = &phases->phase[i];

        if (!isfinite(p->max_s))
            continue;
        printf("%-18.18s %-8.8s %s ms ", mf_history_plain(p->phase, a),
            p->direction, mf_history_figure(9, 3, p->max_s * 1e3, b));
        bar(p->max_s / longest, WIDTH);
        putchar('\n');
    }
}
