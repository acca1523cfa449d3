# SPDX-License-Identifier: BSD-3-Clause
noinst_LIBRARIES += libmoefold-kernels.a
# Without contraction: a product and a sum must round the same way wherever a
# row stands, and on every machine of a job.
libmoefold_kernels_a_CFLAGS = $(AM_CFLAGS) $(BLAS_CFLAGS) -ffp-contract=off
libmoefold_kernels_a_SOURCES = kernels/kernels.h kernels/vector.h \
    kernels/exact.h kernels/exact.c kernels/gemm.c kernels/route.c \
    kernels/rows.c
