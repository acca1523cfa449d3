# SPDX-License-Identifier: BSD-3-Clause

# MF_C17: the language level, said to the compiler once.
AC_DEFUN([MF_C17], [
  mf_save_cflags=$CFLAGS
  CFLAGS="$CFLAGS -std=gnu17"
  AC_MSG_CHECKING([whether $CC takes -std=gnu17])
  AC_COMPILE_IFELSE([AC_LANG_PROGRAM([], [])],
    [AC_MSG_RESULT([yes]); MF_STD=-std=gnu17],
    [AC_MSG_RESULT([no]); AC_MSG_ERROR([moefold needs a C17 compiler])])
  CFLAGS=$mf_save_cflags
  AC_SUBST([MF_STD])
])

# MF_WARNINGS: warnings for our own sources; -Werror comes from CFLAGS in CI.
AC_DEFUN([MF_WARNINGS], [
  MF_WARN="-Wall -Wextra -Wpedantic -Wshadow -Wstrict-prototypes"
  MF_WARN="$MF_WARN -Wmissing-prototypes -Wvla -Wformat=2"
  AC_SUBST([MF_WARN])
])

# MF_ARG_HWLOC: how many cores, caches and how much memory this machine has.
AC_DEFUN([MF_ARG_HWLOC], [
  AC_ARG_WITH([hwloc], [AS_HELP_STRING([--without-hwloc],
    [build without hwloc (the local machine is then read from sysconf)])],
    [], [with_hwloc=check])
  mf_have_hwloc="no (--without-hwloc)"
  AS_IF([test "x$with_hwloc" != xno], [
    PKG_CHECK_MODULES([HWLOC], [hwloc >= 2.1], [
      mf_have_hwloc=yes
      AC_DEFINE([HAVE_HWLOC], [1], [hwloc is here])], [
      mf_have_hwloc="no (not found; Debian: libhwloc-dev)"
      AS_IF([test "x$with_hwloc" = xyes], [AC_MSG_ERROR([hwloc not found])])])
  ])
  AM_CONDITIONAL([WITH_HWLOC], [test "x$mf_have_hwloc" = xyes])
])

# MF_ARG_LIBXML2: descriptions of a node in XML (hwloc's and NCCL's).
AC_DEFUN([MF_ARG_LIBXML2], [
  AC_ARG_WITH([libxml2], [AS_HELP_STRING([--without-libxml2],
    [build without libxml2 (XML descriptions of a node are then refused)])],
    [], [with_libxml2=check])
  mf_have_libxml2="no (--without-libxml2)"
  AS_IF([test "x$with_libxml2" != xno], [
    PKG_CHECK_MODULES([LIBXML2], [libxml-2.0 >= 2.9], [
      mf_have_libxml2=yes
      AC_DEFINE([HAVE_LIBXML2], [1], [libxml2 is here])], [
      mf_have_libxml2="no (not found; Debian: libxml2-dev)"
      AS_IF([test "x$with_libxml2" = xyes],
        [AC_MSG_ERROR([libxml2 not found])])])
  ])
])

