//! The contribution of an example to a sum.

use antinoise_input::{InvalidParameter, between};

use crate::optimizer::{MOST_SCALE, check_ratio};

/// The contribution of an example with gradient g to a sum of clip norm c.
///
/// ```text
/// Gradient      x = g min(1, c / |g|)
/// Scaled        x = h min(1, c / |h|),   h = s g entry by entry
/// WithSquares   (x, lambda x^2),  x = g min(1, zeta / |g|),  lambda = ratio / zeta,  squares entry by entry
/// ```
///
/// Every contribution has length at most c, so that the sum moves by at most c if an example is zeroed out,
/// and by at most 2 c if it is replaced: |x|^2 + lambda^2 |x^2|^2 <= zeta^2 (1 + ratio^2) = c^2 with zeta = c
/// / sqrt(1 + ratio^2). For rounding errors see `docs/training.md`.
///
/// # Source
/// Scaled: A. Ganesh, B. McMahan, A. Thakurta, On design principles for private adaptive optimizers,
/// arXiv:2507.01129, Algorithm 8. WithSquares: N. Kalinin, J. Upadhyay, C. Lampert, Continual release moment
/// estimation with differential privacy, arXiv:2502.06597, for diagonal second moments.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Contribution<'a> {
    /// The clipped gradient.
    Gradient,
    /// The gradient times these numbers, one per parameter, clipped after that. **The numbers must be a
    /// function of earlier releases only.**
    Scaled(&'a [f32]),
    /// The clipped gradient, followed by the squares of its entries.
    WithSquares {
        /// |lambda x^2| / |x| for a vector x of length zeta along one parameter; above 0, at most 1.
        ratio: f64,
    },
}

impl Contribution<'_> {
    /// Numbers in a sum, for a model of `parameters` parameters.
    ///
    /// ```
    /// use antinoise_train::clip::Contribution;
    /// assert_eq!(Contribution::WithSquares { ratio: 0.5 }.dim(650), 1300);
    /// ```
    pub fn dim(self, parameters: usize) -> usize {
        match self {
            Self::Gradient | Self::Scaled(_) => parameters,
            Self::WithSquares { .. } => 2 * parameters,
        }
    }

    /// zeta: the norm to which a gradient is clipped so that the contribution has length at most `clip_norm`.
    ///
    /// ```
    /// use antinoise_train::clip::Contribution;
    /// assert_eq!(Contribution::Gradient.gradient_norm(1.0), 1.0);
    /// assert_eq!(Contribution::WithSquares { ratio: 0.75 }.gradient_norm(1.0), 0.8);
    /// ```
    pub fn gradient_norm(self, clip_norm: f64) -> f64 {
        match self {
            Self::Gradient | Self::Scaled(_) => clip_norm,
            Self::WithSquares { ratio } => clip_norm / (1.0 + ratio * ratio).sqrt(),
        }
    }

    /// lambda: the factor on squares, if there are any.
    pub fn share_of_squares(self, clip_norm: f64) -> Option<f64> {
        match self {
            Self::WithSquares { ratio } => Some(ratio / self.gradient_norm(clip_norm)),
            _ => None,
        }
    }

    /// Refuses numbers out of range, and a number of scales that differs from the number of parameters.
    pub(super) fn check(self, parameters: usize) -> Result<(), InvalidParameter> {
        match self {
            Self::Gradient => Ok(()),
            Self::Scaled(scales) => {
                between("number of scales", scales.len(), parameters, parameters, "one a parameter")?;
                match scales.iter().find(|scale| !(1.0 / MOST_SCALE..=MOST_SCALE).contains(*scale)) {
                    Some(scale) => {
                        Err(InvalidParameter::new("scale of a gradient", scale, "from 2^-40 to 2^40"))
                    }
                    None => Ok(()),
                }
            }
            Self::WithSquares { ratio } => check_ratio(ratio),
        }
    }
}
