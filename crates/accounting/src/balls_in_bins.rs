//! Balls-in-bins sampling: delta of the mixture over bins against the noise alone, by importance sampling
//! with bounded weights.
//!
//! In units of the noise, let m_i be the sum of the columns of C for the steps of bin i, and x the release.
//! The loss depends on x only through u_i = <x, m_i>, Gaussian with the Gram matrix G of the means: L = ln
//! mean_i e^{v_i} with v_i = u_i - G_ii/2. delta is the mean of Y = (1 - e^{epsilon - L})_+ under the mixture
//! (removal), and of (1 - e^{epsilon + L})_+ under N(0, 1) (addition).
//!
//! - Mixture: x is drawn around (1 + tau) m_i instead of m_i. The weight e^L / mean_i e^{(1 + tau) v_i - tau
//!   (1 + tau) G_ii/2} is at most e^{-tau L + tau (1 + tau) max G_ii/2}, because a power mean is not below
//!   the mean: bounded where L > epsilon.
//! - Origin: x is drawn around -tau times the mean m of all m_i. The weight is e^{tau <x, m> +
//!   tau^2 |m|^2/2}, and where L < -epsilon, mean v_i <= L (Jensen) bounds <x, m> from above.
//!
//! The sampled means are the rows of the Cholesky factor F of G + s^2 I, where s^2 bounds the rounding errors
//! of G and F. F F^T - G is then positive semidefinite: the sampled means are the true ones with extra
//! coordinates. An observer may discard these, so that no delta is below the true one.

use antinoise_input::{InvalidParameter, at_least, between, largest, non_negative, positive};
use rayon::prelude::*;

use crate::monte_carlo::simulation::{Simulation, ln_largest_excess, predicted_upper};
use crate::monte_carlo::{Direction, Normals, Samples, Source, Tally, add, least, tallies};
use crate::{Gdp, Result};

/// Number of samples in a block of draws.
const LANES: usize = 8;
/// Number of candidate tilts in each direction.
const TILTS: usize = 7;
/// Number of samples from which the search for a noise scale predicts upper confidence limits.
const SEARCH_SAMPLES: usize = 16_384;
/// Number of samples from which that search chooses tilts.
const SEARCH_TILT_SAMPLES: usize = 1024;

/// The dominating pair: the means m_i in units of the noise, up to a common scale.
#[derive(Debug, Clone)]
pub(crate) struct BinsPair {
    bins: usize,
    /// The means, row by row: the lower-triangular Cholesky factor.
    factor: Vec<f64>,
    /// Gram matrix of the means.
    gram: Vec<f64>,
    /// <m_i, m>, where m is the mean of all m_i.
    toward_mean: Vec<f64>,
    /// The common factor of all means.
    scale: f64,
}

/// A block of samples, before means are scaled.
struct Draws {
    /// <z, m_i> for standard normal z, bin by bin within each sample.
    noise: Vec<f64>,
    /// The bin around whose mean each sample is drawn.
    bins: Vec<usize>,
}

impl BinsPair {
    /// Creates the pair for `columns`, each from the diagonal of C down; checks the conditions of the
    /// theorem.
    pub fn new<C: AsRef<[f64]>>(columns: &[C], bins: usize, noise_std: f64) -> Result<Self> {
        let steps = at_least("columns", columns.len(), 1)?;
        let noise_std = positive("noise_std", noise_std)?;
        between("bins", bins, 1, steps, "columns")?;
        let mut means = vec![vec![0.0; steps]; bins];
        for (t, column) in columns.iter().enumerate() {
            let column = column.as_ref();
            if column.len() > steps - t {
                let must_be = format!("at most {} entries, one for each remaining step", steps - t);
                return Err(InvalidParameter::new(format!("column {t}"), column.len(), must_be).into());
            }
            for (entry, sum) in column.iter().zip(&mut means[t % bins][t..]) {
                *sum += non_negative(&format!("column {t}"), *entry)? / noise_std;
            }
        }
        Self::of_means(&means)
    }

