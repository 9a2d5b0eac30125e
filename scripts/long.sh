#!/usr/bin/env bash
# What takes longer than a check before each commit may, in lanes that are listed below and can be run alone.
#
#     scripts/long.sh                         every lane, as long as ./check long gives it
#     scripts/long.sh version                 fewer features, packages as they are used, the oldest compiler that is promised, other
#                                             processors, and the size of the wheel: before each version, and after a change to what they depend on
#     scripts/long.sh sweeps                  every case of the sweeps of which ./check takes a share, and new cases of all random tests
#     scripts/long.sh fuzz [SECONDS [TARGET...]]     every parser of a file from outside (fuzz/README.md), a minute each
#     scripts/long.sh mutants [COUNT [PACKAGE...]]   every n-th mutant, about COUNT of a package (docs/testing.md), 10 by default
#
# What was found lies in target/fuzz/found and target/mutants.
set -euo pipefail
cd "$(dirname "$0")/.."
target=$(realpath -m "${CARGO_TARGET_DIR:-target}")

lanes=(version sweeps fuzz mutants)

# Every case of the sweeps of which ./check takes a share, and for all random tests cases that ./check does not draw.
lane_sweeps() {
    export PROPTEST_RNG_SEED=$(od -An -N4 -tu4 /dev/urandom | tr -d ' ')
    echo "random tests: PROPTEST_RNG_SEED=$PROPTEST_RNG_SEED"
    cargo test --release --workspace --features antinoise-cli/parquet,antinoise-train/candle
    export ANTINOISE_SWEEPS=whole
    cargo test --release -p antinoise-accounting --test truncated --test b_min_sep --test changed --test fixed_size --test sampled
    cargo test --release -p antinoise-audit --test calibration
    cargo test --release -p antinoise-mechanism --test laws --test forms --test running
    cargo test --release -p antinoise-plan --test choice --test sampled
}

lane_version() {
    cargo clippy --release -p antinoise-cli --no-default-features --all-targets -- -D warnings
    cargo clippy --release -p antinoise-linear -p antinoise-mechanism --no-default-features --all-targets -- -D warnings
    cargo test --release -p antinoise-linear -p antinoise-mechanism --no-default-features --lib
    python3 scripts/package.py --run
    scripts/toolchains
    scripts/python.sh wheel
}

# Inputs that are new to the coverage lie in target/fuzz/corpus; those to start from in fuzz/corpus.
lane_fuzz() {
    local seconds=${1-60} failed=() names TIMEFORMAT='%U %S'
    shift $(($# > 0))
    CARGO_TARGET_DIR="$target/fuzz" RUSTC_WRAPPER="$PWD/fuzz/instrument" \
        cargo build --profile fuzz --package antinoise-fuzz --features libfuzzer --quiet
    names=("$@")
    [ $# -gt 0 ] || names=($(ls fuzz/corpus))
    for name in "${names[@]}"; do
        fuzz_target "$name" "$seconds" || failed+=("$name")
    done
    [ ${#failed[@]} -eq 0 ] || { echo "found: ${failed[*]} (target/fuzz/found)" >&2 && return 1; }
}

# fuzz_target NAME SECONDS: one line of what it did.
fuzz_target() {
    local corpus=$target/fuzz/corpus/$1 found=$target/fuzz/found/$1 log=$target/fuzz/$1.log words processor status=0
    words=$target/fuzz/$1.dict
    mkdir -p "$corpus" "$found"
    grep -ohaE '[A-Za-z][A-Za-z_-]{2,30}' fuzz/corpus/"$1"/* | sort -u | sed 's/.*/"&"/' >"$words" || true
    [ -s "$words" ] || words=
    scratch=$(mktemp -d "$([ -w /dev/shm ] && echo /dev/shm || echo "$target/fuzz")/antinoise.XXXXXX")
    # By the clock: a machine that is busy with other things is no finding.
    processor=$(
        ulimit -v 8388608
        {
            time TARGET=$1 TMPDIR=$scratch RAYON_NUM_THREADS=1 "$target/fuzz/fuzz/fuzz" -max_total_time="$2" -timeout=120 -rss_limit_mb=2048 \
                -max_len=4096 ${words:+-dict="$words"} -artifact_prefix="$found/" -print_final_stats=1 "$corpus" "fuzz/corpus/$1" >"$log" 2>&1
        } 2>&1
    ) || status=$?
    rm -rf "$scratch"
    echo "$1: $(sed -n 's/^stat::number_of_executed_units: *//p' "$log") executions in $(awk '{ print $1 + $2 }' <<<"$processor") s of processor time," \
        "$(ls "$corpus" | wc -l) inputs kept, status $status"
    return $status
}

# About COUNT mutants of each PACKAGE, all in one build of a copy of the tree.
lane_mutants() {
    local count=${1-10} home=$target/mutants python packages
    shift $(($# > 0))
    command -v cargo-mutants >/dev/null || { echo "left out: cargo install cargo-mutants --locked" >&2 && return; }
    python=$home/python/bin/python
    [ -x "$python" ] || { python3 -m venv "$home/python" && "$python" -m pip install --quiet tree_sitter tree_sitter_rust; }
    rm -rf "$home/tree" && mkdir -p "$home/tree"
    git ls-files -z | xargs -0 cp -p --parents -t "$home/tree"
    packages=$(IFS=, && echo "$*")
    "$python" scripts/mutants.py draw "$home/drawn.json" --count "$count" ${packages:+--packages "$packages"}
    export CARGO_TARGET_DIR=$home/build
    "$python" scripts/mutants.py plant "$home/drawn.json" --tree "$home/tree" 2>"$home/log"
    "$python" scripts/mutants.py test "$home/drawn.json" --tree "$home/tree" ${packages:+--packages "$packages"}
}

case "${1-all}" in
all) for lane in "${lanes[@]}"; do "lane_$lane"; done ;;
*)
    [[ " ${lanes[*]} " == *" $1 "* ]] || { sed -n '2,12s/^# \{0,1\}//p' "$0" >&2 && exit 2; }
    "lane_$1" "${@:2}"
    ;;
esac
