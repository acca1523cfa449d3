# SPDX-License-Identifier: BSD-3-Clause
if WITH_MPI
noinst_LIBRARIES += libmoefold-runtime.a
endif
libmoefold_runtime_a_CFLAGS = $(AM_CFLAGS) $(MPI_CFLAGS) $(JANSSON_CFLAGS)
libmoefold_runtime_a_SOURCES = \
    runtime/clock.h runtime/shape.h \
    runtime/comm.h runtime/comm.c runtime/sum.c \
    runtime/data.h runtime/data.c \
    runtime/dispatch.h runtime/dispatch.c \
    runtime/experts.h runtime/experts.c \
    runtime/layer.h runtime/layer.c runtime/layer_make.c \
    runtime/layer_state.h \
    runtime/route.h runtime/route.c \
    runtime/shard.h runtime/shard.c \
    runtime/splits.h runtime/splits.c \
    runtime/reference.h runtime/reference.c \
    runtime/verify.h runtime/verify.c \
    runtime/verify_case.h runtime/verify_case.c \
    runtime/verify_check.h runtime/verify_check.c \
    runtime/verify_expected.h runtime/verify_expected.c \
    runtime/verify_folded.h runtime/verify_folded.c \
    runtime/walk.h runtime/walk.c
