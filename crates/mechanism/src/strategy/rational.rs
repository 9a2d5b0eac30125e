//! Rational C: Toeplitz, with coefficients that follow a linear recurrence of order d, c_t = u^T A^t v, so
//! that their generating function is a quotient of polynomials of degree d. Real, complex and repeated poles.
//!
//! Noise: O(d m) time a step and d vectors of state. BLTs are the rational C with real, interlaced poles and
//! zeros; banded Toeplitz C have all poles at infinity. The loss takes O(n d) time for Toeplitz workloads.

use antinoise_input::{InvalidParameter, at_least, between};
use serde::{Deserialize, Serialize};

use super::contract::Strategy;
use crate::decoder::{rows_by_columns, rows_of_inverse};
use crate::numeric::limits::check_materializable;
use crate::rational_series::powers::in_sums;
use crate::rational_series::running_sums::{lost_by_series, series};
use crate::rational_series::stability;
use crate::{Encoder, Recursion, Result, Workload};

/// Maximum degree d.
pub(crate) const MAX_DEGREE: usize = 16;

/// Largest relative error of C in double precision.
const MOST_LOST: f64 = 1e-6;

/// A Toeplitz C with generating function P(X) / Q(X), where P(0) = Q(0) = 1 and X = x / (1 - x) sums all
/// earlier terms. The coefficients of P are the elementary symmetric functions of delta^ = 1 - lambda^, and
/// those of Q of delta = 1 - lambda, where 1 / lambda^ are the zeros and 1 / lambda the poles in x.
///
/// ```
/// use antinoise_mechanism::{Strategy, strategy::Rational};
/// // c_t = lambda^t cos(t pi / 3): a conjugate pair of poles, which no BLT has.
/// let (lambda, angle) = (0.9f64, std::f64::consts::FRAC_PI_3);
/// let p = [1.0, -lambda * angle.cos()];
/// let q = [1.0, -2.0 * lambda * angle.cos(), lambda * lambda];
/// let strategy = Rational::from_polynomials(8, &p, &q)?;
/// for (t, c) in strategy.coefficients()?.iter().enumerate() {
///     assert!((c - lambda.powi(t as i32) * (t as f64 * angle).cos()).abs() < 1e-14);
/// }
/// # Ok::<(), antinoise_mechanism::Error>(())
/// ```
///
/// # Source
/// Monograph, Definition 2.27 and Theorem 2.28; there, deg P < d and c_0 is any number.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rational {
    steps: usize,
    /// The coefficients of X, X^2, ..., X^d in P.
    numerator: Vec<f64>,
    /// The coefficients of X, X^2, ..., X^d in Q.
    denominator: Vec<f64>,
}

impl Rational {
    /// Creates the C with generating function P(X) / Q(X), from the coefficients of X, X^2, ..., X^d.
    ///
    /// # Errors
    /// When the two have different lengths, or more than 16 numbers, or a zero or pole is outside the unit
    /// circle by more than a factor of 1 + 1 / n: noise or columns of C would grow geometrically.
    pub fn new(steps: usize, numerator: Vec<f64>, denominator: Vec<f64>) -> Result<Self> {
        let strategy = Self { steps, numerator, denominator };
        strategy.check()?;
        Ok(strategy)
    }

    /// Creates the C with generating function p(x) / q(x), divided by its value at 0, from the coefficients
    /// of 1, x, x^2, ...
    ///
    /// # Errors
    /// When p or q is empty or has more than 17 coefficients, its first is 0, or as [`Rational::new`].
    pub fn from_polynomials(steps: usize, p: &[f64], q: &[f64]) -> Result<Self> {
        for (name, polynomial) in [("p's length", p), ("q's length", q)] {
            between(name, polynomial.len(), 1, MAX_DEGREE + 1, "one more than the maximum degree")?;
        }
        let degree = p.len().max(q.len()) - 1;
        let in_sums = |name: &str, polynomial: &[f64]| {
            if polynomial[0] == 0.0 || !polynomial[0].is_finite() {
                return Err(InvalidParameter::new(name, polynomial[0], "finite and not 0"));
            }
            let rest: Vec<f64> = polynomial[1..].iter().map(|c| c / polynomial[0]).collect();
            Ok(in_sums(&rest, degree))
        };
        Self::new(steps, in_sums("p[0]", p)?, in_sums("q[0]", q)?)
    }

    /// Returns the coefficients of C: its first column, n values.
    ///
    /// # Errors
    /// When n is too large, or double precision may hold C to fewer than six digits, as with many equal
    /// poles.
    pub fn coefficients(&self) -> Result<Vec<f64>> {
        check_materializable(self.steps)?;
        let (gain, denominator) = (self.gain(), &self.denominator);
        let coefficients = series(&gain, denominator, self.steps);
        let lost = lost_by_series(&gain, denominator, &coefficients);
        if lost <= MOST_LOST {
            return Ok(coefficients);
        }
        let must_be = format!("one with fewer equal poles: double precision loses up to {lost:.1e} of C");
        Err(InvalidParameter::new("denominator", format!("{denominator:?}"), must_be).into())
    }

    /// Returns the first column of C^-1 = Q(X) / P(X).
    fn inverse(&self) -> Result<Vec<f64>> {
        check_materializable(self.steps)?;
        let gain: Vec<f64> = self.gain().iter().map(|gain| -gain).collect();
        Ok(series(&gain, &self.numerator, self.steps))
    }

    /// Returns the coefficients of P - Q.
    fn gain(&self) -> Vec<f64> {
        self.numerator.iter().zip(&self.denominator).map(|(p, q)| p - q).collect()
    }
}

impl Strategy for Rational {
    fn steps(&self) -> usize {
        self.steps
    }

    fn check(&self) -> Result<()> {
        at_least("steps", self.steps, 1)?;
        between("numerator's length", self.numerator.len(), 0, MAX_DEGREE, "the maximum degree")?;
        if self.numerator.len() != self.denominator.len() {
            let must_be = format!("as long as the numerator, {}", self.numerator.len());
            return Err(InvalidParameter::new("denominator's length", self.denominator.len(), must_be).into());
        }
        // Over n steps, powers of 1 + 1 / n stay below e.
        let radius = 1.0 + 1.0 / self.steps as f64;
        for (name, coefficients) in [("numerator", &self.numerator), ("denominator", &self.denominator)] {
            if !stability::are_within(coefficients, radius) {
                let must_be =
                    format!("finite, with all lambda of its factors 1 + (1 - lambda) X below {radius}");
                return Err(InvalidParameter::new(name, format!("{coefficients:?}"), must_be).into());
            }
        }
        Ok(())
    }

    fn encoder(&self) -> Result<Encoder> {
        Ok(Encoder::Toeplitz { steps: self.steps, coefficients: self.coefficients()? })
    }

    fn row_errors_squared(&self, workload: &Workload) -> Result<Vec<f64>> {
        check_materializable(self.steps)?;
        if workload.is_toeplitz()
            || matches!(workload, Workload::LastIterate { .. } | Workload::Queries { .. })
        {
            rows_of_inverse(&self.inverse()?, self.steps, workload)
        } else {
            rows_by_columns(&self.recursion()?, self.steps, workload)
        }
    }

    fn recursion(&self) -> Result<Recursion> {
        Recursion::Rational { gain: self.gain(), feedback: self.denominator.clone() }.checked()
    }
}
