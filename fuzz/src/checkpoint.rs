//! Checkpoints of noise.

use std::sync::LazyLock;

use antinoise_input::BadInput;
use antinoise_mechanism::{Grid, Recursion};
use antinoise_noise::{Key, NoiseStream, StreamBuilder};
use sha2::{Digest, Sha256};

use crate::files::file;

const STEPS: usize = 6;
const DIM: usize = 9;

struct Case {
    recursion: Recursion,
    /// The checkpoint after a step, plain and on a grid.
    files: [Vec<u8>; 2],
    /// The bits of the noise of all steps after it, likewise.
    rest: [Vec<u32>; 2],
}

static CASES: LazyLock<Vec<Case>> = LazyLock::new(|| {
    let recursions = [
        Recursion::Blt { scale: vec![0.5, 0.1], decay: vec![0.9, 0.5] },
        Recursion::AutoRegressive { taps: vec![1.0, 0.5, 0.25] },
    ];
    let case = |recursion: Recursion| {
        let (plain, rest) = saved(&recursion, false);
        let (on_grid, rest_on_grid) = saved(&recursion, true);
        Case { files: [plain, on_grid], rest: [rest, rest_on_grid], recursion }
    };
    recursions.map(case).into()
});

fn builder(recursion: &Recursion) -> StreamBuilder {
    NoiseStream::builder(recursion.clone(), STEPS, DIM, 2.0).threads(1)
}

fn grid() -> Grid {
    Grid::new(1.0 / 64.0).expect("a grid")
}

/// The checkpoint after a step, and the noise that the stream made from there on.
fn saved(recursion: &Recursion, on_grid: bool) -> (Vec<u8>, Vec<u32>) {
    let (path, key) = (file("saved.safetensors", &[]), Key::from_seed_insecure(8));
    let builder = builder(recursion);
    let write = || {
        Ok::<_, antinoise_noise::Error>(if on_grid {
            let mut stream = builder.grid(grid()).build(key)?;
            stream.next_points_into(&mut [0; DIM])?;
            stream.save(&path)?;
            rest_on_grid(stream)
        } else {
            let mut stream = builder.build(key)?;
            stream.next_into(&mut [0.0; DIM])?;
            stream.save(&path)?;
            rest(stream)
        })
    };
    let (step, rest) = write().expect("a stream is saved");
    assert_eq!((step, rest.len()), (1, (STEPS - 1) * DIM));
    (std::fs::read(path).expect("a checkpoint"), rest)
}

/// The first byte says of which stream; whether the checksum is made right, so that what lies behind it is
/// reached; the rest is the file. As it is, only the file that was saved is accepted; with its checksum made
/// right, none of another step, unless its commitment is that of the other step too (libFuzzer reads it out
/// of the comparison that refuses the file; others need the run's key). Unless its numbers or its start were
/// altered, what is accepted makes the noise of the stream that was saved, bit for bit.
pub fn run(data: &[u8]) -> bool {
    let Some((&kind, bytes)) = data.split_first() else { return false };
    let (case, form, is_mended) = (&CASES[kind as usize & 1], usize::from(kind & 2 != 0), kind & 4 != 0);
    let mut bytes = bytes.to_vec();
    if is_mended && let Some(end) = bytes.len().checked_sub(32) {
        let checksum = Sha256::digest(&bytes[..end]);
        bytes[end..].copy_from_slice(&checksum);
    }
    let path = file("noise.safetensors", &bytes);
    let builder = builder(&case.recursion);
    let resumed = if form == 1 {
        builder.grid(grid()).resume(path).map(rest_on_grid)
    } else {
        builder.resume(path).map(rest)
    };
    match resumed {
        Ok((step, rest)) => {
            let saved = &case.files[form];
            assert!(is_mended || bytes == *saved, "an altered file is accepted");
            let altered = |name| field(&bytes, name) != field(saved, name);
            assert!(step == 1 || altered("commitment"), "a commitment is to one step");
            let other = step != 1 || numbers(&bytes) != numbers(saved) || altered("start");
            assert!(is_mended && other || rest == case.rest[form], "other noise of the same numbers");
        }
        Err(error) => assert!(error.is_bad_input(), "{error:?}"),
    }
    true
}

/// Of a checkpoint: the key, the past and the rows that were made ahead.
fn numbers(file: &[u8]) -> &[u8] {
    let header = u64::from_le_bytes(file[..8].try_into().expect("8 bytes")) as usize;
    &file[8 + header..file.len() - 32]
}

/// Of a checkpoint: the value of this name in the header.
fn field<'a>(file: &'a [u8], name: &str) -> Option<&'a [u8]> {
    let name = format!("\"{name}\":");
    let value = &file[file.windows(name.len()).position(|found| found == name.as_bytes())? + name.len()..];
    value.split(|&byte| byte == b',' || byte == b'}').next()
}

/// The step that comes next, and the bits of all noise from there on.
fn rest(mut stream: NoiseStream) -> (usize, Vec<u32>) {
    let (first, mut rest, mut noise) = (stream.step(), Vec::new(), [0.0; DIM]);
    for _ in first..STEPS {
        // Numbers that were altered may be refused: nothing then comes of the step.
        if stream.next_into(&mut noise).is_err() {
            break;
        }
        rest.extend(noise.iter().map(|x: &f32| x.to_bits()));
    }
    (first, rest)
}

fn rest_on_grid(mut stream: NoiseStream) -> (usize, Vec<u32>) {
    let (first, mut rest, mut noise) = (stream.step(), Vec::new(), [0; DIM]);
    for _ in first..STEPS {
        if stream.next_points_into(&mut noise).is_err() {
            break;
        }
        rest.extend(noise.iter().map(|&x: &i32| x as u32));
    }
    (first, rest)
}

pub fn seeds() -> Vec<Vec<u8>> {
    (0..8u8)
        .map(|kind| {
            let file = &CASES[kind as usize & 1].files[usize::from(kind & 2 != 0)];
            [&[kind], &file[..]].concat()
        })
        .collect()
}