    /// Creates the pair for `means` in units of the noise.
    fn of_means(means: &[Vec<f64>]) -> Result<Self> {
        let (bins, steps) = (means.len(), means[0].len());
        let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(x, y)| x * y).sum::<f64>();
        let gram_of = |rows: &[Vec<f64>]| -> Vec<f64> {
            let row = |a: &Vec<f64>| rows.iter().map(|b| dot(a, b)).collect::<Vec<_>>();
            rows.par_iter().flat_map_iter(row).collect()
        };
        let mut given = gram_of(means);
        let largest_square = largest((0..bins).map(|i| given[i * (bins + 1)]));
        Gdp::new(largest_square.sqrt())?;
        // Every entry of G and of F F^T has an error of at most (steps + bins + 16) ulps of the largest
        // entry.
        let rounding = 2.0 * bins as f64 * (steps + bins + 16) as f64 * f64::EPSILON * largest_square;
        (0..bins).for_each(|i| given[i * (bins + 1)] += rounding);
        let rows = cholesky(&given, bins);
        let gram = gram_of(&rows);
        let toward_mean = gram.chunks(bins).map(|row| row.iter().sum::<f64>() / bins as f64).collect();
        Ok(Self { bins, factor: rows.concat(), gram, toward_mean, scale: 1.0 })
    }

    /// The pair with its means multiplied by `factor`.
    fn scaled(&self, factor: f64) -> Self {
        Self { scale: self.scale * factor, ..self.clone() }
    }

    fn square(&self, i: usize) -> f64 {
        self.gram[i * (self.bins + 1)]
    }

    fn largest_square(&self) -> f64 {
        self.scale * self.scale * largest((0..self.bins).map(|i| self.square(i)))
    }

    /// |m|^2, and the mean of G_ii over i.
    fn mean_squares(&self) -> (f64, f64) {
        let (bins, scale) = (self.bins as f64, self.scale * self.scale);
        let trace: f64 = (0..self.bins).map(|i| self.square(i)).sum();
        (scale * self.toward_mean.iter().sum::<f64>() / bins, scale * trace / bins)
    }

    /// Returns the sums over the weighted samples of Y for `draws`.
    fn tally_of(&self, direction: Direction, epsilon: f64, tilt: f64, draws: &[Draws]) -> Tally {
        let tallies: Vec<Tally> = draws
            .par_iter()
            .with_min_len(16)
            .map(|draws| {
                let mut tally = [Tally::default()];
                self.add(direction, &[epsilon], tilt, draws, &mut tally);
                tally[0]
            })
            .collect();
        tallies.into_iter().fold(Tally::default(), Tally::join)
    }

    /// `count` samples in blocks.
    fn draws<'a>(&'a self, normals: &'a mut Normals, count: usize) -> impl Iterator<Item = Draws> {
        let bins = self.bins;
        let mut normal = vec![[0.0; LANES]; bins];
        (0..count.div_ceil(LANES)).map(move |block| {
            let lanes = LANES.min(count - block * LANES);
            normal.iter_mut().flatten().for_each(|z| *z = normals.next());
            let around = (0..lanes).map(|_| normals.below(bins)).collect();
            let mut noise = vec![0.0; lanes * bins];
            for (i, row) in self.factor.chunks(bins).enumerate() {
                let mut sums = [0.0; LANES];
                for (entry, normals) in row[..=i].iter().zip(&normal) {
                    sums.iter_mut().zip(normals).for_each(|(sum, z)| *sum += entry * z);
                }
                (0..lanes).for_each(|lane| noise[lane * bins + i] = sums[lane]);
            }
            Draws { noise, bins: around }
        })
    }

    fn add(&self, direction: Direction, epsilons: &[f64], tilt: f64, draws: &Draws, tallies: &mut [Tally]) {
        let (mut losses, least) = (vec![0.0; self.bins], least(epsilons));
        for (noise, &bin) in draws.noise.chunks(self.bins).zip(&draws.bins) {
            add(tallies, epsilons, self.one(direction, least, tilt, (noise, bin), &mut losses));
        }
    }

    /// Returns the loss of one sample in `direction`, and its weight if the loss is above `least`; `v` is
    /// scratch memory.
    fn one(
        &self,
        direction: Direction,
        least: f64,
        tilt: f64,
        (noise, bin): (&[f64], usize),
        v: &mut [f64],
    ) -> (f64, f64) {
        let square = self.scale * self.scale;
        let (shift, row) = match direction {
            Direction::Remove => (1.0 + tilt, &self.gram[bin * self.bins..(bin + 1) * self.bins]),
            Direction::Add => (-tilt, &self.toward_mean[..]),
        };
        let half = |i: usize| 0.5 * square * self.square(i);
        for (i, v) in v.iter_mut().enumerate() {
            *v = square * shift * row[i] + self.scale * noise[i] - half(i);
        }
        let loss = ln_mean(v.iter().copied());
        match direction {
            Direction::Remove if loss > least => {
                let tilted = v.iter().enumerate().map(|(i, v)| shift * (v - tilt * half(i)));
                (loss, (loss - ln_mean(tilted)).exp())
            }
            Direction::Add if -loss > least => {
                let (mean_square, trace) = self.mean_squares();
                let along = v.iter().sum::<f64>() / self.bins as f64 + 0.5 * trace;
                (-loss, (tilt * along + 0.5 * tilt * tilt * mean_square).exp())
            }
            _ => (f64::NEG_INFINITY, 0.0),
        }
    }
}

