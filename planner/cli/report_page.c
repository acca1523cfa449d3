/* SPDX-License-Identifier: BSD-3-Clause
 * See report_page.h.
 */
#include "config.h"

#include "planner/cli/report_page.h"

#include <math.h>
#include <string.h>
#include <time.h>

#include "planner/cli/history.h"

/* Twelve colours that stay apart for most eyes, on light and on dark. */
static const char style[] =
    ":root{color-scheme:light dark;--ink:#1c2430;--soft:#566070;--line:#c9d0d9;"
    "--back:#fff;--panel:#f5f7f9;--bad:#b3261e;--link:#0b57a4;"
    "--c0:#3366b0;--c1:#d2691e;--c2:#2e8b57;--c3:#a03a8c;--c4:#8a6d00;"
    "--c5:#008b9a;--c6:#b02a3a;--c7:#5d51b5;--c8:#6b7a1f;--c9:#a2574a;"
    "--c10:#46779c;--c11:#77777f}\n"
    "@media(prefers-color-scheme:dark){:root{--ink:#e6eaf0;--soft:#a3adba;"
    "--line:#3a4450;--back:#12171d;--panel:#1b222a;--bad:#ff8a80;"
    "--link:#8ab8f0;--c0:#7aa7ea;--c1:#f0a060;--c2:#62c48c;--c3:#d98acb;"
    "--c4:#d6b84a;--c5:#4fc3d0;--c6:#f07a86;--c7:#a59bf0;--c8:#b5c65a;"
    "--c9:#dd9a8d;--c10:#8fbbdd;--c11:#b0b0b8}}\n"
    "*{box-sizing:border-box}"
    "body{margin:0 auto;padding:1rem;max-width:72rem;background:var(--back);"
    "color:var(--ink);font:1rem/1.5 system-ui,sans-serif}"
    "h1{font-size:1.6rem;margin:.5rem 0}h2{font-size:1.25rem;margin:2rem 0 "
    ".5rem}h3{font-size:1rem;margin:1rem 0 .25rem}p{max-width:48rem}\n"
    "a{color:var(--link)}a:focus-visible,[tabindex]:focus-visible{outline:3px "
    "solid var(--link);outline-offset:2px}"
    ".skip{position:absolute;left:-99rem}.skip:focus{position:static}"
    "nav ul{display:flex;flex-wrap:wrap;gap:.25rem "
    "1rem;padding:0;list-style:none}\n"
    ".scroll{overflow-x:auto;border:1px solid var(--line)}"
    "table{border-collapse:collapse;width:100%;font-variant-numeric:"
    "tabular-nums}"
    "caption{text-align:left;padding:.4rem .6rem;color:var(--soft)}"
    "th,td{padding:.3rem .6rem;text-align:left;border-top:1px solid "
    "var(--line);white-space:nowrap}th{background:var(--panel)}"
    "td.n{text-align:right}.bad{color:var(--bad);font-weight:600}\n"
    "figure{margin:1rem 0}figcaption{color:var(--soft)}svg{display:block;"
    "width:100%;max-width:46rem;height:auto}svg text{fill:var(--soft);font:"
    "12px system-ui,sans-serif}.axis{stroke:var(--line);fill:none}"
    ".key{display:flex;flex-wrap:wrap;gap:.2rem 1rem;padding:0;list-style:none;"
    "font-size:.9rem}.key svg{display:inline-block;width:.8em;height:.8em;"
    "margin-right:.4em}\n"
    "@media print{:root{--back:#fff;--ink:#000;--soft:#333;--panel:#eee}"
    "nav,.skip{display:none}section{break-inside:avoid}.scroll{overflow:"
    "visible;border:0}th,td{white-space:normal;font-size:.8rem}}\n";

enum { COLORS = 12 };

void mf_page_text(FILE *page, const char *text)
{
    json_t *valid = mf_history_text(text);
    const char *t = valid ? json_string_value(valid) : NULL;

    for (; t && *t; t++) {
        const unsigned char c = (unsigned char)*t;

        if (c == '&')
            fputs("&amp;", page);
        else if (c == '<')
            fputs("&lt;", page);
        else if (c == '>')
            fputs("&gt;", page);
        else if (c == '"')
            fputs("&quot;", page);
        else if (c == '\'')
            fputs("&#39;", page);
        else
            putc(c < 0x20 || c == 0x7f ? '?' : c, page);
    }
    json_decref(valid);
}

