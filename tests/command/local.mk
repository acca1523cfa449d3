# SPDX-License-Identifier: BSD-3-Clause
EXTRA_DIST += tests/data/scripts/README.md $(golden_slurms:%=tests/data/scripts/%.sh)
golden_slurms = 22.05 23.11 24.11 25.05
EXTRA_DIST += tests/command/lib.sh tests/command/README.md \
    tests/command/mesh.py
command_tests += tests/command/t0001-style.t tests/command/t0002-linkage.t
command_tests += tests/command/t0440-golden.t tests/command/t0414-gate.t
golden_kinds = mixtral qwen2-moe qwen3-moe deepseek-v3 olmoe gpt-oss
EXTRA_DIST += tests/data/golden/README.md tests/data/golden/make.py \
    tests/data/golden/compare.py \
    $(golden_kinds:%=tests/data/golden/%.json) \
    $(golden_kinds:%=tests/data/golden/%.in.safetensors) \
    $(golden_kinds:%=tests/data/golden/%.out.safetensors)
