# SPDX-License-Identifier: BSD-3-Clause
EXTRA_DIST += tests/testbed/common.sh tests/testbed/up tests/testbed/down \
    tests/testbed/env tests/testbed/run tests/testbed/controller \
    tests/testbed/node-init
