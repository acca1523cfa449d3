# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
# Helpers for command tests: source this first, call done_testing last.
#
#   expect NAME STATUS CMD...   runs CMD and compares its exit status; at 1
#                               and 2 also: nothing on standard output and
#                               one line on standard error
#   expect_json NAME FILTER     the last output is one JSON document and the
#                               jq FILTER is true of it
#   expect_line NAME REGEX      some line of the last output matches (grep -E)
#   expect_error NAME REGEX     the one line on standard error matches
#   check NAME CMD...           CMD ends with 0
#   skip NAME REASON            counted as skipped
#   skip_all REASON             the whole script, before anything else
#   json FILE FILTER            jq -e, quietly
#
# The last output is in $OUT and $ERR and its status in $rc. $T is a folder
# of this script alone, removed at its end; it is the current folder.
# Files of the source tree are under $SRC.
set -u

SRC=${MOEFOLD_SRCDIR:?run this by make check, or set MOEFOLD_SRCDIR}
SRC=$(cd "$SRC" && pwd) || exit 99
BIN=${MOEFOLD_BINDIR:?set MOEFOLD_BINDIR to where moefold is}
BIN=$(cd "$BIN" && pwd) || exit 99
export SRC
PATH=$BIN:$PATH

# Open MPI as root on few cores; harmless where it does not apply.
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
export OMPI_MCA_mpi_yield_when_idle=1 OMPI_MCA_rmaps_base_oversubscribe=1
export OPENBLAS_NUM_THREADS=1

T=$(mktemp -d "${TMPDIR:-/tmp}/moefold-test.XXXXXX") || exit 99
trap 'cd / && rm -rf "$T"' EXIT
trap 'exit 99' HUP INT TERM
cd "$T" || exit 99

export MOEFOLD_DB=$T/moefold.db
# Nothing of the user's own may be read or written.
export HOME=$T XDG_DATA_HOME=$T/data XDG_CONFIG_HOME=$T/config
export XDG_CACHE_HOME=$T/cache
# Nor may an installed plug-in say that this machine has no GPU.
export MOEFOLD_PLUGINS=$T/plugins
OUT=$T/.out
ERR=$T/.err
: >"$OUT"
: >"$ERR"
rc=0
test_count=0
failures=0

_say() { # RESULT NAME
    test_count=$((test_count + 1))
    printf '%s %d - %s\n' "$1" "$test_count" "${2//#/}"
}

_show() {
    sed -n '1,20s/^/# out: /p' "$OUT"
    sed -n '1,20s/^/# err: /p' "$ERR"
}

pass() { _say ok "$1"; }

fail() { # NAME WHY
    _say 'not ok' "$1"
    failures=$((failures + 1))
    printf '# %s\n' "${2:-}"
    _show
}

skip() { # NAME REASON
    test_count=$((test_count + 1))
    printf 'ok %d - %s # SKIP %s\n' "$test_count" "${1//#/}" "$2"
}

skip_all() {
    printf '1..0 # SKIP %s\n' "$1"
    exit 0
}

run() { # CMD...
    "$@" >"$OUT" 2>"$ERR" </dev/null
    rc=$?
}

_one_line() { [ "$(wc -l <"$ERR")" -eq 1 ] && [ -s "$ERR" ]; }

expect() { # NAME STATUS CMD...
    local name=$1 want=$2
    shift 2
    run "$@"
    if [ "$rc" -ne "$want" ]; then
        fail "$name" "status $rc, not $want: $*"
    elif [ "$want" -eq 1 ] || [ "$want" -eq 2 ]; then
        if [ -s "$OUT" ]; then
            fail "$name" "standard output is not empty: $*"
        elif ! _one_line; then
            fail "$name" "standard error is not one line: $*"
        else
            pass "$name"
        fi
    else
        pass "$name"
    fi
}

json() { # FILE FILTER
    jq -e -s "if length != 1 then error(\"not one document\") else .[0] end
        | $2" "$1" >/dev/null 2>"$T/.jq"
}

expect_json() { # NAME FILTER
    if json "$OUT" "$2"; then
        pass "$1"
    else
        fail "$1" "not true of the output: $2 $(head -n 1 "$T/.jq")"
    fi
}

expect_line() { # NAME REGEX
    if grep -Eq -e "$2" "$OUT"; then
        pass "$1"
    else
        fail "$1" "no line matches: $2"
    fi
}

expect_error() { # NAME REGEX
    if _one_line && grep -Eq -e "$2" "$ERR"; then
        pass "$1"
    else
        fail "$1" "standard error is not one line that matches: $2"
    fi
}

check() { # NAME CMD...
    local name=$1
    shift
    if "$@" >"$OUT" 2>"$ERR" </dev/null; then
        pass "$name"
    else
        fail "$name" "failed: $*"
    fi
}

done_testing() {
    printf '1..%d\n' "$test_count"
    [ "$failures" -eq 0 ]
    exit
}

command -v jq >/dev/null || skip_all 'jq is not installed'
