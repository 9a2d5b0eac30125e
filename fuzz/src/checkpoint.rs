//! Checkpoints of noise.

use std::sync::LazyLock;

use antinoise_mechanism::{Grid, Recursion};
use antinoise_noise::{GridStream, Key, NoiseStream, StreamBuilder};
use sha2::{Digest, Sha256};

use crate::files::file;

const STEPS: usize = 6;
const DIM: usize = 9;

struct Case {
    recursion: Recursion,
    /// The checkpoint after a step, plain and on a grid.
    files: [Vec<u8>; 2],
}

static CASES: LazyLock<Vec<Case>> = LazyLock::new(|| {
    let recursions = [
        Recursion::Blt { scale: vec![0.5, 0.1], decay: vec![0.9, 0.5] },
        Recursion::AutoRegressive { taps: vec![1.0, 0.5, 0.25] },
    ];
    recursions
        .map(|recursion| Case { files: [saved(&recursion, false), saved(&recursion, true)], recursion })
        .into()
});

fn builder(recursion: &Recursion) -> StreamBuilder {
    NoiseStream::builder(recursion.clone(), STEPS, DIM, 2.0).threads(1)
}

fn grid() -> Grid {
    Grid::new(1.0 / 64.0).expect("a grid")
}

fn saved(recursion: &Recursion, on_grid: bool) -> Vec<u8> {
    let (path, key) = (file("saved.safetensors", &[]), Key::from_seed_insecure(8));
    let builder = builder(recursion);
    let write = || {
        if on_grid {
            let mut stream = builder.build_on_grid(grid(), key)?;
            stream.next_points_into(&mut [0; DIM])?;
            stream.save(&path)
        } else {
            let mut stream = builder.build(key)?;
            stream.next_into(&mut [0.0; DIM])?;
            stream.save(&path)
        }
    };
    write().expect("a stream is saved");
    std::fs::read(path).expect("a checkpoint")
}

/// The first byte says of which stream; whether the checksum is made right, so that what lies behind it is reached; the rest is the file. As it is,
/// only the file that was saved is accepted; with its checksum made right, none of another step.
pub fn run(data: &[u8]) -> bool {
    let Some((&kind, bytes)) = data.split_first() else { return false };
    let (case, on_grid, is_mended) = (&CASES[kind as usize & 1], kind & 2 != 0, kind & 4 != 0);
    let mut bytes = bytes.to_vec();
    if is_mended && let Some(end) = bytes.len().checked_sub(32) {
        let checksum = Sha256::digest(&bytes[..end]);
        bytes[end..].copy_from_slice(&checksum);
    }
    let path = file("noise.safetensors", &bytes);
    let builder = builder(&case.recursion);
    let resumed = if on_grid {
        builder.resume_on_grid(grid(), path).map(|stream| rest_on_grid(stream))
    } else {
        builder.resume(path).map(|stream| rest(stream))
    };
    match resumed {
        Ok(step) => {
            assert!(is_mended || bytes == case.files[usize::from(on_grid)], "an altered file is accepted");
            assert_eq!(step, 1, "the commitment is to step 1");
        }
        Err(error) => assert!(error.is_bad_input(), "{error:?}"),
    }
    true
}

fn rest(mut stream: NoiseStream) -> usize {
    let first = stream.step();
    (first..STEPS).for_each(|_| drop(stream.next_into(&mut [0.0; DIM])));
    first
}

fn rest_on_grid(mut stream: GridStream) -> usize {
    let first = stream.step();
    (first..STEPS).for_each(|_| drop(stream.next_points_into(&mut [0; DIM])));
    first
}

pub fn seeds() -> Vec<Vec<u8>> {
    (0..8u8)
        .map(|kind| {
            let file = &CASES[kind as usize & 1].files[usize::from(kind & 2 != 0)];
            [&[kind], &file[..]].concat()
        })
        .collect()
}
