//! The kernel of buffered linear Toeplitz (BLT) noise, which takes O(order) time per coordinate:
//! z~ = z - sum_i alpha_i M_i, then M_i becomes M_i - (1 - lambda_i) M_i + z~.
//!
//! Kernels use the rate 1 - lambda: in long runs lambda is so close to 1 that rounding it to single precision
//! would lose most digits of 1 - lambda.

use crate::flat_recursion::Position;
use crate::number::Real;
use crate::simd::{Isa, per_isa};

/// The coefficients (-alpha_i, -(1 - lambda_i)) of each buffer.
pub struct Blt<T> {
    coefficients: Vec<(T, T)>,
}

impl<T: Real> Blt<T> {
    pub(super) fn new(scale: &[f64], rate: &[f64]) -> Self {
        Self {
            coefficients: scale.iter().zip(rate).map(|(&a, &r)| (T::rounded(-a), T::rounded(-r))).collect(),
        }
    }

    /// Clears the buffers at the first step of a run.
    pub(super) fn start(&self, position: &Position, past: &mut [T]) {
        if position.local == 0 {
            past.fill(T::default());
        }
    }

    /// Sets out to -sum_i alpha_i M_i; at the first step of a run, clears the buffers before that.
    pub(super) fn recall(&self, isa: Isa, position: &Position, past: &mut [T], out: &mut [T]) {
        self.start(position, past);
        recall(isa, &self.coefficients, past, out);
    }

    /// Replaces each M_i by M_i - (1 - lambda_i) M_i + z~.
    pub(super) fn keep(&self, isa: Isa, noise: &[T], past: &mut [T]) {
        keep(isa, &self.coefficients, noise, past);
    }

    /// Whether [`Blt::step`] can be used in place of `recall` and `keep`.
    pub(super) fn is_fused(&self) -> bool {
        (1..=4).contains(&self.coefficients.len())
    }

    /// The pairs (-alpha_i, -(1 - lambda_i)) of all buffers.
    pub(super) fn coefficients(&self) -> &[(T, T)] {
        &self.coefficients
    }

    /// Makes the whole step and reads every buffer once, by the same operations in the same order as `recall`
    /// and `keep`.
    pub(super) fn step(&self, isa: Isa, position: &Position, z: &[T], past: &mut [T], out: &mut [T]) {
        self.start(position, past);
        step(isa, &self.coefficients, z, past, out);
    }
}

per_isa! {
    fn recall[T: Real](coefficients: &[(T, T)], buffers: &[T], out: &mut [T]) {
        let len = out.len();
        out.fill(T::default());
        let (fours, rest) = coefficients.as_chunks::<4>();
        let (four_buffers, rest_buffers) = buffers.split_at(4 * len * fours.len());
        for (&[a, b, c, d], m) in fours.iter().zip(four_buffers.chunks_exact(4 * len)) {
            let m: [&[T]; 4] = std::array::from_fn(|i| &m[i * len..][..len]);
            for j in 0..len {
                let x = b.0.times_plus(m[1][j], a.0.times_plus(m[0][j], out[j]));
                out[j] = d.0.times_plus(m[3][j], c.0.times_plus(m[2][j], x));
            }
        }
        for (&(scale, _), m) in rest.iter().zip(rest_buffers.chunks_exact(len)) {
            for (out, m) in out.iter_mut().zip(m) {
                *out = scale.times_plus(*m, *out);
            }
        }
    }
}

per_isa! {
    fn keep[T: Real](coefficients: &[(T, T)], noise: &[T], buffers: &mut [T]) {
        for (&(_, rate), m) in coefficients.iter().zip(buffers.chunks_exact_mut(noise.len())) {
            for (m, noise) in m.iter_mut().zip(noise) {
                *m = rate.times_plus(*m, *m + *noise);
            }
        }
    }
}

per_isa! {
    fn step[T: Real](coefficients: &[(T, T)], z: &[T], buffers: &mut [T], out: &mut [T]) {
        match *coefficients {
            [a] => fused([a], z, buffers, out),
            [a, b] => fused([a, b], z, buffers, out),
            [a, b, c] => fused([a, b, c], z, buffers, out),
            [a, b, c, d] => fused([a, b, c, d], z, buffers, out),
            _ => unreachable!("`is_fused` was asked"),
        }
    }
}

/// The first D vectors of `len` numbers in `buffers`.
#[inline(always)]
pub(super) fn vectors<T, const D: usize>(buffers: &mut [T], len: usize) -> [&mut [T]; D] {
    let mut rest = buffers;
    std::array::from_fn(|_| {
        let (first, tail) = std::mem::take(&mut rest).split_at_mut(len);
        rest = tail;
        first
    })
}

#[inline(always)]
fn fused<T: Real, const D: usize>(coefficients: [(T, T); D], z: &[T], buffers: &mut [T], out: &mut [T]) {
    let len = out.len();
    let z = &z[..len];
    let m: [&mut [T]; D] = vectors(buffers, len);
    for j in 0..len {
        let mut x = T::default();
        for i in 0..D {
            x = coefficients[i].0.times_plus(m[i][j], x);
        }
        x = z[j] + x;
        for i in 0..D {
            m[i][j] = coefficients[i].1.times_plus(m[i][j], m[i][j] + x);
        }
        out[j] = x;
    }
}
