//! Rounding to the grid of a release, decided exactly, and fed back as if the seed noise had been that much larger.

use super::blt::vectors;
use crate::cipher::Keystream;
use crate::gaussian::{Pair, exact_normal};
use crate::simd::{Isa, per_isa};

/// Seed noise in double precision is nearer than this to the exact normal of its bits (tested).
pub(crate) const NORMAL_ERROR: f64 = 1.0 / (1u64 << 47) as f64;
/// Coordinates that one vector holds.
const LANES: usize = 8;
/// Coordinates of a BLT's step that are carried through before the next ones: their buffers stay in the nearest cache.
const PART: usize = 256;
/// A few roundings of a number lose less than this part of it.
const ROUNDING: f64 = 1.0 / (1u64 << 50) as f64;

/// One step's grid, in the units of unit-variance seed noise.
#[derive(Debug, Clone, Copy)]
pub(crate) struct StepGrid {
    /// Grid points a unit.
    pub(crate) per_unit: f64,
}

impl StepGrid {
    /// Rounds weight z + f to the grid, f being what `out` holds: the nearest point to the exact sum, where `weight`,
    /// f and the bits of z are taken as they are. `recall` brings f back if the first attempt is undecided.
    pub(super) fn round(
        self,
        isa: Isa,
        weight: f64,
        z: &[f64],
        out: &mut [f64],
        recall: impl FnOnce(&mut [f64]),
        exact: impl Fn(usize) -> Pair,
    ) {
        if round_all(isa, self.per_unit, weight, z, out) + self.doubt(weight) < 0.5 {
            return;
        }
        recall(out);
        self.decide(weight, z, out, &exact);
    }

    /// The same where double precision does not decide for all, point by point.
    #[cold]
    fn decide(self, weight: f64, z: &[f64], out: &mut [f64], exact: Exact<'_>) {
        let doubt = self.doubt(weight);
        for (j, (out, &z)) in out.iter_mut().zip(z).enumerate() {
            let points = weight.mul_add(z, *out) * self.per_unit;
            let mut rounded = points.round_ties_even();
            if distance(points, rounded) + doubt >= 0.5 {
                let sum =
                    exact(j).times(Pair::of(weight)).plus(Pair::of(*out)).times(Pair::of(self.per_unit));
                let middle = points.floor() + 0.5;
                let above = sum.plus(Pair::of(-middle));
                rounded = middle + if above.hi + above.lo > 0.0 { 0.5 } else { -0.5 };
            }
            *out = rounded * (1.0 / self.per_unit);
        }
    }

    /// What the error of a normal can move a sum by, in points.
    fn doubt(self, weight: f64) -> f64 {
        (self.per_unit * weight).abs() * NORMAL_ERROR
    }
}

type Exact<'a> = &'a dyn Fn(usize) -> Pair;

