# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
cp "$MOEFOLD_SRCDIR/tests/data/models/Mixtral-8x22B-v0.1/config.json" .
"$MOEFOLD_BINDIR/moefold" model config.json
