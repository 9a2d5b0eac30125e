//! The error for a bad parameter, checks, and the text of numbers and bytes.

use std::fmt::{Debug, Display};

/// An invalid parameter: its name, its value and the values that are accepted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{parameter} is {got} but must be {must_be}")]
pub struct InvalidParameter {
    /// The parameter's name, as the caller wrote it.
    pub parameter: String,
    /// The value that was refused.
    pub got: String,
    /// The values that are accepted.
    pub must_be: String,
}

impl InvalidParameter {
    /// The error for `parameter`, which got `got` and must be `must_be`.
    ///
    /// ```
    /// let error = antinoise_input::InvalidParameter::new("bands", 9, "at most steps = 8");
    /// assert_eq!(error.to_string(), "bands is 9 but must be at most steps = 8");
    /// ```
    pub fn new(parameter: impl Into<String>, got: impl Display, must_be: impl Into<String>) -> Self {
        Self {
            parameter: printable(&parameter.into()),
            got: printable(&got.to_string()),
            must_be: printable(&must_be.into()),
        }
    }
}

/// Characters that change the direction of the following text, or have no width.
fn is_invisible(c: char) -> bool {
    matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
}

/// `text` made safe for a terminal: control characters are escaped, and a very long text is cut.
///
/// Names and file contents may be hostile; a message that quotes them must not control the terminal.
///
/// ```
/// assert_eq!(antinoise_input::printable("no\u{1b}[2J\u{202e}"), "no\\u{1b}[2J\\u{202e}");
/// ```
pub fn printable(text: &str) -> String {
    const MAX_CHARACTERS: usize = 2000;
    let mut shown = String::new();
    for c in text.chars() {
        if shown.len() > MAX_CHARACTERS {
            return shown + "...";
        }
        match c {
            // Messages of parsers have several lines, which are kept.
            '\n' => shown.push('\n'),
            c if c.is_control() || is_invisible(c) => shown.extend(c.escape_unicode()),
            c => shown.push(c),
        }
    }
    shown
}

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
/// When it is outside; the message gives the range, and `high` is described by `high_is`
/// (`"steps"`, say), so that a reader sees where the limit comes from.
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

/// The larger of two numbers, or NaN if one of them is NaN. [`f64::max`] ignores NaN, so that a figure that
/// could not be computed would look small.
///
/// ```
/// assert_eq!(antinoise_input::larger(1.0, 2.0), 2.0);
/// assert!(antinoise_input::larger(1.0, f64::NAN).is_nan() && f64::max(1.0, f64::NAN) == 1.0);
/// ```
#[inline]
pub fn larger(x: f64, y: f64) -> f64 {
    if x >= y || x.is_nan() { x } else { y }
}

/// The largest of `numbers`, none of which is below 0; NaN if one of them is NaN, and 0 if there are none.
///
/// ```
/// assert_eq!(antinoise_input::largest([1.0, 2.0]), 2.0);
/// assert!(antinoise_input::largest([f64::NAN, 2.0]).is_nan());
/// ```
pub fn largest(numbers: impl IntoIterator<Item = f64>) -> f64 {
    numbers.into_iter().fold(0.0, larger)
}

/// `x` rounded to four decimals by `round`, for example [`f64::ceil`] for a figure that must not be
/// understated.
///
/// ```
/// assert_eq!(antinoise_input::four_decimals(3.999_91, f64::ceil), 4.0);
/// ```
pub fn four_decimals(x: f64, round: fn(f64) -> f64) -> f64 {
    round(x * 1e4) / 1e4
}

/// `bytes` in hexadecimal digits.
///
/// ```
/// assert_eq!(antinoise_input::hex(&[0x0f, 0xa0]), "0fa0");
/// ```
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_number_is_kept_wherever_it_stands() {
        let (nan, inf) = (f64::NAN, f64::INFINITY);
        for numbers in [[nan, 1.0, inf], [1.0, nan, 2.0], [inf, 2.0, nan], [nan; 3]] {
            assert!(largest(numbers).is_nan(), "{numbers:?}");
        }
        assert_eq!((largest([1.0, inf, 2.0]), largest([3.0, 1.0]), largest([])), (inf, 3.0, 0.0));
    }

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
