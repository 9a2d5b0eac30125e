//! Rounding of noise to the grid. The exact value w z + f of a step's noise is rounded, and the rounding is
//! fed back: later steps use the seed noise z that would have given the rounded value.

use crate::flat_recursion::Position;
use crate::keystream::Keystream;
use crate::normal::{Coordinates, DoubleDouble, exact_normal};
use crate::simd::{Isa, per_isa};

/// Upper bound on the distance between seed noise in double precision and the exact normal for its random
/// bits; a test checks it.
pub(crate) const NORMAL_ERROR: f64 = 1.0 / (1u64 << 47) as f64;
/// Number of coordinates in a vector register.
const LANES: usize = 8;
/// Doubles from 2^52 to 2^53 are 1 apart, so that adding this number rounds to whole grid points, ties to
/// even.
pub(super) const WHOLE: f64 = 1.5 * (1u64 << 52) as f64;
/// Upper bound on the relative error of a few roundings.
const ROUNDING: f64 = 1.0 / (1u64 << 50) as f64;

/// The grid of one step, in units of seed noise of variance 1.
#[derive(Debug, Clone, Copy)]
pub(crate) struct StepGrid {
    /// Grid points per unit of seed noise.
    pub(super) per_unit: f64,
    /// The distance between neighbouring grid points: 1 / per_unit.
    pub(super) unit: f64,
}

impl StepGrid {
    pub(crate) fn new(per_unit: f64) -> Self {
        Self { per_unit, unit: 1.0 / per_unit }
    }

    /// The grid of the step at `position`, given the grid of steps with factor 1.
    pub(crate) fn at(self, position: &Position) -> Self {
        Self::new(self.per_unit * position.factor)
    }

    /// Rounds weight * z + f, where `out` holds f, to the nearest grid point. The sum is exact for `weight`,
    /// f, and the exact normal z of the random bits. `recall` restores f in `out` if double precision does
    /// not decide every rounding.
    pub(super) fn round(
        self,
        isa: Isa,
        weight: f64,
        z: &[f64],
        out: &mut [f64],
        recall: impl FnOnce(&mut [f64]),
        exact: impl Fn(usize) -> DoubleDouble,
    ) {
        if round_all(isa, self, weight, z, out, room(self.doubt(weight))) {
            return;
        }
        recall(out);
        self.decide(weight, z, out, &exact);
    }

    /// Rounds coordinate by coordinate, with exact normals where double precision does not decide.
    #[cold]
    pub(super) fn decide(
        self,
        weight: f64,
        z: &[f64],
        out: &mut [f64],
        exact: &dyn Fn(usize) -> DoubleDouble,
    ) {
        let doubt = self.doubt(weight);
        for (j, (out, &z)) in out.iter_mut().zip(z).enumerate() {
            let points = weight.mul_add(z, *out) * self.per_unit;
            let mut rounded = points.round_ties_even();
            assert!(
                points.is_finite(),
                "a step's noise is {points}: no stream whose noise can leave the range is built"
            );
            if distance(points, points - rounded) + doubt >= 0.5 {
                let sum = exact(j)
                    .times(DoubleDouble::of(weight))
                    .plus(DoubleDouble::of(*out))
                    .times(DoubleDouble::of(self.per_unit));
                let middle = points.floor() + 0.5;
                let above = sum.plus(DoubleDouble::of(-middle));
                rounded = middle + if above.hi + above.lo > 0.0 { 0.5 } else { -0.5 };
            }
            *out = rounded * self.unit;
        }
    }

    /// Upper bound, in grid points, on the error of a sum that comes from the error of its normal.
    pub(super) fn doubt(self, weight: f64) -> f64 {
        (self.per_unit * weight).abs() * NORMAL_ERROR
    }
}

/// Returns a function that maps an offset in a tile to the exact normal.
pub(super) fn exact_at(keystream: &Keystream, at: Coordinates<'_>) -> impl Fn(usize) -> DoubleDouble {
    move |j| exact_normal(keystream, at.at(j))
}

per_isa! {
    /// Rounds in double precision. Returns whether this decides every rounding: whether the [`distance`] of
    /// each sum from its grid point is below `room`.
    fn round_all(grid: StepGrid, weight: f64, z: &[f64], out: &mut [f64], room: f64) -> bool {
        let StepGrid { per_unit, unit } = grid;
        let mut undecided = [0; LANES];
        let (lines, rest) = out.as_chunks_mut::<LANES>();
        let (z_lines, z_rest) = z.as_chunks::<LANES>();
        for (out, z) in lines.iter_mut().zip(z_lines) {
            for i in 0..LANES {
                let points = weight.mul_add(z[i], out[i]) * per_unit;
                let rounded = points.round_ties_even();
                out[i] = rounded * unit;
                undecided[i] |= beyond(distance(points, points - rounded), room);
            }
        }
        for (out, z) in rest.iter_mut().zip(z_rest) {
            let points = weight.mul_add(*z, *out) * per_unit;
            let rounded = points.round_ties_even();
            *out = rounded * unit;
            undecided[0] |= beyond(distance(points, points - rounded), room);
        }
        undecided == [0; LANES]
    }
}

