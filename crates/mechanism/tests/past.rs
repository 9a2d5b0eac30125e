//! The bound on the shift of the mean by rounding of the history term, against streams in single precision:
//! there the same errors are 2^29 times as large, and double precision measures them.

use antinoise_mechanism::rounded::accumulation_error_upper;
use antinoise_mechanism::{Recursion, RowNorms};
use proptest::prelude::*;

const COORDINATES: usize = 300;
/// Grid steps to a unit of seed noise.
const PER_UNIT: f64 = 256.0;

/// Normals, by sums of twelve uniform numbers.
fn normals(count: usize, mut state: u64) -> Vec<f64> {
    let mut uniform = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 11) as f64 / (1u64 << 53) as f64
    };
    (0..count).map(|_| (0..12).map(|_| uniform()).sum::<f64>() - 6.0).collect()
}

fn sum<'a>(terms: impl Iterator<Item = (f32, &'a f32)>) -> f32 {
    terms.fold(0.0, |sum, (weight, x)| weight.mul_add(*x, sum))
}

/// The noise of a coordinate in single precision, the history term of each step, and the weights of fresh
/// seeds.
fn run(recursion: &Recursion, seeds: &[f64]) -> (Vec<f64>, Vec<f64>, Vec<f64>) {
    let (mut kept, mut noise, mut shares, mut weights) = (Vec::<f32>::new(), vec![], vec![], vec![]);
    let mut buffers = vec![0f32; 8];
    for (t, z) in seeds.iter().enumerate() {
        let lags = |row: &[f64]| row.len().min(t + 1);
        let (weight, share) = match recursion {
            Recursion::Independent => (1.0, 0.0),
            Recursion::MovingAverage { taps } => {
                let past = (1..lags(taps)).rev().map(|lag| (taps[lag] as f32, &kept[t - lag]));
                (taps[0], sum(past))
            }
            Recursion::AutoRegressive { taps } => {
                let past = (1..lags(taps)).rev().map(|lag| ((-taps[lag] / taps[0]) as f32, &kept[t - lag]));
                (1.0 / taps[0], sum(past))
            }
            Recursion::Banded { bands, rows } => {
                let row = &rows[t * bands..][..*bands];
                let past = (1..lags(row)).rev().map(|lag| ((-row[lag] / row[0]) as f32, &kept[t - lag]));
                (1.0 / row[0], sum(past))
            }
            Recursion::SeedCombination { rows } => {
                let (fresh, past) = rows[t].split_last().unwrap();
                (fresh.1, sum(past.iter().map(|&(seed, weight)| (weight as f32, &kept[seed]))))
            }
            Recursion::Blt { scale, .. } => (1.0, sum(scale.iter().map(|a| -*a as f32).zip(&buffers))),
            Recursion::VaryingBlt { decay, reads, .. } => {
                let reads = reads[t * decay.len()..].iter().map(|u| -*u as f32);
                (1.0, sum(reads.zip(&buffers)))
            }
            Recursion::Rational { gain, .. } => (1.0, sum(gain.iter().map(|g| -*g as f32).zip(&buffers))),
            _ => unreachable!("leaves only"),
        };
        let weight = f64::from(weight as f32);
        let point = ((weight * z + f64::from(share)) * PER_UNIT).round() / PER_UNIT;
        let fed_back = match recursion {
            Recursion::MovingAverage { .. } | Recursion::SeedCombination { .. } => {
                (point as f32 - share) / weight as f32
            }
            _ => point as f32,
        };
        kept.push(fed_back);
        if let Recursion::Blt { decay, .. } = recursion {
            for (m, lambda) in buffers.iter_mut().zip(decay) {
                *m = (-(1.0 - lambda) as f32).mul_add(*m, *m + point as f32);
            }
        }
        if let Recursion::VaryingBlt { decay, writes, .. } = recursion {
            let of_step = decay.iter().zip(&writes[t * decay.len()..]);
            for (m, (lambda, v)) in buffers.iter_mut().zip(of_step) {
                *m = (-(1.0 - lambda) as f32).mul_add(*m, (*v as f32).mul_add(point as f32, *m));
            }
        }
        if let Recursion::Rational { feedback, .. } = recursion {
            let first = feedback.iter().zip(&buffers);
            let first = first.fold(buffers[0] + point as f32, |sum, (e, m)| (-*e as f32).mul_add(*m, sum));
            (1..feedback.len()).rev().for_each(|k| buffers[k] += buffers[k - 1]);
            buffers[0] = first;
        }
        noise.push(point);
        shares.push(f64::from(share));
        weights.push(weight);
    }
    (noise, shares, weights)
}

