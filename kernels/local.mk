# SPDX-License-Identifier: BSD-3-Clause
noinst_LIBRARIES += libmoefold-kernels.a
libmoefold_kernels_a_CFLAGS = $(AM_CFLAGS) $(BLAS_CFLAGS)
libmoefold_kernels_a_SOURCES = kernels/kernels.h
