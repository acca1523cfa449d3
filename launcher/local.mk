# SPDX-License-Identifier: BSD-3-Clause
noinst_LIBRARIES += libmoefold-launcher.a
libmoefold_launcher_a_CFLAGS = $(AM_CFLAGS) $(JANSSON_CFLAGS) \
    $(HWLOC_CFLAGS) $(SLURM_CFLAGS)
libmoefold_launcher_a_CPPFLAGS = $(AM_CPPFLAGS) -DMF_BINDIR='"$(bindir)"'
libmoefold_launcher_a_SOURCES = launcher/runner.c launcher/runner.h
