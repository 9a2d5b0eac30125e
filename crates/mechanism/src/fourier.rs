//! Prefix sums as the corner of a circulant A_circ (2n x 2n): C_F is the first n columns of its square root.
//!
//! The eigenvalues of A_circ are the discrete Fourier transform of (1^n, 0^n): n at frequency 0, 0 at the other
//! even ones, 2 / (1 - exp(-i theta)) at odd k, theta = pi k / n. With half = theta / 2 in (0, pi / 2] that is
//! exp(-i (pi / 2 - half)) / sin(half): its principal root halves the angle.

use std::f64::consts::PI;
use std::sync::Arc;

use antinoise_input::largest;
use antinoise_linear::{Error, Matrix};
use realfft::RealFftPlanner;
use realfft::num_complex::Complex;
use rustfft::{Fft, FftPlannerScalar};
use zeroize::Zeroize;

use crate::Result;
use crate::numeric::vector::dot;

/// The first column of the square root of A_circ, 2n real values.
pub(crate) fn coefficients(n: usize) -> Vec<f64> {
    from_spectrum(n, (n as f64).sqrt(), |half| {
        Complex::from_polar(half.sin().powf(-0.5), 0.5 * half - 0.25 * PI)
    })
}

/// N\[step, seed\] of N = A_pre^-1 B, B the first rows of the circulant whose first column is `root`: differences along its
/// columns.
pub(crate) fn circulant_entry(root: &[f64], step: usize, seed: usize) -> f64 {
    let at = |step: usize| root[(root.len() + step - seed) % root.len()];
    if step == 0 { at(0) } else { at(step) - at(step - 1) }
}

/// The noise of a [`Recursion::Circulant`](crate::Recursion::Circulant), all steps together, by fast transforms of
/// root.len() numbers: O(log n) a step. Plain arithmetic in a fixed order: the same bits on every machine.
///
/// ```
/// use antinoise_mechanism::Convolution;
/// let root = [1.0, 0.5, 0.25];
/// let convolution = Convolution::new(&root);
/// let mut pair = convolution.pair();
/// // Two coordinates at once: the seeds of one are 1, 0, 2, of the other 0, 1, 0.
/// pair.make(&convolution, |seed| [[1.0, 0.0, 2.0][seed], [0.0, 1.0, 0.0][seed]]);
/// let close = |found: [f64; 2], want: [f64; 2]| (0..2).all(|i| (found[i] - want[i]).abs() < 1e-12);
/// assert!(close(pair.noise(0), [2.0, 0.25]) && close(pair.noise(1), [1.0 - 2.0, 1.0 - 0.25]));
/// ```
pub struct Convolution {
    forward: Arc<dyn Fft<f64>>,
    inverse: Arc<dyn Fft<f64>>,
    /// The circulant's eigenvalues over their number.
    scaled: Vec<Complex<f64>>,
}

/// Two coordinates of noise of all steps, and the space to make them in; wiped on drop.
pub struct NoisePair {
    numbers: Vec<Complex<f64>>,
    space: Vec<Complex<f64>>,
}

impl Convolution {
    /// Transforms for the circulant with first column `root`, which is not empty.
    pub fn new(root: &[f64]) -> Self {
        let mut planner = FftPlannerScalar::new();
        let (forward, inverse) = (planner.plan_fft_forward(root.len()), planner.plan_fft_inverse(root.len()));
        let mut scaled: Vec<Complex<f64>> = root.iter().map(|&x| x.into()).collect();
        forward.process(&mut scaled);
        scaled.iter_mut().for_each(|x| *x /= root.len() as f64);
        Self { forward, inverse, scaled }
    }

    /// How many seeds each step reads.
    pub fn seeds(&self) -> usize {
        self.scaled.len()
    }

    /// Space for two coordinates.
    pub fn pair(&self) -> NoisePair {
        let zeros = |length| vec![Complex::default(); length];
        let space = self.forward.get_inplace_scratch_len().max(self.inverse.get_inplace_scratch_len());
        NoisePair { numbers: zeros(self.seeds()), space: zeros(space) }
    }

    /// One coordinate's noise of the first `steps` steps.
    pub(crate) fn apply(&self, steps: usize, z: &[f64]) -> Vec<f64> {
        if steps == 0 {
            return Vec::new();
        }
        let mut pair = self.pair();
        pair.make(self, |seed| [z[seed], 0.0]);
        (0..steps).map(|t| pair.noise(t)[0]).collect()
    }

    /// The largest magnitude of the circulant's eigenvalues.
    pub(crate) fn largest_magnitude(&self) -> f64 {
        self.seeds() as f64 * largest(self.scaled.iter().map(|x| x.norm()))
    }
}

impl NoisePair {
    /// Makes the noise of all steps from the seed noise `z`\(seed) of either coordinate.
    pub fn make(&mut self, by: &Convolution, mut z: impl FnMut(usize) -> [f64; 2]) {
        for (seed, x) in self.numbers.iter_mut().enumerate() {
            let [re, im] = z(seed);
            *x = Complex::new(re, im);
        }
        by.forward.process_with_scratch(&mut self.numbers, &mut self.space);
        self.numbers.iter_mut().zip(&by.scaled).for_each(|(x, eigenvalue)| *x *= eigenvalue);
        by.inverse.process_with_scratch(&mut self.numbers, &mut self.space);
    }

