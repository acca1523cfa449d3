# SPDX-License-Identifier: BSD-3-Clause
unit_tests += tests/unit/kernels/test_gemm tests/unit/kernels/test_route \
    tests/unit/kernels/test_rows
tests_unit_kernels_test_gemm_CFLAGS = $(UNIT_CFLAGS)
tests_unit_kernels_test_gemm_LDADD = libmoefold-kernels.a $(BLAS_LIBS) \
    $(UNIT_LIBS)
tests_unit_kernels_test_route_CFLAGS = $(UNIT_CFLAGS)
tests_unit_kernels_test_route_LDADD = libmoefold-kernels.a $(BLAS_LIBS) \
    $(UNIT_LIBS)
tests_unit_kernels_test_rows_CFLAGS = $(UNIT_CFLAGS) -ffp-contract=off
tests_unit_kernels_test_rows_LDADD = libmoefold-kernels.a $(BLAS_LIBS) \
    $(UNIT_LIBS)
