/* SPDX-License-Identifier: BSD-3-Clause
 * Numbers as people and files write them, read the same in every locale.
 */
#ifndef MF_NUMBER_H
#define MF_NUMBER_H

#include <stdint.h>

#include "planner/layout/error.h"

/* TEXT such as 128, 4k, 1.5M, 1T (powers of 1000) as a whole number in
 * [LEAST, MOST]; WHAT names it in the message. No blanks, no sign but '-'.
 */
int mf_number_parse(const char *text, const char *what, int64_t least,
    int64_t most, int64_t *value, struct mf_error *err);

/* TEXT as a finite decimal number in [LEAST, MOST]. */
int mf_decimal_parse(const char *text, const char *what, double least,
    double most, double *value, struct mf_error *err);

/* a * b * ... for N factors; -1 when it overflows 64 bits or a factor < 1. */
int64_t mf_product(int n, const int64_t *factor);

#endif
