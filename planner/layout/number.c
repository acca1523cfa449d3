/* SPDX-License-Identifier: BSD-3-Clause
 * Numbers as people and files write them.
 */
#include "planner/layout/number.h"

#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <string.h>

/* Digits, an optional fraction, an optional exponent; read by hand because
 * strtod follows the locale of whoever embeds the library.
 */
static const char *number_scan(const char *text, double *value)
{
    bool negative = *text == '-';
    double whole = 0, scale = 1;
    const char *start;
    int exponent = 0;

    text += negative;
    for (start = text; *text >= '0' && *text <= '9'; text++)
        whole = whole * 10 + (*text - '0');
    if (text == start)
        return NULL;
    if (*text == '.') {
        for (start = ++text; *text >= '0' && *text <= '9'; text++) {
            whole = whole * 10 + (*text - '0');
            scale *= 10;
        }
        if (text == start)
            return NULL;
    }
    if (*text == 'e' || *text == 'E') {
        bool down = text[1] == '-';

        text += 1 + (text[1] == '-' || text[1] == '+');
        for (start = text; *text >= '0' && *text <= '9'; text++)
            exponent = exponent < 1000 ? exponent * 10 + (*text - '0') : 1000;
        if (text == start)
            return NULL;
        exponent = down ? -exponent : exponent;
    }
    *value = whole / scale * pow(10, exponent) * (negative ? -1 : 1);
    return text;
}

static double number_unit(const char **text)
{
    static const char letters[] = "KMGT";
    const char *found;
    double unit = 1;

    if (!**text)
        return 1;
    found = strchr(letters, **text == 'k' ? 'K' : **text);
    if (!found)
        return 1;
    for (; found >= letters; found--)
        unit *= 1000;
    (*text)++;
    return unit;
}

int mf_number_parse(const char *text, const char *what, int64_t least,
    int64_t most, int64_t *value, struct mf_error *err)
{
    double number;
    const char *end = number_scan(text, &number);

    if (end)
        number *= number_unit(&end);
    if (!end || *end || number != floor(number))
        return mf_error_set(err, MF_INVALID,
            "%s is '%.64s', not a whole number such as 8 or 4k", what, text);
    if (!(fabs(number) <= 9007199254740992.0) || (int64_t)number < least ||
        (int64_t)number > most)
        return mf_error_set(err, MF_INVALID,
            "%s is %.64s, outside %" PRId64 " to %" PRId64, what, text, least,
            most);
    *value = (int64_t)number;
    return 0;
}

int mf_decimal_parse(const char *text, const char *what, double least,
    double most, double *value, struct mf_error *err)
{
    double number;
    const char *end = number_scan(text, &number);

    if (end)
        number *= number_unit(&end);
    if (!end || *end)
        return mf_error_set(
            err, MF_INVALID, "%s is '%.64s', not a number", what, text);
    if (!(number >= least && number <= most))
        return mf_error_set(err, MF_INVALID, "%s is %.64s, outside %g to %g",
            what, text, least, most);
    *value = number;
    return 0;
}

int64_t mf_product(int n, const int64_t *factor)
{
    int64_t product = 1;

    for (int i = 0; i < n; i++)
        if (factor[i] < 1 ||
            __builtin_mul_overflow(product, factor[i], &product))
            return -1;
    return product;
}
