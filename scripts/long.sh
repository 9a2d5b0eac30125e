#!/usr/bin/env bash
# What takes longer than a check before each commit may, in lanes that are listed below and can be run alone.
#
#     scripts/long.sh                         every lane, as long as ./check long gives it
#     scripts/long.sh fuzz [SECONDS [TARGET...]]     every parser of a file from outside (fuzz/README.md), a minute each
#     scripts/long.sh mutants [COUNT [PACKAGE...]]   every n-th mutant, about COUNT of a package (docs/testing.md), 10 by default
#
# What was found lies in target/fuzz/found and target/mutants.
set -euo pipefail
cd "$(dirname "$0")/.."
target=$(realpath -m "${CARGO_TARGET_DIR:-target}")

lanes=(fuzz mutants)

# Inputs that are new to the coverage lie in target/fuzz/corpus; those to start from in fuzz/corpus.
lane_fuzz() {
    local seconds=${1-60} failed=() names
    shift $(($# > 0))
    cp Cargo.lock fuzz/Cargo.lock
    (cd fuzz && CARGO_TARGET_DIR="$target/fuzz" RUSTC_WRAPPER="$PWD/instrument" cargo build --release --quiet)
    names=("$@")
    [ $# -gt 0 ] || names=($(ls fuzz/corpus))
    for name in "${names[@]}"; do
        fuzz_target "$name" "$seconds" || failed+=("$name")
    done
    [ ${#failed[@]} -eq 0 ] || { echo "found: ${failed[*]} (target/fuzz/found)" >&2 && return 1; }
}

# fuzz_target NAME SECONDS: one line of what it did.
fuzz_target() {
    local corpus=$target/fuzz/corpus/$1 found=$target/fuzz/found/$1 log=$target/fuzz/$1.log words status=0
    words=$target/fuzz/$1.dict
    mkdir -p "$corpus" "$found"
    grep -ohaE '[A-Za-z][A-Za-z_-]{2,30}' fuzz/corpus/"$1"/* | sort -u | sed 's/.*/"&"/' >"$words" || true
    [ -s "$words" ] || words=
    scratch=$(mktemp -d "$([ -w /dev/shm ] && echo /dev/shm || echo "$target/fuzz")/antinoise.XXXXXX")
    (
        ulimit -v 8388608
        # By the clock: a machine that is busy with other things is no finding.
        TARGET=$1 TMPDIR=$scratch RAYON_NUM_THREADS=1 "$target/fuzz/release/fuzz" -max_total_time="$2" -timeout=120 -rss_limit_mb=2048 \
            -max_len=4096 ${words:+-dict="$words"} -artifact_prefix="$found/" -print_final_stats=1 "$corpus" "fuzz/corpus/$1"
    ) >"$log" 2>&1 || status=$?
    rm -rf "$scratch"
    echo "$1: $(sed -n 's/^stat::number_of_executed_units: *//p' "$log") executions, $(ls "$corpus" | wc -l) inputs kept, status $status"
    return $status
}

# PACKAGE, the files whose mutants are drawn, and the tests that decide; those of other packages are not asked.
mutants=(
    "accounting|crates/accounting/src|--lib --test=gdp --test=others --test=sampled"
    "mechanism|crates/mechanism/src/sensitivity|--lib --test=laws --test=forms --test=extremes"
    "plan|crates/plan/src/{verify,sampler,turns,participations,min_sep,bins}.rs|--lib --test=altered --test=claims --test=bins --test=b_min_sep"
    "noise|crates/noise/src/{key/*,stream}.rs|--lib --test=key_file --test=keys --test=checkpoint --test=stream"
    "train|crates/train/src/clip|--lib --test=clipping --test=contributions --test=sensitivity"
    "release|crates/release/src/{freeze,publish}.rs|--lib --test=bad_input --test=streams --test=values --test=links"
    "ledger|crates/ledger/src|--lib --test=damage --test=laws --test=federation"
)

lane_mutants() {
    local count=${1-10} row package files tests
    shift $(($# > 0))
    command -v cargo-mutants >/dev/null || { echo "left out: cargo install cargo-mutants --locked" >&2 && return; }
    for row in "${mutants[@]}"; do
        IFS='|' read -r package files tests <<<"$row"
        [ $# -eq 0 ] || [[ " $* " == *" $package "* ]] || continue
        mutants_of "$package" "$files" "$tests" "$count"
    done
}

# mutants_of PACKAGE FILES TESTS COUNT: every n-th mutant, so that there are about COUNT, each built and tested by itself in a copy of the tree.
mutants_of() {
    local out=$target/mutants/$1 all shards options tests
    [[ $2 == *.rs ]] && files=$2 || files="$2/**/*.rs"
    options=(--package "antinoise-$1" --file "$files")
    all=$(cargo mutants --list "${options[@]}" | wc -l)
    shards=$(((all + $4 - 1) / $4))
    mkdir -p "$out"
    # To cargo, not to its tests alone: else examples are built for each mutant.
    read -ra tests <<<"$3"
    CARGO_INCREMENTAL=1 CARGO_TARGET_DIR=$target/mutants/build cargo mutants "${options[@]}" --test-package "antinoise-$1" --profile release \
        --cargo-arg="--config=profile.release.package.antinoise-$1.codegen-units=16" --shard "0/$shards" --sharding round-robin --no-shuffle \
        --timeout 120 --build-timeout 900 --jobs 1 --output "$out" --no-times "${tests[@]/#/--cargo-arg=}" >"$out/log" 2>&1 || true
    (
        cd "$out/mutants.out"
        echo "$1: $(cat caught.txt timeout.txt | wc -l) killed, $(wc -l <missed.txt) survived, $(wc -l <unviable.txt) do not compile, of $all"
        sed 's/^/  survived: /' missed.txt
    )
}

case "${1-all}" in
all) for lane in "${lanes[@]}"; do "lane_$lane"; done ;;
*)
    [[ " ${lanes[*]} " == *" $1 "* ]] || { sed -n '2,9s/^# \{0,1\}//p' "$0" >&2 && exit 2; }
    "lane_$1" "${@:2}"
    ;;
esac
