//! A stream is refused, or all of its noise is finite and none of it is lost.

use std::cell::Cell;

use antinoise_mechanism::Recursion;
use antinoise_noise::{Grid, Key, NoiseStream, StreamBuilder};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

const DIM: usize = 48;

fn key() -> Key {
    Key::from_seed_insecure(3)
}

fn refusal(builder: StreamBuilder) -> String {
    builder.build(key()).unwrap_err().to_string()
}

#[test]
fn deviations_without_room_are_refused() {
    let with = |noise_std| NoiseStream::builder(Recursion::Independent, 2, 3, noise_std).threads(1);
    for noise_std in [1e-46, 1e-31, 1e31, 1e39, 1e300, 5e-324] {
        assert!(refusal(with(noise_std)).starts_with("noise_std is"), "{noise_std}");
    }
    let mut row = [0.0; 3];
    for noise_std in [2f64.powi(-100), 1.0, 2f64.powi(100)] {
        with(noise_std).build(key()).unwrap().next_into(&mut row).unwrap();
        assert!(row.iter().all(|x| x.is_normal()), "{noise_std}: {row:?}");
    }
    let factors =
        |factor| Recursion::Scaled { inner: Box::new(Recursion::Independent), factors: vec![1.0, factor] };
    for factor in [1e-50, 1e-31, 1e31, -1e50] {
        let message = refusal(NoiseStream::builder(factors(factor), 2, 3, 1.0));
        assert!(message.starts_with("noise_std times the factor of step 1 is"), "{message}");
    }
    let mut stream = with(1.0).build(key()).unwrap();
    for scale in [f32::NAN, f32::INFINITY, 1e-40, 1e31] {
        let message = stream.add_next_into(&mut row, scale).unwrap_err().to_string();
        assert!(message.starts_with("scale is"), "{message}");
    }
    stream.add_next_into(&mut row, 0.0).unwrap();
}

#[test]
fn recursions_that_explode_or_vanish_are_refused() {
    let with = |recursion| NoiseStream::builder(recursion, 100, DIM, 1.0).threads(1);
    let auto = |taps: &[f64]| Recursion::AutoRegressive { taps: taps.to_vec() };
    let explodes = [
        auto(&[1.0, 1e17]),
        auto(&[1.0, -3.0]),
        auto(&[1.0, 0.0, 2.0, 1.0]),
        Recursion::Banded { bands: 2, rows: [1.0, 2.5].repeat(100) },
        Recursion::Blt { scale: vec![-1.5], decay: vec![0.9] },
        Recursion::Rational { gain: vec![-1.5], feedback: vec![0.1] },
        Recursion::MovingAverage { taps: vec![1.0, 1e38] },
    ];
    for recursion in explodes {
        let message = refusal(with(recursion));
        assert!(message.starts_with("recursion is one whose rows"), "{message}");
    }
    for recursion in [auto(&[1e40, 1.0]), Recursion::MovingAverage { taps: vec![1e-45] }] {
        let message = refusal(with(recursion));
        assert!(message.starts_with("the weight of the fresh noise of step 0 is"), "{message}");
    }
    let empty = Recursion::SeedCombination { rows: vec![vec![(0, 1.0)], vec![]] };
    let message = refusal(NoiseStream::builder(empty, 2, 3, 1.0));
    assert!(message.starts_with("the weight of the fresh noise of step 1 is 0e0"), "{message}");
}

/// Strategies in use are not refused: C of ones, its inverse, square roots, long memories.
#[test]
fn strategies_in_use_are_taken() {
    let steps = 5000;
    let root: Vec<f64> =
        std::iter::successors(Some((1.0, 1.0)), |&(c, t)| Some((c * (2.0 * t - 1.0) / (2.0 * t), t + 1.0)))
            .map(|(c, _)| c)
            .take(steps)
            .collect();
    let cut = |bands: usize| Recursion::AutoRegressive { taps: root[..bands].to_vec() };
    let taken = [
        Recursion::AutoRegressive { taps: vec![1.0; steps] },
        Recursion::MovingAverage { taps: vec![1.0, -1.0] },
        cut(2),
        cut(64),
        cut(steps),
        Recursion::Blt { scale: vec![0.25, 0.1, 0.05, 0.02], decay: vec![0.5, 0.9, 0.99, 0.9999] },
        // Two poles at 1 and 0.999, zeros at 0.9 and 0.5; a pair of poles in a circle of radius 0.95.
        Recursion::Rational { gain: vec![0.599, 0.05], feedback: vec![0.001, 0.0] },
        Recursion::Rational { gain: vec![0.3, 0.05], feedback: vec![0.2, 0.0125] },
        Recursion::Banded { bands: 3, rows: [1.0, 0.5, 0.375].repeat(steps) },
    ];
    for (number, recursion) in taken.into_iter().enumerate() {
        let builder = NoiseStream::builder(recursion, steps, 1, 1.0).threads(1);
        assert!(builder.clone().build(key()).is_ok(), "{number}");
        assert!(builder.grid(Grid::new(2f64.powi(-22)).unwrap()).build(key()).is_ok(), "{number} on a grid");
    }
}

/// Any coefficient that a file can hold: ordinary, huge, tiny, subnormal, of either sign.
fn coefficient() -> impl Strategy<Value = f64> {
    prop_oneof![
        4 => -2.0..2.0f64,
        1 => (-300.0..300.0f64, any::<bool>()).prop_map(|(e, sign)| if sign { 10f64.powf(e) } else { -10f64.powf(e) }),
        1 => (-40.0..40.0f64, any::<bool>()).prop_map(|(e, sign)| if sign { 10f64.powf(e) } else { -10f64.powf(e) }),
        1 => prop_oneof![Just(0.0), Just(-0.0), Just(5e-324), Just(f64::MAX), Just(f64::MIN_POSITIVE), Just(1.0)],
    ]
}

