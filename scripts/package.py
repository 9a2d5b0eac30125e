#!/usr/bin/env python3
"""Checks that the packages of the crates, as a registry would hold them, are complete and can be used.

    python3 scripts/package.py           packs every crate and looks into the packages: part of ./check
    python3 scripts/package.py --run     also compiles and runs what they hold: part of scripts/long.sh version

With --run, packages are unpacked into target/packed, a workspace in which they depend on each other and not
on files of this checkout. All their targets are compiled, and the examples in their documentation run. Then a
project in a temporary folder, which depends on three of the packages, calibrates a noise multiplier and makes
a step of noise. Compiled dependencies of this checkout are reused. Needs only Python's standard library.
"""

import json
import os
import re
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TARGET = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")).resolve()
PACKED = TARGET / "packed"
# Files that every package must hold in addition to its code.
PAGES = {name: (ROOT / name).read_bytes() for name in ["LICENSE-MIT", "LICENSE-APACHE"]}
MOST_BYTES = 1_000_000
KEYS = ["description", "license", "repository", "readme", "rust-version", "keywords", "categories"]

DOWNSTREAM = """\
use antinoise_accounting::{Gdp, calibrate};
use antinoise_noise::{Key, NoiseStream};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let sigma = calibrate::noise_multiplier_upper(1.0, 1, 2.0, 1e-6)?;
    let epsilon = Gdp::from_noise_multiplier_upper(sigma)?.epsilon_upper(1e-6)?;
    let recursion = antinoise_mechanism::Recursion::AutoRegressive { taps: vec![1.0, 0.5] };
    let mut stream = NoiseStream::new(recursion, 2, 10_000, sigma, Key::from_seed_insecure(1))?;
    let mut noise = vec![0.0f32; 10_000];
    stream.add_next_into(&mut noise, 1.0)?;
    let variance = noise.iter().map(|x| f64::from(*x).powi(2)).sum::<f64>() / noise.len() as f64;
    println!("{sigma} {epsilon} {}", variance.sqrt());
    Ok(())
}
"""


def run(command, folder=ROOT, **how):
    print("+", " ".join(command), flush=True)
    return subprocess.run(command, cwd=folder, check=True, **how)


def versions():
    """The name and version of every published crate, and the names of the others."""
    found = run(["cargo", "metadata", "--no-deps", "--format-version=1"], stdout=subprocess.PIPE)
    packages = json.loads(found.stdout)["packages"]
    # `publish` lists the registries a crate may go to: None is every registry, an empty list is none.
    published = {package["name"]: package["version"] for package in packages if package["publish"] is None}
    return published, sorted({package["name"] for package in packages} - set(published))


def contents(archive):
    """The files of a package by path; refuses entries that are not regular files."""
    found = {}
    with tarfile.open(archive) as package:
        for entry in package:
            if not entry.isfile():
                sys.exit(f"{archive.name}: {entry.name} is no regular file")
            found[entry.name.split("/", 1)[1]] = package.extractfile(entry).read()
    return found


def included(files):
    """Each source file with each file that it includes by a path relative to its own."""
    for path, data in files.items():
        if path.endswith(".rs"):
            for other in re.findall(r'include_(?:str|bytes)!\("([^"]+)"\)', data.decode()):
                yield path, os.path.normpath(os.path.join(os.path.dirname(path), other))


def look_into(archive):
    """The files of a package; refuses one that lacks a required file."""
    files = contents(archive)
    manifest = files["Cargo.toml"].decode()
    faults = [f"no {name}, or another" for name, text in PAGES.items() if files.get(name) != text]
    faults += [f"no {key}" for key in KEYS if not re.search(rf"^{key} = ", manifest, flags=re.M)]
    faults += [f"{path} without the file {other}" for path, other in included(files) if other not in files]
    if not files.get("README.md", b"").startswith(b"# antinoise-"):
        faults.append("no README.md with a title")
    if re.search(r"^path = \"\.\.", manifest, flags=re.M):
        faults.append("a path that leads out of it")
    if archive.stat().st_size > MOST_BYTES:
        faults.append(f"{archive.stat().st_size} bytes, more than {MOST_BYTES}")
    if faults:
        sys.exit(f"{archive.name}: " + "; ".join(faults))
    return files


