#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Verification finds each seeded fault in exactly the layouts in which it
# changes a number.
. "${MOEFOLD_SRCDIR:?}/tests/command/lib.sh"

command -v moefold-run >/dev/null || skip_all 'moefold-run is not built'
command -v mpirun >/dev/null || skip_all 'mpirun is not installed'

walk() { # NAME STATUS FAULT
    expect "$1" "$2" mpirun -n 4 \
        moefold-run --verify-all --experts exact --json --fault "$3"
}

# Layouts of 4 ranks, pp 1, 2, 4: 6^2 + 3^2 + 1 = 46. The expert side of pp 1
# is one of six, of pp 2 one of three, each beside as many attention sides.

walk 'no fault' 0 none
expect_json 'no fault, nothing found' '.failed == 0'

# Summing over the stage is wrong unless the stage is one EDP group: 5 * 6 of
# pp 1 and 2 * 3 of pp 2.
walk 'a wrong group is found' 3 wrong-group
expect_json 'wherever experts are spread' '.failed == 36
    and ([.failures[].layout | test("/etp1.ep1.")] | any | not)'
expect_json 'by the gradients of the experts' '[.failures[].checks[]
    | select(.ok | not) | .name] | unique
    | index("gate_grad") != null and index("output") == null'

# EDP over 1: three of six for pp 1, one of three for pp 2.
walk 'a skipped EDP sum is found' 3 skip-edp-sum
expect_json 'wherever experts have replicas' '.failed == 21
    and ([.failures[].layout | test("[.]edp1$")] | any | not)'
expect_json 'by weights that are wrong after a step' '[.failures[] | [.checks[]
    | select(.ok | not) | .name] | index("optimizer_step") != null] | any'
expect_json 'by replicas that differ' '[.failures[].checks[]
    | select(.ok | not) | .name] | index("expert_grad_replicas") != null'

walk 'a dropped last row is found' 3 drop-last-row
expect_json 'in every layout' '.failed == 46'
expect_json 'by the rows received' '[.failures[] | [.checks[]
    | select(.ok | not) | .name] | index("received_one_rank") != null]
    | any'

expect 'an unknown fault' 2 moefold-run --verify-all --fault odd

done_testing
