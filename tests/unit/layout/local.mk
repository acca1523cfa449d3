# SPDX-License-Identifier: BSD-3-Clause
command_tests += tests/command/t0110-groups-oracle.t
EXTRA_DIST += tests/data/megatron/README.md \
    tests/data/megatron/megatron-groups.jsonl \
    tests/data/megatron/megatron-groups-invalid.jsonl

unit_tests += tests/unit/layout/test_layout tests/unit/layout/test_plan
tests_unit_layout_test_layout_CFLAGS = $(UNIT_CFLAGS)
tests_unit_layout_test_layout_LDADD = libmoefold-layout.a $(UNIT_LIBS)
tests_unit_layout_test_plan_CFLAGS = $(UNIT_CFLAGS) $(JANSSON_CFLAGS)
tests_unit_layout_test_plan_LDADD = libmoefold-layout.a $(JANSSON_LIBS) \
    $(UNIT_LIBS)

unit_tests += tests/unit/layout/test_hostlist
tests_unit_layout_test_hostlist_CFLAGS = $(UNIT_CFLAGS) $(SLURM_CFLAGS)
tests_unit_layout_test_hostlist_LDADD = libmoefold-layout.a $(SLURM_LIBS) \
    $(UNIT_LIBS)
