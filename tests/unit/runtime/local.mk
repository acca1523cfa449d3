# SPDX-License-Identifier: BSD-3-Clause
unit_tests += tests/unit/runtime/test_reference
tests_unit_runtime_test_reference_CFLAGS = $(UNIT_CFLAGS)
tests_unit_runtime_test_reference_SOURCES = \
    tests/unit/runtime/test_reference.c \
    runtime/reference.c runtime/reference.h
tests_unit_runtime_test_reference_LDADD = libmoefold-layout.a $(UNIT_LIBS)

if WITH_MPI
unit_tests += tests/unit/runtime/test_verify_check \
    tests/unit/runtime/test_walk
endif
tests_unit_runtime_test_verify_check_CFLAGS = $(UNIT_CFLAGS) $(MPI_CFLAGS) \
    $(JANSSON_CFLAGS)
tests_unit_runtime_test_verify_check_SOURCES = \
    tests/unit/runtime/test_verify_check.c
tests_unit_runtime_test_verify_check_LDADD = libmoefold-runtime.a \
    libmoefold-layout.a $(UNIT_LIBS) $(JANSSON_LIBS) $(MPI_LIBS)

tests_unit_runtime_test_walk_CFLAGS = $(UNIT_CFLAGS) $(MPI_CFLAGS) \
    $(JANSSON_CFLAGS)
tests_unit_runtime_test_walk_SOURCES = tests/unit/runtime/test_walk.c
tests_unit_runtime_test_walk_LDADD = libmoefold-runtime.a \
    libmoefold-kernels.a libmoefold-layout.a $(UNIT_LIBS) $(JANSSON_LIBS) \
    $(BLAS_LIBS) $(MPI_LIBS)

command_tests += tests/command/t0400-run.t tests/command/t0410-verify-all.t \
    tests/command/t0411-verify-fault.t \
    tests/command/t0412-verify-plan.t \
    tests/command/t0413-watchdog.t

unit_tests += tests/unit/runtime/test_data
tests_unit_runtime_test_data_CFLAGS = $(UNIT_CFLAGS)
tests_unit_runtime_test_data_SOURCES = tests/unit/runtime/test_data.c \
    runtime/data.c runtime/data.h runtime/shard.c runtime/shard.h
tests_unit_runtime_test_data_LDADD = libmoefold-layout.a $(UNIT_LIBS)

if WITH_MPI
unit_tests += tests/unit/runtime/test_options
endif
tests_unit_runtime_test_options_CFLAGS = $(UNIT_CFLAGS) $(MPI_CFLAGS)
tests_unit_runtime_test_options_SOURCES = tests/unit/runtime/test_options.c
tests_unit_runtime_test_options_LDADD = libmoefold-runtime.a \
    libmoefold-kernels.a libmoefold-layout.a $(UNIT_LIBS) $(JANSSON_LIBS) \
    $(BLAS_LIBS) $(MPI_LIBS)

# Not a test by itself: t0413-watchdog.t starts it under mpirun.
if WITH_MPI
if WITH_CMOCKA
check_PROGRAMS += tests/unit/runtime/guard_cases
endif
endif
tests_unit_runtime_guard_cases_CFLAGS = $(AM_CFLAGS) $(MPI_CFLAGS)
tests_unit_runtime_guard_cases_SOURCES = tests/unit/runtime/guard_cases.c
tests_unit_runtime_guard_cases_LDADD = libmoefold-runtime.a \
    libmoefold-layout.a $(JANSSON_LIBS) $(MPI_LIBS)
