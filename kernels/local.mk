# SPDX-License-Identifier: BSD-3-Clause
noinst_LIBRARIES += libmoefold-kernels.a
# Without contraction: a product and a sum must round the same way wherever a
# row stands, and on every machine of a job.
libmoefold_kernels_a_CFLAGS = $(AM_CFLAGS) $(BLAS_CFLAGS) -ffp-contract=off
libmoefold_kernels_a_SOURCES = kernels/kernels.h kernels/vector.h \
    kernels/activation.c kernels/exact.h kernels/exact.c kernels/gemm.c kernels/route.c \
    kernels/rows.c

# Any device: the kernels' text, and how a plug-in is asked for them.
libmoefold_kernels_a_SOURCES += kernels/device/api.h kernels/device/device.h \
    kernels/device/device.c kernels/device/list.h
device_kernels = kernels/device/kernels.h kernels/device/portable.h \
    kernels/device/place.h kernels/device/product.h kernels/device/route.h \
    kernels/device/rows.h kernels/device/activation.h
EXTRA_DIST += $(device_kernels) kernels/cuda/launch.cu

# The CUDA plug-in, which moefold-run loads where it is asked for.
plugindir = $(libdir)/moefold
plugin_PROGRAMS =
if WITH_CUDA
plugin_PROGRAMS += kernels/cuda/cuda.so
endif
kernels_cuda_cuda_so_CFLAGS = $(AM_CFLAGS) $(NCCL_CFLAGS) $(CUDA_CFLAGS) \
    -fPIC -fvisibility=hidden
kernels_cuda_cuda_so_SOURCES = kernels/cuda/plugin.c kernels/cuda/launch.h \
    kernels/cuda/multiply.h kernels/cuda/multiply.c
if WITH_NCCL
kernels_cuda_cuda_so_SOURCES += kernels/cuda/nccl.h kernels/cuda/nccl.c
endif
kernels_cuda_cuda_so_LDFLAGS = -shared
kernels_cuda_cuda_so_LDADD = kernels/cuda/launch.o $(NCCL_LIBS) $(CUDA_LIBS)

# --fmad=false: products and sums are rounded one by one, as on the CPU.
kernels/cuda/launch.o: kernels/cuda/launch.cu kernels/cuda/launch.h \
    kernels/device/api.h kernels/device/list.h $(device_kernels) Makefile
	@$(MKDIR_P) kernels/cuda
	$(AM_V_GEN)$(NVCC) $(NVCC_FLAGS) -O3 --fmad=false \
	    -Werror all-warnings -Xcompiler -fPIC,-fvisibility=hidden \
	    -Xcompiler -fno-exceptions,-fno-threadsafe-statics \
	    -I$(top_srcdir) -c -o $@ $(srcdir)/kernels/cuda/launch.cu
CLEANFILES += kernels/cuda/launch.o
