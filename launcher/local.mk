# SPDX-License-Identifier: BSD-3-Clause
noinst_LIBRARIES += libmoefold-launcher.a
libmoefold_launcher_a_CFLAGS = $(AM_CFLAGS) $(JANSSON_CFLAGS) \
    $(HWLOC_CFLAGS) $(SLURM_CFLAGS)
libmoefold_launcher_a_CPPFLAGS = $(AM_CPPFLAGS) -DMF_BINDIR='"$(bindir)"'
libmoefold_launcher_a_SOURCES = launcher/runner.c launcher/runner.h

libmoefold_launcher_a_SOURCES += \
    launcher/list.c launcher/list.h \
    launcher/hostlist.c launcher/hostlist.h \
    launcher/places.c launcher/places.h \
    launcher/map.c launcher/map.h launcher/map_show.c \
    launcher/quote.c launcher/quote.h \
    launcher/file.c launcher/file.h \
    launcher/process.c launcher/process.h \
    launcher/picks.c launcher/picks.h \
    launcher/job.c launcher/job.h launcher/slurm_version.c \
    launcher/script.c launcher/script.h \
    launcher/start.c launcher/start.h \
    launcher/exec.c launcher/exec.h \
    launcher/export.h launcher/export_megatron.c launcher/export_jax.c \
    launcher/submit.c launcher/submit.h
