use antinoise_mechanism::{Grid, Recursion};

use super::*;
use crate::{Cipher, OnGrid, Plain, Shard};

/// The rows of coordinates 3, 4, ..., and of some more at the end, on an instruction set, under one key whatever the recursion.
fn rows<M: Mode>(isa: Isa, mode: M, recursion: Recursion, dim: usize) -> Vec<f32> {
    let (end, cipher) = (dim as u64, Cipher::default());
    // The last two share a tile.
    let shard = Shard::of_range(3..end - 60)
        .and_padding(1)
        .and_range(end - 20..end - 1)
        .and_range(end - 50..end - 20);
    let outputs = shard.len();
    let spec = Spec { recursion, steps: STEPS, dim, noise_std: 1.0, shard, cipher };
    let limits = Limits { bytes: u64::MAX, look_ahead: usize::MAX, stored: false };
    let mut engine = Engine::new(isa, mode, &spec, &Key::from_seed_insecure(4), limits, 1).unwrap();
    let mut rows = vec![0.5; STEPS * outputs];
    rows.chunks_exact_mut(outputs)
        .for_each(|row| engine.hand_out(Places::all(&mut [row]), <M as HandsOut<f32>>::Target::default()));
    rows
}

const STEPS: usize = 13;

fn recursions() -> Vec<Recursion> {
    let taps: Vec<f64> = (0..7).map(|i| 1.0 / (1.1 + f64::from(i))).collect();
    let blt = |order: usize| Recursion::Blt { scale: vec![0.1; order], decay: vec![0.97; order] };
    let banded = Recursion::Banded { bands: 3, rows: (1..=3 * STEPS).map(|i| 1.0 / i as f64).collect() };
    let factors = (0..STEPS).map(|t| 0.5 + 0.1 * (t as f64).sin()).collect();
    vec![
        Recursion::Independent,
        Recursion::AutoRegressive { taps: taps.clone() },
        Recursion::MovingAverage { taps },
        Recursion::Restarted { inner: Box::new(banded.clone()), period: 5 },
        Recursion::Combination { rows: (0..STEPS).map(|t| vec![(t / 3, 0.1), (20 + t, 0.7)]).collect() },
        Recursion::Scaled { inner: Box::new(blt(2)), factors },
        banded,
        blt(1),
        blt(4),
        blt(6),
    ]
}

#[test]
fn every_instruction_set_gives_the_same_bits() {
    let on_grid = OnGrid::new(Grid::new(2f64.powi(-20)).unwrap(), 1.0);
    for recursion in recursions() {
        let run = |isa: Isa| {
            (rows(isa, Plain, recursion.clone(), 5000), rows(isa, on_grid, recursion.clone(), 5000))
        };
        let reference = run(Isa::available()[Isa::available().len() - 1]);
        for &isa in Isa::available() {
            assert!(run(isa) == reference, "{recursion:?} on {isa:?}");
        }
    }
}

/// The C that runs is that of `in_single_precision`: kernels that are given those coefficients round nothing more.
#[test]
fn kernels_multiply_by_the_coefficients_that_single_precision_holds() {
    for recursion in recursions() {
        let noise = |recursion: Recursion| rows(Isa::detect(), Plain, recursion, 100);
        assert_eq!(noise(recursion.clone()), noise(recursion.in_single_precision()), "{recursion:?}");
    }
}