/// The root mean square of the shifts of the steps' means, in units of seed noise.
fn moved(recursion: &Recursion, steps: usize, seed: u64) -> f64 {
    let unit = |s: usize| (0..steps).map(|t| f64::from(t == s)).collect::<Vec<f64>>();
    let inverse: Vec<Vec<f64>> = (0..steps).map(|s| recursion.apply(steps, &unit(s))).collect();
    let mut squares = 0.0;
    for coordinate in 0..COORDINATES as u64 {
        let (noise, shares, weights) = run(recursion, &normals(steps, seed ^ (coordinate << 20)));
        let mut exact = Vec::<f64>::new();
        for t in 0..steps {
            let share: f64 = exact.iter().enumerate().map(|(s, z)| inverse[s][t] * z).sum();
            exact.push((noise[t] - share) / inverse[t][t]);
            squares += ((shares[t] - share) / weights[t]).powi(2);
        }
    }
    (squares / (COORDINATES * steps) as f64).sqrt()
}

fn column_norm(recursion: &Recursion, steps: usize) -> f64 {
    let unit = |s: usize| (0..steps).map(|t| f64::from(t == s)).collect::<Vec<f64>>();
    let inverse: Vec<Vec<f64>> = (0..steps).map(|s| recursion.apply(steps, &unit(s))).collect();
    let of_column = |s: usize| {
        let mut column = vec![0.0; steps];
        for t in s..steps {
            let known: f64 = (s..t).map(|r| inverse[r][t] * column[r]).sum();
            column[t] = (f64::from(t == s) - known) / inverse[t][t];
        }
        column.iter().map(|x| x * x).sum::<f64>().sqrt()
    };
    (0..steps).map(of_column).fold(0.0, f64::max)
}

/// Rounds weights, so that the test adds no error that kernels, which keep weights in double precision, do
/// not have.
fn rounded(weights: Vec<f64>) -> Vec<f64> {
    weights.into_iter().map(|x| f64::from(x as f32)).collect()
}

