#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# shellcheck disable=SC2317 # functions are called by expect and check
# Layers on a device. Here that is OpenCL on the CPU, which runs the kernels of
# a GPU as they are; CUDA itself is asked for what it says without a driver.
. "${MOEFOLD_SRCDIR:?}/tests/command/lib.sh"

[ -x "$BIN/moefold-run" ] || skip_all 'built without MPI'
command -v mpirun >/dev/null || skip_all 'mpirun is not installed'
build=$(cd "${MOEFOLD_BUILDDIR:?}" && pwd)
[ -e "$build/tests/opencl/opencl.so" ] || skip_all 'built without OpenCL'
export MOEFOLD_PLUGINS=$build/tests/opencl
model=$SRC/tests/data/models/small-moe/config.json

ranks() { # N ARG...
    local n=$1
    shift
    mpirun --quiet -n "$n" "$BIN/moefold-run" "$@"
}

for n in 1 3 4; do
    expect "$n ranks: all layouts agree with the references" 0 \
        ranks "$n" --verify-all --backend opencl --experts exact --json
    expect_json "$n ranks: none failed" '.failed == 0 and .layouts > 0'
done
for way in exact padded; do
    expect "devices exchange rows themselves, $way" 0 ranks 4 --verify-all \
        --backend opencl --experts exact --comm nccl --exchange "$way" --json
    expect_json "$way: none failed" '.failed == 0 and .layouts == 46'
done
expect 'so do they with the library product' 0 \
    ranks 2 --verify-all --backend opencl --json

expect 'the link between devices is probed' 0 \
    ranks 3 --probe --backend opencl --comm nccl
expect_json 'from one to the other' '.via == "NCCL" and .device != "cpu" and
    .bytes_per_s > 1e6 and .latency_s > 0'
expect 'and the way through host memory' 0 \
    ranks 2 --probe --backend opencl --comm mpi
expect_json 'is said to be one' '.via == "MPI and host memory"'

# Each fault lies in a kernel's text, so it shows only where that kernel ran.
fault() { # NAME FILE SED-EXPRESSION
    rm -rf broken && mkdir -p broken/kernels
    cp -R "$SRC/kernels/device" broken/kernels/
    chmod -R u+w broken
    sed "$3" "$SRC/kernels/device/$2" >"broken/kernels/device/$2"
    cmp -s "$SRC/kernels/device/$2" "broken/kernels/device/$2" &&
        fail "$1" "the expression changes nothing in $2"
    MOEFOLD_SRCDIR=$T/broken expect "$1" 3 ranks 2 --verify-all \
        --backend opencl --experts exact --quiet
}
fault 'a weight left out of the un-permute is found' rows.h \
    's/have_weights ? weights\[t \* topk + j\] : 1.0f/1.0f/'
fault 'a row moved to another place is found' place.h \
    's/place\[at + i\] = next++/place[at + i] = part[c * experts + e]/'
fault 'the wrong sign of an activation is found' activation.h \
    's/MFD_EXP(-g/MFD_EXP(g/'
fault 'a product that ends early is found' product.h \
    's/p0 + p < k; p++/p0 + p < k - 1; p++/'
fault 'a choice of the second best is found' route.h \
    's/return va > vb || (va == vb \&\& a < b);/return va < vb;/'
fault 'a gradient without its mean is found' route.h \
    's/(dw\[j\] - mean)/dw[j]/'

check 'a plan for GPUs is made' moefold plan --model "$model" \
    --cluster dgx-h100:1 --world 2 --scope moe --seq 32 --top 1 \
    --fix ep=2 --output gpu.json
expect 'a run on the device' 0 ranks 2 gpu.json --backend opencl \
    --iterations 2 --warmup 1 --json
expect_json 'is timed by phase' '.status == "done" and .layer_ms > 0
    and (.phases.experts.forward_ms > 0)'
run_id=$(jq -r .run_id "$OUT")
expect 'the history knows what computed' 0 \
    moefold history show "$run_id" --json
expect_json 'by backend and device' '.. | objects
    | select(has("backend")) | .backend == "opencl"'

expect 'a run whose rows stay on devices' 0 ranks 2 gpu.json \
    --backend opencl --comm nccl --iterations 2 --warmup 1 --json
expect_json 'is timed by phase, exchanges too' '.status == "done"
    and .phases.dispatch.forward_ms > 0 and .phases.combine.backward_ms > 0
    and ([.phases[] | .forward_ms, .backward_ms | numbers] | add)
        >= .layer_ms * 0.9'
expect 'exchanges between devices without a device' 2 \
    ranks 2 gpu.json --backend cpu --comm nccl

expect 'the timing of kernels can be tried on any device' 0 \
    "$build/tests/gpu/bench" "$MOEFOLD_PLUGINS/opencl.so" --small
expect_line 'it has a line for each' '^unpermute backward +[0-9]'

export MOEFOLD_PLUGINS=$build/kernels/cuda
expect 'a backend that is not there' 1 ranks 2 gpu.json --backend nosuch
expect_error 'is named with its path' 'backend nosuch: no plug-in at .*nosuch'
expect 'a backend by a path' 2 ranks 2 gpu.json --backend ../opencl

if [ ! -e "$build/kernels/cuda/cuda.so" ]; then
    skip 'CUDA without a driver' 'built without CUDA'
elif [ -e /dev/nvidiactl ]; then
    skip 'CUDA without a driver' 'there is a driver'
else
    expect 'CUDA without a driver' 1 ranks 2 gpu.json --backend cuda
    expect_error 'says so' 'backend cuda: no CUDA driver'
    expect 'a plan for GPUs where there is none' 0 ranks 2 gpu.json \
        --iterations 1 --warmup 0 --json --no-history
    expect_error 'is run on the CPUs' 'no CUDA driver, using cpu'
fi

done_testing
