//! Maxima that keep NaN, and numbers and bytes as text.

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

/// The largest of `numbers`, which must not be negative; NaN if one of them is NaN, and 0 if there are none.
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
/// assert_eq!(antinoise_input::rounded_to_4(3.999_91, f64::ceil), 4.0);
/// ```
pub fn rounded_to_4(x: f64, round: fn(f64) -> f64) -> f64 {
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
}
