//! Damaged files are refused: checkpoints, and states by coordinate as callers store them, for classes of
//! recursions in both modes.

mod common;

use std::collections::BTreeMap;
use std::path::Path;

use antinoise_input::damage::{CASES, damages};
use antinoise_mechanism::Recursion;
use antinoise_noise::{Error, Grid, Key, NoiseStream, StateAt, StreamBuilder};
use common::{STEPS, cases};
use sha2::{Digest, Sha256};

const DIM: usize = 2500;

fn builder(recursion: &Recursion, run: u64) -> StreamBuilder {
    let builder = NoiseStream::builder(recursion.clone(), STEPS, DIM, 2.0).run(run.into()).context([9; 32]);
    builder.threads(1).state_in_memory()
}

/// The stream at a step.
fn at(recursion: &Recursion, grid: Option<Grid>, (run, seed, step): (u64, u64, usize)) -> NoiseStream {
    let mut stream = builder(recursion, run).grid(grid).build(Key::from_seed_insecure(seed)).unwrap();
    (0..step).for_each(|_| stream.next_into(&mut vec![0.0; DIM]).unwrap());
    stream
}

/// Every damaged file is refused in one of the documented ways.
fn survey(name: &str, file: &[u8], others: &[Vec<u8>], read: impl Fn(&[u8]) -> Result<NoiseStream, Error>) {
    assert_eq!(read(file).unwrap().step(), 5);
    let (mut refused, mut tried) = (0, BTreeMap::new());
    for (kind, damaged) in damages(file, others) {
        *tried.entry(kind).or_insert(0) += 1;
        match read(&damaged) {
            Ok(_) => panic!("{name}: {kind} was accepted"),
            Err(Error::Invalid(_) | Error::AlteredState | Error::Checkpoint { .. }) => refused += 1,
            Err(other) => panic!("{name}: {kind} is {other}"),
        }
    }
    for (kind, count) in CASES {
        // A state may have blocks of zeros already.
        assert!(tried[kind] == count || kind == "zeros" && tried[kind] > 5, "{name}: {tried:?}");
    }
    assert_eq!(refused, tried.values().sum::<usize>(), "{name}");
}

/// The stream whose files are damaged, and streams of another step, run and key.
const OF: [(u64, u64, usize); 4] = [(1, 8, 5), (1, 8, 6), (2, 8, 5), (1, 9, 5)];

#[test]
fn damaged_checkpoints_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("noise");
    let mut surveyed = 0;
    for (name, recursion) in cases().into_iter().step_by(3) {
        for grid in [None, Some(Grid::new(2f64.powi(-14)).unwrap())] {
            let written = |of| {
                at(&recursion, grid, of).save(&path).unwrap();
                std::fs::read(&path).unwrap()
            };
            let files = OF.map(written);
            survey(name, &files[0], &files[1..], |bytes| {
                std::fs::write(&path, bytes).unwrap();
                builder(&recursion, 1).grid(grid).resume(&path)
            });
            surveyed += 1;
        }
    }
    assert!(surveyed >= 8);
}

/// Where the numbers of a checkpoint begin, after its header.
fn body_of(file: &[u8]) -> usize {
    8 + u64::from_le_bytes(std::array::from_fn(|i| file[i])) as usize
}

/// Writes an altered checkpoint with its checksum made right.
fn write_mended(path: &Path, mut file: Vec<u8>) {
    let end = file.len() - 32;
    let checksum = Sha256::digest(&file[..end]);
    file[end..].copy_from_slice(&checksum);
    std::fs::write(path, file).unwrap();
}

/// A start that no stream has at its step is refused although the checksum matches: rows would be read that
/// were never made.
#[test]
fn checkpoints_of_a_start_beyond_their_step_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("noise");
    let mut tried = 0;
    for (name, recursion) in cases() {
        for grid in [None, Some(Grid::new(2f64.powi(-14)).unwrap())] {
            at(&recursion, grid, (1, 1, 0)).save(&path).unwrap();
            let file = std::fs::read(&path).unwrap();
            let body = body_of(&file);
            let header = std::str::from_utf8(&file[8..body]).unwrap();
            let header = header.replace(r#""start":"0""#, &format!(r#""start":"{STEPS}""#));
            let mut altered = (header.len() as u64).to_le_bytes().to_vec();
            altered.extend_from_slice(header.as_bytes());
            altered.extend_from_slice(&file[body..]);
            write_mended(&path, altered);
            let refused = builder(&recursion, 1).grid(grid).resume(&path);
            let error = refused.map(|_| "accepted").expect_err(name).to_string();
            assert!(error.contains(&format!("has start {STEPS}")), "{name}: {error}");
            tried += 1;
        }
    }
    assert!(tried >= 8);
}

