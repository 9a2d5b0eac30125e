//! The law of the noise: W (R - G) / nu must be independent standard normals, across steps, coordinates and
//! runs.

use antinoise_mechanism::toeplitz::correlate;
use rayon::prelude::*;

use crate::operator::Operator;
use crate::report::Test;
use crate::stats::{chi_squared_score, normal_quantile, normal_tail};

/// Numbers kept of each run, for comparisons with other runs.
const KEPT: usize = 1 << 17;
/// Maximum number of residuals whose distribution is tested.
const SAMPLED: usize = 1 << 20;

/// Number of tests of [`NoiseTests::tests`].
pub(crate) const TESTS: usize = 7;

/// The statistics of the runs so far.
pub(crate) struct NoiseTests {
    steps: usize,
    dim: usize,
    runs: usize,
    /// The sum of squares of each step.
    squares: Vec<f64>,
    /// For each lag, the sum of products of numbers that are `lag` steps apart.
    products: Vec<f64>,
    /// (<u, v>, |u|^2), where u and v are the even and the odd coordinates.
    neighbours: (f64, f64),
    /// (<u, v>, |u|^2), where u and v are the two halves of the coordinates.
    halves: (f64, f64),
    kept: Vec<Vec<f64>>,
    sample: Vec<f64>,
}

impl NoiseTests {
    pub(crate) fn new(steps: usize, dim: usize) -> Self {
        Self {
            steps,
            dim,
            runs: 0,
            squares: vec![0.0; steps],
            products: vec![0.0; steps],
            neighbours: (0.0, 0.0),
            halves: (0.0, 0.0),
            kept: Vec::new(),
            sample: Vec::new(),
        }
    }

    /// Adds a run; `residuals`: R - G of each coordinate, with one entry per step.
    pub(crate) fn add(&mut self, whitening: &Operator, noise_std: f64, residuals: &[Vec<f64>]) {
        let whiten = |residual: &Vec<f64>| -> Vec<f64> {
            whitening.apply(residual).into_iter().map(|x| x / noise_std).collect()
        };
        let seeds: Vec<Vec<f64>> = residuals.par_iter().map(whiten).collect();
        // One after the other: sums must not depend on the number of threads.
        let products: Vec<Vec<f64>> = seeds.par_iter().map(|z| correlate(z, z, self.steps)).collect();
        for (z, products) in seeds.iter().zip(&products) {
            self.squares.iter_mut().zip(z).for_each(|(sum, z)| *sum += z * z);
            self.products.iter_mut().zip(products).for_each(|(sum, product)| *sum += product);
        }
        let half = self.dim / 2;
        for (u, v) in (0..half).map(|j| (2 * j, 2 * j + 1)) {
            accumulate(&mut self.neighbours, &seeds[u], &seeds[v]);
        }
        for j in 0..half {
            accumulate(&mut self.halves, &seeds[j], &seeds[half + j]);
        }
        self.kept.push(seeds.iter().flatten().take(KEPT).copied().collect());
        let room = SAMPLED.saturating_sub(self.sample.len());
        self.sample.extend(seeds.iter().flatten().take(room));
        self.runs += 1;
    }

    /// All tests, each with false-alarm probability `alpha`.
    pub(crate) fn tests(&mut self, alpha: f64) -> Vec<Test> {
        let each = (self.dim * self.runs) as f64;
        let both_sides = |comparisons: usize| normal_quantile(0.5 * alpha / comparisons as f64);
        let total = chi_squared_score(self.squares.iter().sum(), each * self.steps as f64);
        let of_steps = largest_magnitude(self.squares.iter().map(|&sum| chi_squared_score(sum, each)));
        let neighbours = self.neighbours.0 / self.neighbours.1.sqrt();
        let halves = self.halves.0 / self.halves.1.sqrt();
        vec![
            Test::new("variance of the noise", total.abs(), both_sides(1)),
            Test::new("variance at each step", of_steps, both_sides(self.steps)),
            Test::new("correlation between steps", self.lags(alpha), 1.0),
            Test::new("correlation between neighbouring coordinates", neighbours.abs(), both_sides(1)),
            Test::new("correlation between halves of the coordinates", halves.abs(), both_sides(1)),
            self.between_runs(alpha),
            self.distribution(alpha),
        ]
    }

    /// The largest sum of products over all lags, relative to the bound under the claim.
    ///
    /// The sum is a quadratic form z^T A z with |A|_F^2 = N / 2 for N products and |A| <= 1: above sqrt(2 N
    /// x) + 2 x, or below minus that, with probability at most e^-x each (Laurent and Massart, Lemma 1).
    fn lags(&self, alpha: f64) -> f64 {
        if self.steps == 1 {
            return 0.0;
        }
        let x = (2.0 * (self.steps - 1) as f64 / alpha).ln();
        let part = |lag: usize| {
            let count = ((self.steps - lag) * self.dim * self.runs) as f64;
            self.products[lag] / ((2.0 * count * x).sqrt() + 2.0 * x)
        };
        largest_magnitude((1..self.steps).map(part))
    }

    /// Tests that <u, v> / |u| is standard normal, as it is for independent u and v.
    fn between_runs(&self, alpha: f64) -> Test {
        let pairs: Vec<(usize, usize)> =
            (0..self.runs).flat_map(|i| (i + 1..self.runs).map(move |j| (i, j))).collect();
        let score = |&(i, j): &(usize, usize)| {
            let mut sums = (0.0, 0.0);
            accumulate(&mut sums, &self.kept[i], &self.kept[j]);
            sums.0 / sums.1.sqrt()
        };
        let threshold = normal_quantile(0.5 * alpha / pairs.len().max(1) as f64);
        Test::new("correlation between runs", largest_magnitude(pairs.iter().map(score)), threshold)
    }

    /// Tests the distribution: sup |F_n - Phi| exceeds sqrt(ln(2 / alpha) / 2n) with probability at most
    /// alpha (Dvoretzky, Kiefer, Wolfowitz; Massart).
    fn distribution(&mut self, alpha: f64) -> Test {
        self.sample.sort_unstable_by(f64::total_cmp);
        let n = self.sample.len() as f64;
        let gap = |(i, &z): (usize, &f64)| {
            let expected = normal_tail(-z);
            f64::max(((i + 1) as f64 / n - expected).abs(), (expected - i as f64 / n).abs())
        };
        let threshold = ((2.0 / alpha).ln() / (2.0 * n)).sqrt();
        Test::new(
            "distribution of the noise",
            largest_magnitude(self.sample.iter().enumerate().map(gap)),
            threshold,
        )
    }
}

fn accumulate(sums: &mut (f64, f64), u: &[f64], v: &[f64]) {
    for (u, v) in u.iter().zip(v) {
        sums.0 += u * v;
        sums.1 += u * u;
    }
}

/// The largest magnitude; NaN counts as larger than any number.
fn largest_magnitude(values: impl Iterator<Item = f64>) -> f64 {
    antinoise_input::largest(values.map(f64::abs))
}
