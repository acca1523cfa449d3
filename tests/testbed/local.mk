# SPDX-License-Identifier: BSD-3-Clause
testbed_tests += tests/testbed/s0001-bed.t tests/testbed/s0010-cluster.t \
    tests/testbed/s0011-large.t tests/testbed/s0020-submit.t
EXTRA_DIST += tests/testbed/common.sh tests/testbed/up tests/testbed/down \
    tests/testbed/env tests/testbed/run tests/testbed/controller \
    tests/testbed/node-init tests/testbed/bench-fold

# One model coupled and folded, on slow links: measured and predicted.
bench-fold: $(bin_PROGRAMS)
	$(BASH) $(srcdir)/tests/testbed/bench-fold $(top_builddir)
.PHONY: bench-fold
