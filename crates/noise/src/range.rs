//! Range checks of streams: noise must neither underflow nor overflow in its precision, nor exceed the range
//! of a grid.

use antinoise_input::{InvalidParameter, larger, largest};
use antinoise_mechanism::{Grid, Recursion, RowNorms, toeplitz};

use crate::flat_recursion::{FlatRecursion, History, Leaf, StepWeights, rational_response};
use crate::spec::Spec;

/// Limits on the standard deviations of noise. Numbers in single precision extend from 2^-126 to 2^128; the
/// margin is for noise that is smaller or larger than its standard deviation.
const MIN_DEVIATION: f64 = 1.0 / MAX_DEVIATION;
const MAX_DEVIATION: f64 = (1u128 << 100) as f64;
/// Upper bound on every normal, which is made from at most 129 bits: sqrt(2 ln 2^129) = 13.4.
const LARGEST_NORMAL: f64 = 14.0;
/// Numbers of at most this size, and sums of a few of them, do not overflow in single precision.
const LARGEST: f64 = (1u128 << 120) as f64;
/// The least weight with which running sums count, so that a sum that is hardly read does not overflow
/// either.
const HARDLY_READ: f64 = 1.0 / (1u64 << 60) as f64;
/// Whole numbers of grid points up to this size are added exactly.
const MAX_POINTS: f64 = (1u64 << 51) as f64;

/// Returns `noise_std` if noise of this standard deviation is within the range of single precision.
pub(crate) fn noise_std(noise_std: f64) -> Result<f64, InvalidParameter> {
    within(|| "noise_std".into(), noise_std)
}

/// Returns `scale` if it is 0, or if noise of standard deviation |scale| noise_std is within the range of
/// single precision.
pub(crate) fn scale(scale: f32, noise_std: f64) -> Result<f32, InvalidParameter> {
    let deviation = (f64::from(scale) * noise_std).abs();
    if scale == 0.0 || (MIN_DEVIATION..=MAX_DEVIATION).contains(&deviation) {
        Ok(scale)
    } else {
        let must_be = format!("0, or of size from 2^-100 to 2^100 times noise_std = {noise_std:e}");
        Err(InvalidParameter::new("scale", scale, must_be))
    }
}

/// Refuses a stream in which a row could underflow, overflow or consist mostly of rounding errors.
pub(crate) fn check(flat: &FlatRecursion, spec: &Spec, grid: Option<Grid>) -> Result<(), InvalidParameter> {
    let reach = Reach::of(&flat.leaf, &spec.recursion, flat.run_steps);
    // `gain` limits rounding errors that the recursion feeds back to half of the digits of the noise.
    let (largest, gain) =
        if grid.is_some() { (LARGEST.powi(8), (1u64 << 51) as f64) } else { (LARGEST, (1u64 << 22) as f64) };
    let most = LARGEST_NORMAL * reach.row;
    let fits =
        most * reach.weights.max(1.0) <= largest && (!reach.feeds_back || reach.row * reach.weights <= gain);
    // A comparison with NaN is false, so that NaN is refused.
    if !fits {
        let got = format!(
            "one whose rows are up to {:.1e} times the seed noise, from weights of up to {:.1e}",
            reach.row, reach.weights
        );
        let must_be = "one whose rows are in the range of single precision (on a grid, double precision)";
        return Err(InvalidParameter::new("recursion", got, must_be));
    }
    for step in 0..spec.steps {
        let position = flat.position(step);
        let scale = spec.noise_std * position.factor.abs();
        let fresh = flat.leaf.fresh_weight(position.local);
        within(|| format!("noise_std times the factor of step {step}"), scale)?;
        within(|| format!("the weight of the fresh noise of step {step}"), fresh)?;
        within(|| format!("the standard deviation of the fresh noise of step {step}"), scale * fresh)?;
        let points = grid.map_or(0.0, |grid| most * scale / grid.spacing());
        if most * scale > LARGEST || points > MAX_POINTS {
            let got = format!("of size up to {:.1e} at step {step}", most * scale);
            let must_be = "at most 2^120 and, on a grid, at most 2^51 grid points";
            return Err(InvalidParameter::new("noise", got, must_be));
        }
    }
    grid.map_or(Ok(()), |grid| check_grid(flat, spec.steps, spec.noise_std / grid.spacing()))
}

/// Refuses a grid whose spacing is below 2^-36 times the standard deviation of some step's fresh noise.
fn check_grid(flat: &FlatRecursion, steps: usize, per_unit: f64) -> Result<(), InvalidParameter> {
    for step in 0..steps {
        let position = flat.position(step);
        let points = (per_unit * position.factor * flat.leaf.fresh_weight(position.local)).abs();
        if points * Grid::FINEST > 1.0 {
            let got = format!("1 / {points:e} of the standard deviation of the fresh noise of step {step}");
            return Err(InvalidParameter::new("grid spacing", got, "at least 2^-36 of it"));
        }
    }
    Ok(())
}

/// Whether every number of every row, in whole grid points, is certain to fit in a 32-bit integer; true
/// without a grid.
pub(crate) fn points_fit(flat: &FlatRecursion, spec: &Spec, grid: Option<Grid>) -> bool {
    /// Maximum number of steps for which an impulse response is summed.
    const MAX_STEPS: usize = 1 << 24;
    let Some(grid) = grid else { return true };
    if flat.run_steps > MAX_STEPS {
        return false;
    }
    let Some((first, sum)) = flat.leaf.extremes(flat.run_steps) else { return false };
    let per_unit = spec.noise_std / grid.spacing();
    let factors = (0..spec.steps).map(|step| per_unit * flat.position(step).factor.abs());
    let (least, most) = factors.fold((f64::INFINITY, 0.0f64), |(least, most), x| (least.min(x), most.max(x)));
    // The rounding of a step, at most half a point, is fed back into its seed.
    let seed = LARGEST_NORMAL + 0.5 / (least * first.abs());
    most * seed * sum < f64::from(i32::MAX)
}

