# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
# The Debian packages that ./check and ./quickstart need, and how they get in.
# Source this, then: packages_install build run …

declare -A moefold_packages=(
    [build]='gcc libc6-dev make autoconf automake pkg-config libjansson-dev
        libsqlite3-dev libhwloc-dev libxml2-dev libopenblas-dev libslurm-dev
        openmpi-bin libopenmpi-dev libyaml-dev'
    [test]='libcmocka-dev jq sqlite3 groff shellcheck clang-format python3
        ocl-icd-opencl-dev pocl-opencl-icd'
    [slurm]='slurmctld slurmd slurm-client slurm-wlm-basic-plugins munge
        iproute2'
)

# The packages of the named SETs that are not installed, one a line.
packages_missing() { # SET...
    local set name
    for set in "$@"; do
        for name in ${moefold_packages[$set]}; do
            [ "$(dpkg-query -W -f='${db:Status-Status}' "$name" \
                2>/dev/null)" = installed ] || printf '%s\n' "$name"
        done
    done
}

# Install what is missing; without root or apt say what that is, and fail.
packages_install() { # SET...
    local missing
    mapfile -t missing < <(packages_missing "$@")
    if [ "${#missing[@]}" -eq 0 ]; then
        echo "packages: all there"
        return 0
    fi
    if [ "$(id -u)" -ne 0 ] || ! command -v apt-get >/dev/null; then
        echo "packages missing: ${missing[*]}" >&2
        echo "install them, or run this as root on Debian 12" >&2
        return 1
    fi
    echo "packages: installing ${missing[*]}"
    export DEBIAN_FRONTEND=noninteractive
    apt-get -qq update &&
        apt-get -qq install --no-install-recommends -y "${missing[@]}" \
            >/dev/null
}
