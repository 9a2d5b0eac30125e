//! What an example adds to a sum.

use antinoise_input::{InvalidParameter, between};

use crate::optimizer::check_ratio;

/// Scales within a factor 2^40 of 1 keep every product below within the range of double precision.
const MOST_SCALE: f32 = (1u64 << 40) as f32;

/// What an example with gradient g adds to a sum of clip norm c.
///
/// ```text
/// Gradient      x = g min(1, c / |g|)
/// Scaled        x = h min(1, c / |h|),   h = s g entry by entry
/// WithSquares   (x, lambda x^2),  x = g min(1, zeta / |g|),  lambda = ratio / zeta,  squares entry by entry
/// ```
///
/// In each case the sum moves by at most c where an example is zeroed out, and by at most 2 c where it is replaced. For squares,
/// |x|^2 + lambda^2 |x^2|^2 <= zeta^2 (1 + ratio^2), so that zeta = c / sqrt(1 + ratio^2); and zeta = c where examples can only be
/// replaced (`replaced`), since then the squares are free:
///
/// ```text
/// |x - y|^2 + lambda^2 |x^2 - y^2|^2 <= 4 zeta^2     for all |x|, |y| <= zeta, while ratio^2 <= 1/2
/// ```
///
/// `docs/training.md` has the proof, and what rounding adds.
///
/// # Source
/// Scaled: A. Ganesh, B. McMahan, A. Thakurta, On design principles for private adaptive optimizers, arXiv:2507.01129, Algorithm 8.
/// WithSquares: N. Kalinin, J. Upadhyay, C. Lampert, Continual release moment estimation with differential privacy,
/// arXiv:2502.06597, for diagonal second moments.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Contribution<'a> {
    /// Its clipped gradient.
    Gradient,
    /// Its gradient times these numbers, one a parameter, clipped after that. **They must follow from earlier releases alone.**
    Scaled(&'a [f32]),
    /// Its clipped gradient, and after it the squares of its entries.
    WithSquares {
        /// How long the squares of a vector of the clip norm's length, along one parameter, are beside it; above 0, at most 0.7.
        ratio: f64,
        /// Whether two neighbouring data sets differ in an example that is replaced, and no accountant splits that in two.
        replaced: bool,
    },
}

impl Contribution<'_> {
    /// Numbers in a sum, for a model of so many parameters.
    ///
    /// ```
    /// use antinoise_train::clip::Contribution;
    /// assert_eq!(Contribution::WithSquares { ratio: 0.5, replaced: false }.dim(650), 1300);
    /// ```
    pub fn dim(self, parameters: usize) -> usize {
        match self {
            Self::Gradient | Self::Scaled(_) => parameters,
            Self::WithSquares { .. } => 2 * parameters,
        }
    }

    /// zeta: what a gradient is clipped to, so that no sum moves by more than `clip_norm`.
    ///
    /// ```
    /// use antinoise_train::clip::Contribution;
    /// let squares = |replaced| Contribution::WithSquares { ratio: 0.7, replaced };
    /// assert_eq!(squares(true).gradient_norm(1.0), 1.0);
    /// assert!((squares(false).gradient_norm(1.0) - 0.8192).abs() < 1e-4); // 1 / sqrt(1.49)
    /// ```
    pub fn gradient_norm(self, clip_norm: f64) -> f64 {
        match self {
            Self::WithSquares { ratio, replaced: false } => clip_norm / (1.0 + ratio * ratio).sqrt(),
            _ => clip_norm,
        }
    }

    /// lambda: what squares are multiplied by, where there are any.
    pub fn share_of_squares(self, clip_norm: f64) -> Option<f64> {
        match self {
            Self::WithSquares { ratio, .. } => Some(ratio / self.gradient_norm(clip_norm)),
            _ => None,
        }
    }

    /// The length of the longest contribution, in clip norms: what rounding is relative to.
    pub(crate) fn longest(self) -> f64 {
        match self {
            Self::WithSquares { ratio, replaced: true } => (1.0 + ratio * ratio).sqrt().next_up(),
            _ => 1.0,
        }
    }

    /// Refuses numbers that are out of range or not one a parameter.
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
            Self::WithSquares { ratio, .. } => check_ratio(ratio),
        }
    }
}
