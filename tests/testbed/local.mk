# SPDX-License-Identifier: BSD-3-Clause
testbed_tests += tests/testbed/s0001-bed.t tests/testbed/s0010-cluster.t \
    tests/testbed/s0020-submit.t
EXTRA_DIST += tests/testbed/common.sh tests/testbed/up tests/testbed/down \
    tests/testbed/env tests/testbed/run tests/testbed/controller \
    tests/testbed/node-init
