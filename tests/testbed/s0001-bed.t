#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# The test bed itself: twice up, after crashes, twice down, beside another.
. "${MOEFOLD_SRCDIR:?}/tests/command/lib.sh"

bed=$SRC/tests/testbed
# One of its own, so that the bed the other tests use stays as it is.
export MOEFOLD_TESTBED_DIR=/tmp/moefold-bed-$$
trap '"$bed/down" >/dev/null 2>&1; cd / && rm -rf "$T"' EXIT

links() { ip -o link | awk -F'[:@ ]+' '{ print $2 }' | grep '^mf' | sort; }

before=$(links)
run "$bed/up"
[ "$rc" -ne 77 ] || skip_all "$(head -n 1 "$ERR")"
if [ "$rc" -eq 0 ]; then pass 'comes up'; else fail 'comes up' "status $rc"; fi

expect 'up a second time' 0 "$bed/up"
expect_line 'says that it is up' 'is up in .*four nodes answer'
expect 'env' 0 "$bed/env"
eval "$(cat "$OUT")"
expect 'its nodes are hosts of their own' 0 \
    srun -N4 -n4 --ntasks-per-node=1 hostname
check 'four names' test "$(sort -u "$OUT" | tr '\n' ' ')" = \
    'node1 node2 node3 node4 '
expect 'the tree' 0 scontrol show topology
expect_line 'leaf a' 'leaf-a .*node\[1,3\]'
expect_line 'leaf b' 'leaf-b .*node\[2,4\]'
check 'the machine keeps its own name and hosts' sh -c \
    '! grep -q node1 /etc/hosts && [ "$(hostname)" != ctl ]'

read -r ctl <"$MOEFOLD_TESTBED_DIR/run/slurmctld.pid"
read -r node <"$MOEFOLD_TESTBED_DIR/run/node2.pid"
srun -N4 --ntasks-per-node=1 sleep 300 >/dev/null 2>&1 &
step=$!
sleep 1
kill -KILL "$ctl" "$node" "$step"
wait "$step" 2>/dev/null
expect 'env after a crash' 1 "$bed/env"
expect 'up after a crash' 0 "$bed/up"
expect_line 'says that it clears' 'clearing'
expect 'works again' 0 srun -N4 -n4 --ntasks-per-node=1 hostname

# A number in a pid file may be somebody else's by now.
sleep 300 &
stranger=$!
"$bed/controller" stop
echo "$stranger" >"$MOEFOLD_TESTBED_DIR/run/slurmctld.pid"
expect 'down' 0 "$bed/down"
check 'leaves strangers alone' kill -0 "$stranger"
kill "$stranger"
expect 'down a second time' 0 "$bed/down"
check 'no folder stays' test ! -e "$MOEFOLD_TESTBED_DIR"
check 'no link stays' test "$(links)" = "$before"

mkdir "$T/mine"
echo precious >"$T/mine/file"
expect 'a folder with other files in it' 1 \
    env MOEFOLD_TESTBED_DIR="$T/mine" "$bed/up"
expect 'down there' 1 env MOEFOLD_TESTBED_DIR="$T/mine" "$bed/down"
check 'is left as it was' grep -q precious "$T/mine/file"

done_testing
