//! Correlated noise from circulant matrices: single entries of the noise matrix, and the noise of all steps
//! together by fast Fourier transforms.

use std::sync::Arc;

use antinoise_input::largest;
use rustfft::num_complex::Complex;
use rustfft::{Fft, FftPlannerScalar};
use zeroize::Zeroize;

/// Returns N\[step, seed\] of the noise matrix N = A_pre^-1 B, where A_pre is the prefix-sum workload and B
/// consists of the first rows of the circulant with first column `root`. So the entry is the difference of
/// two adjacent entries of a column of the circulant.
pub(crate) fn circulant_entry(root: &[f64], step: usize, seed: usize) -> f64 {
    let at = |step: usize| root[(root.len() + step - seed) % root.len()];
    if step == 0 { at(0) } else { at(step) - at(step - 1) }
}

/// Computes the noise of a [`Recursion::Circulant`](crate::Recursion::Circulant) for all steps together, by
/// fast Fourier transforms of `root.len()` numbers: O(log n) time per step and coordinate. Scalar arithmetic
/// in a fixed order gives the same bits on every machine.
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
    /// Eigenvalues of the circulant, divided by their number.
    scaled: Vec<Complex<f64>>,
}

/// The noise of two coordinates in all steps, and work space; wiped on drop.
pub struct NoisePair {
    numbers: Vec<Complex<f64>>,
    space: Vec<Complex<f64>>,
}

impl Convolution {
    /// Plans transforms for the circulant with first column `root`, which must not be empty.
    pub fn new(root: &[f64]) -> Self {
        let mut planner = FftPlannerScalar::new();
        let (forward, inverse) = (planner.plan_fft_forward(root.len()), planner.plan_fft_inverse(root.len()));
        let mut scaled: Vec<Complex<f64>> = root.iter().map(|&x| x.into()).collect();
        forward.process(&mut scaled);
        scaled.iter_mut().for_each(|x| *x /= root.len() as f64);
        Self { forward, inverse, scaled }
    }

    /// Number of seeds that each step reads.
    pub fn seeds(&self) -> usize {
        self.scaled.len()
    }

    /// Allocates the buffers in which the noise of two coordinates is computed.
    pub fn pair(&self) -> NoisePair {
        let zeros = |length| vec![Complex::default(); length];
        let space = self.forward.get_inplace_scratch_len().max(self.inverse.get_inplace_scratch_len());
        NoisePair { numbers: zeros(self.seeds()), space: zeros(space) }
    }

    /// Computes the noise of one coordinate in the first `steps` steps.
    pub(crate) fn apply(&self, steps: usize, z: &[f64]) -> Vec<f64> {
        if steps == 0 {
            return Vec::new();
        }
        let mut pair = self.pair();
        pair.make(self, |seed| [z[seed], 0.0]);
        (0..steps).map(|t| pair.noise(t)[0]).collect()
    }

    /// Returns the largest magnitude of an eigenvalue of the circulant.
    pub(crate) fn largest_magnitude(&self) -> f64 {
        self.seeds() as f64 * largest(self.scaled.iter().map(|x| x.norm()))
    }
}

impl NoisePair {
    /// Computes the noise of all steps from the seed noise `z(seed)` of both coordinates.
    pub fn make(&mut self, by: &Convolution, mut z: impl FnMut(usize) -> [f64; 2]) {
        for (seed, x) in self.numbers.iter_mut().enumerate() {
            let [re, im] = z(seed);
            *x = Complex::new(re, im);
        }
        by.forward.process_with_scratch(&mut self.numbers, &mut self.space);
        self.numbers.iter_mut().zip(&by.scaled).for_each(|(x, eigenvalue)| *x *= eigenvalue);
        by.inverse.process_with_scratch(&mut self.numbers, &mut self.space);
    }

    /// Returns the correlated noise of both coordinates at `step`.
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