fn leaves(steps: usize) -> impl Strategy<Value = Recursion> {
    let weights = move |most: usize| {
        (0.4..1.6f64, prop::collection::vec(-0.9..0.9f64, 0..most)).prop_map(|(first, rest)| {
            let decreasing = rest.into_iter().enumerate().map(|(lag, x)| x / (lag + 1) as f64);
            rounded(std::iter::once(first).chain(decreasing).collect())
        })
    };
    let square_root = |steps: usize| {
        let next = |&(c, t): &(f64, f64)| Some((c * (2.0 * t - 1.0) / (2.0 * t), t + 1.0));
        let taps = std::iter::successors(Some((1.0, 1.0)), next).map(|(c, _)| c).take(steps).collect();
        Recursion::AutoRegressive { taps }
    };
    prop_oneof![
        Just(Recursion::Independent),
        Just(square_root(steps)),
        weights(12).prop_map(|taps| Recursion::MovingAverage { taps }),
        weights(12).prop_map(|taps| Recursion::AutoRegressive { taps }),
        prop::collection::vec(weights(6), steps).prop_map(|rows| {
            let row = |row: Vec<f64>| row.into_iter().chain(std::iter::repeat(0.0)).take(6);
            Recursion::Banded { bands: 6, rows: rows.into_iter().flat_map(row).collect() }
        }),
        prop::collection::vec(weights(6), steps).prop_map(|rows| {
            let row = |(t, row): (usize, Vec<f64>)| {
                row.into_iter().take(t + 1).enumerate().map(|(lag, w)| (t - lag, w)).rev().collect()
            };
            Recursion::SeedCombination { rows: rows.into_iter().enumerate().map(row).collect() }
        }),
        prop::collection::vec((0.0..1.0f64, 0.0..4.0f64), 1..5).prop_map(|buffers| {
            let (shares, digits): (Vec<f64>, Vec<f64>) = buffers.into_iter().unzip();
            let decay = rounded(digits.iter().map(|digits| 1.0 - 10f64.powf(-digits)).collect());
            let count = shares.len() as f64;
            let scale = shares.iter().zip(&decay).map(|(x, lambda)| x * (1.0 - lambda) / count).collect();
            Recursion::Blt { scale: rounded(scale), decay }
        }),
        (
            prop::collection::vec(0.0..4.0f64, 1..5),
            prop::collection::vec((0.0..1.0f64, 0.0..1.0f64), 5 * steps),
            prop_oneof![Just(0.0), 0.0..1.0f64],
        )
            .prop_map(move |(digits, weights, slope)| {
                let decay = rounded(digits.iter().map(|digits| 1.0 - 10f64.powf(-digits)).collect());
                // What steps read falls, and what they write rises, by `slope`.
                let of_steps = |w: fn(&(f64, f64)) -> f64, slope: f64| -> Vec<f64> {
                    let of_buffer = |i: usize| {
                        let size = (1.0 - decay[i % decay.len()]) / decay.len() as f64;
                        size.sqrt() * (slope * (i / decay.len()) as f64).exp()
                    };
                    let weights = weights.iter().take(decay.len() * steps).enumerate();
                    rounded(weights.map(|(i, both)| w(both) * of_buffer(i)).collect())
                };
                let (reads, writes) = (of_steps(|both| both.0, -slope), of_steps(|both| both.1, slope));
                Recursion::VaryingBlt { decay, reads, writes }
            }),
        prop::collection::vec((0.0..1.0f64, 0.0..1.0f64), 1..5).prop_map(|pairs| {
            let (gain, feedback): (Vec<f64>, Vec<f64>) = pairs.into_iter().unzip();
            let fall =
                |x: Vec<f64>| rounded(x.iter().enumerate().map(|(k, x)| x * 0.2f64.powi(k as i32)).collect());
            Recursion::Rational { gain: fall(gain), feedback: fall(feedback) }
        }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn the_mean_moves_by_no_more_than_the_bound(
        (steps, recursion) in (2usize..40).prop_flat_map(|steps| (Just(steps), leaves(steps))),
        seed in any::<u64>(),
    ) {
        let norms = RowNorms::new(&recursion, steps);
        // What explodes is refused before it runs.
        prop_assume!(norms.inner.1 < 1e3 && column_norm(&recursion, steps) < 1e3);
        let bound = accumulation_error_upper(&recursion, steps, norms, column_norm(&recursion, steps)) * (1u64 << 29) as f64;
        let found = moved(&recursion, steps, seed);
        prop_assert!(found <= 1.2 * bound, "{recursion:?} over {steps}: {found:e} above {bound:e}");
    }
}

/// The bound is not loose: typical streams reach a thousandth of it.
#[test]
fn the_bound_is_not_far_from_what_happens() {
    let steps = 60;
    let taps: Vec<f64> = (0..8).map(|lag| 1.0 / (1.0 + f64::from(lag))).collect();
    for recursion in [
        Recursion::AutoRegressive { taps: rounded(taps) },
        Recursion::MovingAverage { taps: vec![1.0, -0.5, -0.125, -0.0625] },
        Recursion::Blt { scale: vec![0.25, 0.0625], decay: vec![0.5, 0.9375] },
        Recursion::VaryingBlt {
            decay: vec![0.5, 0.9375],
            reads: [0.25, 0.125].repeat(steps),
            writes: [1.0, 0.5].repeat(steps),
        },
        // Decays of 0.5 and 0.625, by weights that fall and rise by ten orders of magnitude.
        Recursion::VaryingBlt {
            decay: vec![0.75, 0.9375],
            reads: (0..steps as i32).flat_map(|t| [0.25, 0.125].map(|x| x * 1.5f64.powi(-t))).collect(),
            writes: (0..steps as i32).flat_map(|t| [1.0, 0.5].map(|x| x * 1.5f64.powi(t + 1))).collect(),
        },
        Recursion::Rational { gain: vec![0.25, 0.0625], feedback: vec![0.5, 0.0625] },
    ] {
        let column = column_norm(&recursion, steps);
        let norms = RowNorms::new(&recursion, steps);
        let bound = accumulation_error_upper(&recursion, steps, norms, column) * (1u64 << 29) as f64;
        let found = moved(&recursion, steps, 3);
        assert!(found <= bound && 1000.0 * found > bound, "{recursion:?}: {found:e} of {bound:e}");
    }
}
