/* SPDX-License-Identifier: BSD-3-Clause
 * Standard streams, for the start and the end of a program.
 */
#ifndef MF_STREAMS_H
#define MF_STREAMS_H

/* A standard stream that is closed would be the next file that is opened, and
 * what is printed would land in it: a database, or a plan. Open such ones so
 * that they refuse; -1 when that fails.
 */
int mf_streams_open(void);

/* Flush standard output; -1 when anything printed on it was lost. */
int mf_streams_flush(void);

#endif
