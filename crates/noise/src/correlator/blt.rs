//! BLT: z~ = z - sum_i alpha_i M_i, then M_i <- M_i - (1 - lambda_i) M_i + z~; O(order) a coordinate.
//!
//! The rate 1 - lambda is rounded, not lambda: for long runs lambda is so near 1 that single precision would
//! round its distance from 1 away.

use crate::recipe::Place;
use crate::simd::{Isa, per_isa};

pub(crate) struct Blt {
    /// (-alpha_i, -(1 - lambda_i)).
    coefficients: Vec<(f32, f32)>,
}

impl Blt {
    pub(super) fn new(scale: &[f64], rate: &[f64]) -> Self {
        Self { coefficients: scale.iter().zip(rate).map(|(&a, &r)| (-a as f32, -r as f32)).collect() }
    }

    pub(super) fn step(&self, isa: Isa, place: &Place, z: &[f32], past: &mut [f32], out: &mut [f32]) {
        if place.local == 0 {
            past.fill(0.0);
        }
        out.copy_from_slice(z);
        update(isa, &self.coefficients, past, out);
    }
}

per_isa! {
    fn update(coefficients: &[(f32, f32)], buffers: &mut [f32], out: &mut [f32]) = update_body
}

#[inline(always)]
fn update_body(coefficients: &[(f32, f32)], buffers: &mut [f32], out: &mut [f32]) {
    match *coefficients {
        [a] => fused([a], buffers, out),
        [a, b] => fused([a, b], buffers, out),
        [a, b, c] => fused([a, b, c], buffers, out),
        [a, b, c, d] => fused([a, b, c, d], buffers, out),
        _ => in_two_passes(coefficients, buffers, out),
    }
}

/// All buffers of a coordinate at once.
#[inline(always)]
fn fused<const D: usize>(coefficients: [(f32, f32); D], buffers: &mut [f32], out: &mut [f32]) {
    let len = out.len();
    let mut rest = buffers;
    let m: [&mut [f32]; D] = std::array::from_fn(|_| {
        let (first, tail) = std::mem::take(&mut rest).split_at_mut(len);
        rest = tail;
        first
    });
    for j in 0..len {
        let mut x = out[j];
        for i in 0..D {
            x = coefficients[i].0.mul_add(m[i][j], x);
        }
        for i in 0..D {
            m[i][j] = coefficients[i].1.mul_add(m[i][j], m[i][j] + x);
        }
        out[j] = x;
    }
}

/// Buffer after buffer: any order, at the price of reading the buffers twice from cache.
#[inline(always)]
fn in_two_passes(coefficients: &[(f32, f32)], buffers: &mut [f32], out: &mut [f32]) {
    for (&(scale, _), m) in coefficients.iter().zip(buffers.chunks_exact(out.len())) {
        for (out, m) in out.iter_mut().zip(m) {
            *out = scale.mul_add(*m, *out);
        }
    }
    for (&(_, rate), m) in coefficients.iter().zip(buffers.chunks_exact_mut(out.len())) {
        for (m, out) in m.iter_mut().zip(out.iter()) {
            *m = rate.mul_add(*m, *m + *out);
        }
    }
}
