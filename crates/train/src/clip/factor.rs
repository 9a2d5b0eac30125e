//! What a gradient is multiplied by.

use antinoise_input::{InvalidParameter, positive};

use super::contribution::Contribution;
use super::kernel::{Weighted, norms_squared, scaled_norms_squared};
use super::sum::GradientSum;

/// Keeps what rounding adds to lengths and factors from lengthening a clipped gradient beyond the clip norm.
const MARGIN: f64 = 1.0 - 1.0 / (1 << 20) as f64;

/// What an example adds, the clip norm of its gradient, and the power of two in whose units sums are made: no factor or product then leaves the range of
/// double precision, whatever numbers of single precision the gradients hold.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Clip<'a> {
    of: Contribution<'a>,
    pub(super) norm: f64,
    pub(super) unit: f64,
}

#[cfg(any(test, feature = "federated"))]
impl Clip<'_> {
    /// Of gradients as they are.
    pub(crate) fn new(norm: f64) -> Result<Self, InvalidParameter> {
        Self::of(Contribution::Gradient, norm, 0)
    }
}

impl<'a> Clip<'a> {
    /// Of what examples add to a sum that one of them moves by at most `norm`, for a model of so many parameters.
    pub(crate) fn of(of: Contribution<'a>, norm: f64, parameters: usize) -> Result<Self, InvalidParameter> {
        if positive("clip_norm", norm)? < 2f64.powi(-1000) {
            return Err(InvalidParameter::new("clip_norm", norm, "at least 2^-1000"));
        }
        of.check(parameters)?;
        let norm = of.gradient_norm(norm);
        // No gradient in single precision is as long as 2^300.
        Ok(Self { of, norm, unit: 2f64.powi((norm.log2().floor() as i32).clamp(-1000, 300)) })
    }

    /// What a gradient of length `norm` is multiplied by; 0 when the length is not a finite number.
    pub(super) fn factor(self, norm: f64) -> f64 {
        let limit = self.norm * MARGIN;
        match norm {
            norm if norm <= limit => 1.0 / self.unit,
            norm if norm.is_finite() => limit / self.unit / norm,
            _ => 0.0,
        }
    }

    /// What gradients are multiplied by before they are clipped, if by anything.
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

    /// The length of one gradient, multiplied by the scales.
    fn length(self, gradient: &[f32]) -> f64 {
        let squares = match self.scales() {
            Some(scales) => scaled_norms_squared(gradient, scales, gradient.len()),
            None => norms_squared(gradient, 1),
        };
        squares[0].sqrt()
    }

    /// The sum in the caller's units: until here it is one of gradients without their scales, and of squares without lambda.
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
                // lambda unit^2, without leaving the range.
                let share = ratio * (unit / norm);
                squares.iter_mut().for_each(|x| *x = *x * share * unit);
            }
        }
        sum
    }
}

impl GradientSum {
    /// Adds one unit's vector (an example's gradient, say), made in single precision, in units of the clip norm's power of two.
    pub(crate) fn add_clipped(&mut self, gradient: &[f32], loss: f64, clip: Option<Clip>) {
        self.loss += loss;
        let factor = match clip {
            Some(clip) => {
                let norm = clip.length(gradient);
                // One that is not a number is beyond it too.
                self.clipped += usize::from(norm.is_nan() || norm > clip.norm);
                clip.factor(norm)
            }
            None => 1.0,
        };
        // What has factor 0 is left out, not multiplied: 0 times infinity would be NaN.
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
