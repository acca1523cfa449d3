# SPDX-License-Identifier: BSD-3-Clause
# Ratios of speed, measured side by side in one run; no test asserts them.
if WITH_MPI
EXTRA_PROGRAMS += tests/bench/moves tests/bench/layer
endif
tests_bench_moves_CFLAGS = $(AM_CFLAGS) $(MPI_CFLAGS) $(JANSSON_CFLAGS)
tests_bench_moves_SOURCES = tests/bench/moves.c
tests_bench_moves_LDADD = libmoefold-runtime.a libmoefold-kernels.a \
    libmoefold-layout.a $(JANSSON_LIBS) $(BLAS_LIBS) $(MPI_LIBS)

tests_bench_layer_CFLAGS = $(AM_CFLAGS) $(MPI_CFLAGS) $(JANSSON_CFLAGS)
tests_bench_layer_SOURCES = tests/bench/layer.c
tests_bench_layer_LDADD = $(tests_bench_moves_LDADD) -lm

bench: bench-moves bench-layer
bench-layer: tests/bench/layer
	mpirun -n 2 tests/bench/layer
bench-moves: tests/bench/moves
	mpirun -n 2 tests/bench/moves
.PHONY: bench-moves bench-layer
