#!/usr/bin/env bash
# Builds what a version publishes, and tests it from these files alone.
#
#     scripts/artefacts.sh build [TARGET...]   wheel and program for each Rust target (this machine's by default), in target/artefacts
#     scripts/artefacts.sh sources             source distribution for Python, crates, list of components, in target/artefacts
#     scripts/artefacts.sh site                the site, with the reference of the program that was built for this machine
#     scripts/artefacts.sh test                installs what is there for this machine into empty environments and uses it
#     scripts/artefacts.sh checksums           SHA256SUMS of all files in target/artefacts
#     scripts/artefacts.sh                     all five for this machine: a dry run of a version, which publishes nothing
#
# Linux targets are linked by Zig against glibc 2.17 (manylinux2014), or against musl.
set -euo pipefail
cd "$(dirname "$0")/.."
target=$(realpath -m "${CARGO_TARGET_DIR:-target}")
made=$target/artefacts
version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -1)
host=$(rustc -vV | sed -n 's/^host: //p')
. scripts/sizes.sh

# tools: an environment with the build tools, in versions that were tried together.
tools() {
    local home=$target/python/artefacts
    [ -d "$home" ] || python3 -m venv "$home"
    bin=$home/bin
    [ -d "$bin" ] || bin=$home/Scripts
    "$bin/python" -m pip install --quiet --disable-pip-version-check 'maturin==1.16.0' 'ziglang==0.17.1' 'cargo-zigbuild==0.24.1'
    export PATH=$bin:$PATH
}

build() {
    tools
    mkdir -p "$made"
    for triple in "${@:-$host}"; do
        rustup target add "$triple" >/dev/null
        wheel "$triple"
        program "$triple"
    done
}

