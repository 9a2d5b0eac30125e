//! Convolutions of real sequences, by fast Fourier transforms with cached plans.

use std::cell::RefCell;
use std::sync::Arc;

use realfft::num_complex::Complex;
use realfft::{ComplexToReal, RealFftPlanner, RealToComplex};

thread_local! {
    /// Caches FFT plans, since a solver uses the same few lengths again and again.
    static PLANNER: RefCell<RealFftPlanner<f64>> = RefCell::new(RealFftPlanner::new());
}

/// Returns the smallest even number that is at least `least` and of the form 2^k, 3 * 2^k or 5 * 2^k.
pub(crate) fn fast_length(least: usize) -> usize {
    [1, 3, 5]
        .iter()
        .map(|&odd| odd * least.div_ceil(odd).next_power_of_two().max(2))
        .min()
        .expect("three lengths")
}

/// The FFT of real sequences of one length, for cyclic convolutions.
pub(crate) struct Transform {
    length: usize,
    forward: Arc<dyn RealToComplex<f64>>,
    backward: Arc<dyn ComplexToReal<f64>>,
}

impl Transform {
    pub(crate) fn new(length: usize) -> Self {
        let (forward, backward) = PLANNER
            .with_borrow_mut(|planner| (planner.plan_fft_forward(length), planner.plan_fft_inverse(length)));
        Self { length, forward, backward }
    }

    /// Returns the spectrum of `x`, padded with zeros.
    pub(crate) fn forward(&self, x: &[f64]) -> Vec<Complex<f64>> {
        let mut padded = vec![0.0; self.length];
        padded[..x.len()].copy_from_slice(x);
        let mut out = self.forward.make_output_vec();
        self.forward.process(&mut padded, &mut out).expect("buffers come from the plan");
        out
    }

    /// Returns the sequence whose spectrum is the product of the spectra `x` and `y`.
    pub(crate) fn product(&self, x: &[Complex<f64>], y: &[Complex<f64>]) -> Vec<f64> {
        let mut product: Vec<_> = x.iter().zip(y).map(|(x, y)| x * y).collect();
        // The first and last numbers of the spectrum of a real sequence are real. After an overflow they may
        // be NaN, which is no error here: line searches treat a value that is not finite as a step that is
        // too long.
        for end in [0, self.length / 2] {
            product[end].im = 0.0;
        }
        let mut out = vec![0.0; self.length];
        self.backward
            .process(&mut product, &mut out)
            .expect("the product of spectra of real sequences is the spectrum of a real sequence");
        out.iter_mut().for_each(|x| *x /= self.length as f64);
        out
    }
}

/// Returns the first `n` terms of the convolution a * b, by FFT.
pub(crate) fn convolve(a: &[f64], b: &[f64], n: usize) -> Vec<f64> {
    let transform = Transform::new(fast_length(a.len() + b.len() - 1));
    let mut out = transform.product(&transform.forward(a), &transform.forward(b));
    out.resize(n, 0.0);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_of_transforms_are_even_and_long_enough() {
        for least in (1..200).chain([1 << 20, (1 << 20) + 1, 2_000_000]) {
            let length = fast_length(least);
            assert!(length >= least && length.is_multiple_of(2) && length <= 2 * least.next_power_of_two());
        }
        assert_eq!(fast_length(2_000_000), 1 << 21);
        assert_eq!(fast_length(1_200_000), 5 << 18);
    }

    #[test]
    fn overflow_gives_numbers_that_are_not_finite() {
        for huge in [f64::INFINITY, f64::NAN, 1e300] {
            let found = convolve(&[1.0, huge, 1.0], &[huge, 1.0, huge], 3);
            assert!(found.iter().any(|x| !x.is_finite()), "{found:?}");
        }
    }
}
