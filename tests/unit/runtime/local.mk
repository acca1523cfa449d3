# SPDX-License-Identifier: BSD-3-Clause
unit_tests += tests/unit/runtime/test_reference
tests_unit_runtime_test_reference_CFLAGS = $(UNIT_CFLAGS)
tests_unit_runtime_test_reference_SOURCES = \
    tests/unit/runtime/test_reference.c \
    runtime/reference.c runtime/reference.h
tests_unit_runtime_test_reference_LDADD = libmoefold-layout.a $(UNIT_LIBS)
