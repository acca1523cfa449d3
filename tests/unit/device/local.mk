# SPDX-License-Identifier: BSD-3-Clause
if WITH_OPENCL
if WITH_MPI
unit_tests += tests/unit/device/test_device
endif
endif
tests_unit_device_test_device_CFLAGS = $(UNIT_CFLAGS) $(OPENCL_CFLAGS) \
    $(MPI_CFLAGS)
tests_unit_device_test_device_SOURCES = tests/unit/device/test_device.c \
    tests/opencl/plugin.h tests/opencl/plugin.c
tests_unit_device_test_device_LDADD = libmoefold-kernels.a $(BLAS_LIBS) \
    $(OPENCL_LIBS) $(UNIT_LIBS) $(MPI_LIBS)

clean-local:
	rm -rf pocl-cache

# The same plug-in for moefold-run, found by MOEFOLD_PLUGINS; for tests only.
if WITH_OPENCL
if WITH_MPI
check_PROGRAMS += tests/opencl/opencl.so
command_tests += tests/command/t0430-device.t
endif
endif
tests_opencl_opencl_so_CFLAGS = $(AM_CFLAGS) $(OPENCL_CFLAGS) $(MPI_CFLAGS) \
    -fPIC
tests_opencl_opencl_so_SOURCES = tests/opencl/plugin.h tests/opencl/plugin.c \
    kernels/device/device.c
tests_opencl_opencl_so_LDFLAGS = -shared
tests_opencl_opencl_so_LDADD = $(OPENCL_LIBS) $(MPI_LIBS)
