#!/usr/bin/env bash
# Everything that needs a GPU, in at most ten minutes on a machine with one, and what can be done without.
#
#     scripts/gpu/all.sh            tests on the GPU, bits of noise on host and device, compilations, times and memory of models of 1e8
#                                   and 1e9 parameters beside Opacus; writes docs/results/gpu.md with the device's name
#     scripts/gpu/all.sh dry        the same measurements of tiny models on the CPU, written to target/gpu-dry.md: checks the scripts
#     scripts/gpu/all.sh compile    compiles the feature `cuda` of antinoise-train, its tests and examples, without a GPU or a driver
#
# PYTHON names a Python with antinoise, PyTorch (with CUDA) and Opacus; otherwise it is that of `scripts/python.sh stacks torch`.
#
# The CUDA toolkit is that which CUDA_HOME names; where it is not set, the parts that are needed are installed into target/cuda (300 MB
# from the package index). The first time candle's kernels are compiled: about eight minutes of one core. CUDA_COMPUTE_CAP says for
# which GPUs; `compile` takes 80 unless it is set. There are no kernels of Triton here, except those that torch.compile makes.
set -euo pipefail
cd "$(dirname "$0")/../.."
target=$(realpath -m "${CARGO_TARGET_DIR:-target}")
python=${PYTHON:-$target/python/torch/bin/python}
# Seconds for the measurements in Python, and for building and running the tests in Rust.
measuring=360 testing=210

toolkit() {
    if [ -z "${CUDA_HOME-}" ]; then
        local venv=$target/cuda/venv/bin/python
        [ -x "$venv" ] || python3 -m venv "$target/cuda/venv"
        # Compiler and headers of one version: a later part than the compiler is refused by it.
        "$venv" -m pip install --quiet --disable-pip-version-check nvidia-{cuda-{nvcc,crt,runtime,cccl},nvvm}'==13.0.*'
        CUDA_HOME=$("$venv" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/nvidia/cu13
    fi
    export CUDA_HOME CUDA_PATH=$CUDA_HOME PATH=$CUDA_HOME/bin:$PATH
    nvcc --version
}

case "${1-all}" in
compile)
    export CUDA_COMPUTE_CAP=${CUDA_COMPUTE_CAP:-80}
    toolkit
    cargo check --package antinoise-train --features cuda --lib --tests --examples --target-dir "$target/cuda/build"
    ;;
dry)
    "$python" scripts/gpu/measure.py --device cpu --parameters 1e4,1e5 --out "$target/gpu-dry.md"
    ;;
all)
    name=$(nvidia-smi --query-gpu=name --format=csv,noheader 2>/dev/null | head -1) || true
    if [ -z "$name" ]; then
        echo "no GPU here: nvidia-smi names none, so nothing was run or written. scripts/gpu/all.sh dry and scripts/gpu/all.sh" \
            "compile need none." >&2
        exit 3
    fi
    timeout "$measuring" "$python" scripts/gpu/measure.py --device cuda --parameters 1e8,1e9 --out docs/results/gpu.md
    tests=passed
    if [ -z "${CUDA_HOME-}" ] && ! command -v nvcc >/dev/null; then
        tests="not run: no CUDA toolkit (CUDA_HOME)"
    elif ! (toolkit && timeout "$testing" cargo test --release -p antinoise-train --features cuda --test candle_cuda -- --ignored); then
        tests="failed, or not done in $testing s"
    fi
    printf '\nTests of candle on the GPU (`crates/train/tests/candle_cuda.rs`): %s.\n' "$tests" >>docs/results/gpu.md
    echo "$name: docs/results/gpu.md; tests of candle: $tests"
    [ "$tests" != "failed, or not done in $testing s" ]
    ;;
*)
    echo "all, dry or compile, not $1" >&2
    exit 2
    ;;
esac
