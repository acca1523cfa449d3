# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
"$MOEFOLD_BINDIR/moefold" groups --layout tp2.cp1.pp2/etp1.ep4 --world 16
