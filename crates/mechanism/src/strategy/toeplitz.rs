//! Toeplitz C with n coefficients: the square root of A, which for prefix sums and a single participation has
//! the least max loss of all Toeplitz matrices, or optimised. Noise: O(n m) time a step with regenerated seed
//! noise, no state.

use serde::{Deserialize, Serialize};

use super::contract::Strategy;
use super::first_column;
use crate::numeric::limits::check_materializable;
use crate::toeplitz::divide;
use crate::{Encoder, Recursion, Result};

/// A lower-triangular Toeplitz matrix given by its first column.
///
/// ```
/// use antinoise_mechanism::{Strategy, strategy::Toeplitz};
/// let strategy = Toeplitz::new(4, vec![1.0, 0.5])?;
/// assert_eq!(strategy.encoder()?.to_dense()[(3, 2)], 0.5);
/// assert!(Toeplitz::new(4, vec![0.0, 0.5]).is_err()); // not invertible
/// # Ok::<(), antinoise_mechanism::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Toeplitz {
    steps: usize,
    coefficients: Vec<f64>,
}

impl Toeplitz {
    /// Creates the n x n matrix with first column `coefficients`, padded with zeros.
    ///
    /// # Errors
    /// When `coefficients` is empty or longer than `steps`, a number is not finite, or the first is not
    /// above 0.
    pub fn new(steps: usize, coefficients: Vec<f64>) -> Result<Self> {
        let strategy = Self { steps, coefficients };
        strategy.check()?;
        Ok(strategy)
    }
}

impl Strategy for Toeplitz {
    fn steps(&self) -> usize {
        self.steps
    }

    fn check(&self) -> Result<()> {
        first_column::check(self.steps, &self.coefficients)
    }

    fn encoder(&self) -> Result<Encoder> {
        Ok(Encoder::Toeplitz { steps: self.steps, coefficients: self.coefficients.clone() })
    }

    fn recursion(&self) -> Result<Recursion> {
        check_materializable(self.steps)?;
        Recursion::MovingAverage { taps: divide(&[1.0], &self.coefficients, self.steps) }.checked()
    }
}