    /// z~ of `step`, either coordinate's.
    pub fn noise(&self, step: usize) -> [f64; 2] {
        let now = self.numbers[step];
        let before = if step == 0 { Complex::default() } else { self.numbers[step - 1] };
        [now.re - before.re, now.im - before.im]
    }
}

impl Drop for NoisePair {
    fn drop(&mut self) {
        for x in self.numbers.iter_mut().chain(&mut self.space) {
            x.re.zeroize();
            x.im.zeroize();
        }
    }
}

/// r with (C_F^T C_F)\[t, tau\] = r_{|t - tau|}, n values: the spectrum's magnitudes, transformed.
pub(crate) fn autocorrelation(n: usize) -> Vec<f64> {
    let mut r = from_spectrum(n, n as f64, |half| Complex::new(1.0 / half.sin(), 0.0));
    r.truncate(n);
    r
}

/// The real sequence of length 2n with the eigenvalue `zero` at frequency 0, `odd`(theta / 2) at odd ones and
/// 0 at the rest.
fn from_spectrum(n: usize, zero: f64, odd: impl Fn(f64) -> Complex<f64>) -> Vec<f64> {
    let mut spectrum: Vec<Complex<f64>> = (0..=n)
        .map(|k| if k % 2 == 1 { odd(0.5 * PI * k as f64 / n as f64) } else { Complex::default() })
        .collect();
    spectrum[0] = zero.into();
    // Real by symmetry; rounding may say otherwise.
    spectrum[n].im = 0.0;
    let mut out = vec![0.0; 2 * n];
    RealFftPlanner::<f64>::new()
        .plan_fft_inverse(2 * n)
        .process(&mut spectrum, &mut out)
        .expect("buffers have the plan's lengths and the ends are real");
    out.iter_mut().for_each(|x| *x /= 2.0 * n as f64);
    out
}

/// The lower-triangular N with N N^T = X^-1, for the positive definite Toeplitz X (n x n) with first column `r`, written out.
///
/// # Errors
/// When X is not positive definite in double precision.
pub(crate) fn inverse_factor(r: &[f64]) -> Result<Matrix> {
    let n = r.len();
    let mut factor = Matrix::zeros(n, n);
    each_inverse_column(r, |column, entries| {
        entries.enumerate().for_each(|(i, a)| factor[(column + i, column)] = a);
    })?;
    Ok(factor)
}

/// The columns of that N from the last to the first, each from its diagonal down: O(n^2) time, O(n) memory.
///
/// Durbin's recursion: the filter of each order that predicts a stationary sequence with autocorrelation `r`, over the root
/// of its error's variance, is one of them.
///
/// # Errors
/// When X is not positive definite in double precision.
pub(crate) fn each_inverse_column(
    r: &[f64],
    mut take: impl FnMut(usize, &mut dyn Iterator<Item = f64>),
) -> Result<()> {
    let n = r.len();
    let (mut filter, mut error) = (vec![1.0], r[0]);
    let backwards: Vec<f64> = r.iter().rev().copied().collect();
    for order in 0..n {
        if order > 0 {
            // r_order, r_{order - 1}, ..., r_1 against the filter.
            let reflection = -dot(&filter, &backwards[n - 1 - order..n - 1]) / error;
            filter.push(0.0);
            add_reversed(&mut filter, reflection);
            error *= 1.0 - reflection * reflection;
        }
        if error.is_nan() || error <= 0.0 {
            return Err(Error::NotPositiveDefinite(n).into());
        }
        let root = error.sqrt();
        take(n - 1 - order, &mut filter.iter().map(|a| a / root));
    }
    Ok(())
}

/// x_i <- x_i + by x_{last - i}.
fn add_reversed(x: &mut [f64], by: f64) {
    let (mut i, mut j) = (0, x.len() - 1);
    while i < j {
        (x[i], x[j]) = (x[i] + by * x[j], x[j] + by * x[i]);
        (i, j) = (i + 1, j - 1);
    }
    if i == j {
        x[i] += by * x[i];
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_root_squared_is_the_circulant_of_prefix_sums() {
        for n in [1, 2, 3, 8, 33] {
            let c = coefficients(n);
            for t in 0..2 * n {
                let square: f64 = (0..2 * n).map(|s| c[s] * c[(2 * n + t - s) % (2 * n)]).sum();
                assert!((square - f64::from(t < n)).abs() < 1e-13, "n={n} {t}: {square}");
            }
        }
    }

    #[test]
    fn the_inverse_factor_undoes_the_toeplitz_matrix() {
        for n in [1, 2, 3, 8, 33, 200] {
            let r = autocorrelation(n);
            let factor = inverse_factor(&r).unwrap();
            let x = Matrix::from_fn(n, n, |i, j| r[i.abs_diff(j)]);
            let identity =
                antinoise_linear::product(&antinoise_linear::product(factor.transpose(), &x), &factor);
            for j in 0..n {
                for i in 0..n {
                    assert!((identity[(i, j)] - f64::from(i == j)).abs() < 1e-12, "n={n} {i} {j}");
                    assert!(i >= j || factor[(i, j)] == 0.0, "n={n} {i} {j}");
                }
            }
        }
        assert!(inverse_factor(&[1.0, 1.0]).is_err());
    }
}
