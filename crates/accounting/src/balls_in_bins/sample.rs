//! Losses of the mixture over bins against the origin, by importance sampling with bounded weights.
//!
//! Everything depends on x only through u_i = <x, m_i>, Gaussian with the Gram matrix G of the means (in units
//! of the noise). The loss is L = ln mean_i e^{v_i}, v_i = u_i - G_ii/2. delta is the mean of
//! Y = (1 - e^{epsilon - L})_+ under the mixture, and of (1 - e^{epsilon + L})_+ under N(0, 1) the other way.
//!
//! - Mixture: x is drawn around (1 + tau) m_i instead of m_i. The weight e^L / mean_i e^{(1 + tau) v_i -
//!   tau (1 + tau) G_ii/2} is at most e^{-tau L + tau (1 + tau) max G_ii/2}, because a power mean is not below the
//!   mean: bounded where L > epsilon.
//! - Origin: x is drawn around -tau times the mean m of all m_i. The weight is e^{tau <x, m> + tau^2 |m|^2/2}, and
//!   where L < -epsilon, mean v_i <= L (Jensen) bounds <x, m> from above.
//!
//! The means that are sampled are the rows of the factor L of G + s^2 I, where s^2 is above all that rounding does to G and to L. So
//! L L^T - G is positive semidefinite: they are the true means with coordinates more, which whoever sees x may forget, and no
//! delta is below the true one.

use antinoise_input::largest;
use rayon::prelude::*;

use crate::monte_carlo::simulation::{Simulation, ln_largest_excess};
use crate::monte_carlo::{Direction, Normals, Source, Tally, tally};
use crate::{Gdp, Result};

/// Samples that are drawn together.
const LANES: usize = 8;
/// Tilts that are tried.
const TILTS: usize = 7;

/// Means for noise of standard deviation 1, and how they are scaled.
#[derive(Debug, Clone)]
pub(crate) struct Sampler {
    bins: usize,
    /// The means, row by row: lower triangular.
    factor: Vec<f64>,
    /// Their Gram matrix.
    gram: Vec<f64>,
    /// <m_i, m> for the mean m of all m_i.
    toward_mean: Vec<f64>,
    /// What the means are multiplied by.
    scale: f64,
}

/// Noise of samples, <z, m_i> bin after bin for means that are not scaled, and the bins that they are drawn around.
pub(crate) struct Draws {
    noise: Vec<f64>,
    bins: Vec<usize>,
}

