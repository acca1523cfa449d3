/* SPDX-License-Identifier: BSD-3-Clause
 * Pieces of an HTML page without scripts: text that is escaped, and charts as
 * inline SVG.
 */
#ifndef MF_REPORT_PAGE_H
#define MF_REPORT_PAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

void mf_page_begin(FILE *page, const char *title);
void mf_page_end(FILE *page);
/* A section with a heading that the navigation links to. */
void mf_page_section(FILE *page, const char *id, const char *heading);
void mf_page_section_end(FILE *page);

/* TEXT with all that HTML takes for its own escaped; control characters and
 * bytes that are no UTF-8 become '?'.
 */
void mf_page_text(FILE *page, const char *text);

/* A table that can be scrolled with the keyboard; CAPTION is for readers who
 * hear it.
 */
void mf_page_table(FILE *page, const char *caption, const char *const *head);
void mf_page_table_end(FILE *page);
void mf_page_cell(FILE *page, const char *text);
void mf_page_number(FILE *page, int digits, double value); /* NAN: a dash */

/* One value on each axis, both above 0 on axes that are logarithmic. */
struct mf_point {
    double x, y;
    size_t series; /* its colour */
    const char *title;
};

struct mf_chart {
    const char *title, *x_label, *y_label;
    bool log_x, log_y;
    bool diagonal;             /* where y is x */
    bool lines;                /* join the points of a series, in their order */
    bool dates;                /* x is seconds since 1970 */
    const char *const *series; /* names, for the legend; NULL: none */
    size_t series_count;
};

/* Points that are not finite, or not above 0 on such an axis, are left out. */
void mf_page_chart(FILE *page, const struct mf_chart *chart,
    const struct mf_point *point, size_t count);

/* A bar of parts, [0, WIDEST] wide, named PARTS[i] where VALUE[i] > 0. */
void mf_page_bar(FILE *page, const char *name, double widest,
    const char *const *parts, const double *value, size_t count);
void mf_page_legend(FILE *page, const char *const *names, size_t count);

#endif