fn list(most: usize) -> impl Strategy<Value = Vec<f64>> {
    proptest::collection::vec(coefficient(), 1..most)
}

fn leaf(steps: usize) -> impl Strategy<Value = Recursion> {
    let seeds = proptest::collection::vec((0..2 * steps, coefficient()), 0..6);
    prop_oneof![
        list(9).prop_map(|taps| Recursion::MovingAverage { taps }),
        list(9).prop_map(|taps| Recursion::AutoRegressive { taps }),
        // More often with a c_0 that lets the other coefficients matter.
        list(9).prop_map(|taps| Recursion::AutoRegressive { taps: [&[1.0], &taps[..]].concat() }),
        proptest::collection::vec((coefficient(), 0.0..1.0f64), 0..6).prop_map(|pairs| {
            let (scale, decay) = pairs.into_iter().unzip();
            Recursion::Blt { scale, decay }
        }),
        proptest::collection::vec((coefficient(), coefficient()), 0..6).prop_map(|pairs| {
            let (gain, feedback) = pairs.into_iter().unzip();
            Recursion::Rational { gain, feedback }
        }),
        (proptest::collection::vec(0.0..1.0f64, 0..4), proptest::collection::vec(coefficient(), 6 * steps))
            .prop_map(move |(decay, mut reads)| {
                reads.truncate(2 * decay.len() * steps);
                let writes = reads.split_off(decay.len() * steps);
                Recursion::VaryingBlt { decay, reads, writes }
            }),
        // What steps read falls, and what they write rises, or the other way round.
        (
            proptest::collection::vec(0.0..1.0f64, 1..4),
            -2.0..2.0f64,
            proptest::collection::vec(0.0..1.0f64, 6 * steps)
        )
            .prop_map(move |(decay, slope, sizes)| {
                let of_steps = |slope: f64| {
                    let weight = |(i, size): (usize, &f64)| size * (slope * (i / decay.len()) as f64).exp();
                    sizes.iter().take(decay.len() * steps).enumerate().map(weight).collect()
                };
                let (reads, writes) = (of_steps(-slope), of_steps(slope));
                Recursion::VaryingBlt { decay, reads, writes }
            }),
        (1..4usize).prop_flat_map(move |bands| {
            proptest::collection::vec(coefficient(), bands * steps)
                .prop_map(move |rows| Recursion::Banded { bands, rows })
        }),
        (1..4usize, proptest::collection::vec(-1.5..1.5f64, 4 * steps)).prop_map(move |(bands, mut rows)| {
            rows.truncate(bands * steps);
            rows.iter_mut().step_by(bands).for_each(|c| *c = 1.0);
            Recursion::Banded { bands, rows }
        }),
        proptest::collection::vec(seeds, steps).prop_map(|rows| Recursion::SeedCombination { rows }),
    ]
}

const STEPS: usize = 120;

fn recursion() -> impl Strategy<Value = Recursion> {
    let scaled = (leaf(STEPS), proptest::collection::vec(coefficient(), STEPS))
        .prop_map(|(inner, factors)| Recursion::Scaled { inner: Box::new(inner), factors });
    let restarted = (leaf(STEPS), 1..STEPS)
        .prop_map(|(inner, period)| Recursion::Restarted { inner: Box::new(inner), period });
    prop_oneof![6 => leaf(STEPS), 1 => scaled, 2 => restarted]
}

#[test]
fn a_stream_is_refused_or_finite_and_never_silent() {
    let deviation = prop_oneof![3 => Just(1.0), 1 => (-110.0..110.0f64).prop_map(f64::exp2)];
    let (plain, on_grid) = (Cell::new(0), Cell::new(0));
    let done =
        TestRunner::new(Config::with_cases(4000)).run(&(recursion(), deviation), |(recursion, noise_std)| {
            let builder = NoiseStream::builder(recursion, STEPS, DIM, noise_std).threads(1);
            let mut row = [0.0; DIM];
            if let Ok(mut stream) = builder.clone().build(key()) {
                for step in 0..STEPS {
                    stream.next_into(&mut row).unwrap();
                    prop_assert!(row.iter().all(|x| x.is_finite()), "step {step}: {row:?}");
                    prop_assert!(row.iter().any(|x| *x != 0.0), "step {step} is silent");
                }
                plain.set(plain.get() + 1);
            }
            let grid = Grid::new(noise_std.log2().floor().exp2() / 1024.0);
            if let Ok(mut stream) = grid.map_err(Into::into).and_then(|grid| builder.grid(grid).build(key()))
            {
                for step in 0..STEPS {
                    stream.next_into(&mut row).unwrap();
                    prop_assert!(row.iter().all(|x| x.is_finite()), "step {step} on a grid: {row:?}");
                }
                on_grid.set(on_grid.get() + 1);
            }
            Ok(())
        });
    done.unwrap_or_else(|failure| panic!("{failure}"));
    println!("of 4000, {} are built, {} on a grid", plain.get(), on_grid.get());
    assert!(plain.get() > 400 && on_grid.get() > 400, "{plain:?} and {on_grid:?} of 4000 are built");
    assert!(
        plain.get() < 3600 && on_grid.get() < 3600,
        "few are refused: {plain:?} and {on_grid:?} of 4000 are built"
    );
}
