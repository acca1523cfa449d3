# SPDX-License-Identifier: BSD-3-Clause
include tests/data/topology/local.mk

command_tests += tests/command/t0120-cluster.t \
    tests/command/t0121-cluster-files.t
unit_tests += tests/unit/cluster/test_cluster tests/unit/cluster/test_child \
    tests/unit/cluster/test_sources
tests_unit_cluster_test_cluster_CFLAGS = $(UNIT_CFLAGS) $(JANSSON_CFLAGS)
tests_unit_cluster_test_cluster_LDADD = libmoefold-layout.a $(JANSSON_LIBS) \
    $(UNIT_LIBS)
tests_unit_cluster_test_child_CFLAGS = $(UNIT_CFLAGS)
tests_unit_cluster_test_child_LDADD = libmoefold-planner.a \
    libmoefold-layout.a $(UNIT_LIBS)
tests_unit_cluster_test_sources_CFLAGS = $(UNIT_CFLAGS) $(JANSSON_CFLAGS)
tests_unit_cluster_test_sources_LDADD = libmoefold-planner.a \
    libmoefold-layout.a libmoefold-db.a $(HWLOC_LIBS) $(LIBXML2_LIBS) \
    $(SLURM_LIBS) $(YAML_LIBS) \
    $(JANSSON_LIBS) $(SQLITE_LIBS) $(UNIT_LIBS)
