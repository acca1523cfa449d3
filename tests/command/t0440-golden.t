#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# shellcheck disable=SC2317 # functions are called by check
# --load and --dump: what transformers computes, forward and backward, comes out
# of every kind of layout.
. "${MOEFOLD_SRCDIR:?}/tests/command/lib.sh"

[ -x "$BIN/moefold-run" ] || skip_all 'built without MPI'
command -v mpirun >/dev/null || skip_all 'mpirun is not installed'
golden=$SRC/tests/data/golden

ranks() { # N ARG...
    local n=$1
    shift
    mpirun --quiet -n "$n" "$BIN/moefold-run" "$@"
}

plan() { # KIND LAYOUT WORLD
    rm -f plan.json
    moefold plan --scope moe --model "$golden/$1.json" --cluster local \
        --world "$3" --seq 8 --global-batch 4 --layout "$2" \
        --output plan.json >/dev/null
}

same() { # KIND LAYOUT WORLD [ARG...]
    local kind=$1 layout=$2 world=$3
    shift 3
    rm -f out.safetensors
    plan "$kind" "$layout" "$world" &&
        ranks "$world" plan.json --load "$golden/$kind.in.safetensors" \
            --dump out.safetensors --iterations 1 --warmup 1 --no-history \
            --quiet "$@" &&
        python3 "$golden/compare.py" out.safetensors \
            "$golden/$kind.out.safetensors"
}

for kind in mixtral qwen2-moe qwen3-moe deepseek-v3 olmoe gpt-oss; do
    check "$kind on one rank" same "$kind" tp1.cp1.dp1/ep1 1
    check "$kind folded: tp 2, dp 2, ep 4" same "$kind" tp2.dp2/ep4 4
    check "$kind folded: tp 2, cp 2, etp 2, ep 2" \
        same "$kind" tp2.cp2.dp1/etp2.ep2 4
done
check 'deepseek-v3 with tp 4' same deepseek-v3 tp4.dp1/etp1.ep2 4
check 'qwen2-moe with all tokens gathered' \
    same qwen2-moe tp2.dp2/ep4 4 --dispatcher allgather
check 'gpt-oss with one copy a rank' \
    same gpt-oss tp1.dp4/ep4 4 --dispatcher dedup

# --- what is wrong with a file is named ---
in=$golden/qwen3-moe.in.safetensors
plan qwen3-moe tp1.dp2/ep2 2
edit() { # NAME PYTHON: the header as h, the values as d
    python3 - "$in" "$1" <<PY
import json, struct, sys
data = open(sys.argv[1], "rb").read()
n, = struct.unpack("<Q", data[:8])
h, d = json.loads(data[8:8 + n]), data[8 + n:]
$2
h = json.dumps(h).encode()
open(sys.argv[2], "wb").write(struct.pack("<Q", len(h)) + h + d)
PY
}
refused() { # NAME FILE TEXT
    expect "$1" 2 ranks 2 plan.json --load "$2" --no-history
    expect_error "$1: said so" "$3"
}
edit missing.st 'del h["mlp.experts.5.up_proj.weight"]'
refused 'a missing expert' missing.st 'experts.5.up_proj.weight is missing'
edit shape.st 'h["mlp.experts.0.down_proj.weight"]["shape"].reverse()'
refused 'a turned matrix' shape.st 'no tensor mlp.experts.0.down_proj.weight'
edit offset.st 'h["hidden_states"]["data_offsets"][1] += 10 ** 9'
refused 'a tensor beyond the end' offset.st 'hidden_states: its shape and'
edit type.st 'h["mlp.gate.weight"]["dtype"] = "I8"'
refused 'integers' type.st 'dtype I8'
edit two.st 'h.update({"model.1." + k: v for k, v in h.items()})'
refused 'two layers' two.st 'holds 2 layers'
edit none.st 'del h["mlp.gate.weight"]'
refused 'no router' none.st 'no router'
edit tokens.st 'del h["grad_output"]'
refused 'no gradient of the output' tokens.st 'no tensor grad_output'
head -c 5000 "$in" >cut.st
refused 'a cut file' cut.st 'do not agree'
printf '\377\377\377\377\377\377\377\377' | cat - "$in" >long.st
refused 'a header without end' long.st 'header would be'
refused 'no file' nothing.st 'nothing.st: No such file'
plan qwen3-moe tp1.dp1.pp2/ep1 2
expect 'two pipeline stages' 2 ranks 2 plan.json --load "$in" --no-history
expect_error 'are named' 'pp 1'
plan qwen3-moe tp1.dp2/ep2 2
expect 'a dump into no folder' 1 \
    ranks 2 plan.json --dump no/where.st --no-history --iterations 1
expect 'a dump of a seeded run' 0 \
    ranks 2 plan.json --dump seeded.st --no-history --iterations 1 --quiet
check 'has the usual names' grep -aq grad.mlp.experts.7.down_proj.weight \
    seeded.st

done_testing
