//! Bits that must never change: checkpoints and rows of every class of strategies, plain and on a grid, under
//! both ciphers, as first generated. A change would give other noise for keys in use, and refuse existing
//! checkpoints.
//!
//! `golden/recursions.toml` holds the recursions, so that a better solver changes nothing here. `rows.toml`
//! holds the rows of three coordinates, as bits, and a digest of the rows of 20,000 (staggered tiles, refined
//! words). The other files are checkpoints in the middle of a run.

mod classes;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use antinoise_mechanism::Recursion;
use antinoise_noise::{Cipher, Grid, Key, NoiseStream, Shard, StreamBuilder};
use classes::designs;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

const STEPS: usize = 8;
const SAVED_AT: usize = 5;
const DIM: usize = 20_000;
const FEW: u64 = 3;
const CIPHERS: [(&str, Cipher); 2] = [("aes", Cipher::Aes256Ctr), ("chacha", Cipher::ChaCha20)];

#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Rows {
    /// The first coordinates, one row after the other.
    bits: Vec<u32>,
    /// SHA-256 of the bits of all coordinates, as hexadecimal digits.
    digest: String,
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden")
}

fn read<T: serde::de::DeserializeOwned>(name: &str) -> BTreeMap<String, T> {
    toml::from_str(&std::fs::read_to_string(folder().join(name)).unwrap()).unwrap()
}

fn builder(recursion: &Recursion, cipher: Cipher) -> StreamBuilder {
    NoiseStream::builder(recursion.clone(), STEPS, DIM, 1.5).cipher(cipher).threads(1).context([9; 32])
}

fn grid() -> Grid {
    Grid::new(2f64.powi(-14)).unwrap()
}

fn key() -> Key {
    Key::from_seed_insecure(2024)
}

fn rows(len: usize, mut next: impl FnMut(&mut [f32])) -> Vec<f32> {
    let mut rows = vec![0.0; STEPS * len];
    rows.chunks_exact_mut(len).for_each(&mut next);
    rows
}

/// The rows of both kinds of streams, for the coordinates that `configure` selects.
fn both(builder: &StreamBuilder) -> [Vec<f32>; 2] {
    let mut plain = builder.clone().build(key()).unwrap();
    let mut on_grid = builder.clone().grid(grid()).build(key()).unwrap();
    let sum: Vec<f64> = (0..on_grid.len()).map(|j| (j as f64).sin()).collect();
    [
        rows(plain.len(), |row| plain.next_into(row).unwrap()),
        rows(sum.len(), |row| on_grid.add_to_sum(&sum, row).unwrap()),
    ]
}

/// Every stream's rows, by name.
fn all_rows(recursions: &BTreeMap<String, Recursion>) -> BTreeMap<String, Rows> {
    let mut all = BTreeMap::new();
    for (name, recursion) in recursions {
        for (cipher_name, cipher) in CIPHERS {
            let builder = builder(recursion, cipher);
            let few = both(&builder.clone().shard(Shard::of_range(0..FEW)));
            for ((kind, few), whole) in ["plain", "grid"].into_iter().zip(few).zip(both(&builder)) {
                let mut digest = Sha256::new();
                whole.iter().for_each(|x| digest.update(x.to_bits().to_le_bytes()));
                let digest = digest.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
                let bits = few.iter().map(|x| x.to_bits()).collect();
                all.insert(format!("{name} {kind} {cipher_name}"), Rows { bits, digest });
            }
        }
    }
    all
}