void mf_page_begin(FILE *page, const char *title)
{
    fputs("<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta "
          "charset=\"utf-8\">\n<meta name=\"viewport\" content=\"width=device-"
          "width, initial-scale=1\">\n<meta http-equiv=\"Content-Security-"
          "Policy\" content=\"default-src 'none'; style-src "
          "'unsafe-inline'\">\n<title>",
        page);
    mf_page_text(page, title);
    fprintf(page, "</title>\n<style>\n%s</style>\n</head>\n<body>\n", style);
    fputs(
        "<a class=\"skip\" href=\"#main\">Skip to the report</a>\n<h1>", page);
    mf_page_text(page, title);
    fputs("</h1>\n", page);
}

void mf_page_end(FILE *page)
{
    fputs("</main>\n</body>\n</html>\n", page);
}

void mf_page_section(FILE *page, const char *id, const char *heading)
{
    fprintf(page,
        "<section id=\"%s\" aria-labelledby=\"%s-h\">\n<h2 id=\"%s-h\">", id,
        id, id);
    mf_page_text(page, heading);
    fputs("</h2>\n", page);
}

void mf_page_section_end(FILE *page)
{
    fputs("</section>\n", page);
}

void mf_page_table(FILE *page, const char *caption, const char *const *head)
{
    fputs("<div class=\"scroll\" tabindex=\"0\" role=\"region\" "
          "aria-label=\"",
        page);
    mf_page_text(page, caption);
    fputs("\"><table><caption>", page);
    mf_page_text(page, caption);
    fputs("</caption>\n<thead><tr>", page);
    for (; *head; head++) {
        fputs("<th scope=\"col\">", page);
        mf_page_text(page, *head);
        fputs("</th>", page);
    }
    fputs("</tr></thead>\n<tbody>\n", page);
}

void mf_page_table_end(FILE *page)
{
    fputs("</tbody></table></div>\n", page);
}

void mf_page_cell(FILE *page, const char *text)
{
    fputs("<td>", page);
    mf_page_text(page, *text ? text : "-");
    fputs("</td>", page);
}

void mf_page_number(FILE *page, int digits, double value)
{
    if (isfinite(value))
        fprintf(page, "<td class=\"n\">%.*f</td>", digits, value);
    else
        fputs("<td class=\"n\">-</td>", page);
}

void mf_page_legend(FILE *page, const char *const *names, size_t count)
{
    fputs("<ul class=\"key\">", page);
    for (size_t i = 0; i < count; i++) {
        fprintf(page,
            "<li><svg viewBox=\"0 0 1 1\" aria-hidden=\"true\"><rect "
            "width=\"1\" height=\"1\" fill=\"var(--c%zu)\"/></svg>",
            i % COLORS);
        mf_page_text(page, names[i]);
        fputs("</li>", page);
    }
    fputs("</ul>\n", page);
}

void mf_page_bar(FILE *page, const char *name, double widest,
    const char *const *parts, const double *value, size_t count)
{
    double at = 0;

    fputs("<figure><figcaption>", page);
    mf_page_text(page, name);
    fputs("</figcaption><svg viewBox=\"0 0 720 24\" role=\"img\" "
          "aria-label=\"",
        page);
    mf_page_text(page, name);
    fputs("\">", page);
    for (size_t i = 0; i < count; i++) {
        const double wide = value[i] / widest * 720;

        if (!(value[i] > 0) || !isfinite(wide))
            continue;
        fprintf(page,
            "<rect x=\"%.2f\" width=\"%.2f\" height=\"24\" "
            "fill=\"var(--c%zu)\"><title>",
            at, wide, i % COLORS);
        mf_page_text(page, parts[i]);
        fprintf(page, " %.3f ms</title></rect>", value[i] * 1e3);
        at += wide;
    }
    fputs("</svg></figure>\n", page);
}

/* ---- charts ---- */

