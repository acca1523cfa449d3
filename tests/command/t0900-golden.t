#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Output that is kept: tests/golden/NAME.cmd prints what NAME.out holds.
. "${MOEFOLD_SRCDIR:?}/tests/command/lib.sh"

golden=$SRC/tests/golden
for script in "$golden"/*.cmd; do
    [ -e "$script" ] || skip_all 'no golden output yet'
    name=${script##*/}
    name=${name%.cmd}
    # In a folder of its own, so that files of one do not reach another.
    mkdir -p "$T/$name" && cd "$T/$name" || exit 99
    bash "$script" >"$T/$name.out" 2>"$T/$name.err"
    if [ -n "${MOEFOLD_UPDATE_GOLDEN:-}" ]; then
        diff -u "$golden/$name.out" "$T/$name.out" | sed 's/^/# /'
        cp "$T/$name.out" "$golden/$name.out" || exit 99
    fi
    check "$name" diff -u "$golden/$name.out" "$T/$name.out"
done
done_testing