# The names of the new wheels are maturin's: built in a folder of their own, then moved.
wheel() {
    local folder=$target/artefacts.new zig=()
    rm -rf "$folder"
    case $1 in
    *-linux-gnu) zig=(--zig --compatibility manylinux2014) ;;
    *-linux-musl) zig=(--zig --compatibility musllinux_1_2) ;;
    esac
    (cd python && maturin build --profile wheel --compression-level 9 --quiet --target "$1" "${zig[@]}" --out "$folder")
    at_most "$most_wheel_bytes" "$folder"/*.whl
    mv "$folder"/*.whl "$made"
}

# One archive with the program, its completions and manual pages, and the licences.
program() {
    local name=antinoise-$version-$1 folder file=antinoise cargo=(cargo build) built=$1
    case $1 in
    *-linux-gnu) cargo=(cargo zigbuild) built=$1.2.17 ;;
    *-linux-musl) cargo=(cargo zigbuild) ;;
    *-windows-*) file=antinoise.exe ;;
    esac
    "${cargo[@]}" --profile wheel --locked --quiet -p antinoise-cli --features parquet --target "$built"
    folder=$made/$name
    rm -rf "$folder"
    mkdir -p "$folder"
    cp "$target/$1/wheel/$file" LICENSE-MIT LICENSE-APACHE README.md CHANGELOG.md "$folder"
    at_most "$most_program_bytes" "$folder/$file"
    # Only a program for this machine can print completions, and they are the same for all: it is built first.
    [ "$1" != "$host" ] || extras "$folder/$file"
    [ ! -d "$target/artefacts.extras" ] || cp -r "$target/artefacts.extras/." "$folder"
    (cd "$made" && tar -czf "$name.tar.gz" "$name")
    rm -rf "$folder"
}

# extras PROGRAM: completions of four shells and manual pages, in target/artefacts.extras.
extras() {
    local folder=$target/artefacts.extras
    rm -rf "$folder"
    mkdir -p "$folder/completions"
    for shell in bash zsh fish powershell; do
        "$1" completions "$shell" >"$folder/completions/antinoise.$shell"
    done
    "$1" man --out "$folder/man" >/dev/null
}

sources() {
    local digest
    tools
    mkdir -p "$made/crates"
    # It looks for a Cargo.toml in python/ first, and prints that there is none: "error: manifest path".
    (cd python && maturin sdist --out "$made")
    cargo package --workspace --exclude antinoise-python --exclude antinoise-web --no-verify --quiet --target-dir "$target/packages"
    cp "$target"/packages/package/antinoise-*-"$version".crate "$made/crates"
    digest=$(sha256sum "$made/antinoise-$version.tar.gz" | cut -d' ' -f1)
    sed "s/VERSION/$version/; s/SHA256/$digest/" packaging/conda/recipe.yaml >"$made/recipe.yaml"
    if cargo cyclonedx --version >/dev/null 2>&1; then
        cargo cyclonedx --manifest-path crates/cli/Cargo.toml --format json --override-filename "antinoise-$version-components"
        mv "crates/cli/antinoise-$version-components.json" "$made"
    else
        echo "left out: the list of components (cargo install cargo-cyclonedx --locked)" >&2
    fi
}

site() {
    ANTINOISE_PROGRAM=$target/$host/wheel/antinoise scripts/site.sh build
    tar -czf "$made/antinoise-$version-site.tar.gz" -C "$target" --transform "s/^site/antinoise-$version-site/" site
}

# In a folder without the checkout, with an environment that holds only the wheel and what it asks for.
test_made() {
    local scratch wheels archives
    scratch=$(mktemp -d)
    trap 'rm -rf "$scratch"' RETURN
    wheels=("$made"/antinoise-"$version"-*$(wheel_tag)*.whl) # in quotes, the * of a tag would be a letter
    archives=("$made/antinoise-$version-$host.tar.gz")
    [ -f "${wheels[0]}" ] || { echo "no wheel for $host in $made" >&2 && exit 1; }
    [ -f "${archives[0]}" ] || { echo "no program for $host in $made" >&2 && exit 1; }
    python3 -m venv "$scratch/python"
    "$scratch/python/bin/python" -m pip install --quiet --disable-pip-version-check "${wheels[0]}"
    tar -xzf "${archives[0]}" -C "$scratch"
    (
        cd "$scratch"
        "antinoise-$version-$host/antinoise" plan --examples 60000 --batch-size 500 --epochs 4 --epsilon 4 --setting cyclic --out program.toml
        python/bin/antinoise plan --examples 60000 --batch-size 500 --epochs 4 --epsilon 4 --setting cyclic --out wheel.toml
        cmp program.toml wheel.toml
        "antinoise-$version-$host/antinoise" verify program.toml
        python/bin/python - <<'PYTHON'
import antinoise

plan = antinoise.Plan.load("wheel.toml")
print(f"{antinoise.__version__}: {plan.steps} steps, {plan.statement.splitlines()[0]}")
PYTHON
    )
}

# The part of a wheel's name that says for which machine it is.
wheel_tag() {
    case $host in
    x86_64-*-linux-gnu) echo 'manylinux*x86_64' ;;
    aarch64-*-linux-gnu) echo 'manylinux*aarch64' ;;
    aarch64-apple-darwin) echo 'macosx*arm64' ;;
    x86_64-pc-windows-*) echo win_amd64 ;;
    *) echo "no wheel is published for $host" >&2 && exit 1 ;;
    esac
}

checksums() {
    local listed
    listed=$(cd "$made" && find . -type f ! -name SHA256SUMS -printf '%P\n' | sort | xargs -d '\n' sha256sum)
    tee "$made/SHA256SUMS" <<<"$listed"
}

case "${1-all}" in
build) build "${@:2}" ;;
sources) sources ;;
site) site ;;
test) test_made ;;
checksums) checksums ;;
all)
    rm -rf "$made"
    build
    sources
    site
    test_made
    checksums
    ;;
*) sed -n '2,12s/^# \{0,1\}//p' "$0" >&2 && exit 2 ;;
esac
