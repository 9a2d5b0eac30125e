#!/usr/bin/env bash
# Checks that the feature `cuda` of antinoise-train compiles, and so do its tests and examples for a GPU. Nothing is linked or run:
# no GPU is needed, and no driver.
#
#     scripts/cuda_check.sh
#
# It takes the CUDA toolkit that CUDA_HOME names; where that is not set, it installs the parts that are needed into target/cuda
# (300 MB from the package index). The first time candle's kernels are compiled: about eight minutes of one core.
# CUDA_COMPUTE_CAP says for which GPUs; here it is 80 unless set.
set -euo pipefail
cd "$(dirname "$0")/.."
target=$(realpath -m "${CARGO_TARGET_DIR:-target}")/cuda

if [ -z "${CUDA_HOME-}" ]; then
    python=$target/venv/bin/python
    [ -x "$python" ] || python3 -m venv "$target/venv"
    # Compiler and headers of one version: a later part than the compiler is refused by it.
    "$python" -m pip install --quiet --disable-pip-version-check nvidia-{cuda-{nvcc,crt,runtime,cccl},nvvm}'==13.0.*'
    CUDA_HOME=$("$python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/nvidia/cu13
fi
export CUDA_HOME CUDA_PATH=$CUDA_HOME PATH=$CUDA_HOME/bin:$PATH CUDA_COMPUTE_CAP=${CUDA_COMPUTE_CAP:-80}
nvcc --version
cargo check --package antinoise-train --features cuda --lib --tests --examples --target-dir "$target/build"
