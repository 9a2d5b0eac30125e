//! A recursion, checked and flattened: what has to be computed at step t.

use std::collections::VecDeque;
use std::sync::Arc;

use antinoise_input::{InvalidParameter, at_least, below_one};
use antinoise_mechanism::Recursion;

use crate::NoiseError;
use crate::kept::{KeptRow, kept_rows};

/// The recursion at the bottom of any nesting of scaled and restarted ones.
pub(crate) enum Leaf {
    /// A weighted sum of this step's seed noise and a few past vectors.
    Ring { weights: Weights, keeps: Keeps },
    /// z~ = z - sum_i scale_i M_i; M_i <- M_i - rate_i M_i + z~, rate = 1 - decay.
    Blt { scale: Vec<f64>, rate: Vec<f64> },
    /// A weighted sum of seeds, listed by step in rising order.
    Sum { rows: Vec<Vec<(usize, f64)>> },
    /// The same where each step reads one fresh seed, and past seeds are kept as what rounding made of them.
    Kept { rows: Arc<[KeptRow]>, slots: usize },
}

impl Leaf {
    /// What a seed of 1 at the first of `steps` steps gives there, and the sum of what it gives at each, without
    /// signs; none where steps differ.
    pub(crate) fn response(&self, steps: usize) -> Option<(f64, f64)> {
        match self {
            Self::Ring { weights: Weights::SameEveryStep(weights), keeps: Keeps::Seeds } => {
                Some((weights[0], weights.iter().map(|w| w.abs()).sum()))
            }
            Self::Ring { weights: Weights::SameEveryStep(weights), keeps: Keeps::Outputs } => {
                let mut recent = VecDeque::from([weights[0]]);
                let mut sum = weights[0].abs();
                for _ in 1..steps {
                    let next = weights[1..].iter().zip(&recent).map(|(w, x)| w * x).sum::<f64>();
                    sum += next.abs();
                    recent.push_front(next);
                    recent.truncate(weights.len());
                }
                Some((weights[0], sum))
            }
            Self::Blt { scale, rate } => {
                let mut buffers = vec![0.0; scale.len()];
                let (mut seed, mut sum) = (1.0, 0.0);
                for _ in 0..steps {
                    let next = seed - scale.iter().zip(&buffers).map(|(a, m)| a * m).sum::<f64>();
                    buffers.iter_mut().zip(rate).for_each(|(m, rate)| *m += next - rate * *m);
                    (seed, sum) = (0.0, sum + next.abs());
                }
                Some((1.0, sum))
            }
            Self::Ring { .. } | Self::Sum { .. } | Self::Kept { .. } => None,
        }
    }
}

/// Which past vectors a [`Leaf::Ring`] looks back at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Keeps {
    Outputs,
    Seeds,
}

/// Weights by lag: lag 0 multiplies this step's seed noise.
pub(crate) enum Weights {
    SameEveryStep(Vec<f64>),
    ByStep { bands: usize, rows: Vec<f64> },
}

impl Weights {
    pub(crate) fn bands(&self) -> usize {
        match self {
            Self::SameEveryStep(weights) => weights.len(),
            Self::ByStep { bands, .. } => *bands,
        }
    }

    /// The weights of the run's step `local`, cut to the lags that exist.
    pub(crate) fn row(&self, local: usize) -> &[f64] {
        let lags = self.bands().min(local + 1);
        match self {
            Self::SameEveryStep(weights) => &weights[..lags],
            Self::ByStep { bands, rows } => &rows[local * bands..][..lags],
        }
    }
}

enum Layer {
    Scaled(Vec<f64>),
    Restarted { period: usize, seeds: usize },
}

/// Where step t lies: in which run, and what its noise is multiplied by.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Place {
    /// The step of the whole stream.
    pub(crate) step: usize,
    /// The step within the innermost run.
    pub(crate) local: usize,
    /// The run's first seed.
    pub(crate) first_seed: u64,
    pub(crate) factor: f64,
}

