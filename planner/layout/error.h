/* SPDX-License-Identifier: BSD-3-Clause
 * Errors as values: an exit status and one line that names file, place, mend.
 */
#ifndef MF_ERROR_H
#define MF_ERROR_H

enum mf_status {
    MF_OK = 0,
    MF_FAILED = 1,  /* it failed: Slurm unreachable, a rank died, disk full */
    MF_INVALID = 2, /* wrong usage, unreadable input, a layout breaks a rule */
    MF_NO = 3,      /* the answer is no: nothing fits, a difference found */
};

struct mf_error {
    enum mf_status status;
    char text[1024];
};

#define MF_PRINTF(fmt, args) __attribute__((format(printf, fmt, args)))

/* Fill ERR (may be NULL) and return -1, so that callers can
 * `return mf_error_set(...)`. A text that is too long is cut. Control
 * characters are replaced by '?', so that the message stays one line.
 */
int mf_error_set(struct mf_error *err, enum mf_status status, const char *fmt,
    ...) MF_PRINTF(3, 4);

/* Put context and ": " in front of the text of ERR; returns -1. */
int mf_error_prefix(struct mf_error *err, const char *fmt, ...) MF_PRINTF(2, 3);

#endif
