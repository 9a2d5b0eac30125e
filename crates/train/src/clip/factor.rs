//! What a gradient is multiplied by.

use antinoise_input::{InvalidParameter, positive};

use super::kernel::{Weighted, norms_squared};
use super::sum::GradientSum;

/// Keeps what rounding adds to lengths and factors from lengthening a clipped gradient beyond the clip norm.
const MARGIN: f64 = 1.0 - 1.0 / (1 << 20) as f64;

/// A clip norm, and the power of two in whose units sums are made: no factor or product then leaves the range of
/// double precision, whatever numbers of single precision the gradients hold.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Clip {
    pub(super) norm: f64,
    pub(super) unit: f64,
}

impl Clip {
    pub(crate) fn new(norm: f64) -> Result<Self, InvalidParameter> {
        if positive("clip_norm", norm)? < 2f64.powi(-1000) {
            return Err(InvalidParameter::new("clip_norm", norm, "at least 2^-1000"));
        }
        // No gradient in single precision is as long as 2^300.
        Ok(Self { norm, unit: 2f64.powi((norm.log2().floor() as i32).clamp(-1000, 300)) })
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

    /// The sum in the caller's units.
    pub(crate) fn scale_back(self, mut sum: GradientSum) -> GradientSum {
        sum.gradient.iter_mut().for_each(|x| *x *= self.unit);
        sum
    }
}

impl GradientSum {
    /// Adds one unit's vector (an example's gradient, say), made in single precision, in units of the clip norm's power of two.
    pub(crate) fn add_clipped(&mut self, gradient: &[f32], loss: f64, clip: Option<Clip>) {
        self.loss += loss;
        let factor = match clip {
            Some(clip) => {
                let norm = norms_squared(gradient, 1)[0].sqrt();
                // One that is not a number is beyond it too.
                self.clipped += usize::from(norm.is_nan() || norm > clip.norm);
                clip.factor(norm)
            }
            None => 1.0,
        };
        // What has factor 0 is left out, not multiplied: 0 times infinity would be NaN.
        if factor != 0.0 {
            let factors = &[factor];
            Weighted { rows: gradient, factors, outputs: 1, kept: &[0] }.add_to(&mut self.gradient);
        }
    }
}
