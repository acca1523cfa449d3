# SPDX-License-Identifier: BSD-3-Clause
if WITH_MPI
noinst_LIBRARIES += libmoefold-runtime.a
bin_PROGRAMS += moefold-run
endif
libmoefold_runtime_a_CFLAGS = $(AM_CFLAGS) $(MPI_CFLAGS) $(JANSSON_CFLAGS) \
    -DMOEFOLD_PLUGIN_DIR='"$(plugindir)"'
libmoefold_runtime_a_SOURCES = \
    runtime/clock.h runtime/shape.h \
    runtime/guard.h runtime/guard_state.h runtime/guard.c \
    runtime/guard_talk.c runtime/place.c \
    runtime/collective.h runtime/collective.c \
    runtime/comm.h runtime/comm.c runtime/sum.c \
    runtime/data.h runtime/data.c \
    runtime/device.h runtime/device.c \
    runtime/comm_device.h runtime/comm_device.c \
    runtime/dispatch_device.h runtime/dispatch_device.c \
    runtime/trace.h runtime/trace.c \
    runtime/watch.h runtime/watch.c \
    runtime/dispatch.h runtime/dispatch.c \
    runtime/copies.h runtime/copies.c runtime/layer_copies.c \
    runtime/shared.h runtime/shared.c runtime/layer_shared.c \
    runtime/experts.h runtime/experts.c \
    runtime/tensors.h runtime/tensors.c \
    runtime/shared_experts.h runtime/shared_experts.c \
    runtime/layer_poison.c \
    runtime/layer.h runtime/layer.c runtime/layer_make.c \
    runtime/layer_state.h runtime/layer_device.h runtime/layer_device.c \
    runtime/route.h runtime/route.c \
    runtime/machine.h runtime/machine.c \
    runtime/safetensors.h runtime/safetensors.c \
    runtime/checkpoint.h runtime/checkpoint.c \
    runtime/options.h runtime/options.c \
    runtime/preflight.h runtime/preflight.c \
    runtime/probe.h runtime/probe.c \
    runtime/setup.h runtime/setup.c \
    runtime/shard.h runtime/shard.c \
    runtime/splits.h runtime/splits.c \
    runtime/stats.h runtime/stats.c \
    runtime/timing.h runtime/timing.c \
    runtime/reference.h runtime/reference.c \
    runtime/step.h runtime/step.c runtime/verify_step.c \
    runtime/pipeline.h runtime/pipeline.c runtime/verify_pipeline.c \
    runtime/gate.h runtime/gate.c \
    runtime/verify.h runtime/verify.c \
    runtime/verify_case.h runtime/verify_case.c \
    runtime/verify_check.h runtime/verify_check.c \
    runtime/verify_compare.h runtime/verify_compare.c \
    runtime/verify_expected.h runtime/verify_expected.c \
    runtime/verify_folded.h runtime/verify_folded.c \
    runtime/walk.h runtime/walk.c

# No libslurm: it is for compute nodes. CUDA comes as a plug-in.
moefold_run_CFLAGS = $(AM_CFLAGS) $(MPI_CFLAGS) $(JANSSON_CFLAGS)
moefold_run_SOURCES = runtime/main.c \
    runtime/record.h runtime/record.c \
    runtime/report.h runtime/report.c \
    runtime/run_pipeline.h runtime/run_pipeline.c \
    runtime/run.h runtime/run.c \
    runtime/run_state.h runtime/run_record.c
moefold_run_LDADD = libmoefold-runtime.a libmoefold-kernels.a \
    libmoefold-layout.a libmoefold-db.a \
    $(MPI_LIBS) $(BLAS_LIBS) $(JANSSON_LIBS) $(SQLITE_LIBS)
