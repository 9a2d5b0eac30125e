//! Checks of parameters, which return their argument.

use std::fmt::Debug;

use crate::error::InvalidParameter;

fn require<T: Copy + Debug>(
    parameter: &str,
    got: T,
    holds: bool,
    must_be: impl FnOnce() -> String,
) -> Result<T, InvalidParameter> {
    if holds { Ok(got) } else { Err(InvalidParameter::new(parameter, format!("{got:?}"), must_be())) }
}

/// `got` when it is finite and above 0.
///
/// # Errors
/// When it is NaN, infinite, zero or negative.
pub fn positive(parameter: &str, got: f64) -> Result<f64, InvalidParameter> {
    require(parameter, got, got.is_finite() && got > 0.0, || "a finite number above 0".into())
}

/// `got` when it is finite and not below 0.
///
/// # Errors
/// When it is NaN, infinite or negative.
pub fn non_negative(parameter: &str, got: f64) -> Result<f64, InvalidParameter> {
    require(parameter, got, got.is_finite() && got >= 0.0, || "a finite number, 0 or above".into())
}

/// `got` when it lies strictly between 0 and 1.
///
/// # Errors
/// When it is NaN or outside the open interval.
pub fn in_open_unit(parameter: &str, got: f64) -> Result<f64, InvalidParameter> {
    require(parameter, got, got > 0.0 && got < 1.0, || "above 0 and below 1".into())
}

/// `got` when 0 <= got < 1.
///
/// # Errors
/// When it is NaN or outside the half-open interval.
pub fn below_one(parameter: &str, got: f64) -> Result<f64, InvalidParameter> {
    require(parameter, got, (0.0..1.0).contains(&got), || "at least 0 and below 1".into())
}

/// `got` when `low <= got <= high`.
///
/// # Errors
/// When it is outside; the message gives the range, and `high_is` names the quantity that `high` is, such as
/// `"steps"`, so that a reader sees the source of the limit.
pub fn between(
    parameter: &str,
    got: usize,
    low: usize,
    high: usize,
    high_is: &str,
) -> Result<usize, InvalidParameter> {
    require(parameter, got, (low..=high).contains(&got), || format!("from {low} to {high_is} = {high}"))
}

/// `got` when it is at least `low`.
///
/// # Errors
/// When it is below.
pub fn at_least(parameter: &str, got: usize, low: usize) -> Result<usize, InvalidParameter> {
    require(parameter, got, got >= low, || format!("at least {low}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_check_takes_its_range_and_nothing_else() {
        let bad = [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -1.0];
        assert!(bad.iter().all(|&x| positive("x", x).is_err() && non_negative("x", x).is_err()));
        assert!(bad.iter().all(|&x| in_open_unit("x", x).is_err() && below_one("x", x).is_err()));
        assert!(positive("x", 0.0).is_err() && non_negative("x", 0.0).is_ok());
        assert!(in_open_unit("x", 0.0).is_err() && below_one("x", 0.0).is_ok());
        assert!(in_open_unit("x", 1.0).is_err() && below_one("x", 1.0).is_err());
        assert!(between("x", 3, 1, 3, "n").is_ok() && between("x", 4, 1, 3, "n").is_err());
        assert!(at_least("x", 1, 1).is_ok() && at_least("x", 0, 1).is_err());
    }

    #[test]
    fn a_range_says_where_its_limit_comes_from() {
        let error = between("bands", 9, 1, 8, "steps").unwrap_err();
        assert_eq!(error.to_string(), "bands is 9 but must be from 1 to steps = 8");
    }
}
