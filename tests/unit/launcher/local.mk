# SPDX-License-Identifier: BSD-3-Clause
launcher_fixture = tests/unit/launcher/fixture.c tests/unit/launcher/fixture.h
launcher_test_cflags = $(UNIT_CFLAGS) $(JANSSON_CFLAGS) $(SLURM_CFLAGS)
launcher_test_libs = libmoefold-launcher.a libmoefold-planner.a \
    libmoefold-layout.a libmoefold-db.a $(HWLOC_LIBS) $(LIBXML2_LIBS) \
    $(SLURM_LIBS) $(YAML_LIBS) \
    $(JANSSON_LIBS) $(SQLITE_LIBS) $(UNIT_LIBS)

unit_tests += tests/unit/launcher/test_hostlist
tests_unit_launcher_test_hostlist_CFLAGS = $(launcher_test_cflags)
tests_unit_launcher_test_hostlist_SOURCES = tests/unit/launcher/test_hostlist.c
tests_unit_launcher_test_hostlist_LDADD = $(launcher_test_libs)

unit_tests += tests/unit/launcher/test_map
tests_unit_launcher_test_map_CFLAGS = $(launcher_test_cflags)
tests_unit_launcher_test_map_SOURCES = tests/unit/launcher/test_map.c \
    $(launcher_fixture)
tests_unit_launcher_test_map_LDADD = $(launcher_test_libs)

unit_tests += tests/unit/launcher/test_quote
tests_unit_launcher_test_quote_CFLAGS = $(launcher_test_cflags)
tests_unit_launcher_test_quote_SOURCES = tests/unit/launcher/test_quote.c
tests_unit_launcher_test_quote_LDADD = $(launcher_test_libs)

unit_tests += tests/unit/launcher/test_process
tests_unit_launcher_test_process_CFLAGS = $(launcher_test_cflags)
tests_unit_launcher_test_process_SOURCES = tests/unit/launcher/test_process.c
tests_unit_launcher_test_process_LDADD = $(launcher_test_libs)

unit_tests += tests/unit/launcher/test_job
tests_unit_launcher_test_job_CFLAGS = $(launcher_test_cflags)
tests_unit_launcher_test_job_SOURCES = tests/unit/launcher/test_job.c \
    $(launcher_fixture)
tests_unit_launcher_test_job_LDADD = $(launcher_test_libs)

unit_tests += tests/unit/launcher/test_script
tests_unit_launcher_test_script_CFLAGS = $(launcher_test_cflags)
tests_unit_launcher_test_script_SOURCES = tests/unit/launcher/test_script.c \
    $(launcher_fixture)
tests_unit_launcher_test_script_LDADD = $(launcher_test_libs)

unit_tests += tests/unit/launcher/test_mutants
tests_unit_launcher_test_mutants_CFLAGS = $(UNIT_CFLAGS) $(JANSSON_CFLAGS)
tests_unit_launcher_test_mutants_SOURCES = \
    tests/unit/launcher/test_mutants.c $(launcher_fixture)
tests_unit_launcher_test_mutants_LDADD = $(launcher_test_libs)

EXTRA_DIST += tests/golden/launch-block.sh tests/golden/launch-hostfile.sh

command_tests += tests/command/t0301-map.t tests/command/t0302-launch.t \
    tests/command/t0303-export.t tests/command/t0304-exec.t \
    tests/command/t0305-script.t tests/command/t0306-tune.t \
    tests/command/t0307-preflight.t \
    tests/command/t0402-launch-local.t
testbed_tests += tests/testbed/s0301-launch.t
