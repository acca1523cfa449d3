#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Help: fits a screen, and names the same options as the man pages.
. "${MOEFOLD_SRCDIR:?}/tests/command/lib.sh"

# Options in the synopsis of one command: the lines after ".SS NAME".
synopsis() { # PAGE NAME
    sed -n "/^\\.SS $2\$/,/^\\.S[SH]/p" "$1" | sed 's/\\-/-/g' |
        grep -oE -- '--[a-z][a-z-]*' | sort -u
}

# Options that have an entry of their own under OPTIONS.
entries() { # PAGE
    sed -n '/^\.SH OPTIONS$/,/^\.SH /p' "$1" | sed 's/\\-/-/g' |
        sed -n 's/^\.B[RI]* *"*\(--[a-z][a-z-]*\).*/\1/p' | sort -u
}

helped() { # FILE
    grep -oE '^ +--[a-z][a-z-]*' "$1" | tr -d ' ' | sort -u
}

fits_screen() { # FILE
    [ "$(wc -l <"$1")" -le 40 ] && ! grep -qE '^.{81}' "$1"
}

same() { diff "$1" "$2"; }

page=$SRC/man/moefold.1
moefold --help >help.txt
check 'moefold --help fits a screen' fits_screen help.txt
: >all.helped
mapfile -t commands < <(sed -n 's/^  \([a-z]\{1,\}\) .*/\1/p' help.txt)
for command in "${commands[@]}"; do
    moefold "$command" --help >"$command.txt"
    check "$command --help fits a screen" fits_screen "$command.txt"
    helped "$command.txt" | grep -vE -- '^--(json|help|version)$' \
        >"$command.helped"
    synopsis "$page" "$command" >"$command.paged"
    check "$command: the same options in help and moefold(1)" \
        same "$command.helped" "$command.paged"
    helped "$command.txt" >>all.helped
done
sort -u all.helped >all.sorted
entries "$page" >all.entries
check 'moefold(1) explains each option once, and no other' \
    same all.sorted all.entries
printf '%s\n' "${commands[@]}" >commands.txt
sed -n '/^\.SH COMMANDS$/,/^\.SH OPTIONS$/s/^\.SS //p' "$page" >sections.txt
check 'each command has its section' same commands.txt sections.txt

if [ -x "$BIN/moefold-run" ]; then
    moefold-run --help >run.txt
    check 'moefold-run --help fits a screen' fits_screen run.txt
    helped run.txt >run.helped
    entries "$SRC/man/moefold-run.1" >run.entries
    check 'moefold-run: the same options in help and page' \
        same run.helped run.entries
else
    skip 'moefold-run --help' 'built without MPI'
fi

if command -v groff >/dev/null; then
    for page in "$SRC"/man/*.1; do
        groff -man -ww -z -Tutf8 "$page" 2>groff.txt
        check "$(basename "$page") formats without a warning" \
            test ! -s groff.txt
    done
else
    skip 'man pages format' 'no groff'
fi
check 'the version is the same everywhere' test \
    "$(moefold --version)" = "moefold $(sed -n \
        's/^AC_INIT(\[moefold\], \[\([^]]*\)\].*/\1/p' "$SRC/configure.ac")"

done_testing
