/* SPDX-License-Identifier: BSD-3-Clause
 * What machine this is, for the record of a run.
 */
#ifndef MFR_MACHINE_H
#define MFR_MACHINE_H

#include <stddef.h>

#include "runtime/comm.h"

/* Bytes that can still be had on this node; NAN: not known. */
double mfr_machine_memory(void);

/* "AMD EPYC 7763 ..."; empty when not known. */
void mfr_machine_cpu(char *text, size_t size);

/* MPI and BLAS with their versions. */
void mfr_machine_libraries(char *text, size_t size);

void mfr_machine_user(char *text, size_t size);

/* Names of the nodes of all ranks in order of first appearance, joined by
 * commas, into TEXT, and how many, on rank 0. A list that is too long ends
 * with "..."; and the name of each rank's node in *NAMES, for the function
 * below and to be freed. Collective.
 */
int mfr_machine_nodes(MPI_Comm world, char *text, size_t size, int64_t *count,
    char **names, struct mf_error *err);
const char *mfr_machine_node(const char *names, int64_t rank);

#endif