pub(crate) struct Recipe {
    layers: Vec<Layer>,
    pub(crate) leaf: Leaf,
    /// Steps of the innermost run.
    pub(crate) run_steps: usize,
    /// Seeds of the innermost run.
    pub(crate) run_seeds: usize,
}

impl Recipe {
    pub(crate) fn new(recursion: &Recursion, steps: usize) -> Result<Self, InvalidParameter> {
        at_least("steps", steps, 1)?;
        let mut layers = Vec::new();
        let (mut inner, mut steps) = (recursion, steps);
        loop {
            match inner {
                Recursion::Scaled { inner: next, factors } => {
                    at_least("factors", factors.len(), steps)?;
                    for &factor in factors {
                        nonzero("factors", factor)?;
                    }
                    layers.push(Layer::Scaled(factors.clone()));
                    inner = next;
                }
                Recursion::Restarted { inner: next, period } => {
                    at_least("period", *period, 1)?;
                    // A run that never ends reads no seed after its own.
                    steps = steps.min(*period);
                    let leaf = Self::new(next, steps)?;
                    let seeds = if steps == *period { next.seeds(steps) } else { 0 };
                    layers.push(Layer::Restarted { period: *period, seeds });
                    layers.extend(leaf.layers);
                    return Ok(Self { layers, ..leaf });
                }
                leaf => {
                    let leaf_kind = check_leaf(leaf, steps)?;
                    let run_seeds = leaf.seeds(steps);
                    return Ok(Self { layers, leaf: leaf_kind, run_steps: steps, run_seeds });
                }
            }
        }
    }

    /// The recipe of a plain stream: the coefficients are those that its kernels hold.
    pub(crate) fn in_single_precision(recursion: &Recursion, steps: usize) -> Result<Self, InvalidParameter> {
        // What was given is checked first: rounding makes other numbers of bad ones.
        Self::new(recursion, steps)?;
        Self::new(&recursion.in_single_precision(), steps)
    }

    /// The recipe of releases on a grid, which feed their rounding back into a seed of their own: sums of seeds are
    /// brought to a form that has one fresh seed a step.
    pub(crate) fn on_grid(recursion: &Recursion, steps: usize) -> Result<Self, NoiseError> {
        let mut recipe =
            Self::new(&recursion.one_seed_a_step(steps).map_err(NoiseError::of_mechanism)?, steps)?;
        if let Leaf::Sum { rows } = &recipe.leaf {
            let (rows, slots) = kept_rows(rows);
            recipe.leaf = Leaf::Kept { rows, slots };
        }
        Ok(recipe)
    }

    pub(crate) fn place(&self, step: usize) -> Place {
        let mut place = Place { step, local: step, first_seed: 0, factor: 1.0 };
        for layer in &self.layers {
            match layer {
                Layer::Scaled(factors) => place.factor *= factors[place.local],
                Layer::Restarted { period, seeds } => {
                    place.first_seed += (place.local / period * seeds) as u64;
                    place.local %= period;
                }
            }
        }
        place
    }
}

fn check_leaf(recursion: &Recursion, steps: usize) -> Result<Leaf, InvalidParameter> {
    match recursion {
        Recursion::Independent => {
            Ok(Leaf::Ring { weights: Weights::SameEveryStep(vec![1.0]), keeps: Keeps::Seeds })
        }
        Recursion::MovingAverage { taps } => {
            check_taps(taps)?;
            let taps = taps[..taps.len().min(steps)].to_vec();
            Ok(Leaf::Ring { weights: Weights::SameEveryStep(taps), keeps: Keeps::Seeds })
        }
        Recursion::AutoRegressive { taps } => {
            check_taps(taps)?;
            let weights = solve_for_output(&taps[..taps.len().min(steps)]);
            Ok(Leaf::Ring { weights: Weights::SameEveryStep(weights), keeps: Keeps::Outputs })
        }
        Recursion::Banded { bands, rows } => check_banded(*bands, rows, steps),
        Recursion::Blt { scale, decay } => {
            if scale.len() != decay.len() {
                return Err(InvalidParameter::new(
                    "scale",
                    scale.len(),
                    format!("as many as decay = {}", decay.len()),
                ));
            }
            for (&alpha, &lambda) in scale.iter().zip(decay) {
                finite("scale", alpha)?;
                below_one("decay", lambda)?;
            }
            Ok(Leaf::Blt { scale: scale.clone(), rate: decay.iter().map(|lambda| 1.0 - lambda).collect() })
        }
        Recursion::Combination { rows } => check_combination(rows, steps),
        Recursion::Scaled { .. } | Recursion::Restarted { .. } => unreachable!("a leaf is neither"),
    }
}

