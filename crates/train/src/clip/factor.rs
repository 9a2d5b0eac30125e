//! Clipping: the factor on a gradient.

use std::ops::Range;

use antinoise_input::{InvalidParameter, positive};

use super::contribution::Contribution;
use super::groups::{Clipping, Groups};
use super::kernel::{Weighted, norms_squared, scaled_norms_squared};
use super::sum::GradientSum;

/// Keeps a clipped gradient within the clip norm in spite of rounding errors of lengths and factors.
const MARGIN: f64 = 1.0 - 1.0 / (1 << 20) as f64;

/// Clipping of contributions, in units of a power of two close to the clip norm: in these units no factor or
/// product leaves the range of double precision, whatever single-precision numbers the gradients hold.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Clip<'a> {
    of: Contribution<'a>,
    pub(super) norm: f64,
    pub(super) unit: f64,
    groups: Option<&'a Groups>,
}

#[cfg(any(test, feature = "federated"))]
impl Clip<'_> {
    /// Clipping of gradients to `norm`.
    pub(crate) fn new(norm: f64) -> Result<Self, InvalidParameter> {
        Self::of(Contribution::Gradient, norm.into(), 0)
    }
}

impl<'a> Clip<'a> {
    /// Clipping of `of` so that one example changes the sum by at most `clipping.norm`. `parameters`: length
    /// of the parameter vector.
    pub(crate) fn of(
        of: Contribution<'a>,
        clipping: Clipping<'a>,
        parameters: usize,
    ) -> Result<Self, InvalidParameter> {
        let Clipping { norm, groups } = clipping;
        if positive("clip_norm", norm)? < 2f64.powi(-1000) {
            return Err(InvalidParameter::new("clip_norm", norm, "at least 2^-1000"));
        }
        of.check(parameters)?;
        let norm = of.gradient_norm(norm);
        // No gradient in single precision is as long as 2^300.
        Ok(Self { of, norm, unit: 2f64.powi((norm.log2().floor() as i32).clamp(-1000, 300)), groups })
    }

    /// How many parts of a gradient are clipped apart.
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
    /// factors, and the squares of the others by 0. Returns how many gradients were longer than a clip norm,
    /// or NaN.
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

    /// The factors on a gradient before it is clipped, if there are any.
    pub(super) fn scales(self) -> Option<&'a [f32]> {
        match self.of {
            Contribution::Scaled(scales) => Some(scales),
            _ => None,
        }
    }

    /// Numbers in a sum.
    pub(super) fn dim(self, parameters: usize) -> usize {
        self.of.dim(parameters)
    }

    /// Adds the squared length of each part of one gradient, multiplied by the scales, to that of its group.
    fn add_squares(self, gradient: &[f32], squares: &mut [f64]) {
        self.for_each_part(gradient.len(), |group, part| {
            let values = &gradient[part.clone()];
            let of_part = match self.scales() {
                Some(scales) => scaled_norms_squared(values, &scales[part], values.len()),
                None => norms_squared(values, 1),
            };
            squares[group] += of_part[0];
        });
    }

    /// Calls `each` with group and place of each part of a gradient of `dim` numbers.
    fn for_each_part(self, dim: usize, mut each: impl FnMut(usize, Range<usize>)) {
        match self.groups {
            Some(groups) => groups.parts().for_each(|(group, part)| each(group, part)),
            None => each(0, 0..dim),
        }
    }

    /// Converts a sum to the caller's units: multiplies it by the unit, by the scales and, for squares, by
    /// lambda.
    pub(crate) fn scale_back(self, mut sum: GradientSum) -> GradientSum {
        let Self { of, norm, unit, .. } = self;
        match of {
            Contribution::Gradient => sum.gradient.iter_mut().for_each(|x| *x *= unit),
            Contribution::Scaled(scales) => {
                let scaled = sum.gradient.iter_mut().zip(scales);
                scaled.for_each(|(x, &scale)| *x = *x * f64::from(scale) * unit);
            }
            Contribution::WithSquares { ratio } => {
                let half = sum.gradient.len() / 2;
                let (gradient, squares) = sum.gradient.split_at_mut(half);
                gradient.iter_mut().for_each(|x| *x *= unit);
                // lambda unit^2, computed so that no product leaves the range.
                let share = ratio * (unit / norm);
                squares.iter_mut().for_each(|x| *x = *x * share * unit);
            }
        }
        sum
    }
}

impl GradientSum {
    /// Adds the clipped vector of one unit (an example's gradient, say) in single precision to a sum in units
    /// of `clip.unit`. `factors` is memory for one number a group.
    pub(crate) fn add_clipped(
        &mut self,
        gradient: &[f32],
        loss: f64,
        clip: Option<Clip>,
        factors: &mut [f64],
    ) {
        self.loss += loss;
        let (sum, squares) = self.gradient.split_at_mut(gradient.len());
        let mut add = |factor: f64, part: Range<usize>| {
            // A vector with factor 0 is left out, not multiplied: 0 times infinity would be NaN.
            if factor != 0.0 {
                let factors = &[factor];
                let rows = &gradient[part.clone()];
                let of_part = Weighted { rows, factors, outputs: 1, kept: &[0] };
                of_part.add_to(&mut sum[part.clone()]);
                if !squares.is_empty() {
                    of_part.add_squares_to(&mut squares[part]);
                }
            }
        };
        let Some(clip) = clip else { return add(1.0, 0..gradient.len()) };
        factors.fill(0.0);
        clip.add_squares(gradient, factors);
        self.clipped += clip.factors(factors, 1, 1);
        clip.for_each_part(gradient.len(), |group, part| add(factors[group], part));
    }
}
