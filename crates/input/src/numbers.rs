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

/// `x` in at most `digits` digits, without zeros at the end.
///
/// ```
/// use antinoise_input::{short, short_down, short_up};
/// let [near, above, below] = [short, short_up, short_down].map(|text| text(0.123_44, 3));
/// assert_eq!((&near[..], &above[..], &below[..]), ("0.123", "0.124", "0.123"));
/// ```
pub fn short(x: f64, digits: usize) -> String {
    written(x, digits, |_| true)
}

/// As [`short`], rounded up: for figures that must not be below the truth.
pub fn short_up(x: f64, digits: usize) -> String {
    written(x, digits, |text| text >= x)
}

/// As [`short`], rounded down.
pub fn short_down(x: f64, digits: usize) -> String {
    written(x, digits, |text| text <= x)
}

/// The text of `digits` digits nearest to `x` whose number `holds` accepts.
fn written(x: f64, digits: usize, holds: impl Fn(f64) -> bool) -> String {
    if x == 0.0 || !x.is_finite() {
        return x.to_string();
    }
    let decimals = digits as i32 - 1 - x.abs().log10().floor() as i32;
    let scale = 10f64.powi(decimals.abs());
    let nearest = if decimals >= 0 { x * scale } else { x / scale }.round();
    let text = |whole: f64| {
        let value = if decimals >= 0 { whole / scale } else { whole * scale };
        if !(1e-4..1e15).contains(&value.abs()) {
            return format!("{value:e}");
        }
        let text = format!("{value:.*}", decimals.max(0) as usize);
        if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').into() } else { text }
    };
    let mut candidates = [nearest, nearest + 1.0, nearest - 1.0].map(text).into_iter();
    candidates.find(|text| text.parse().is_ok_and(&holds)).unwrap_or_else(|| x.to_string())
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
    fn figures_are_short_and_err_to_the_side_that_is_asked_for() {
        assert_eq!(
            (short(2.0, 6), short(0.1, 6), short(1234567.0, 3)),
            ("2".into(), "0.1".into(), "1230000".into())
        );
        assert_eq!(
            (short_up(2.000_001_1, 6), short_down(1.999_999_9, 6)),
            ("2.00001".into(), "1.99999".into())
        );
        assert_eq!((short(1.5e-7, 4), short(2.5e20, 4)), ("1.5e-7".into(), "2.5e20".into()));
        assert_eq!((short(f64::INFINITY, 3), short(0.0, 3)), ("inf".into(), "0".into()));
        let mut x = 1.234_567_891e-9;
        while x < 1e12 {
            let (down, up): (f64, f64) = (short_down(x, 5).parse().unwrap(), short_up(x, 5).parse().unwrap());
            assert!(down <= x && up >= x && up - down < 2.1e-4 * x, "{x}");
            x *= 1.7;
        }
    }
}
