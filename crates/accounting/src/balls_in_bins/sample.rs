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

use antinoise_input::largest;
use rayon::prelude::*;

use crate::monte_carlo::{Direction, Normals, Tally, tally};
use crate::{Gdp, Result};

/// The Gram matrix of the means, and its Cholesky factor row by row.
#[derive(Debug, Clone)]
pub(crate) struct Sampler {
    gram: Vec<Vec<f64>>,
    factor: Vec<Vec<f64>>,
    /// <m_i, m> for the mean m of all m_i.
    toward_mean: Vec<f64>,
}

impl Sampler {
    /// The sampler for `means`, in units of the noise.
    pub fn new(means: &[Vec<f64>]) -> Result<Self> {
        let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(x, y)| x * y).sum::<f64>();
        let gram: Vec<Vec<f64>> =
            means.par_iter().map(|a| means.iter().map(|b| dot(a, b)).collect()).collect();
        Gdp::new(largest((0..gram.len()).map(|i| gram[i][i])).sqrt())?;
        let bins = means.len() as f64;
        let toward_mean = gram.iter().map(|row| row.iter().sum::<f64>() / bins).collect();
        Ok(Self { factor: cholesky(&gram), gram, toward_mean })
    }

    /// max |m_i|: the privacy without sampling.
    pub fn largest_norm(&self) -> f64 {
        self.largest_square().sqrt()
    }

    fn largest_square(&self) -> f64 {
        largest((0..self.gram.len()).map(|i| self.gram[i][i]))
    }

    /// |m|^2 and the mean of G_ii.
    fn mean_squares(&self) -> (f64, f64) {
        let bins = self.gram.len() as f64;
        let trace: f64 = (0..self.gram.len()).map(|i| self.gram[i][i]).sum();
        (self.toward_mean.iter().sum::<f64>() / bins, trace / bins)
    }

    /// Tilts that put the losses about where they are sought.
    pub fn tilts(&self, direction: Direction, epsilon: f64) -> Vec<f64> {
        let best = match direction {
            Direction::Remove => {
                let square = self.largest_square().max(f64::MIN_POSITIVE);
                let bins = (self.gram.len() as f64).ln();
                return [0.0, 0.5, 1.0, 1.5]
                    .map(|part| ((epsilon + part * bins) / square - 0.5).clamp(0.0, 1e6))
                    .to_vec();
            }
            Direction::Add => {
                let (square, trace) = self.mean_squares();
                ((epsilon - 0.5 * trace) / square.max(f64::MIN_POSITIVE)).clamp(0.0, 1e6)
            }
        };
        vec![0.0, 0.5 * best, best, 1.5 * best]
    }

    /// The greatest weighted Y there can be.
    pub fn largest(&self, direction: Direction, epsilon: f64, tilt: f64) -> f64 {
        let ln_weight = match direction {
            Direction::Remove => -tilt * epsilon + 0.5 * tilt * (1.0 + tilt) * self.largest_square(),
            Direction::Add => {
                let (square, trace) = self.mean_squares();
                -tilt * (epsilon - 0.5 * trace) + 0.5 * tilt * tilt * square
            }
        };
        // (1 - e^-d) e^{-tilt d} for the loss d beyond epsilon is at most this, as for one Gaussian.
        let excess = if tilt > 0.0 { -tilt * (1.0 / tilt).ln_1p() - tilt.ln_1p() } else { 0.0 };
        (ln_weight + excess).exp() * (1.0 + 1e-9)
    }

    /// `count` weighted samples of Y; the same for the same arguments, however many threads there are.
    pub fn tally(&self, direction: Direction, epsilon: f64, tilt: f64, count: usize, seed: u64) -> Tally {
        tally(count, seed, direction, |normals, tally, count| {
            let mut u = vec![0.0; self.gram.len()];
            for _ in 0..count {
                tally.add(self.one(direction, epsilon, tilt, normals, &mut u));
            }
        })
    }

    fn one(
        &self,
        direction: Direction,
        epsilon: f64,
        tilt: f64,
        normals: &mut Normals,
        u: &mut [f64],
    ) -> f64 {
        let bins = self.gram.len();
        let noise: Vec<f64> = (0..bins).map(|_| normals.next()).collect();
        let (shift, row) = match direction {
            Direction::Remove => (1.0 + tilt, &self.gram[normals.below(bins)]),
            Direction::Add => (-tilt, &self.toward_mean),
        };
        for (i, u) in u.iter_mut().enumerate() {
            let noise: f64 = self.factor[i].iter().zip(&noise).map(|(a, b)| a * b).sum();
            *u = shift * row[i] + noise;
        }
        let loss = ln_mean((0..bins).map(|i| u[i] - 0.5 * self.gram[i][i]));
        match direction {
            Direction::Remove if loss > epsilon => {
                let tilted = (0..bins).map(|i| shift * u[i] - 0.5 * shift * shift * self.gram[i][i]);
                -(epsilon - loss).exp_m1() * (loss - ln_mean(tilted)).exp()
            }
            Direction::Add if -loss > epsilon => {
                let (square, _) = self.mean_squares();
                let along = u.iter().sum::<f64>() / bins as f64;
                -(epsilon + loss).exp_m1() * (tilt * along + 0.5 * tilt * tilt * square).exp()
            }
            _ => 0.0,
        }
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

/// The lower-triangular factor of a positive semidefinite matrix; columns of rounding alone become 0.
fn cholesky(gram: &[Vec<f64>]) -> Vec<Vec<f64>> {
    let mut factor: Vec<Vec<f64>> = Vec::with_capacity(gram.len());
    for (i, row) in gram.iter().enumerate() {
        let mut new = Vec::with_capacity(i + 1);
        for (j, &entry) in row[..=i].iter().enumerate() {
            let before = |other: &[f64]| -> f64 { new.iter().zip(&other[..j]).map(|(a, b)| a * b).sum() };
            if j == i {
                let rest = entry - before(&new);
                new.push(if rest > 1e-14 * entry { rest.sqrt() } else { 0.0 });
            } else {
                let pivot = factor[j][j];
                new.push(if pivot > 0.0 { (entry - before(&factor[j])) / pivot } else { 0.0 });
            }
        }
        factor.push(new);
    }
    factor
}
