#!/usr/bin/env bash
# Builds the site from docs/ (MkDocs, mkdocs.yml) into target/site, for any web server or to be opened as files.
#
#     scripts/site.sh          build the pages and check them, and that the planner compiles: part of ./check
#     scripts/site.sh build    build all of it; a warning, such as a link that leads nowhere, is an error
#     scripts/site.sh check    the built site: links, and blocks of each page against its Markdown
#     scripts/site.sh look     the built site in headless Chromium, clicked and searched; by hand, since a browser is not a given
#     scripts/site.sh planner  build, and compare the planner in Chromium with the command line on 100 random requests (or N)
#
# The reference of the command line is taken from target/release/antinoise (cargo build --release) or the program that
# ANTINOISE_PROGRAM names, that of the crates from target/doc, if cargo doc has written it, and that of Python from its
# sources and stubs.
#
# The environment lies in target/python/site; the first time, what it holds comes from the package index.
set -euo pipefail
cd "$(dirname "$0")/.."
target=$(realpath -m "${CARGO_TARGET_DIR:-target}")
python=$target/python/site/bin/python
export NO_MKDOCS_2_WARNING=1

python3 -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "left out: the site needs Python 3.11" >&2 && exit; }
[ -x "$python" ] || python3 -m venv "$target/python/site"
"$python" -m pip install --quiet --disable-pip-version-check -r scripts/site/requirements.txt

wasm_target() {
    [ -d "$(rustc --print target-libdir --target wasm32-unknown-unknown)" ] || rustup target add wasm32-unknown-unknown
}
pages() { "$python" -m mkdocs build --quiet --strict --site-dir "$target/site"; }
build() {
    pages
    wasm_target
    # With vectors of two numbers, a sixth of the time is saved; no bit depends on them.
    cargo build --quiet --profile wheel -p antinoise-web --target wasm32-unknown-unknown \
        --config 'target.wasm32-unknown-unknown.rustflags = ["-Ctarget-feature=+simd128"]'
    "$python" scripts/site/planner.py pack "$target/wasm32-unknown-unknown/wheel/antinoise_web.wasm" "$target/site"
}
# compiles: whether the planner compiles for browsers, which have 32 bits.
compiles() {
    wasm_target || { echo "left out: the planner for browsers needs Rust's target wasm32-unknown-unknown" >&2 && return; }
    cargo check --quiet --profile wheel -p antinoise-web --target wasm32-unknown-unknown
}
check() { "$python" scripts/site/links.py "$target/site"; }
case "${1-all}" in
build) build ;;
check) check ;;
look) "$python" scripts/site/browser.py "$target/site" ;;
planner)
    build
    "$python" scripts/site/planner.py compare "$target/site" "$target/release/antinoise" --requests "${2-100}"
    ;;
all)
    pages
    check
    compiles
    ;;
*)
    sed -n '2,8s/^# \{0,1\}//p' "$0" >&2
    exit 2
    ;;
esac
