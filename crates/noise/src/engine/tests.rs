use antinoise_mechanism::{Grid, Recursion};

use super::*;
use crate::kernel::{OnGrid, Plain};
use crate::number::Number;
use crate::{Cipher, Shard};

/// An engine of coordinates 3, 4, ..., and of some more at the end, under the same key for every recursion.
fn engine<M: Mode>(isa: Isa, mode: M, recursion: Recursion, dim: usize) -> Engine<M> {
    let (end, cipher) = (dim as u64, Cipher::default());
    // The last two share a tile.
    let shard = Shard::of_range(3..end - 60)
        .and_padding(1)
        .and_range(end - 20..end - 1)
        .and_range(end - 50..end - 20);
    let spec = Spec { recursion, steps: STEPS, dim, noise_std: 1.0, shard, cipher, grid: mode.grid() };
    let limits = Limits { bytes: u64::MAX, look_ahead: usize::MAX, stored: false };
    Engine::new(isa, mode, &spec, &Key::from_seed_insecure(4), limits, 1).unwrap()
}

/// The engine's next row.
fn next_row<M: Mode>(engine: &mut Engine<M>) -> Vec<f32> {
    let mut row = vec![0.5; engine.tiles.outputs];
    engine.emit(OutputSlices::all(&mut [&mut row]), <M as Emits<f32>>::Target::default());
    row
}

/// All rows of an engine.
fn rows<M: Mode>(isa: Isa, mode: M, recursion: Recursion, dim: usize) -> Vec<f32> {
    let mut engine = engine(isa, mode, recursion, dim);
    (0..STEPS).flat_map(|_| next_row(&mut engine)).collect()
}

fn on_grid() -> OnGrid {
    OnGrid::new(Grid::new(2f64.powi(-20)).unwrap(), 1.0)
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
        Recursion::SeedCombination { rows: (0..STEPS).map(|t| vec![(t / 3, 0.1), (20 + t, 0.7)]).collect() },
        Recursion::Scaled { inner: Box::new(blt(2)), factors },
        banded,
        blt(1),
        blt(4),
        blt(6),
    ]
}

#[test]
fn every_instruction_set_gives_the_same_bits() {
    for recursion in recursions() {
        let run = |isa: Isa| {
            (rows(isa, Plain, recursion.clone(), 5000), rows(isa, on_grid(), recursion.clone(), 5000))
        };
        let reference = run(Isa::available()[Isa::available().len() - 1]);
        for &isa in Isa::available() {
            assert!(run(isa) == reference, "{recursion:?} on {isa:?}");
        }
    }
}

/// The rounded strategy is that of `in_single_precision`: kernels with those coefficients round nothing more.
#[test]
fn kernels_multiply_by_the_coefficients_that_single_precision_holds() {
    for recursion in recursions() {
        let noise = |recursion: Recursion| rows(Isa::detect(), Plain, recursion, 100);
        assert_eq!(noise(recursion.clone()), noise(recursion.in_single_precision()), "{recursion:?}");
    }
}

/// Checked before each step, and after the last one.
#[test]
fn past_vectors_that_are_not_saved_are_zeros() {
    fn check<M: Mode>(mode: M, recursion: Recursion) -> usize {
        let mut engine = engine(Isa::detect(), mode, recursion.clone(), 5000);
        let mut spared = 0;
        for step in 0..=STEPS {
            let past = engine.memory().0;
            let mut rest = past.numbers;
            for (written, unwritten) in past.pieces() {
                let (read, left) = rest.split_at(written.len());
                let (not_read, left) = left.split_at(unwritten);
                assert!(std::ptr::eq(read, written), "{recursion:?}, step {step}");
                assert!(not_read.iter().all(|x| x.bits() == 0), "{recursion:?}, step {step}");
                (rest, spared) = (left, spared + unwritten);
            }
            assert!(rest.is_empty(), "{recursion:?}, step {step}");
            if step < STEPS {
                next_row(&mut engine);
            }
        }
        spared
    }
    let mut spared = 0;
    for recursion in recursions() {
        spared += check(Plain, recursion.clone()) + check(on_grid(), recursion);
    }
    let dense = (0..STEPS).map(|t| (0..=t).map(|seed| (seed, 1.0 / (1 + t - seed) as f64)).collect());
    spared += check(on_grid(), Recursion::SeedCombination { rows: dense.collect() });
    assert!(spared > 0);
}
