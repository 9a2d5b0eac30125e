//! A billion normals against the normal distribution.
//!
//! The key is fixed, so the test passes always or never. Each statistic's bound would fail a perfect
//! generator with probability below 1e-5 (5 standard deviations: 6e-7), the whole test with probability below
//! 2e-4.

use antinoise_noise::{Cipher, Key, SeedNoise};
use rayon::prelude::*;

const SEEDS: u64 = 250;
const DIM: usize = 4_000_000;
const COUNT: f64 = SEEDS as f64 * DIM as f64;
/// Bins of width 2^-9 from -8 to 8; numbers outside count in the outermost bins.
const BINS: usize = 8192;
/// Lags in coordinates: neighbours, the ends of a vector, the next vector, the next group, the next tile.
const LAGS: [usize; 5] = [1, 15, 16, 32, 1024];

#[derive(Clone)]
struct Sums {
    powers: [f64; 6],
    products: [f64; LAGS.len()],
    squares: [f64; LAGS.len()],
    /// The same coordinate in the next seed.
    next_seed: f64,
    beyond: [u64; 8],
    bins: Vec<u64>,
}

impl Sums {
    fn zero() -> Self {
        let (products, squares) = ([0.0; LAGS.len()], [0.0; LAGS.len()]);
        Self { powers: [0.0; 6], products, squares, next_seed: 0.0, beyond: [0; 8], bins: vec![0; BINS] }
    }

    fn add(mut self, other: &Self) -> Self {
        let add = |x: &mut [f64], y: &[f64]| x.iter_mut().zip(y).for_each(|(x, y)| *x += y);
        add(&mut self.powers, &other.powers);
        add(&mut self.products, &other.products);
        add(&mut self.squares, &other.squares);
        self.next_seed += other.next_seed;
        self.beyond.iter_mut().zip(other.beyond).for_each(|(x, y)| *x += y);
        self.bins.iter_mut().zip(&other.bins).for_each(|(x, y)| *x += y);
        self
    }

    /// Adds a portion of one seed, with the numbers that follow it and the same portion of the next seed.
    fn take(&mut self, x: &[f32], count: usize, next: &[f32]) {
        let mut powers = [[0f64; 8]; 6];
        for eight in x[..count].as_chunks::<8>().0 {
            for i in 0..8 {
                let value = f64::from(eight[i]);
                let mut power = 1.0;
                for sums in &mut powers {
                    power *= value;
                    sums[i] += power;
                }
            }
        }
        for (sum, sums) in self.powers.iter_mut().zip(powers) {
            *sum += sums.iter().sum::<f64>();
        }
        for (l, &lag) in LAGS.iter().enumerate() {
            let (product, square) = products(&x[..count], &x[lag..lag + count]);
            self.products[l] += product;
            self.squares[l] += square;
        }
        self.next_seed += products(&x[..count], next).0;
        for &value in &x[..count] {
            let bin = ((value + 8.0) * 512.0) as usize;
            self.bins[bin.min(BINS - 1)] += 1;
            if value.abs() > 3.0 {
                (3..8).filter(|&k| value.abs() > k as f32).for_each(|k| self.beyond[k] += 1);
            }
        }
    }
}

/// sum x y and sum (x^2 - 1)(y^2 - 1).
fn products(x: &[f32], y: &[f32]) -> (f64, f64) {
    let (mut product, mut square) = ([0f32; 16], [0f32; 16]);
    for (x, y) in x.as_chunks::<16>().0.iter().zip(y.as_chunks::<16>().0) {
        for i in 0..16 {
            product[i] += x[i] * y[i];
            square[i] += (x[i] * x[i] - 1.0) * (y[i] * y[i] - 1.0);
        }
    }
    (product.iter().map(|&x| f64::from(x)).sum(), square.iter().map(|&x| f64::from(x)).sum())
}

fn collect() -> Sums {
    const PORTION: usize = 8000;
    let one_seed = |seed: u64| {
        let mut noise = SeedNoise::new(&Key::from_seed_insecure(2024), Default::default());
        let (mut x, mut next, mut sums) = (vec![0.0; PORTION + 1024], vec![0.0; PORTION], Sums::zero());
        for start in (0..DIM as u64).step_by(PORTION) {
            noise.fill(seed, start, &mut x);
            noise.fill(seed + 1, start, &mut next);
            sums.take(&x, PORTION, &next);
        }
        sums
    };
    (0..SEEDS)
        .into_par_iter()
        .map(one_seed)
        .fold(Sums::zero, |a, b| a.add(&b))
        .reduce(Sums::zero, |a, b| a.add(&b))
}

