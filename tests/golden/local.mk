# SPDX-License-Identifier: BSD-3-Clause
#
# NAME.cmd is a bash script that runs moefold with fixed input; NAME.out is
# what it prints. The launch-*.sh are held by tests/unit/launcher/test_script.
EXTRA_DIST += tests/golden/mixtral-groups.cmd \
    tests/golden/mixtral-groups.out \
    tests/golden/mixtral-model.cmd tests/golden/mixtral-model.out
command_tests += tests/command/t0900-golden.t

# Shows what changes, and writes it.
update-golden: $(bin_PROGRAMS) $(check_PROGRAMS)
	MOEFOLD_UPDATE_GOLDEN=1 MOEFOLD_SRCDIR='$(abs_top_srcdir)' \
	    MOEFOLD_BINDIR='$(abs_top_builddir)' \
	    $(BASH) $(top_srcdir)/tests/command/t0900-golden.t
	test ! -x tests/unit/launcher/test_script || \
	    MOEFOLD_UPDATE_GOLDEN=1 MOEFOLD_SRCDIR='$(abs_top_srcdir)' \
	    tests/unit/launcher/test_script
.PHONY: update-golden