per_isa! {
    /// The whole step of a BLT of order up to 4, some coordinates at a time, so that its buffers are fetched once:
    /// the same operations in the same order as recalling, rounding and keeping a whole tile.
    pub(super) fn step_blt(grid: StepGrid, coefficients: &[(f64, f64)], z: &[f64], buffers: &mut [f64], out: &mut [f64], exact: Exact<'_>) = step_blt_body
}

#[inline(always)]
fn step_blt_body(
    grid: StepGrid,
    coefficients: &[(f64, f64)],
    z: &[f64],
    buffers: &mut [f64],
    out: &mut [f64],
    exact: Exact<'_>,
) {
    match *coefficients {
        [a] => fused(grid, [a], z, buffers, out, exact),
        [a, b] => fused(grid, [a, b], z, buffers, out, exact),
        [a, b, c] => fused(grid, [a, b, c], z, buffers, out, exact),
        [a, b, c, d] => fused(grid, [a, b, c, d], z, buffers, out, exact),
        _ => unreachable!("`Blt::is_fused` was asked"),
    }
}

#[inline(always)]
fn fused<const D: usize>(
    grid: StepGrid,
    coefficients: [(f64, f64); D],
    z: &[f64],
    buffers: &mut [f64],
    out: &mut [f64],
    exact: Exact<'_>,
) {
    let mut vectors: [&mut [f64]; D] = vectors(buffers, out.len());
    let (parts, rest) = out.as_chunks_mut::<PART>();
    let whole = parts.len() * PART;
    for (part, out) in parts.iter_mut().enumerate() {
        let from = part * PART;
        let m = vectors.each_mut().map(|m| &mut m[from..from + PART]);
        step_part(grid, &coefficients, &z[from..from + PART], m, out, &|j| exact(from + j));
    }
    let m = vectors.map(|m| &mut m[whole..]);
    step_part(grid, &coefficients, &z[whole..whole + rest.len()], m, rest, &|j| exact(whole + j));
}

/// One part: rounded, decided, and fed back.
#[inline(always)]
fn step_part<const D: usize>(
    grid: StepGrid,
    coefficients: &[(f64, f64); D],
    z: &[f64],
    m: [&mut [f64]; D],
    out: &mut [f64],
    exact: Exact<'_>,
) {
    if !round_part(grid, coefficients, z, &m, out) {
        past_share(coefficients, &m, out);
        grid.decide(1.0, z, out, exact);
    }
    feed_back(coefficients, m, out);
}

/// out = z - sum_i alpha_i M_i, rounded; false where double precision does not decide for all.
#[inline(always)]
fn round_part<const D: usize>(
    grid: StepGrid,
    coefficients: &[(f64, f64); D],
    z: &[f64],
    m: &[&mut [f64]; D],
    out: &mut [f64],
) -> bool {
    let len = out.len();
    let (z, m): (&[f64], [&[f64]; D]) = (&z[..len], m.each_ref().map(|m| &m[..len]));
    let (unit, doubt) = (1.0 / grid.per_unit, grid.doubt(1.0));
    let mut undecided = 0u64;
    for j in 0..len {
        let mut x = 0.0;
        for i in 0..D {
            x = coefficients[i].0.mul_add(m[i][j], x);
        }
        let points = (z[j] + x) * grid.per_unit;
        let rounded = points.round_ties_even();
        out[j] = rounded * unit;
        undecided |= u64::from(distance(points, rounded) + doubt >= 0.5);
    }
    undecided == 0
}

/// out = -sum_i alpha_i M_i.
#[inline(always)]
fn past_share<const D: usize>(coefficients: &[(f64, f64); D], m: &[&mut [f64]; D], out: &mut [f64]) {
    let m: [&[f64]; D] = m.each_ref().map(|m| &m[..out.len()]);
    for j in 0..out.len() {
        let mut x = 0.0;
        for i in 0..D {
            x = coefficients[i].0.mul_add(m[i][j], x);
        }
        out[j] = x;
    }
}

/// M_i <- M_i - (1 - lambda_i) M_i + noise.
#[inline(always)]
fn feed_back<const D: usize>(coefficients: &[(f64, f64); D], m: [&mut [f64]; D], noise: &[f64]) {
    let m: [&mut [f64]; D] = m.map(|m| &mut m[..noise.len()]);
    for j in 0..noise.len() {
        for i in 0..D {
            m[i][j] = coefficients[i].1.mul_add(m[i][j], m[i][j] + noise[j]);
        }
    }
}

/// The exact normal at offset j of a tile.
pub(super) fn exact_at(keystream: &Keystream, start: u64) -> impl Fn(usize) -> Pair {
    move |j| exact_normal(keystream, start + j as u64)
}

per_isa! {
    /// Rounds as far as double precision decides; the largest [`distance`] of a sum from its point.
    fn round_all(per_unit: f64, weight: f64, z: &[f64], out: &mut [f64]) -> f64 = round_all_body
}

#[inline(always)]
fn round_all_body(per_unit: f64, weight: f64, z: &[f64], out: &mut [f64]) -> f64 {
    let unit = 1.0 / per_unit;
    let mut furthest = [0f64; LANES];
    let (lines, rest) = out.as_chunks_mut::<LANES>();
    let (z_lines, z_rest) = z.as_chunks::<LANES>();
    for (out, z) in lines.iter_mut().zip(z_lines) {
        for i in 0..LANES {
            let points = weight.mul_add(z[i], out[i]) * per_unit;
            let rounded = points.round_ties_even();
            out[i] = rounded * unit;
            furthest[i] = larger(distance(points, rounded), furthest[i]);
        }
    }
    for (out, z) in rest.iter_mut().zip(z_rest) {
        let points = weight.mul_add(*z, *out) * per_unit;
        let rounded = points.round_ties_even();
        *out = rounded * unit;
        furthest[0] = larger(distance(points, rounded), furthest[0]);
    }
    furthest.into_iter().fold(0.0, larger)
}

/// How far `points` may be from its grid point, given what rounding may have taken from it.
#[inline(always)]
fn distance(points: f64, rounded: f64) -> f64 {
    points.abs().mul_add(ROUNDING, (points - rounded).abs())
}

/// `f64::max` without its rule for NaN, which takes three instructions.
#[inline(always)]
fn larger(a: f64, b: f64) -> f64 {
    if a > b { a } else { b }
}

per_isa! {
    /// gradient = spacing (gradient / spacing, rounded, + noise in whole points), or the noise alone if `replace`.
    pub(super) fn release(spacing: f64, per_unit: f64, replace: bool, noise: &[f64], gradient: &mut [f32]) = release_body
}

#[inline(always)]
#[allow(clippy::manual_clamp)] // `clamp` would let NaN through.
fn release_body(spacing: f64, per_unit: f64, replace: bool, noise: &[f64], gradient: &mut [f32]) {
    /// Sums of two whole numbers up to this are exact.
    const BOUND: f64 = (1u64 << 51) as f64;
    // Exact: the spacing is a power of two.
    let per_spacing = 1.0 / spacing;
    for (gradient, noise) in gradient.iter_mut().zip(noise) {
        let given = if replace { 0.0 } else { f64::from(*gradient) };
        let points = (given * per_spacing).round_ties_even().max(-BOUND).min(BOUND);
        let noise = (noise * per_unit).round_ties_even();
        *gradient = ((points + noise) * spacing) as f32;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cipher::{Cipher, KeySource};
    use crate::gaussian::NormalTile;
    use crate::{Key, NOISE};

    /// Past values are put so that sums fall next to a middle of the grid; the point must be that of the exact sum.
    #[test]
    fn sums_near_a_middle_are_decided_by_further_digits() {
        let keystream = KeySource::new(&Key::from_seed_insecure(3), Cipher::default(), NOISE).keystream(0);
        let (weight, grid) = (1.0, StepGrid { per_unit: 1024.0 });
        let z = NormalTile::<f64>::new(Isa::detect()).make(&keystream, 0, 512).to_vec();
        let (mut up, mut down) = (0, 0);
        for tiny in [0.0, 2f64.powi(-50), -2f64.powi(-50), 2f64.powi(-49), -2f64.powi(-49)] {
            let f: Vec<f64> = z.iter().map(|z| 0.5 / 1024.0 - z + tiny).collect();
            let mut out = f.clone();
            grid.round(
                Isa::detect(),
                weight,
                &z,
                &mut out,
                |out| out.copy_from_slice(&f),
                exact_at(&keystream, 0),
            );
            for j in 0..512 {
                let above = exact_at(&keystream, 0)(j).plus(Pair::of(f[j])).plus(Pair::of(-0.5 / 1024.0));
                let expected = if above.hi > 0.0 { 1.0 / 1024.0 } else { 0.0 };
                assert_eq!(out[j], expected);
                if expected > 0.0 { up += 1 } else { down += 1 }
            }
        }
        assert!(up > 500 && down > 500, "{up} {down}");
    }
}