fn upper(x: f64) -> f64 {
    0.5 * libm::erfc(x / std::f64::consts::SQRT_2)
}

fn near(name: &str, found: f64, exact: f64, variance_of_one: f64) {
    let deviation = (found / COUNT - exact) / (variance_of_one / COUNT).sqrt();
    assert!(deviation.abs() < 5.0, "{name} is off by {deviation} standard deviations");
}

#[test]
fn a_billion_normals_pass_the_battery() {
    let sums = collect();
    let moments = [0.0, 1.0, 0.0, 3.0, 0.0, 15.0];
    let variances = [1.0, 2.0, 15.0, 96.0, 945.0, 10_170.0];
    for k in 0..6 {
        near(&format!("moment {}", k + 1), sums.powers[k], moments[k], variances[k]);
    }
    for (l, lag) in LAGS.iter().enumerate() {
        near(&format!("correlation at lag {lag}"), sums.products[l], 0.0, 1.0);
        near(&format!("correlation of squares at lag {lag}"), sums.squares[l], 0.0, 4.0);
    }
    near("correlation of successive seeds", sums.next_seed, 0.0, 1.0);
    tails(&sums);
    distribution(&sums.bins);
}

/// Counts beyond k standard deviations are Poisson: 57 beyond 5... 2 beyond 6, 0.003 beyond 7.
fn tails(sums: &Sums) {
    for k in 3..8 {
        let mean = 2.0 * upper(k as f64) * COUNT;
        let found = sums.beyond[k] as f64;
        let allowed = 5.0 * mean.sqrt() + if mean < 100.0 { 8.0 } else { 0.0 };
        assert!((found - mean).abs() < allowed, "{found} beyond {k} standard deviations, not {mean}");
    }
}

/// Kolmogorov-Smirnov, Anderson-Darling and chi-square at the bins' edges.
fn distribution(bins: &[u64]) {
    let (mut below, mut distance, mut darling, mut square, mut cells) = (0u64, 0f64, 0f64, 0f64, 0usize);
    for (b, &count) in bins.iter().enumerate() {
        let (left, right) = (-8.0 + b as f64 / 512.0, -8.0 + (b + 1) as f64 / 512.0);
        let mass = if right <= 0.0 { upper(-right) - upper(-left) } else { upper(left) - upper(right) };
        if mass * COUNT > 20.0 {
            square += (count as f64 - mass * COUNT).powi(2) / (mass * COUNT);
            cells += 1;
        }
        below += count;
        let (low, high) = (upper(-right), upper(right));
        let gap = below as f64 / COUNT - low;
        distance = distance.max(gap.abs());
        if low * high > 0.0 {
            darling += COUNT * gap * gap / (low * high) * mass;
        }
    }
    // P(sqrt(n) D > 2.5) = 7.5e-6; P(A^2 > 11) is below 1e-5.
    assert!(distance * COUNT.sqrt() < 2.5, "Kolmogorov-Smirnov {}", distance * COUNT.sqrt());
    assert!(darling < 11.0, "Anderson-Darling {darling}");
    let freedom = cells as f64 - 1.0;
    assert!((square - freedom).abs() < 5.0 * (2.0 * freedom).sqrt(), "chi-square {square} for {freedom}");
}

/// Large outputs are written past the caches, in whole lines, wherever they start; small ones are not.
#[test]
fn large_outputs_hold_the_same_normals_wherever_they_start() {
    let len = (9 << 20) / 4;
    let mut noise = SeedNoise::new(&Key::from_seed_insecure(5), Cipher::default());
    let mut expected = vec![0f32; len + 64];
    expected.chunks_mut(5000).enumerate().for_each(|(i, part)| noise.fill(3, 5000 * i as u64, part));
    let mut room = vec![0f32; len + 64];
    for (place, start) in [(0, 0), (1, 0), (3, 33), (4, 1), (15, 64), (16, 31)] {
        room.fill(7.0);
        noise.fill(3, start as u64, &mut room[place..place + len]);
        assert!(room[place..place + len] == expected[start..start + len], "{place} {start}");
        assert!(room[..place].iter().chain(&room[place + len..]).all(|&x| x == 7.0));
    }
}
