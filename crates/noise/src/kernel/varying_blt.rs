//! The kernel of BLT noise whose weights vary by step, which takes O(order) time per coordinate: z~ = z -
//! sum_i u_i M_i, then M_i becomes M_i - (1 - lambda_i) M_i + v_i z~.

use crate::flat_recursion::{Position, StepWeights};
use crate::number::Real;
use crate::simd::{Isa, per_isa};

/// The coefficients of each step and buffer, in the precision of the noise.
pub struct VaryingBlt<T> {
    order: usize,
    /// -u_i, step by step.
    reads: Vec<T>,
    /// (-(1 - lambda_i), v_i), step by step.
    writes: Vec<(T, T)>,
}

impl<T: Real> VaryingBlt<T> {
    pub(super) fn new(weights: &StepWeights) -> Self {
        let StepWeights { rate, reads, writes } = weights;
        let rates = rate.iter().cycle().map(|&rate| T::rounded(-rate));
        Self {
            order: rate.len(),
            reads: reads.iter().map(|&u| T::rounded(-u)).collect(),
            writes: rates.zip(writes.iter().map(|&v| T::rounded(v))).collect(),
        }
    }

    /// Sets out to -sum_i u_i M_i; at the first step of a run, clears the buffers before that.
    pub(super) fn recall(&self, isa: Isa, position: &Position, past: &mut [T], out: &mut [T]) {
        if position.local == 0 {
            past.fill(T::default());
        }
        recall(isa, &self.reads[position.local * self.order..][..self.order], past, out);
    }

    /// Replaces each M_i by M_i - (1 - lambda_i) M_i + v_i z~.
    pub(super) fn keep(&self, isa: Isa, position: &Position, noise: &[T], past: &mut [T]) {
        keep(isa, &self.writes[position.local * self.order..][..self.order], noise, past);
    }
}

per_isa! {
    fn recall[T: Real](reads: &[T], buffers: &[T], out: &mut [T]) {
        out.fill(T::default());
        for (read, m) in reads.iter().zip(buffers.chunks_exact(out.len())) {
            for (out, m) in out.iter_mut().zip(m) {
                *out = read.times_plus(*m, *out);
            }
        }
    }
}

per_isa! {
    fn keep[T: Real](writes: &[(T, T)], noise: &[T], buffers: &mut [T]) {
        for (&(rate, write), m) in writes.iter().zip(buffers.chunks_exact_mut(noise.len())) {
            for (m, noise) in m.iter_mut().zip(noise) {
                *m = rate.times_plus(*m, write.times_plus(*noise, *m));
            }
        }
    }
}