/// Upper bound on the distance of the exact sum from a grid point, if the computed sum is `points` and is
/// `off` away from the grid point.
#[inline(always)]
pub(super) fn distance(points: f64, off: f64) -> f64 {
    points.abs().mul_add(ROUNDING, off.abs())
}

/// The distance from a grid point below which double precision decides the rounding. `doubt` is the bound on
/// the error that comes from normals.
#[inline(always)]
pub(super) fn room(doubt: f64) -> f64 {
    (0.5 - doubt).next_down()
}

/// A mask for vector code: all bits are set if `distance` is not below `room` (or is NaN), otherwise none.
#[inline(always)]
fn beyond(distance: f64, room: f64) -> i64 {
    if distance < room { 0 } else { -1 }
}

/// Returns the whole number x from x + [`WHOLE`], whose last bits are x.
#[inline(always)]
pub(super) fn whole(sum: f64) -> i32 {
    sum.to_bits() as i32
}

per_isa! {
    /// Sets z to the seed noise that gives `noise` without rounding, where `share` is the history term.
    pub(super) fn fed_back(weight: f64, noise: &[f64], share: &[f64], z: &mut [f64]) {
        for ((z, noise), share) in z.iter_mut().zip(noise).zip(share) {
            *z = (noise - share) / weight;
        }
    }
}

per_isa! {
    /// Converts noise on a grid to whole points, all of which must fit in 4 bytes.
    pub(super) fn whole_points(per_unit: f64, noise: &[f64], points: &mut [i32]) {
        for (points, noise) in points.iter_mut().zip(noise) {
            *points = whole(noise.mul_add(per_unit, WHOLE));
        }
    }
}

per_isa! {
    /// As `add_to_sum`, with noise given in whole grid points.
    pub(super) fn add_points_to_sum(spacing: f64, sum: Option<&[f64]>, noise: &[i32], out: &mut [f32]) {
        add_each_to_sum(spacing, sum, noise, f64::from, out);
    }
}

per_isa! {
    /// Sets out to spacing * (round(sum / spacing) + noise in whole grid points); without a sum, to the noise
    /// alone.
    pub(super) fn add_to_sum(spacing: f64, per_unit: f64, sum: Option<&[f64]>, noise: &[f64], out: &mut [f32]) {
        add_each_to_sum(spacing, sum, noise, |noise| (noise * per_unit).round_ties_even(), out);
    }
}

#[inline(always)]
fn add_each_to_sum<N: Copy>(
    spacing: f64,
    sum: Option<&[f64]>,
    noise: &[N],
    points: impl Fn(N) -> f64,
    out: &mut [f32],
) {
    match sum {
        Some(sum) => {
            for ((out, noise), sum) in out.iter_mut().zip(noise).zip(sum) {
                *out = noisy_sum(spacing, *sum, points(*noise));
            }
        }
        None => {
            out.iter_mut().zip(noise).for_each(|(out, noise)| *out = noisy_sum(spacing, 0.0, points(*noise)))
        }
    }
}

/// Returns spacing * (round(given / spacing) + noise), where noise is in whole grid points, or NaN if |given
/// / spacing| exceeds 2^51.
#[inline(always)]
fn noisy_sum(spacing: f64, given: f64, noise: f64) -> f32 {
    /// Sums of two whole numbers up to this size are exact.
    const BOUND: f64 = (1u64 << 51) as f64;
    // Exact: the spacing is a power of two.
    let per_spacing = 1.0 / spacing;
    let points = (given * per_spacing).round_ties_even();
    let points = if points.abs() <= BOUND { points } else { f64::NAN };
    ((points + noise) * spacing) as f32
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key::Key;
    use crate::keystream::{Cipher, KeySource};
    use crate::normal::NormalTile;

    /// The history terms put the sums near the middle between two grid points; the chosen grid point must be
    /// the one nearest to the exact sum.
    #[test]
    fn sums_near_a_middle_are_decided_by_further_digits() {
        let keystream = KeySource::new(&Key::from_seed_insecure(3), Cipher::default()).keystream(0);
        let (weight, grid) = (1.0, StepGrid::new(1024.0));
        let z = NormalTile::<f64>::new(Isa::detect()).make(&keystream, Coordinates::From(0), 512).to_vec();
        let (mut up, mut down) = (0, 0);
        for tiny in [0.0, 2f64.powi(-50), -2f64.powi(-50), 2f64.powi(-49), -2f64.powi(-49)] {
            let f: Vec<f64> = z.iter().map(|z| 0.5 / 1024.0 - z + tiny).collect();
            let mut out = f.clone();
            let exact = exact_at(&keystream, Coordinates::From(0));
            grid.round(Isa::detect(), weight, &z, &mut out, |out| out.copy_from_slice(&f), &exact);
            for j in 0..512 {
                let above = exact(j).plus(DoubleDouble::of(f[j])).plus(DoubleDouble::of(-0.5 / 1024.0));
                let expected = if above.hi > 0.0 { 1.0 / 1024.0 } else { 0.0 };
                assert_eq!(out[j], expected);
                if expected > 0.0 { up += 1 } else { down += 1 }
            }
        }
        assert!(up > 500 && down > 500, "{up} {down}");
    }
}
