# SPDX-License-Identifier: BSD-3-Clause
EXTRA_DIST += tests/command/lib.sh tests/command/README.md
command_tests += tests/command/t0001-style.t tests/command/t0002-linkage.t
