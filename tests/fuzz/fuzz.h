/* SPDX-License-Identifier: BSD-3-Clause
 * What a fuzz target is.
 */
#ifndef MF_FUZZ_H
#define MF_FUZZ_H

#include <stddef.h>
#include <stdint.h>

/* Read DATA with the reader under test; returns 0. It aborts when an answer
 * breaks a rule, crashes when the reader does.
 */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#endif
