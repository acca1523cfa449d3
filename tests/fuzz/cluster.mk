# SPDX-License-Identifier: BSD-3-Clause
# Readers of clusters: each target is a program that mutates files (drive.c) for
# `make check`, and libFuzzer's by `make fuzz-cluster`, which needs clang.
fuzz_programs = tests/fuzz/fuzz_conf tests/fuzz/fuzz_smi tests/fuzz/fuzz_xml \
    tests/fuzz/fuzz_hostlist tests/fuzz/fuzz_cluster_json
check_PROGRAMS += $(fuzz_programs)
command_tests += tests/command/t0820-fuzz-cluster.t

fuzz_drive = tests/fuzz/drive.c tests/fuzz/fuzz.h tests/fuzz/fuzz_cluster.h
fuzz_cflags = $(AM_CFLAGS) $(JANSSON_CFLAGS) $(LIBXML2_CFLAGS)
fuzz_libs = libmoefold-planner.a libmoefold-layout.a libmoefold-db.a \
    $(HWLOC_LIBS) $(LIBXML2_LIBS) $(SLURM_LIBS) $(JANSSON_LIBS) \
    $(YAML_LIBS) $(SQLITE_LIBS)

tests_fuzz_fuzz_conf_SOURCES = tests/fuzz/fuzz_conf.c $(fuzz_drive)
tests_fuzz_fuzz_conf_CFLAGS = $(fuzz_cflags)
tests_fuzz_fuzz_conf_LDADD = $(fuzz_libs)
tests_fuzz_fuzz_smi_SOURCES = tests/fuzz/fuzz_smi.c $(fuzz_drive)
tests_fuzz_fuzz_smi_CFLAGS = $(fuzz_cflags)
tests_fuzz_fuzz_smi_LDADD = $(fuzz_libs)
tests_fuzz_fuzz_xml_SOURCES = tests/fuzz/fuzz_xml.c $(fuzz_drive)
tests_fuzz_fuzz_xml_CFLAGS = $(fuzz_cflags)
tests_fuzz_fuzz_xml_LDADD = $(fuzz_libs)
tests_fuzz_fuzz_hostlist_SOURCES = tests/fuzz/fuzz_hostlist.c $(fuzz_drive)
tests_fuzz_fuzz_hostlist_CFLAGS = $(fuzz_cflags)
tests_fuzz_fuzz_hostlist_LDADD = libmoefold-layout.a $(JANSSON_LIBS)
tests_fuzz_fuzz_cluster_json_SOURCES = tests/fuzz/fuzz_cluster_json.c \
    $(fuzz_drive)
tests_fuzz_fuzz_cluster_json_CFLAGS = $(fuzz_cflags)
tests_fuzz_fuzz_cluster_json_LDADD = $(fuzz_libs)

fuzz_cluster_sources = $(srcdir)/planner/cluster_*.c $(srcdir)/planner/child.c \
    $(srcdir)/planner/conf_lines.c $(srcdir)/planner/text_file.c \
    $(srcdir)/planner/layout/*.c
fuzz_cluster_seeds = tests/data/topology

# One reader: make fuzz-cluster FUZZ=smi. FUZZ: conf, smi, xml, hostlist,
# cluster_json.
FUZZ = conf
fuzz-cluster: libmoefold-db.a
	$(MKDIR_P) tests/fuzz/corpus-$(FUZZ)
	$(FUZZ_CC) $(FUZZ_CFLAGS) $(DEFS) $(AM_CPPFLAGS) $(JANSSON_CFLAGS) \
	    $(LIBXML2_CFLAGS) $(HWLOC_CFLAGS) $(YAML_CFLAGS) \
	    -o tests/fuzz/lib-$(FUZZ) \
	    $(srcdir)/tests/fuzz/fuzz_$(FUZZ).c $(fuzz_cluster_sources) \
	    libmoefold-db.a $(HWLOC_LIBS) $(LIBXML2_LIBS) $(SLURM_LIBS) \
	    $(JANSSON_LIBS) $(YAML_LIBS) $(SQLITE_LIBS) -lm
	tests/fuzz/lib-$(FUZZ) $(FUZZ_FLAGS) tests/fuzz/corpus-$(FUZZ) \
	    $(srcdir)/$(fuzz_cluster_seeds)/slurm \
	    $(srcdir)/$(fuzz_cluster_seeds)/nccl \
	    $(srcdir)/$(fuzz_cluster_seeds)/hwloc \
	    $(srcdir)/$(fuzz_cluster_seeds)/nvidia-smi
.PHONY: fuzz-cluster
