use antinoise_mechanism::{Grid, Recursion};

use super::*;
use crate::{Cipher, OnGrid, Plain, Shard};

/// The rows of coordinates 3, 4, ... on an instruction set, under one key whatever the recursion.
fn rows<M: Mode>(isa: Isa, mode: M, recursion: Recursion, steps: usize, dim: usize) -> Vec<f32> {
    let (shard, cipher) = (Shard::of_range(3..dim as u64), Cipher::default());
    let spec = Spec { recursion, steps, dim, noise_std: 1.0, shard, cipher };
    let limits = Limits { bytes: u64::MAX, look_ahead: usize::MAX };
    let mut engine = Engine::new(isa, mode, &spec, &Key::from_seed_insecure(4), limits, 1).unwrap();
    let mut rows = vec![0.5; steps * (dim - 3)];
    rows.chunks_exact_mut(dim - 3).for_each(|row| engine.hand_out(row, M::Target::default()));
    rows
}

#[test]
fn every_instruction_set_gives_the_same_bits() {
    let taps = vec![1.0, -0.5, 0.3, 0.2, 0.1, 0.05];
    let blt = |order: usize| Recursion::Blt { scale: vec![0.1; order], decay: vec![0.9; order] };
    let on_grid = OnGrid::new(Grid::new(2f64.powi(-20)).unwrap(), 1.0);
    for recursion in [
        Recursion::AutoRegressive { taps: taps.clone() },
        Recursion::MovingAverage { taps },
        blt(1),
        blt(4),
        blt(6),
    ] {
        let run = |isa: Isa| {
            (rows(isa, Plain, recursion.clone(), 6, 5000), rows(isa, on_grid, recursion.clone(), 6, 5000))
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
    let steps = 13;
    let taps: Vec<f64> = (0..7).map(|i| 1.0 / (1.1 + f64::from(i))).collect();
    let blt = Recursion::Blt { scale: vec![0.3, 0.15], decay: vec![0.999, 0.88] };
    let banded = Recursion::Banded { bands: 3, rows: (1..=3 * steps).map(|i| 1.0 / i as f64).collect() };
    let sums = (0..steps).map(|t| vec![(t, 0.7), (100 + t / 3, 0.1)]).collect();
    let factors = (0..steps).map(|t| 0.5 + 0.1 * (t as f64).sin()).collect();
    for recursion in [
        Recursion::Independent,
        Recursion::AutoRegressive { taps: taps.clone() },
        Recursion::MovingAverage { taps },
        Recursion::Restarted { inner: Box::new(banded.clone()), period: 5 },
        Recursion::Combination { rows: sums },
        Recursion::Scaled { inner: Box::new(blt.clone()), factors },
        banded,
        blt,
    ] {
        let noise = |recursion: Recursion| rows(Isa::detect(), Plain, recursion, steps, 100);
        assert_eq!(noise(recursion.clone()), noise(recursion.in_single_precision()), "{recursion:?}");
    }
}
