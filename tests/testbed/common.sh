# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
# What the test bed's commands share: where it lies, its names, its pid files.
#
# Everything is in one folder, $TB_DIR. Nodes are processes with network, UTS,
# mount and PID namespaces of their own, which vanish with them, so a crash
# leaves at most a folder, a bridge and processes that the pid files name.
set -u

TB_HERE=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd -P)
TB_NODES=(node1 node2 node3 node4)
TB_MARK=.moefold-testbed
export LC_ALL=C
# Debian keeps the daemons in sbin, which a plain user's PATH may lack.
PATH=$PATH:/usr/sbin:/sbin

tb_hash() { # TEXT: six hexadecimal digits
    printf '%06x\n' $(($(printf '%s' "$1" | cksum | cut -d' ' -f1) & 0xffffff))
}

TB_DIR=${MOEFOLD_TESTBED_DIR:-/tmp/moefold-testbed-$(tb_hash "$TB_HERE")}
# Eight characters, so that node suffixes fit the kernel's 15.
TB_BRIDGE=mf$(tb_hash "$TB_DIR")

tb_say() { printf 'testbed: %s\n' "$*"; }

tb_die() { # STATUS TEXT
    local status=$1
    shift
    printf 'testbed: %s\n' "$*" >&2
    exit "$status"
}

tb_need_root() {
    [ "$(id -u)" -eq 0 ] ||
        tb_die 77 'skipped: network namespaces and slurmd need root'
}

# The folder is removed whole by down, so it must be ours beyond doubt.
tb_check_dir() {
    case $TB_DIR in
    /*) ;;
    *) tb_die 2 "MOEFOLD_TESTBED_DIR=$TB_DIR is not an absolute path" ;;
    esac
    [[ $TB_DIR =~ ^[A-Za-z0-9/._-]+$ ]] ||
        tb_die 2 "$TB_DIR: slurm.conf takes no such characters in a path"
    [ "${#TB_DIR}" -le 60 ] ||
        tb_die 2 "$TB_DIR is too long for sockets in it; set" \
            "MOEFOLD_TESTBED_DIR to a path of at most 60 characters"
    [ -e "$TB_DIR" ] || [ -L "$TB_DIR" ] || return 0
    if [ -L "$TB_DIR" ] || [ ! -d "$TB_DIR" ] || [ ! -O "$TB_DIR" ]; then
        tb_die 1 "$TB_DIR is not a folder of this user; remove it"
    fi
    if [ ! -e "$TB_DIR/$TB_MARK" ] && [ -n "$(ls -A "$TB_DIR")" ]; then
        tb_die 1 "$TB_DIR holds files that are not the test bed's"
    fi
}

tb_pid() { # NAME: prints the pid if that process lives and is ours
    local pid=
    [ -r "$TB_DIR/run/$1.pid" ] && read -r pid <"$TB_DIR/run/$1.pid"
    [[ $pid =~ ^[0-9]+$ ]] || return 1
    # After a crash the number may be somebody else's by now.
    tr '\0' ' ' 2>/dev/null <"/proc/$pid/cmdline" | grep -qF "$TB_DIR/" ||
        return 1
    printf '%s\n' "$pid"
}

tb_alive() { tb_pid "$1" >/dev/null; }

tb_stop() { # NAME SIGNAL
    local pid i
    if pid=$(tb_pid "$1"); then
        kill -s "$2" "$pid" 2>/dev/null
        for ((i = 0; i < 100; i++)); do
            tb_alive "$1" || break
            sleep 0.1
        done
        if tb_alive "$1"; then
            kill -s KILL "$pid" 2>/dev/null
            sleep 0.2
        fi
    fi
    rm -f "$TB_DIR/run/$1.pid"
}

tb_start() { # NAME CMD...: in the background, its pid in a file
    local name=$1
    shift
    # shellcheck disable=SC2016
    # In a subshell, so that bash does not report its end; descriptors 8 and
    # 9 hold the lock.
    # shellcheck disable=SC2016
    (setsid sh -c 'echo $$ >"$1"; shift; exec "$@"' sh \
        "$TB_DIR/run/$name.pid" "$@" \
        >>"$TB_DIR/log/$name.out" 2>&1 </dev/null 8>&- 9>&- &)
}

tb_start_controller() {
    # shellcheck disable=SC2016
    tb_start slurmctld unshare --uts --mount sh -c 'hostname ctl &&
        mount --bind "$1" /etc/hosts && shift && exec "$@"' sh \
        "$TB_DIR/hosts" slurmctld -D -f "$TB_DIR/slurm.conf"
}

tb_states() { # one line a node: NAME STATE
    SLURM_CONF=$TB_DIR/slurm.conf timeout 5 \
        sinfo -h -N -o '%N %T' 2>/dev/null
}

tb_ready() { # all four nodes answer
    [ "$(tb_states | grep -Ec ' (idle|mixed|allocated|completing)$')" -eq \
        "${#TB_NODES[@]}" ]
}

tb_all_alive() {
    local name
    for name in munged slurmctld "${TB_NODES[@]}"; do
        tb_alive "$name" || return 1
    done
}

tb_is_up() {
    [ -e "$TB_DIR/$TB_MARK" ] && tb_all_alive && tb_ready
}

tb_tail() { # the ends of the logs that have something to say
    local log
    for log in "$TB_DIR"/log/*.out; do
        [ -s "$log" ] || continue
        printf -- '--- %s\n' "${log##*/}" >&2
        tail -n 8 "$log" >&2
    done
}

tb_remove() { # everything, whatever state it is in
    local name
    if [ -d "$TB_DIR/run" ]; then
        tb_stop slurmctld TERM
        # The end of a node's first process is the end of its namespaces
        # and of all that runs there.
        for name in "${TB_NODES[@]}"; do
            tb_stop "$name" KILL
        done
        tb_stop munged TERM
    fi
    for name in "${TB_NODES[@]}"; do
        ip link delete "${TB_BRIDGE}n${name#node}" 2>/dev/null
    done
    ip link delete "$TB_BRIDGE" 2>/dev/null
    [ ! -e "$TB_DIR" ] || rm -rf --one-file-system "$TB_DIR"
}