fn check_taps(taps: &[f64]) -> Result<(), InvalidParameter> {
    at_least("taps", taps.len(), 1)?;
    for &tap in taps {
        finite("taps", tap)?;
    }
    nonzero("taps[0]", taps[0]).map(|_| ())
}

/// From a row c_0, c_1, ... of C to the weights of z~_t = z_t / c_0 - sum_tau (c_tau / c_0) z~_{t-tau}.
fn solve_for_output(row: &[f64]) -> Vec<f64> {
    std::iter::once(1.0 / row[0]).chain(row[1..].iter().map(|c| -c / row[0])).collect()
}

fn check_banded(bands: usize, rows: &[f64], steps: usize) -> Result<Leaf, InvalidParameter> {
    at_least("bands", bands, 1)?;
    at_least("rows", rows.len() / bands, steps)?;
    let mut weights = Vec::with_capacity(steps * bands);
    for (t, row) in rows.chunks_exact(bands).take(steps).enumerate() {
        nonzero("rows (diagonal)", row[0])?;
        for &c in &row[..bands.min(t + 1)] {
            finite("rows", c)?;
        }
        weights.extend(solve_for_output(row));
    }
    Ok(Leaf::Ring { weights: Weights::ByStep { bands, rows: weights }, keeps: Keeps::Outputs })
}

fn check_combination(rows: &[Vec<(usize, f64)>], steps: usize) -> Result<Leaf, InvalidParameter> {
    at_least("rows", rows.len(), steps)?;
    let mut sorted = Vec::with_capacity(steps);
    for row in &rows[..steps] {
        for &(_, weight) in row {
            finite("rows", weight)?;
        }
        let mut row: Vec<_> = row.iter().copied().filter(|&(_, weight)| weight != 0.0).collect();
        row.sort_by_key(|&(seed, _)| seed);
        sorted.push(row);
    }
    Ok(Leaf::Sum { rows: sorted })
}

fn finite(parameter: &str, got: f64) -> Result<f64, InvalidParameter> {
    if got.is_finite() { Ok(got) } else { Err(InvalidParameter::new(parameter, got, "finite numbers")) }
}

fn nonzero(parameter: &str, got: f64) -> Result<f64, InvalidParameter> {
    if got.is_finite() && got != 0.0 {
        Ok(got)
    } else {
        Err(InvalidParameter::new(parameter, got, "finite and not 0"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_response_sums_a_column_of_the_inverse() {
        const STEPS: usize = 9;
        for recursion in [
            Recursion::Independent,
            Recursion::MovingAverage { taps: vec![1.5, -0.4, 0.2] },
            Recursion::AutoRegressive { taps: vec![2.0, 0.7, -0.3, 0.1] },
            Recursion::Blt { scale: vec![0.3, -0.1], decay: vec![0.9, 0.4] },
        ] {
            let seed: Vec<f64> = (0..STEPS).map(|t| if t == 0 { 1.0 } else { 0.0 }).collect();
            let column = recursion.apply(STEPS, &seed);
            let recipe = Recipe::new(&recursion, STEPS).unwrap();
            let (first, sum) = recipe.leaf.response(STEPS).unwrap();
            let expected: f64 = column.iter().map(|x| x.abs()).sum();
            assert!((first - column[0]).abs() < 1e-15 && (sum - expected).abs() < 1e-14);
        }
        let rows = (0..STEPS * 2).map(|i| 1.0 / (1 + i) as f64).collect();
        let recipe = Recipe::new(&Recursion::Banded { bands: 2, rows }, STEPS).unwrap();
        assert!(recipe.leaf.response(STEPS).is_none());
    }
}
