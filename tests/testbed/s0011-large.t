#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# moefold cluster against a live controller of 10,000 nodes, defined in one
# controller of its own: no node runs. The time it took is printed.
. "${MOEFOLD_SRCDIR:?}/tests/command/lib.sh"

PATH=$PATH:/usr/sbin:/sbin
[ "$(id -u)" -eq 0 ] || skip_all 'slurmctld needs root'
for tool in slurmctld munged sinfo; do
    command -v "$tool" >/dev/null || skip_all "$tool is not installed"
done

# The path of munge's socket must be short, and its folders nobody else's.
big=$(mktemp -d /tmp/mfbig.XXXXXX)
mkdir "$big/run" "$big/state" "$big/log"
chmod 755 "$big" "$big/run"
stop() {
    local name
    for name in slurmctld munged; do
        [ ! -s "$big/run/$name.pid" ] || kill "$(cat "$big/run/$name.pid")"
    done
    cd / && rm -rf "$T" "$big"
}
trap stop EXIT
port=$((20000 + RANDOM % 10000))

cat >"$big/slurm.conf" <<CONF
ClusterName=large
SlurmctldHost=$(uname -n)(127.0.0.1)
SlurmctldPort=$port
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket=$big/run/munge.socket
CredType=cred/munge
StateSaveLocation=$big/state
SlurmctldPidFile=$big/run/slurmctld.pid
SlurmctldLogFile=$big/log/slurmctld.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
AccountingStorageType=accounting_storage/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
TopologyPlugin=topology/tree
GresTypes=gpu
SlurmdTimeout=0
MailProg=/bin/true
NodeName=DEFAULT CPUs=8 RealMemory=65536 Gres=gpu:h100:8 State=UNKNOWN
NodeName=node[1-10000] NodeAddr=127.0.0.1 Port=[30001-40000] Features=ib,gen5
PartitionName=all Nodes=ALL Default=YES
CONF
echo 'NodeName=node[1-10000] Name=gpu Type=h100 Count=8' >"$big/gres.conf"
{
    for ((i = 0; i < 500; i++)); do
        echo "SwitchName=leaf$i Nodes=node[$((20 * i + 1))-$((20 * i + 20))]"
    done
    for ((i = 0; i < 10; i++)); do
        echo "SwitchName=pod$i Switches=leaf[$((50 * i))-$((50 * i + 49))]"
    done
    echo 'SwitchName=spine Switches=pod[0-9]'
} >"$big/topology.conf"

(umask 077 && head -c 128 /dev/urandom >"$big/run/key")
munged --force --key-file="$big/run/key" --socket="$big/run/munge.socket" \
    --pid-file="$big/run/munged.pid" --log-file="$big/log/munged.log" \
    --seed-file="$big/run/seed" >/dev/null 2>&1 ||
    skip_all 'munged does not start here'
export SLURM_CONF=$big/slurm.conf
slurmctld -f "$SLURM_CONF" >/dev/null 2>&1 ||
    skip_all 'slurmctld does not start here'
for ((i = 0; i < 30; i++)); do
    ! sinfo -h >/dev/null 2>&1 || break
    sleep 1
done

began=$(date +%s%N)
expect 'ten thousand nodes are read' 0 moefold cluster slurm --json
echo "# in $((($(date +%s%N) - began) / 1000000)) ms"
expect_json 'all of them' '.nodes == 10000 and .gpus_per_node == 8'
expect_json 'leaf by leaf' '.node_list[19].switch == "leaf0" and
    .node_list[20].switch == "leaf1" and .node_list[9999].pod == "pod9"'
expect_json 'with the levels of the tree' '[.tiers[] | [.name, .size]] ==
    [["nvlink", 8], ["leaf", 160], ["pod", 8000], ["spine", 80000]]'
expect_json 'none of which is up' 'all(.node_list[]; .state == "unknown")'

done_testing
