#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# What the two programs are linked with, as the loader sees it.
. "${MOEFOLD_SRCDIR:?}/tests/command/lib.sh"

command -v ldd >/dev/null || skip_all 'ldd is not installed'

without() { # NAME PROGRAM REGEX
    run ldd "$BIN/$2"
    if [ "$rc" -eq 0 ] && [ -s "$OUT" ] && ! grep -Eq "$3" "$OUT"; then
        pass "$1"
    else
        fail "$1" "$2 is linked with $3"
    fi
}

without 'moefold has no MPI' moefold 'libmpi|libopen-rte'
without 'moefold has no CUDA' moefold 'libcuda|libcudart|libcublas|libnccl'
if [ -e "$BIN/moefold-run" ]; then
    without 'moefold-run has no libslurm' moefold-run 'libslurm'
    without 'moefold-run needs no GPU driver' moefold-run 'libcuda\.'
else
    skip 'moefold-run has no libslurm' 'moefold-run is not built'
    skip 'moefold-run needs no GPU driver' 'moefold-run is not built'
fi

done_testing