# MF_ARG_SLURM: libslurm has no pkg-config file. The moefold binary linked
# with it is distributed under GPL-2 (see README).
AC_DEFUN([MF_ARG_SLURM], [
  AC_ARG_WITH([slurm], [AS_HELP_STRING([--with-slurm@<:@=DIR@:>@],
    [libslurm, for clusters and job submission])], [], [with_slurm=check])
  mf_have_slurm="no (--without-slurm)"
  SLURM_CFLAGS= SLURM_LIBS=
  AS_IF([test "x$with_slurm" != xno], [
    AS_CASE([$with_slurm], [yes|check], [],
      [SLURM_CFLAGS="-I$with_slurm/include"
       SLURM_LIBS="-L$with_slurm/lib"])
    mf_save_cppflags=$CPPFLAGS mf_save_libs=$LIBS
    CPPFLAGS="$CPPFLAGS $SLURM_CFLAGS"
    LIBS="$SLURM_LIBS -lslurm $LIBS"
    AC_MSG_CHECKING([for libslurm])
    AC_LINK_IFELSE([AC_LANG_PROGRAM([[#include <slurm/slurm.h>]],
      [[slurm_init(NULL)]])], [
      AC_MSG_RESULT([yes])
      mf_have_slurm=yes
      SLURM_LIBS="$SLURM_LIBS -lslurm"
      AC_DEFINE([HAVE_SLURM], [1], [libslurm is here])], [
      AC_MSG_RESULT([no])
      mf_have_slurm="no (not found; Debian: libslurm-dev)"
      AS_IF([test "x$with_slurm" != xcheck],
        [AC_MSG_ERROR([libslurm not found])])])
    CPPFLAGS=$mf_save_cppflags LIBS=$mf_save_libs
  ])
  AC_SUBST([SLURM_CFLAGS])
  AC_SUBST([SLURM_LIBS])
  AM_CONDITIONAL([WITH_SLURM], [test "x$mf_have_slurm" = xyes])
])

# MF_ARG_MPI: moefold-run is built only where MPI is. The flags are asked of
# the compiler wrapper, so that one compiler serves the whole build.
AC_DEFUN([MF_ARG_MPI], [
  AC_ARG_WITH([mpi], [AS_HELP_STRING([--without-mpi],
    [do not build moefold-run])], [], [with_mpi=check])
  mf_have_mpi="no (--without-mpi)"
  AS_IF([test "x$with_mpi" != xno], [
    PKG_CHECK_MODULES([MPI], [ompi-c], [
      mf_have_mpi=yes
      AC_DEFINE([HAVE_MPI], [1], [Open MPI is here])], [
      mf_have_mpi="no (not found; Debian: libopenmpi-dev openmpi-bin)"
      AS_IF([test "x$with_mpi" = xyes], [AC_MSG_ERROR([Open MPI not found])])])
  ])
  AC_PATH_PROG([MPIRUN], [mpirun], [])
  AM_CONDITIONAL([WITH_MPI], [test "x$mf_have_mpi" = xyes])
])

# MF_ARG_BLAS: the experts' product; without it a plain loop is used.
AC_DEFUN([MF_ARG_BLAS], [
  AC_ARG_WITH([blas], [AS_HELP_STRING([--without-blas],
    [use the built-in matrix product])], [], [with_blas=check])
  mf_have_blas="no (--without-blas)"
  AS_IF([test "x$with_blas" != xno], [
    PKG_CHECK_MODULES([BLAS], [openblas], [
      mf_have_blas=yes
      AC_DEFINE([HAVE_BLAS], [1], [OpenBLAS is here])], [
      mf_have_blas="no (not found; Debian: libopenblas-dev)"
      AS_IF([test "x$with_blas" = xyes], [AC_MSG_ERROR([OpenBLAS not found])])])
  ])
  AM_CONDITIONAL([WITH_BLAS], [test "x$mf_have_blas" = xyes])
])

# MF_ARG_YAML: arguments of Megatron-LM in YAML.
AC_DEFUN([MF_ARG_YAML], [
  AC_ARG_WITH([yaml], [AS_HELP_STRING([--without-yaml],
    [read no Megatron arguments in YAML])], [], [with_yaml=check])
  mf_have_yaml="no (--without-yaml)"
  AS_IF([test "x$with_yaml" != xno], [
    PKG_CHECK_MODULES([YAML], [yaml-0.1], [
      mf_have_yaml=yes
      AC_DEFINE([HAVE_YAML], [1], [libyaml is here])], [
      mf_have_yaml="no (not found; Debian: libyaml-dev)"
      AS_IF([test "x$with_yaml" = xyes], [AC_MSG_ERROR([libyaml not found])])])
  ])
  AM_CONDITIONAL([WITH_YAML], [test "x$mf_have_yaml" = xyes])
])

# MF_ARG_CMOCKA: unit tests.
AC_DEFUN([MF_ARG_CMOCKA], [
  PKG_CHECK_MODULES([CMOCKA], [cmocka], [mf_have_cmocka=yes],
    [mf_have_cmocka="no (unit tests are left out; Debian: libcmocka-dev)"])
  AM_CONDITIONAL([WITH_CMOCKA], [test "x$mf_have_cmocka" = xyes])
])

# MF_ARG_CUDA: the GPU plug-in of moefold-run; needs nvcc and cuBLAS.
# --with-cuda-arch lists compute capabilities; the last is also kept as PTX,
# for GPUs that come later.
AC_DEFUN([MF_ARG_CUDA], [
  AC_ARG_WITH([cuda], [AS_HELP_STRING([--with-cuda@<:@=DIR@:>@],
    [CUDA toolkit, for the GPU plug-in (looked for beside nvcc)])],
    [], [with_cuda=check])
  AC_ARG_WITH([cuda-arch], [AS_HELP_STRING([--with-cuda-arch=LIST],
    [GPU architectures, such as 80,90,100 (those)])], [],
    [with_cuda_arch=80,90,100])
  mf_have_cuda="no (--without-cuda)"
  CUDA_CFLAGS= CUDA_LIBS= NVCC= NVCC_FLAGS=
  AS_IF([test "x$with_cuda" != xno], [
    mf_have_cuda="no (nvcc with cuBLAS not found)"
    AS_CASE([$with_cuda], [yes|check], [mf_cuda_path=$PATH],
      [mf_cuda_path=$with_cuda/bin])
    AC_PATH_PROG([NVCC], [nvcc], [], [$mf_cuda_path:/usr/local/cuda/bin])
    AS_IF([test -n "$NVCC"], [
      mf_cuda_dir=$(dirname "$(dirname "$(readlink -f "$NVCC")")")
      CUDA_CFLAGS="-isystem $mf_cuda_dir/include"
      CUDA_LIBS="-L$mf_cuda_dir/lib64 -L$mf_cuda_dir/lib"
      CUDA_LIBS="$CUDA_LIBS -lcublas -lcudart_static -ldl -lrt -lpthread"
      mf_save_cppflags=$CPPFLAGS mf_save_libs=$LIBS
      CPPFLAGS="$CPPFLAGS $CUDA_CFLAGS"
      LIBS="$CUDA_LIBS $LIBS"
      AC_MSG_CHECKING([for cuBLAS and the CUDA runtime])
      AC_LINK_IFELSE([AC_LANG_PROGRAM([[
        #include <cublas_v2.h>
        #include <cuda_runtime_api.h>
        #include <nvtx3/nvToolsExt.h>]],
        [[int n; cublasHandle_t h;
          return cudaGetDeviceCount(&n) + cublasCreate(&h)]])],
        [AC_MSG_RESULT([yes]); mf_have_cuda=yes], [AC_MSG_RESULT([no])])
      CPPFLAGS=$mf_save_cppflags LIBS=$mf_save_libs])
    AS_IF([test "x$mf_have_cuda" = xyes], [
      mf_arch_list= mf_arch_last=
      for mf_arch in $(echo "$with_cuda_arch" | tr ',' ' '); do
        AC_MSG_CHECKING([whether nvcc builds for sm_$mf_arch])
        echo '__global__ void f(void) {}' >conftest.cu
        AS_IF([$NVCC -arch=sm_$mf_arch -c -o conftest.o conftest.cu \
          >&AS_MESSAGE_LOG_FD 2>&1], [
          AC_MSG_RESULT([yes])
          mf_flag="-gencode arch=compute_$mf_arch,code=sm_$mf_arch"
          NVCC_FLAGS="$NVCC_FLAGS $mf_flag"
          mf_arch_list="$mf_arch_list sm_$mf_arch" mf_arch_last=$mf_arch],
          [AC_MSG_RESULT([no])])
        rm -f conftest.cu conftest.o
      done
      AS_IF([test -z "$mf_arch_last"], [
        mf_have_cuda="no (nvcc builds none of $with_cuda_arch)"], [
        mf_flag="arch=compute_$mf_arch_last,code=compute_$mf_arch_last"
        NVCC_FLAGS="$NVCC_FLAGS -gencode $mf_flag"
        mf_have_cuda="yes (${mf_arch_list# }, PTX)"
        AC_DEFINE([HAVE_CUDA], [1], [the GPU plug-in is built])])])
    AS_IF([test "x$with_cuda" != xcheck], [
      AS_CASE([$mf_have_cuda], [yes*], [],
        [AC_MSG_ERROR([CUDA: $mf_have_cuda])])])])
  AC_SUBST([CUDA_CFLAGS])
  AC_SUBST([CUDA_LIBS])
  AC_SUBST([NVCC_FLAGS])
  AM_CONDITIONAL([WITH_CUDA],
    [AS_CASE([$mf_have_cuda], [yes*], [:], [false])])
])

# MF_ARG_NCCL: rows from GPU to GPU; part of the CUDA plug-in. 2.28 is the
# first with an equal-count all-to-all call. After MF_ARG_CUDA.
AC_DEFUN([MF_ARG_NCCL], [
  AC_ARG_WITH([nccl], [AS_HELP_STRING([--with-nccl@<:@=DIR@:>@],
    [NCCL 2.28 or later, for --comm nccl])], [], [with_nccl=check])
  mf_have_nccl="no (--without-nccl)" NCCL_CFLAGS= NCCL_LIBS=
  AS_IF([test "x$with_nccl" != xno], [
    mf_have_nccl="no (NCCL 2.28 or later not found, or no CUDA)"
    AS_CASE([$with_nccl], [yes|check], [],
      [NCCL_CFLAGS="-isystem $with_nccl/include"
       NCCL_LIBS="-L$with_nccl/lib"])
    AS_CASE([$mf_have_cuda], [yes*], [
      mf_save_cppflags=$CPPFLAGS mf_save_libs=$LIBS
      CPPFLAGS="$CPPFLAGS $NCCL_CFLAGS $CUDA_CFLAGS"
      LIBS="$NCCL_LIBS -lnccl $CUDA_LIBS $LIBS"
      AC_MSG_CHECKING([for NCCL])
      AC_LINK_IFELSE([AC_LANG_PROGRAM([[
        #include <nccl.h>
        #if NCCL_VERSION_CODE < NCCL_VERSION(2, 28, 0)
        #error too old
        #endif]],
        [[return ncclAlltoAll(0, 0, 0, ncclFloat32, 0, 0)]])], [
        AC_MSG_RESULT([yes])
        mf_have_nccl=yes
        NCCL_LIBS="$NCCL_LIBS -lnccl"
        AC_DEFINE([HAVE_NCCL], [1], [NCCL is here])], [AC_MSG_RESULT([no])])
      CPPFLAGS=$mf_save_cppflags LIBS=$mf_save_libs])
    AS_IF([test "x$with_nccl" != xcheck && test "x$mf_have_nccl" != xyes],
      [AC_MSG_ERROR([NCCL: $mf_have_nccl])])])
  AC_SUBST([NCCL_CFLAGS])
  AC_SUBST([NCCL_LIBS])
  AM_CONDITIONAL([WITH_NCCL], [test "x$mf_have_nccl" = xyes])
])

# MF_ARG_OPENCL: the tests run the device kernels through it.
AC_DEFUN([MF_ARG_OPENCL], [
  PKG_CHECK_MODULES([OPENCL], [OpenCL], [mf_have_opencl=yes], [
    mf_have_opencl="no (device kernels are not tested; Debian:"
    mf_have_opencl="$mf_have_opencl ocl-icd-opencl-dev pocl-opencl-icd)"])
  AM_CONDITIONAL([WITH_OPENCL], [test "x$mf_have_opencl" = xyes])
])
