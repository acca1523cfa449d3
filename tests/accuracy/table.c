/* SPDX-License-Identifier: BSD-3-Clause
 * Reads CSV files with quoted cells.
 */
#include "tests/accuracy/table.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void table_fail(const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    fputs("accuracy: ", stderr);
    vfprintf(stderr, fmt, args);
    fputc('\n', stderr);
    va_end(args);
    exit(EXIT_FAILURE);
}

static char *file_read(const char *name)
{
    FILE *file = fopen(name, "r");
    char *text;
    long size;

    if (!file || fseek(file, 0, SEEK_END) || (size = ftell(file)) < 0 ||
        fseek(file, 0, SEEK_SET))
        table_fail("%s cannot be read", name);
    text = malloc((size_t)size + 1);
    if (!text || fread(text, 1, (size_t)size, file) != (size_t)size ||
        fclose(file))
        table_fail("%s cannot be read", name);
    text[size] = 0;
    return text;
}

/* Take one cell at *AT in place; true when it ended its line. */
static bool cell_take(char **at, char **cell)
{
    char *from = *at, *to = *at, end;
    bool quoted = *from == '"';

    *cell = to;
    if (quoted)
        from++;
    while (*from) {
        if (quoted && from[0] == '"' && from[1] == '"') {
            from++;
        } else if (quoted && *from == '"') {
            from++;
            quoted = false;
            continue;
        } else if (!quoted && (*from == ',' || *from == '\n')) {
            break;
        }
        *to++ = *from++;
    }
    end = *from;
    if (to > *cell && !quoted && to[-1] == '\r')
        to--;
    *at = end ? from + 1 : from;
    *to = 0;
    return end != ',';
}

void table_read(struct table *table, const char *folder, const char *file)
{
    size_t cells = 0, room = 0, lines = 0;
    char name[1024], *at;

    *table = (struct table){0};
    snprintf(name, sizeof name, "%s/%s", folder, file);
    table->text = file_read(name);
    for (at = table->text; *at;) {
        bool last;

        do {
            if (cells == room) {
                room = room ? 2 * room : 1024;
                table->cell = realloc(table->cell, room * sizeof *table->cell);
                if (!table->cell)
                    table_fail("out of memory");
            }
            last = cell_take(&at, &table->cell[cells++]);
        } while (!last);
        if (!lines++)
            table->columns = cells;
        if (cells != lines * table->columns)
            table_fail(
                "%s: line %zu has not %zu cells", name, lines, table->columns);
    }
    table->head = table->cell;
    table->rows = lines ? lines - 1 : 0;
}

const char *table_at(const struct table *table, size_t row, const char *head)
{
    for (size_t i = 0; i < table->columns; i++)
        if (!strcmp(table->head[i], head))
            return table->cell[(row + 1) * table->columns + i];
    return "";
}

double table_number(const struct table *table, size_t row, const char *head)
{
    const char *text = table_at(table, row, head);
    char *end;
    double value = strtod(text, &end);

    return end == text || *end ? NAN : value;
}

void table_free(struct table *table)
{
    free(table->text);
    free(table->cell);
}
