# SPDX-License-Identifier: BSD-3-Clause
#
# Each module adds its tests in tests/unit/MODULE/local.mk:
#   unit_tests += tests/unit/MODULE/test_WHAT       a cmocka program
#   command_tests += tests/command/tNNNN-WHAT.t     a TAP script, executable
#   EXTRA_DIST += tests/data/FILE                   what they read
# All speak TAP, so each assertion group is counted by itself.
unit_tests =
command_tests =
testbed_tests =

# What a cmocka program is built with, for use in the fragments.
UNIT_CFLAGS = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
UNIT_LIBS = $(CMOCKA_LIBS)

include tests/unit/db/local.mk
include tests/unit/model/local.mk
include tests/unit/cluster/local.mk
include tests/unit/layout/local.mk
include tests/unit/cost/local.mk
include tests/unit/launcher/local.mk
include tests/unit/kernels/local.mk
include tests/unit/device/local.mk
include tests/gpu/local.mk
include tests/unit/runtime/local.mk
include tests/unit/cli/local.mk
include tests/command/local.mk
include tests/golden/local.mk
include tests/bench/local.mk
include tests/testbed/local.mk
include tests/fuzz/local.mk
include tests/accuracy/local.mk

if WITH_CMOCKA
check_PROGRAMS += $(unit_tests)
TESTS += $(unit_tests)
endif
TESTS += $(command_tests)
EXTRA_DIST += $(command_tests) $(testbed_tests) quickstart .ci/run \
    tests/packages.sh tests/lsan.supp tests/sanitize/keep.c tests/unit/run

# Command tests run the programs of this build, so build those first.
check_DATA = $(bin_PROGRAMS)

TEST_EXTENSIONS = .t
tap_driver = env AM_TAP_AWK='$(AWK)' $(SHELL) \
    $(top_srcdir)/build-aux/tap-driver.sh
LOG_DRIVER = $(tap_driver)
T_LOG_DRIVER = $(tap_driver)
T_LOG_COMPILER = $(BASH)
LOG_COMPILER = $(BASH) $(srcdir)/tests/unit/run
AM_TESTS_ENVIRONMENT = \
    CMOCKA_MESSAGE_OUTPUT=TAP; export CMOCKA_MESSAGE_OUTPUT; \
    MOEFOLD_SRCDIR='$(abs_top_srcdir)'; export MOEFOLD_SRCDIR; \
    MOEFOLD_BUILDDIR='$(abs_top_builddir)'; export MOEFOLD_BUILDDIR; \
    MOEFOLD_BINDIR='$(TEST_BINDIR)'; export MOEFOLD_BINDIR; \
    POCL_CACHE_DIR='$(abs_top_builddir)/pocl-cache'; export POCL_CACHE_DIR; \
    unset MOEFOLD_DB SLURM_CONF;
# make check TEST_BINDIR=/usr/bin tests installed programs instead.
TEST_BINDIR = $(abs_top_builddir)

# Under the test bed, one at a time: there is one controller.
check-testbed: $(bin_PROGRAMS)
	$(MAKE) -j1 $(AM_MAKEFLAGS) check-TESTS TESTS='$(testbed_tests)'
.PHONY: check-testbed

# What takes too long for check.
long_tests = tests/command/long-verify-all.t
EXTRA_DIST += $(long_tests)
check-long: $(bin_PROGRAMS) $(check_PROGRAMS)
	$(MAKE) -j1 $(AM_MAKEFLAGS) check-TESTS TESTS='$(long_tests)'
.PHONY: check-long

# Rates, side by side in one run; nothing is judged.
bench: bench-search
bench-search: $(bin_PROGRAMS)
	MOEFOLD_SRCDIR='$(abs_top_srcdir)' MOEFOLD_BINDIR='$(TEST_BINDIR)' \
	    $(BASH) $(srcdir)/tests/bench/search
.PHONY: bench bench-search
EXTRA_DIST += tests/bench/search
