//! Clipping: the factor on a gradient.

use std::ops::Range;

use antinoise_input::{InvalidParameter, positive};

use super::groups::{Clipping, Groups};
use super::kernel::{Weighted, norm_squared_of, norms_squared};
use super::sum::GradientSum;

/// Factor on the clip norm that keeps a clipped gradient within it in spite of rounding errors of lengths and
/// factors.
const MARGIN: f64 = 1.0 - 1.0 / (1 << 20) as f64;

/// Clipping of gradients, in units of a power of two close to the clip norm: in these units no factor or
/// product leaves the range of double precision, whatever single-precision numbers the gradients hold.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Clip<'a> {
    pub(super) norm: f64,
    pub(super) unit: f64,
    groups: Option<&'a Groups>,
}

impl<'a> Clip<'a> {
    /// Clipping so that one example changes the sum by at most `clipping.norm`.
    pub(crate) fn new(clipping: impl Into<Clipping<'a>>) -> Result<Self, InvalidParameter> {
        let Clipping { norm, groups } = clipping.into();
        if positive("clip_norm", norm)? < 2f64.powi(-1000) {
            return Err(InvalidParameter::new("clip_norm", norm, "at least 2^-1000"));
        }
        // No gradient in single precision is as long as 2^300.
        Ok(Self { norm, unit: 2f64.powi((norm.log2().floor() as i32).clamp(-1000, 300)), groups })
    }

    /// Number of parts of a gradient that are clipped separately.
    pub(super) fn groups(self) -> usize {
        self.groups.map_or(1, Groups::count)
    }

    /// The group of a layer.
    pub(super) fn group_of(self, layer: usize) -> usize {
        self.groups.map_or(0, |groups| groups.of_layer(layer))
    }

    fn share(self, group: usize) -> f64 {
        self.groups.map_or(1.0, |groups| groups.share(group))
    }

    /// Replaces the squared lengths of the first `count` of `examples` gradients, group after group, by their
    /// factors, and the squares of the others by 0. Returns the number of gradients that were longer than a
    /// clip norm or whose length was NaN.
    pub(super) fn factors(self, squares: &mut [f64], examples: usize, count: usize) -> usize {
        let mut clipped = 0;
        for i in 0..examples {
            let lengths = squares[i..].iter().step_by(examples).map(|square| square.sqrt());
            let (mut is_within, mut is_finite) = (true, i < count);
            for (group, length) in lengths.enumerate() {
                is_within &= length <= self.norm * self.share(group);
                is_finite &= length.is_finite();
            }
            clipped += usize::from(i < count && !is_within);
            for (group, square) in squares[i..].iter_mut().step_by(examples).enumerate() {
                *square = if is_finite { self.factor(group, square.sqrt()) } else { 0.0 };
            }
        }
        clipped
    }

    /// The factor on a group's part of a gradient, of finite length `length`.
    pub(super) fn factor(self, group: usize, length: f64) -> f64 {
        let limit = self.norm * self.share(group) * MARGIN;
        if length <= limit { 1.0 / self.unit } else { limit / self.unit / length }
    }

    /// Adds the squared length of each part of one gradient to that of its group.
    fn add_squares(self, gradient: &[f32], squares: &mut [f64]) {
        self.for_each_part(gradient.len(), |group, part| {
            squares[group] += norms_squared(&gradient[part], 1)[0];
        });
    }

    /// Calls `each` with the group and the range of each part of a gradient of `dim` numbers.
    fn for_each_part(self, dim: usize, mut each: impl FnMut(usize, Range<usize>)) {
        match self.groups {
            Some(groups) => groups.parts().for_each(|(group, part)| each(group, part)),
            None => each(0, 0..dim),
        }
    }

    /// Converts a sum from units of `unit` to the caller's.
    pub(crate) fn unscale(self, mut sum: GradientSum) -> GradientSum {
        sum.gradient.iter_mut().for_each(|x| *x *= self.unit);
        sum
    }
}

impl GradientSum {
    /// Adds the clipped vector of one unit, such as an example's gradient, in single precision to a sum in
    /// units of `clip.unit`. `factors` is scratch memory for one number per group.
    pub(crate) fn add_clipped(
        &mut self,
        gradient: &[f32],
        loss: f64,
        clip: Option<Clip>,
        factors: &mut [f64],
    ) {
        self.loss += loss;
        let sum = &mut self.gradient;
        let mut add = |factor: f64, part: Range<usize>| {
            // A vector with factor 0 is left out, not multiplied: 0 times infinity would be NaN.
            if factor != 0.0 {
                let factors = &[factor];
                let rows = &gradient[part.clone()];
                Weighted { rows, stride: rows.len(), factors, outputs: 1, kept: &[0] }.add_to(&mut sum[part]);
            }
        };
        let Some(clip) = clip else { return add(1.0, 0..gradient.len()) };
        factors.fill(0.0);
        clip.add_squares(gradient, factors);
        self.clipped += clip.factors(factors, 1, 1);
        clip.for_each_part(gradient.len(), |group, part| add(factors[group], part));
    }

    /// Adds the clipped vector of one unit in double precision, as [`add_clipped`](Self::add_clipped). No
    /// sum of squares of its numbers may overflow or underflow.
    pub(super) fn add_clipped_wide(&mut self, vector: &[f64], clip: Clip) {
        let mut factors = vec![0.0; clip.groups()];
        clip.for_each_part(vector.len(), |group, part| factors[group] += norm_squared_of(&vector[part]));
        self.clipped += clip.factors(&mut factors, 1, 1);
        clip.for_each_part(vector.len(), |group, part| {
            let factor = factors[group];
            // A vector with factor 0 is left out, not multiplied: 0 times infinity would be NaN.
            if factor != 0.0 {
                let sum = self.gradient[part.clone()].iter_mut();
                sum.zip(&vector[part]).for_each(|(sum, x)| *sum += factor * x);
            }
        });
    }
}
