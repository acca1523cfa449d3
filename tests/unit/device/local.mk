# SPDX-License-Identifier: BSD-3-Clause
if WITH_OPENCL
unit_tests += tests/unit/device/test_device
endif
tests_unit_device_test_device_CFLAGS = $(UNIT_CFLAGS) $(OPENCL_CFLAGS)
tests_unit_device_test_device_SOURCES = tests/unit/device/test_device.c \
    tests/opencl/plugin.h tests/opencl/plugin.c
tests_unit_device_test_device_LDADD = libmoefold-kernels.a $(BLAS_LIBS) \
    $(OPENCL_LIBS) $(UNIT_LIBS)

clean-local:
	rm -rf pocl-cache