impl Sampler {
    /// The sampler for `means`, in units of the noise.
    pub fn new(means: &[Vec<f64>]) -> Result<Self> {
        let (bins, steps) = (means.len(), means[0].len());
        let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(x, y)| x * y).sum::<f64>();
        let of = |rows: &[Vec<f64>]| -> Vec<f64> {
            let row = |a: &Vec<f64>| rows.iter().map(|b| dot(a, b)).collect::<Vec<_>>();
            rows.par_iter().flat_map_iter(row).collect()
        };
        let mut given = of(means);
        let most = largest((0..bins).map(|i| given[i * (bins + 1)]));
        Gdp::new(most.sqrt())?;
        // Every entry of G, and of L L^T, is off by at most (steps + bins + 16) ulps of the largest.
        let rounding = 2.0 * bins as f64 * (steps + bins + 16) as f64 * f64::EPSILON * most;
        (0..bins).for_each(|i| given[i * (bins + 1)] += rounding);
        let rows = cholesky(&given, bins);
        let gram = of(&rows);
        let toward_mean = gram.chunks(bins).map(|row| row.iter().sum::<f64>() / bins as f64).collect();
        Ok(Self { bins, factor: rows.concat(), gram, toward_mean, scale: 1.0 })
    }

    /// The same means times `factor`.
    pub fn scaled(&self, factor: f64) -> Self {
        Self { scale: self.scale * factor, ..self.clone() }
    }

    fn square(&self, i: usize) -> f64 {
        self.gram[i * (self.bins + 1)]
    }

    fn largest_square(&self) -> f64 {
        self.scale * self.scale * largest((0..self.bins).map(|i| self.square(i)))
    }

    /// |m|^2 and the mean of G_ii.
    fn mean_squares(&self) -> (f64, f64) {
        let (bins, scale) = (self.bins as f64, self.scale * self.scale);
        let trace: f64 = (0..self.bins).map(|i| self.square(i)).sum();
        (scale * self.toward_mean.iter().sum::<f64>() / bins, scale * trace / bins)
    }

    /// The weighted samples of Y that `draws` give.
    pub fn tally_of(&self, direction: Direction, epsilon: f64, tilt: f64, draws: &[Draws]) -> Tally {
        let tallies: Vec<Tally> = draws
            .par_iter()
            .with_min_len(16)
            .map(|draws| {
                let mut tally = Tally::default();
                self.add(direction, epsilon, tilt, draws, &mut tally);
                tally
            })
            .collect();
        tallies.into_iter().fold(Tally::default(), Tally::join)
    }

    /// `count` draws, some at a time.
    pub fn draws<'a>(&'a self, normals: &'a mut Normals, count: usize) -> impl Iterator<Item = Draws> {
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

    fn add(&self, direction: Direction, epsilon: f64, tilt: f64, draws: &Draws, tally: &mut Tally) {
        let mut losses = vec![0.0; self.bins];
        for (noise, &bin) in draws.noise.chunks(self.bins).zip(&draws.bins) {
            tally.add(self.one(direction, epsilon, tilt, (noise, bin), &mut losses));
        }
    }

    /// Y of one draw; `v` is scratch.
    fn one(
        &self,
        direction: Direction,
        epsilon: f64,
        tilt: f64,
        (noise, bin): (&[f64], usize),
        v: &mut [f64],
    ) -> f64 {
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
            Direction::Remove if loss > epsilon => {
                let tilted = v.iter().enumerate().map(|(i, v)| shift * (v - tilt * half(i)));
                -(epsilon - loss).exp_m1() * (loss - ln_mean(tilted)).exp()
            }
            Direction::Add if -loss > epsilon => {
                let (of_mean, trace) = self.mean_squares();
                let along = v.iter().sum::<f64>() / self.bins as f64 + 0.5 * trace;
                -(epsilon + loss).exp_m1() * (tilt * along + 0.5 * tilt * tilt * of_mean).exp()
            }
            _ => 0.0,
        }
    }
}

impl Simulation for Sampler {
    type Tilt = f64;

    const SHARES_PRECISION: bool = false;
    const MOST_CLAIM_SAMPLES: usize = 300_000;
    const CLAIM: &'static str = "antinoise balls in bins 1";

    /// The means' numbers.
    fn numbers(&self) -> impl Iterator<Item = f64> {
        std::iter::once(self.scale).chain(self.factor.iter().copied())
    }

    /// max |m_i|: the privacy without sampling.
    fn largest_norm(&self) -> f64 {
        self.largest_square().sqrt()
    }

    /// Tilts that put the losses about where they are sought.
    fn tilts(&self, direction: Direction, epsilon: f64) -> Vec<f64> {
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

    /// The greatest weighted Y there can be.
    fn largest(&self, direction: Direction, epsilon: f64, &tilt: &f64) -> f64 {
        let ln_weight = match direction {
            Direction::Remove => -tilt * epsilon + 0.5 * tilt * (1.0 + tilt) * self.largest_square(),
            Direction::Add => {
                let (square, trace) = self.mean_squares();
                -tilt * (epsilon - 0.5 * trace) + 0.5 * tilt * tilt * square
            }
        };
        (ln_weight + ln_largest_excess(tilt)).exp() * (1.0 + 1e-9)
    }

    /// `count` weighted samples of Y; the same for the same arguments, however many threads there are.
    fn tally(&self, direction: Direction, epsilon: f64, &tilt: &f64, count: usize, source: &Source) -> Tally {
        tally(count, source, direction, |normals, tally, count| {
            for draws in self.draws(normals, count) {
                self.add(direction, epsilon, tilt, &draws, tally);
            }
        })
    }
}

/// ln of the mean of e^x.
fn ln_mean(terms: impl Iterator<Item = f64> + Clone) -> f64 {
    let peak = terms.clone().fold(f64::MIN, f64::max);
    let (mut sum, mut count) = (0.0, 0.0);
    for x in terms {
        sum += (x - peak).exp();
        count += 1.0;
    }
    peak + f64::ln(sum / count)
}

/// The rows of the lower-triangular factor of a positive definite matrix of `n` rows; of zeros, zeros.
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