/// Writes the checkpoints of a run of few coordinates to `folder`, and gives their names.
fn save_all(recursions: &BTreeMap<String, Recursion>, folder: &Path) -> Vec<String> {
    let mut names = Vec::new();
    for (name, recursion) in recursions {
        for (cipher_name, cipher) in CIPHERS {
            let builder = builder(recursion, cipher).shard(Shard::of_range(0..FEW));
            let mut row = [0.0; FEW as usize];
            let files = ["plain", "grid"].map(|kind| format!("{name}-{kind}-{cipher_name}.safetensors"));
            let mut plain = builder.clone().memory_budget(1 << 20).build(key()).unwrap();
            (0..SAVED_AT).for_each(|_| plain.next_into(&mut row).unwrap());
            plain.save(folder.join(&files[0])).unwrap();
            let mut on_grid = builder.memory_budget(1 << 20).grid(grid()).build(key()).unwrap();
            (0..SAVED_AT).for_each(|_| on_grid.next_into(&mut row).unwrap());
            on_grid.save(folder.join(&files[1])).unwrap();
            names.extend(files);
        }
    }
    names
}

#[test]
fn every_class_has_its_golden_recursion() {
    let recursions: BTreeMap<String, Recursion> = read("recursions.toml");
    for (name, _) in designs(STEPS) {
        assert!(recursions.contains_key(&name), "{name} has no golden file");
    }
}

#[test]
fn rows_are_what_they_were() {
    let found = all_rows(&read("recursions.toml"));
    let golden: BTreeMap<String, Rows> = read("rows.toml");
    assert_eq!(found.len(), golden.len());
    for (name, rows) in &golden {
        assert_eq!(&found[name], rows, "{name}");
    }
}

#[test]
fn checkpoints_are_what_they_were() {
    let (new, golden) = (tempfile::tempdir().unwrap(), folder());
    for name in save_all(&read("recursions.toml"), new.path()) {
        let [new, golden] = [new.path(), &golden].map(|folder| std::fs::read(folder.join(&name)).unwrap());
        assert!(new == golden, "{name}");
    }
}

#[test]
fn old_checkpoints_go_on_as_they_would_have() {
    let golden: BTreeMap<String, Rows> = read("rows.toml");
    for (name, recursion) in read::<Recursion>("recursions.toml") {
        for (cipher_name, cipher) in CIPHERS {
            let builder = builder(&recursion, cipher).shard(Shard::of_range(0..FEW));
            let path = |kind| folder().join(format!("{name}-{kind}-{cipher_name}.safetensors"));
            let rest =
                |kind| &golden[&format!("{name} {kind} {cipher_name}")].bits[SAVED_AT * FEW as usize..];
            let mut row = [0.0; FEW as usize];
            let mut plain = builder.clone().resume(path("plain")).unwrap();
            for expected in rest("plain").chunks_exact(row.len()) {
                plain.next_into(&mut row).unwrap();
                assert_eq!(row.map(f32::to_bits), expected, "{name}");
            }
            let mut on_grid = builder.grid(grid()).resume(path("grid")).unwrap();
            let sum: [f64; FEW as usize] = std::array::from_fn(|j| (j as f64).sin());
            for expected in rest("grid").chunks_exact(row.len()) {
                on_grid.add_to_sum(&sum, &mut row).unwrap();
                assert_eq!(row.map(f32::to_bits), expected, "{name} on a grid");
            }
        }
    }
}

/// Adds files that are missing for a new class and keeps all others: replacing an old file would hide that
/// bits have changed.
#[test]
#[ignore = "writes the golden files"]
fn write() {
    let mut recursions: BTreeMap<String, Recursion> = read("recursions.toml");
    for (name, strategy) in designs(STEPS) {
        recursions.entry(name).or_insert_with(|| strategy.recursion().unwrap());
    }
    let mut rows: BTreeMap<String, Rows> = read("rows.toml");
    all_rows(&recursions).into_iter().for_each(|(name, new)| {
        rows.entry(name).or_insert(new);
    });
    let new = tempfile::tempdir().unwrap();
    for name in save_all(&recursions, new.path()) {
        if !folder().join(&name).exists() {
            std::fs::copy(new.path().join(&name), folder().join(&name)).unwrap();
        }
    }
    std::fs::write(folder().join("recursions.toml"), toml::to_string(&recursions).unwrap()).unwrap();
    std::fs::write(folder().join("rows.toml"), toml::to_string(&rows).unwrap()).unwrap();
}
