#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# The source tree: line widths, format, sizes, includes, scripts.
. "${MOEFOLD_SRCDIR:?}/tests/command/lib.sh"

cd "$SRC" || exit 99
parts=(planner launcher runtime kernels db tests)
mapfile -t c_files < <(find "${parts[@]}" -name '*.[ch]' | sort)

# Scripts are told by their first line; golden ones are output, not ours.
mapfile -t scripts < <(find "${parts[@]}" check quickstart .ci \
    -path tests/golden -prune -o -path tests/data -prune -o \
    -type f -print 2>/dev/null | sort | while read -r file; do
    case $file in
    *.sh | *.t) echo "$file" ;;
    *) head -c 64 "$file" | head -n 1 | tr -d '\0' |
        grep -qE '^#!.*\b(ba)?sh$' && echo "$file" ;;
    esac
done)

offenders() { # NAME < lines
    local found
    found=$(cat)
    if [ -z "$found" ]; then
        pass "$1"
    else
        printf '%s\n' "$found" >"$OUT"
        : >"$ERR"
        fail "$1" 'offending:'
    fi
}

check 'there are sources and scripts to look at' \
    test "${#c_files[@]}" -gt 20 -a "${#scripts[@]}" -gt 5

# Characters, not bytes: this file's locale may be C.
offenders 'no line is over 80 columns' < <(LC_ALL=C.UTF-8 awk '
    length($0) > 80 { print FILENAME ":" FNR }' \
    "${c_files[@]}" "${scripts[@]}")

offenders 'each source begins with its licence' < <(awk '
    FNR == 1 && !/SPDX-License-Identifier: BSD-3-Clause/ { print FILENAME }' \
    "${c_files[@]}")

offenders 'no function is over 100 lines' < <(awk '
    /^\{/ { start = FNR }
    /^\}/ && start {
        if (FNR - start > 100) print FILENAME ":" start
        start = 0
    }' "${c_files[@]}")

if command -v clang-format >/dev/null; then
    offenders 'sources are as clang-format writes them' < <(
        clang-format --dry-run --Werror "${c_files[@]}" 2>&1 |
            sed -n 's/: error: .*//p')
else
    skip 'sources are as clang-format writes them' 'no clang-format'
fi

if command -v shellcheck >/dev/null; then
    # 1091: the path is known at run time; 2016: jq; 2317: calls by trap.
    offenders 'scripts are clean to shellcheck' < <(
        shellcheck --norc -x -P SCRIPTDIR -f gcc -s bash \
            -e SC1091,SC2016,SC2317 "${scripts[@]}")
else
    skip 'scripts are clean to shellcheck' 'no shellcheck'
fi

# Written so that this file does not hold the words itself.
offenders 'nothing is marked as unfinished' < <(
    grep -nwE 'TO[D]O|FIX[M]E|XX[X]|HA[C]K' "${c_files[@]}" "${scripts[@]}")

# includes FOLDER ALLOWED: quoted includes other than those that match.
includes() {
    find "$1" -name '*.[ch]' | sort |
        xargs -r grep -nE '^ *# *include *"' |
        grep -vE "\"(config\.h|($2)[^\"]*)\""
}

offenders 'kernels/ knows nothing of the project' < <(
    includes kernels 'kernels/')
offenders 'db/ knows nothing of the project' < <(includes db 'db/')
offenders 'planner/layout/ stands alone' < <(
    includes planner/layout 'planner/layout/')
offenders 'planner/ uses itself, db/ and, in its front end, launcher/' < <(
    includes planner 'planner/|db/' |
        grep -vE '^planner/cli/[^"]*"launcher/')
offenders 'launcher/ uses planner/ and db/' < <(
    includes launcher 'launcher/|planner/|db/')
offenders 'runtime/ uses planner/layout/, kernels/ and db/' < <(
    includes runtime 'runtime/|planner/layout/|kernels/|db/')

# system HEADER FOLDER...: where others than these folders include it.
system() {
    local header=$1 folder
    shift
    for folder in planner launcher runtime kernels db; do
        [[ " $* " = *" $folder "* ]] && continue
        grep -rnE "^ *# *include *<$header" --include='*.[ch]' "$folder"
    done
}

offenders 'MPI is in runtime/ alone' < <(system mpi runtime)
offenders 'libslurm is in planner/ and launcher/ alone' < <(
    system slurm/ planner launcher)
offenders 'hwloc is in planner/ and launcher/ alone' < <(
    system hwloc planner launcher)
offenders 'SQLite is in db/ alone' < <(system sqlite3 db)
offenders 'CUDA is in kernels/ and runtime/ alone' < <(
    system '(cuda|cublas|nccl)' kernels runtime)
offenders 'planner/layout/ needs jansson alone' < <(
    grep -rnE '^ *# *include *<(mpi|slurm/|hwloc|sqlite3)' planner/layout)

done_testing
