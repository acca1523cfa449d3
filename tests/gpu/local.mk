# SPDX-License-Identifier: BSD-3-Clause
# Needs a GPU to mean anything; tests try it on another device.
check_PROGRAMS += tests/gpu/bench
tests_gpu_bench_CFLAGS = $(AM_CFLAGS)
tests_gpu_bench_SOURCES = tests/gpu/bench.c
tests_gpu_bench_LDADD = libmoefold-kernels.a $(BLAS_LIBS)
EXTRA_DIST += tests/gpu/run
