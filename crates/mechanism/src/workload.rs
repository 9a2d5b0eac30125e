//! What is released: the lower-triangular workload A, whose rows are the linear queries on the gradients.

use std::fmt;
use std::str::FromStr;

use antinoise_input::{InvalidParameter, below_one};
use serde::{Deserialize, Serialize};

use crate::{Result, toeplitz};

/// A Toeplitz workload A (n x n): row t is what the model has seen of gradients 0..=t.
///
/// ```
/// use antinoise_mechanism::Workload;
/// let momentum: Workload = "momentum:0.5".parse()?;
/// assert_eq!(momentum.coefficients(3)?, [1.0, 1.5, 1.75]);
/// # Ok::<(), antinoise_mechanism::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Workload {
    /// Prefix sums, a_t = 1: SGD with a constant learning rate.
    #[default]
    Prefix,
    /// a_t = sum over tau <= t of beta^tau (1 - lambda)^(t - tau): SGD with momentum and weight decay.
    Momentum {
        /// beta, in \[0, 1).
        momentum: f64,
        /// lambda, in \[0, 1).
        #[serde(default)]
        weight_decay: f64,
    },
    /// Any Toeplitz workload, a_t given; terms that are not given are 0.
    Toeplitz {
        /// First column of A; coefficients\[0\] is above 0.
        coefficients: Vec<f64>,
    },
}

impl Workload {
    /// Refuses parameters outside their ranges.
    ///
    /// # Errors
    /// Names `momentum`, `weight_decay` or `coefficients`.
    pub fn check(&self) -> Result<()> {
        match self {
            Self::Prefix => {}
            Self::Momentum { momentum, weight_decay } => {
                below_one("momentum", *momentum)?;
                below_one("weight_decay", *weight_decay)?;
            }
            Self::Toeplitz { coefficients } => check_coefficients(coefficients)?,
        }
        Ok(())
    }

    /// First column of A, n values.
    ///
    /// # Errors
    /// As [`Workload::check`].
    pub fn coefficients(&self, steps: usize) -> Result<Vec<f64>> {
        self.check()?;
        Ok(match self.denominator() {
            Some(denominator) => toeplitz::divide(&[1.0], &denominator, steps),
            None => self.given_coefficients(steps),
        })
    }

    /// First column of A^-1 without its trailing zeros, at most n values: what C = A needs to make noise.
    ///
    /// # Errors
    /// As [`Workload::check`].
    pub fn inverse_coefficients(&self, steps: usize) -> Result<Vec<f64>> {
        self.check()?;
        let mut inverse = match self.denominator() {
            Some(denominator) => denominator,
            None => toeplitz::divide(&[1.0], &self.given_coefficients(steps), steps),
        };
        inverse.truncate(steps);
        while inverse.len() > 1 && inverse.last() == Some(&0.0) {
            inverse.pop();
        }
        Ok(inverse)
    }

    /// The polynomial whose reciprocal generates a_t, where there is one.
    fn denominator(&self) -> Option<Vec<f64>> {
        match self {
            Self::Prefix => Some(vec![1.0, -1.0]),
            Self::Momentum { momentum, weight_decay } => {
                Some(toeplitz::multiply(&[1.0, -momentum], &[1.0, weight_decay - 1.0], 3))
            }
            Self::Toeplitz { .. } => None,
        }
    }

    fn given_coefficients(&self, steps: usize) -> Vec<f64> {
        match self {
            Self::Toeplitz { coefficients } => {
                let mut given = coefficients.clone();
                given.resize(steps, 0.0);
                given
            }
            _ => unreachable!("every other workload has a generating denominator"),
        }
    }
}

fn check_coefficients(coefficients: &[f64]) -> Result<()> {
    let refused =
        |got: String, must_be: &str| Err(InvalidParameter::new("coefficients", got, must_be).into());
    match coefficients.first() {
        None => return refused("empty".into(), "at least one number"),
        Some(&first) if !(first > 0.0 && first.is_finite()) => {
            return refused(format!("{first:?} at index 0"), "a finite number above 0 at index 0");
        }
        Some(_) => {}
    }
    match coefficients.iter().position(|a| !a.is_finite()) {
        Some(index) => refused(format!("{:?} at index {index}", coefficients[index]), "finite everywhere"),
        None => Ok(()),
    }
}

impl fmt::Display for Workload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Prefix => f.write_str("prefix"),
            Self::Momentum { momentum, weight_decay: 0.0 } => write!(f, "momentum:{momentum}"),
            Self::Momentum { momentum, weight_decay } => write!(f, "momentum:{momentum},{weight_decay}"),
            Self::Toeplitz { coefficients } => write!(f, "toeplitz of {} coefficients", coefficients.len()),
        }
    }
}

impl FromStr for Workload {
    type Err = crate::Error;

    fn from_str(text: &str) -> Result<Self> {
        let refused = || {
            InvalidParameter::new(
                "workload",
                format!("{text:?}"),
                "prefix or momentum:BETA[,WEIGHT_DECAY], each number at least 0 and below 1",
            )
        };
        let (kind, arguments) = text.split_once(':').unwrap_or((text, ""));
        let numbers: Vec<f64> = match arguments {
            "" => Vec::new(),
            list => list
                .split(',')
                .map(|x| x.trim().parse().map_err(|_| refused()))
                .collect::<std::result::Result<_, _>>()?,
        };
        let workload = match (kind, numbers.as_slice()) {
            ("prefix", []) => Self::Prefix,
            ("momentum", &[momentum]) => Self::Momentum { momentum, weight_decay: 0.0 },
            ("momentum", &[momentum, weight_decay]) => Self::Momentum { momentum, weight_decay },
            _ => return Err(refused().into()),
        };
        workload.check()?;
        Ok(workload)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn momentum_is_the_double_geometric_sum() {
        let workload = Workload::Momentum { momentum: 0.9, weight_decay: 0.01 };
        let a = workload.coefficients(20).unwrap();
        for t in 0..20i32 {
            let sum: f64 = (0..=t).map(|tau| 0.9f64.powi(tau) * 0.99f64.powi(t - tau)).sum();
            assert!((a[t as usize] - sum).abs() < 1e-13 * sum);
        }
    }

    #[test]
    fn the_inverse_is_short_and_inverts() {
        for text in ["prefix", "momentum:0.9", "momentum:0.9,0.1"] {
            let workload: Workload = text.parse().unwrap();
            let inverse = workload.inverse_coefficients(50).unwrap();
            assert!(inverse.len() <= 3);
            let identity = toeplitz::multiply(&workload.coefficients(50).unwrap(), &inverse, 50);
            assert!((identity[0] - 1.0).abs() < 1e-15 && identity[1..].iter().all(|x| x.abs() < 1e-13));
        }
    }

    #[test]
    fn text_and_back() {
        for text in ["prefix", "momentum:0.9", "momentum:0.9,0.1"] {
            assert_eq!(text.parse::<Workload>().unwrap().to_string(), text);
        }
        for text in [
            "",
            "prefixes",
            "momentum",
            "momentum:1",
            "momentum:-0.1",
            "momentum:nan",
            "prefix:1",
            "momentum:x",
        ] {
            assert!(text.parse::<Workload>().unwrap_err().is_invalid_parameter(), "{text}");
        }
    }
}