/// Numbers that are no noise are refused although the checksum matches: they would end a later step.
#[test]
fn checkpoints_with_nan_and_a_checksum_made_right_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("noise");
    let mut refused = 0;
    for (name, recursion) in cases() {
        for grid in [None, Some(Grid::new(2f64.powi(-14)).unwrap())] {
            at(&recursion, grid, OF[0]).save(&path).unwrap();
            let mut file = std::fs::read(&path).unwrap();
            let body = body_of(&file);
            let header: serde_json::Value = serde_json::from_slice(&file[8..body]).unwrap();
            if header["past"]["shape"][0] == 0 || header["past"]["dtype"] == "I32" {
                continue;
            }
            // The key comes first, and then the past; all bits set are NaN.
            let numbers = body + 32;
            file[numbers..numbers + 8].fill(0xff);
            write_mended(&path, file);
            match builder(&recursion, 1).grid(grid).resume(&path) {
                Err(error @ Error::Checkpoint { .. }) => {
                    assert!(error.to_string().contains("no stream makes"), "{name}: {error}");
                }
                other => panic!("{name}: {}", other.map(|_| "accepted").unwrap_or("refused otherwise")),
            }
            refused += 1;
        }
    }
    assert!(refused >= 20, "{refused}");
}

/// A state by coordinate in bytes: steps, run's key, commitment, words.
fn kept(mut stream: NoiseStream) -> Vec<u8> {
    let mut words = vec![0; DIM * (stream.state_words() + 1)];
    // A vector of the caller's own.
    words[DIM * stream.state_words()..].fill(7);
    let (at, total) = stream.state(&mut words).unwrap();
    let steps = [at.step as u64, at.made as u64].map(u64::to_le_bytes);
    let key = stream.expose_run_key(|key| *key);
    let commitment = stream.state_commitment(at, total, b"extra");
    let words = words.into_iter().flat_map(i32::to_le_bytes);
    steps.into_iter().flatten().chain(key).chain(commitment).chain(words).collect()
}

fn resumed(recursion: &Recursion, grid: Option<Grid>, bytes: &[u8]) -> Result<NoiseStream, Error> {
    let Some((head, words)) = bytes.split_at_checked(80) else { return Err(Error::AlteredState) };
    let number = |at: usize| u64::from_le_bytes(std::array::from_fn(|i| head[at + i])) as usize;
    let (words, cut) = words.as_chunks();
    if !cut.is_empty() {
        return Err(Error::AlteredState);
    }
    let words: Vec<i32> = words.iter().map(|word| i32::from_le_bytes(*word)).collect();
    let copied = |key: &mut [u8]| {
        key.copy_from_slice(&head[16..48]);
        Ok::<_, ()>(())
    };
    let key = Key::from_reader(copied).unwrap();
    let at = StateAt { step: number(0), made: number(8) };
    // Only the label is of another run.
    let restored = builder(recursion, 3).grid(grid).resume_state(key, at, &words)?;
    let total = restored.sum();
    restored.checked(total, b"extra", &head[48..])
}

#[test]
fn damaged_states_by_coordinate_are_refused() {
    let mut surveyed = 0;
    for (name, recursion) in cases().into_iter().step_by(3) {
        for grid in [None, Some(Grid::new(2f64.powi(-14)).unwrap())] {
            let files = OF.map(|of| kept(at(&recursion, grid, of)));
            survey(name, &files[0], &files[1..], |bytes| resumed(&recursion, grid, bytes));
            surveyed += 1;
        }
    }
    assert!(surveyed >= 8);
}

/// Whole entries of a state of another step, run or key; a past of zeros; words shifted by a vector or a
/// coordinate.
#[test]
fn states_put_together_of_several_are_refused() {
    let (recursion, mut tried) = (Recursion::Blt { scale: vec![0.3, 0.2], decay: vec![0.9, 0.5] }, 0);
    for grid in [None, Some(Grid::new(2f64.powi(-14)).unwrap())] {
        let [mine, others @ ..] = OF.map(|of| kept(at(&recursion, grid, of)));
        assert!(resumed(&recursion, grid, &mine).is_ok());
        let mut refused = |state: Vec<u8>| {
            assert!(state != mine && matches!(resumed(&recursion, grid, &state), Err(Error::AlteredState)));
            tried += 1;
        };
        for other in &others {
            for entry in [0..16, 16..48, 48..80, 80..mine.len()] {
                let mut state = mine.clone();
                state[entry.clone()].copy_from_slice(&other[entry.clone()]);
                if state != mine {
                    refused(state);
                }
            }
        }
        let words = mine.len() - 80;
        refused([&mine[..80], &vec![0; words]].concat());
        for by in [4, 4 * DIM] {
            let mut state = mine.clone();
            state[80..].rotate_left(by);
            refused(state);
        }
    }
    assert_eq!(tried, 24);
}