/// As [`points_fit`], but if rows have different weights, a number may still not fit, with probability 1e-44
/// for each number.
pub(crate) fn rows_fit(flat: &FlatRecursion, spec: &Spec, grid: Option<Grid>) -> bool {
    if points_fit(flat, spec, grid) {
        return true;
    }
    let per_unit = grid.map_or(f64::INFINITY, |grid| spec.noise_std / grid.spacing());
    let row = Reach::of(&flat.leaf, &spec.recursion, flat.run_steps).row;
    let mut positions = (0..spec.steps).map(|step| flat.position(step));
    positions.all(|position| {
        let points = per_unit * position.factor.abs();
        // The rounding of a step, at most half a point, is fed back into its seed.
        let seed = LARGEST_NORMAL + 0.5 / (points * flat.leaf.fresh_weight(position.local).abs());
        points * seed * row < f64::from(i32::MAX)
    })
}

fn within(parameter: impl FnOnce() -> String, deviation: f64) -> Result<f64, InvalidParameter> {
    if (MIN_DEVIATION..=MAX_DEVIATION).contains(&deviation) {
        Ok(deviation)
    } else {
        let must_be = "from 2^-100 to 2^100 (7.9e-31 to 1.3e30), the range of noise in single precision";
        Err(InvalidParameter::new(parameter(), format!("{deviation:e}"), must_be))
    }
}

/// Upper bounds on the rows and weights of a recursion, for seeds of size 1.
struct Reach {
    /// The largest l1 norm of a row of C^-1. If steps have different weights, the largest l2 norm instead; a
    /// number of a row exceeds [`LARGEST_NORMAL`] times that with probability 1e-44.
    row: f64,
    /// The largest l1 norm of the weights with which a step reads seeds, rows or buffers.
    weights: f64,
    /// Whether a step reads earlier rows, whose rounding errors are fed back.
    feeds_back: bool,
}

impl Reach {
    fn of(leaf: &Leaf, recursion: &Recursion, steps: usize) -> Self {
        let size = |weights: &[f64]| weights.iter().map(|w| w.abs()).sum::<f64>();
        match leaf {
            Leaf::Ring { weights, history } => match (weights.of_every_step(), history) {
                (Some(weights), History::Seeds) => Self::of_seeds(size(weights)),
                (Some(weights), History::Outputs) => {
                    let denominator: Vec<f64> =
                        std::iter::once(1.0).chain(weights[1..].iter().map(|w| -w)).collect();
                    let response = toeplitz::divide(&weights[..1], &denominator, steps);
                    Self { row: size(&response), weights: size(&weights[1..]), feeds_back: true }
                }
                (None, _) => {
                    let most = largest((0..steps).map(|t| size(&weights.row(t)[1..])));
                    let row = RowNorms::new(recursion, steps).inner.1;
                    Self { row, weights: most, feeds_back: true }
                }
            },
            Leaf::Blt { scale, rate } => {
                let row = leaf.response(steps).map_or(f64::NAN, |(_, sum)| sum);
                let buffers =
                    scale.iter().zip(rate).map(|(a, rate)| a.abs() * (1.0 / rate).min(steps as f64));
                Self { row, weights: buffers.sum(), feeds_back: true }
            }
            Leaf::VaryingBlt(StepWeights { rate, reads, writes }) => {
                let (mut kept, mut weights) = (vec![0.0; rate.len()], 0.0);
                let order = rate.len().max(1);
                for (reads, writes) in reads.chunks_exact(order).zip(writes.chunks_exact(order)).take(steps) {
                    let read =
                        kept.iter().zip(reads).map(|(kept, read)| kept * larger(read.abs(), HARDLY_READ));
                    weights = larger(weights, read.sum());
                    for ((kept, rate), write) in kept.iter_mut().zip(rate).zip(writes) {
                        *kept = (1.0 - rate).abs() * *kept + write.abs();
                    }
                }
                let row = RowNorms::new(recursion, steps).inner.1;
                Self { row, weights, feeds_back: true }
            }
            Leaf::Rational { gain, feedback } => {
                let (row, sizes) = rational_response(gain, feedback, steps);
                let read = gain.iter().zip(feedback).map(|(g, e)| larger(g.abs() + e.abs(), HARDLY_READ));
                let weights = read.zip(sizes).map(|(read, size)| read * size / row).sum();
                Self { row, weights, feeds_back: true }
            }
            Leaf::Sum { rows } => {
                let sizes = rows.iter().map(|row| row.iter().map(|(_, w)| w.abs()).sum());
                Self::of_seeds(largest(sizes))
            }
            Leaf::Circulant { first, later, .. } => Self::of_seeds(larger(*first, *later)),
            Leaf::Retained { .. } => Self::of_seeds(leaf.extremes(steps).map_or(f64::NAN, |(_, sum)| sum)),
        }
    }

    /// Returns the bounds of a recursion whose rows are sums of seeds.
    fn of_seeds(row: f64) -> Self {
        Self { row, weights: row, feeds_back: false }
    }
}
