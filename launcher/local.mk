# SPDX-License-Identifier: BSD-3-Clause
noinst_LIBRARIES += libmoefold-launcher.a
libmoefold_launcher_a_CFLAGS = $(AM_CFLAGS) $(JANSSON_CFLAGS) \
    $(HWLOC_CFLAGS) $(SLURM_CFLAGS)
libmoefold_launcher_a_SOURCES =