enum { WIDE = 720, HIGH = 360, LEFT = 80, RIGHT = 44, TOP = 16, BOTTOM = 56 };

struct axis {
    double low, high;
    bool log;
    int from, to; /* in the picture */
};

static void axis_take(struct axis *a, double value)
{
    a->low = fmin(a->low, value);
    a->high = fmax(a->high, value);
}

/* The step of 1, 2, 5 times a power of ten below VALUE, or above it. */
static double log_step(double value, bool up)
{
    static const double part[] = {1, 2, 5, 10};
    const double power = pow(10, floor(log10(value)));
    int i = 0;

    if (up) {
        while (i < 3 && part[i] * power < value * (1 - 1e-9))
            i++;
        return part[i] * power;
    }
    while (i < 2 && part[i + 1] * power <= value * (1 + 1e-9))
        i++;
    return part[i] * power;
}

/* Some room around the values, and around one value alone. */
static void axis_round(struct axis *a)
{
    if (a->log) {
        a->low = log_step(a->low * 0.999, false);
        a->high = log_step(a->high * 1.001, true);
        return;
    }
    if (a->low >= 0 && a->low < a->high / 2)
        a->low = 0;
    if (!(a->high > a->low)) {
        a->low -= 0.5;
        a->high += 0.5;
    }
}

static double axis_at(const struct axis *a, double value)
{
    const double part = a->log ? log(value / a->low) / log(a->high / a->low)
                               : (value - a->low) / (a->high - a->low);

    return a->from + part * (a->to - a->from);
}

static bool shown(const struct mf_chart *chart, const struct mf_point *p)
{
    return isfinite(p->x) && isfinite(p->y) && (!chart->log_x || p->x > 0) &&
           (!chart->log_y || p->y > 0);
}

/* 1, 2 or 5 times a power of ten, so that there are four to ten steps. */
static double linear_step(const struct axis *a)
{
    const double rough = (a->high - a->low) / 6;
    const double power = pow(10, floor(log10(rough)));

    return power * (rough / power > 5      ? 10
                       : rough / power > 2 ? 5
                       : rough / power > 1 ? 2
                                           : 1);
}

static void label_text(
    const struct mf_chart *chart, bool is_x, double value, char text[32])
{
    const time_t seconds = (time_t)value;
    struct tm utc;

    if (!is_x || !chart->dates || !gmtime_r(&seconds, &utc) ||
        !strftime(text, 32, "%Y-%m-%d", &utc))
        snprintf(text, 32, "%.6g", value);
}

static void tick(FILE *page, const struct mf_chart *chart, const struct axis *a,
    bool is_x, double value)
{
    const double at = axis_at(a, value);
    char text[32];

    label_text(chart, is_x, value, text);
    if (is_x)
        fprintf(page,
            "<path class=\"axis\" d=\"M%.1f %dV%d\"/><text x=\"%.1f\" "
            "y=\"%d\" text-anchor=\"middle\">%s</text>",
            at, TOP, HIGH - BOTTOM, at, HIGH - BOTTOM + 18, text);
    else
        fprintf(page,
            "<path class=\"axis\" d=\"M%d %.1fH%d\"/><text x=\"%d\" "
            "y=\"%.1f\" text-anchor=\"end\">%s</text>",
            LEFT, at, WIDE - RIGHT, LEFT - 6, at + 4, text);
}

static void ticks(
    FILE *page, const struct mf_chart *chart, const struct axis *a, bool is_x)
{
    const int most = is_x && chart->dates ? 5 : 14;
    /* Each step of up to three decades, then only powers of ten. */
    const bool fine = a->log && a->high / a->low < 1e3;
    const double step = a->log ? 0 : linear_step(a);
    double value = fine     ? a->low
                   : a->log ? pow(10, ceil(log10(a->low) - 1e-9))
                            : ceil(a->low / step - 1e-9) * step;

    /* Dates at even parts, since a day is no power of ten. */
    if (is_x && chart->dates) {
        for (int i = 0; i < most; i++)
            tick(page, chart, a, is_x,
                a->low + (a->high - a->low) * i / (most - 1));
        return;
    }
    for (int i = 0; i < most && value <= a->high * (1 + 1e-9); i++) {
        tick(page, chart, a, is_x, value);
        if (!a->log)
            value += step;
        else
            value = fine ? log_step(value * 1.001, true) : value * 10;
    }
}

