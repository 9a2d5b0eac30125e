//! Clipping: the factor on a gradient.

use antinoise_input::{InvalidParameter, positive};

use super::contribution::Contribution;
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
}

#[cfg(any(test, feature = "federated"))]
impl Clip<'_> {
    /// Clipping of gradients to `norm`.
    pub(crate) fn new(norm: f64) -> Result<Self, InvalidParameter> {
        Self::of(Contribution::Gradient, norm, 0)
    }
}

impl<'a> Clip<'a> {
    /// Clipping of `of` so that one example changes the sum by at most `norm`. `parameters`: length of the
    /// parameter vector.
    pub(crate) fn of(of: Contribution<'a>, norm: f64, parameters: usize) -> Result<Self, InvalidParameter> {
        if positive("clip_norm", norm)? < 2f64.powi(-1000) {
            return Err(InvalidParameter::new("clip_norm", norm, "at least 2^-1000"));
        }
        of.check(parameters)?;
        let norm = of.gradient_norm(norm);
        // No gradient in single precision is as long as 2^300.
        Ok(Self { of, norm, unit: 2f64.powi((norm.log2().floor() as i32).clamp(-1000, 300)) })
    }

    /// The factor on a gradient of length `norm`; 0 if the length is not finite.
    pub(super) fn factor(self, norm: f64) -> f64 {
        let limit = self.norm * MARGIN;
        match norm {
            norm if norm <= limit => 1.0 / self.unit,
            norm if norm.is_finite() => limit / self.unit / norm,
            _ => 0.0,
        }
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

    /// The length of one gradient, after multiplication by the scales.
    fn length(self, gradient: &[f32]) -> f64 {
        let squares = match self.scales() {
            Some(scales) => scaled_norms_squared(gradient, scales, gradient.len()),
            None => norms_squared(gradient, 1),
        };
        squares[0].sqrt()
    }

    /// Converts a sum to the caller's units: multiplies it by the unit, by the scales and, for squares, by
    /// lambda.
    pub(crate) fn scale_back(self, mut sum: GradientSum) -> GradientSum {
        let Self { of, norm, unit } = self;
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
    /// of `clip.unit`.
    pub(crate) fn add_clipped(&mut self, gradient: &[f32], loss: f64, clip: Option<Clip>) {
        self.loss += loss;
        let factor = match clip {
            Some(clip) => {
                let norm = clip.length(gradient);
                // A length of NaN counts as clipped.
                self.clipped += usize::from(norm.is_nan() || norm > clip.norm);
                clip.factor(norm)
            }
            None => 1.0,
        };
        // A vector with factor 0 is left out, not multiplied: 0 times infinity would be NaN.
        if factor != 0.0 {
            let factors = &[factor];
            let gradient_of_one = Weighted { rows: gradient, factors, outputs: 1, kept: &[0] };
            let (sum, squares) = self.gradient.split_at_mut(gradient.len());
            gradient_of_one.add_to(sum);
            if !squares.is_empty() {
                gradient_of_one.add_squares_to(squares);
            }
        }
    }
}
