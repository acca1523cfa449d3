# SPDX-License-Identifier: BSD-3-Clause
EXTRA_DIST += tests/command/lib.sh tests/command/README.md