impl Simulation for BinsPair {
    /// The tilt tau of the samples' means.
    type Proposal = f64;

    const SHARES_PRECISION: bool = false;
    const MAX_CLAIM_SAMPLES: usize = 300_000;
    const CLAIM: &'static str = "antinoise balls in bins 1";

    fn numbers(&self) -> impl Iterator<Item = f64> {
        std::iter::once(self.scale).chain(self.factor.iter().copied())
    }

    fn largest_norm(&self) -> f64 {
        self.largest_square().sqrt()
    }

    /// Candidate tilts, which move the losses towards epsilon.
    fn proposals(&self, direction: Direction, epsilon: f64) -> Vec<f64> {
        let (none, best) = match direction {
            Direction::Remove => {
                let square = self.largest_square().max(f64::MIN_POSITIVE);
                (epsilon / square - 0.5, (epsilon + 1.5 * (self.bins as f64).ln()) / square - 0.5)
            }
            Direction::Add => {
                let (square, trace) = self.mean_squares();
                (0.0, 1.5 * (epsilon - 0.5 * trace) / square.max(f64::MIN_POSITIVE))
            }
        };
        let at = |part: usize| none + (best - none) * part as f64 / (TILTS - 1) as f64;
        (0..TILTS).map(|part| at(part).clamp(0.0, 1e6)).collect()
    }

    fn largest_sample(&self, direction: Direction, epsilon: f64, &tilt: &f64) -> f64 {
        let ln_weight = match direction {
            Direction::Remove => -tilt * epsilon + 0.5 * tilt * (1.0 + tilt) * self.largest_square(),
            Direction::Add => {
                let (square, trace) = self.mean_squares();
                -tilt * (epsilon - 0.5 * trace) + 0.5 * tilt * tilt * square
            }
        };
        (ln_weight + ln_largest_excess(tilt)).exp() * (1.0 + 1e-9)
    }

    fn tallies(
        &self,
        direction: Direction,
        epsilons: &[f64],
        &tilt: &f64,
        samples: Samples<'_>,
    ) -> Vec<Tally> {
        tallies(samples, direction, epsilons, |normals, tallies, count| {
            for draws in self.draws(normals, count) {
                self.add(direction, epsilons, tilt, &draws, tallies);
            }
        })
    }

    /// All noise scales share the same draws.
    fn upper_by_noise(&self, epsilon: f64) -> impl Fn(f64) -> f64 {
        let mut normals = Normals::new(&Source::of_seed(0), 0, 0);
        let draws: Vec<_> = self.draws(&mut normals, SEARCH_SAMPLES).collect();
        let few = draws.len() * SEARCH_TILT_SAMPLES / SEARCH_SAMPLES;
        move |ln_scale: f64| {
            let pair = self.scaled((-ln_scale).exp());
            predicted_upper(&pair, epsilon, |direction, &tilt, is_rough| {
                pair.tally_of(direction, epsilon, tilt, if is_rough { &draws[..few] } else { &draws })
            })
        }
    }
}

/// The logarithm of the mean of e^x over `terms`.
fn ln_mean(terms: impl Iterator<Item = f64> + Clone) -> f64 {
    let peak = terms.clone().fold(f64::MIN, f64::max);
    let (mut sum, mut count) = (0.0, 0.0);
    for x in terms {
        sum += (x - peak).exp();
        count += 1.0;
    }
    peak + f64::ln(sum / count)
}

/// The rows of the lower-triangular Cholesky factor of a positive semidefinite matrix of `n` rows.
fn cholesky(matrix: &[f64], n: usize) -> Vec<Vec<f64>> {
    let mut factor: Vec<Vec<f64>> = Vec::with_capacity(n);
    for (i, row) in matrix.chunks(n).enumerate() {
        let mut new = vec![0.0; n];
        for (j, &entry) in row[..=i].iter().enumerate() {
            let before = |other: &[f64]| -> f64 { new[..j].iter().zip(other).map(|(a, b)| a * b).sum() };
            let rest = entry - if j == i { before(&new) } else { before(&factor[j]) };
            let pivot = if j == i { rest.max(0.0).sqrt() } else { factor[j][j] };
            new[j] = if pivot > 0.0 { rest / pivot } else { 0.0 };
        }
        factor.push(new);
    }
    factor
}

#[cfg(test)]
mod tests;
