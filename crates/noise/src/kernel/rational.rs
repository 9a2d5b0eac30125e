//! The kernel of rational noise, which takes O(degree) time per coordinate: z~ = z - sum_k gain_k M_k, then
//! M_1 becomes M_1 - sum_k feedback_k M_k + z~ and each further running sum M_k becomes M_k + M_{k-1}.

use super::blt::Blt;
use crate::flat_recursion::Position;
use crate::number::Real;
use crate::simd::{Isa, per_isa};

/// Number of coordinates that are made together.
const LANES: usize = 16;

/// The coefficients of a rational recursion, which reads its running sums as a BLT reads its buffers.
pub struct Rational<T>(Blt<T>);

impl<T: Real> Rational<T> {
    pub(super) fn new(gain: &[f64], feedback: &[f64]) -> Self {
        Self(Blt::new(gain, feedback))
    }

    /// Sets out to -sum_k gain_k M_k; at the first step of a run, clears the sums before that.
    pub(super) fn recall(&self, isa: Isa, position: &Position, past: &mut [T], out: &mut [T]) {
        self.0.recall(isa, position, past, out);
    }

    /// Updates the running sums by the row of this step.
    pub(super) fn keep(&self, isa: Isa, noise: &[T], past: &mut [T]) {
        keep(isa, self.0.coefficients(), noise, past);
    }
}

per_isa! {
    fn keep[T: Real](coefficients: &[(T, T)], noise: &[T], sums: &mut [T]) {
        let whole = noise.len() / LANES * LANES;
        for from in (0..whole).step_by(LANES) {
            block::<T, LANES>(coefficients, noise, from, sums);
        }
        for from in whole..noise.len() {
            block::<T, 1>(coefficients, noise, from, sums);
        }
    }
}

#[inline(always)]
fn block<T: Real, const L: usize>(coefficients: &[(T, T)], noise: &[T], from: usize, sums: &mut [T]) {
    let len = noise.len();
    let at = |k: usize, sums: &[T]| -> [T; L] { std::array::from_fn(|l| sums[k * len + from + l]) };
    let mut first = [T::default(); L];
    for (k, (_, feedback)) in coefficients.iter().enumerate() {
        let m = at(k, sums);
        if k == 0 {
            first = std::array::from_fn(|l| m[l] + noise[from + l]);
        }
        first = std::array::from_fn(|l| feedback.times_plus(m[l], first[l]));
    }
    for k in (1..coefficients.len()).rev() {
        let (m, below) = (at(k, sums), at(k - 1, sums));
        sums[k * len + from..][..L].copy_from_slice(&std::array::from_fn::<T, L, _>(|l| m[l] + below[l]));
    }
    if !coefficients.is_empty() {
        sums[from..][..L].copy_from_slice(&first);
    }
}