static void draw_lines(FILE *page, const struct mf_chart *chart,
    const struct mf_point *point, size_t count, const struct axis *x,
    const struct axis *y)
{
    for (size_t s = 0; s < chart->series_count; s++) {
        bool first = true;

        for (size_t i = 0; i < count; i++) {
            if (point[i].series != s || !shown(chart, &point[i]))
                continue;
            if (first)
                fputs("<path fill=\"none\" stroke-width=\"2\" d=\"", page);
            fprintf(page, "%c%.1f %.1f", first ? 'M' : 'L',
                axis_at(x, point[i].x), axis_at(y, point[i].y));
            first = false;
        }
        if (!first)
            fprintf(page, "\" stroke=\"var(--c%zu)\"/>\n", s % COLORS);
    }
}

static void draw_points(FILE *page, const struct mf_chart *chart,
    const struct mf_point *point, size_t count, const struct axis *x,
    const struct axis *y)
{
    for (size_t i = 0; i < count; i++) {
        if (!shown(chart, &point[i]))
            continue;
        fprintf(page,
            "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"4\" "
            "fill=\"var(--c%zu)\"><title>",
            axis_at(x, point[i].x), axis_at(y, point[i].y),
            point[i].series % COLORS);
        mf_page_text(page, point[i].title);
        fputs("</title></circle>\n", page);
    }
}

/* One range for both axes when they are compared. */
static bool range(const struct mf_chart *chart, const struct mf_point *point,
    size_t count, struct axis *x, struct axis *y)
{
    bool any = false;

    for (size_t i = 0; i < count; i++)
        if (shown(chart, &point[i])) {
            axis_take(x, point[i].x);
            axis_take(y, point[i].y);
            any = true;
        }
    if (chart->diagonal) {
        x->low = y->low = fmin(x->low, y->low);
        x->high = y->high = fmax(x->high, y->high);
    }
    if (any) {
        axis_round(x);
        axis_round(y);
    }
    return any;
}

void mf_page_chart(FILE *page, const struct mf_chart *chart,
    const struct mf_point *point, size_t count)
{
    struct axis x = {INFINITY, -INFINITY, chart->log_x, LEFT, WIDE - RIGHT};
    struct axis y = {INFINITY, -INFINITY, chart->log_y, HIGH - BOTTOM, TOP};

    if (!range(chart, point, count, &x, &y)) {
        fputs("<p>Nothing to show yet.</p>\n", page);
        return;
    }
    if (chart->series)
        mf_page_legend(page, chart->series, chart->series_count);
    fprintf(page,
        "<figure><svg viewBox=\"0 0 %d %d\" role=\"img\" "
        "aria-label=\"",
        WIDE, HIGH);
    mf_page_text(page, chart->title);
    fputs("\">\n", page);
    ticks(page, chart, &x, true);
    ticks(page, chart, &y, false);
    if (chart->diagonal)
        fprintf(page,
            "<path class=\"axis\" stroke-dasharray=\"6 4\" d=\"M%d %dL%d "
            "%d\"/>",
            LEFT, HIGH - BOTTOM, WIDE - RIGHT, TOP);
    if (chart->lines)
        draw_lines(page, chart, point, count, &x, &y);
    draw_points(page, chart, point, count, &x, &y);
    fprintf(page, "<text x=\"%d\" y=\"%d\" text-anchor=\"middle\">",
        (LEFT + WIDE - RIGHT) / 2, HIGH - 14);
    mf_page_text(page, chart->x_label);
    fprintf(page,
        "</text><text x=\"14\" y=\"%d\" text-anchor=\"middle\" "
        "transform=\"rotate(-90 14 %d)\">",
        (TOP + HIGH - BOTTOM) / 2, (TOP + HIGH - BOTTOM) / 2);
    mf_page_text(page, chart->y_label);
    fputs("</text></svg><figcaption>", page);
    mf_page_text(page, chart->title);
    fputs("</figcaption></figure>\n", page);
}