def unpack(files, folder):
    """Writes the files that differ: cargo recognises changed files by their dates, and all dates in packages
    are equal.
    """
    for path in [path for path in folder.rglob("*") if path.is_file()]:
        if str(path.relative_to(folder)) not in files:
            path.unlink()
    for name, data in files.items():
        path = folder / name
        if not path.is_file() or path.read_bytes() != data:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)


def patches(names):
    """The lines of Cargo.toml that replace each published crate by its unpacked package."""
    lines = [f"{name} = {{ path = {json.dumps(str(PACKED / name))} }}" for name in names]
    return "\n[patch.crates-io]\n" + "\n".join(lines) + "\n"


def profiles():
    """The compilation profiles of this checkout, so that its compiled dependencies are reused."""
    text = (ROOT / "Cargo.toml").read_text()
    return "\n" + text[text.index("[profile.release]") :]


def write_workspace(folder, manifest, names):
    (folder / "Cargo.toml").write_text(manifest + patches(names) + profiles())
    (folder / "Cargo.lock").write_bytes((ROOT / "Cargo.lock").read_bytes())
    (folder / "rust-toolchain.toml").write_bytes((ROOT / "rust-toolchain.toml").read_bytes())


def pages(names, shared):
    """Runs the documentation examples in the packages; there must be at least one for each library."""
    command = ["cargo", "test", *shared, "--doc", "--", "ReadMe", "AddingAMechanism"]
    printed = run(command, PACKED, stdout=subprocess.PIPE, text=True).stdout
    passed = re.findall(r"^test (.*) - (?:ReadMe|AddingAMechanism) .*ok$", printed, flags=re.M)
    libraries = [name for name in names if (PACKED / name / "src" / "lib.rs").is_file()]
    if len(passed) <= len(libraries):
        sys.exit(f"{len(passed)} examples of pages for {len(libraries)} libraries and the guide:\n{printed}")
    print(f"{len(passed)} examples of pages run from the packages")


def downstream(names):
    """Builds and runs a project that uses the packages, and checks what it prints."""
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        (folder / "src").mkdir()
        (folder / "src" / "main.rs").write_text(DOWNSTREAM)
        wanted = ["antinoise-accounting", "antinoise-mechanism", "antinoise-noise"]
        lines = "".join(f'{name} = "{names[name]}"\n' for name in wanted)
        package = '[package]\nname = "downstream"\nversion = "0.0.0"\nedition = "2024"\n'
        write_workspace(folder, f"{package}\n[dependencies]\n{lines}", names)
        command = ["cargo", "run", "--quiet", "--release", "--target-dir", str(TARGET)]
        printed = run(command, folder, stdout=subprocess.PIPE, text=True).stdout
    sigma, epsilon, deviation = map(float, printed.split())
    # Calibrated to epsilon 2 at delta 1e-6; the deviation of 10,000 normals is within 5 of its standard
    # errors of 0.7%.
    if not (2.2304 < sigma < 2.2306 and 1.999 < epsilon <= 2.0 and abs(deviation / sigma - 1.0) < 0.036):
        sys.exit(f"a project that uses the packages prints {printed}")
    print(
        f"a project that uses the packages finds sigma {sigma:.6g}, epsilon {epsilon:.6g}, noise of"
        f" {deviation:.4g}"
    )


def main():
    names, others = versions()
    left_out = [f"--exclude={name}" for name in others]
    run(
        [
            "cargo",
            "package",
            "--workspace",
            *left_out,
            "--no-verify",
            "--allow-dirty",
            "--quiet",
            "--target-dir",
            str(TARGET),
        ]
    )
    for name, version in names.items():
        archive = TARGET / "package" / f"{name}-{version}.crate"
        unpack(look_into(archive), PACKED / name)
        print(f"{archive.name}: {archive.stat().st_size} bytes")
    if sys.argv[1:] != ["--run"]:
        return
    members = json.dumps(list(names))
    write_workspace(PACKED, f'[workspace]\nresolver = "3"\nmembers = {members}\n', names)
    shared = ["--release", "--workspace", "--target-dir", str(TARGET)]
    run(["cargo", "check", *shared, "--all-targets", "--quiet"], PACKED)
    pages(names, shared)
    downstream(names)


if __name__ == "__main__":
    main()
