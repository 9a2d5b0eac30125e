//! Numbers as people write them, read and printed.

/// 2^53: every whole number up to here is a double.
const MOST: u64 = 1 << 53;

/// Units of bytes and their values. Names that end in another name come first: `kib` before `b`.
const BYTE_UNITS: [(&str, f64); 11] = [
    ("kib", 1024.0),
    ("mib", 1_048_576.0),
    ("gib", 1_073_741_824.0),
    ("tib", 1_099_511_627_776.0),
    ("kb", 1e3),
    ("mb", 1e6),
    ("gb", 1e9),
    ("tb", 1e12),
    ("b", 1.0),
    ("k", 1e3),
    ("m", 1e6),
];
const COUNT_UNITS: [(&str, f64); 3] = [("k", 1e3), ("m", 1e6), ("b", 1e9)];

/// A whole number as people write it: 60000, 60_000, 60k, 6e4; 1.5M, 10B.
pub fn count(text: &str) -> Result<usize, String> {
    whole(text, &COUNT_UNITS)
        .ok_or_else(|| "must be a whole number from 0 to 2^53 (60000, 60_000, 60k or 6e4)".into())
}

/// Bytes as people write them: 2GB, 512MiB, 2e9.
pub fn bytes(text: &str) -> Result<usize, String> {
    let must_be = "must be a number of bytes from 0 to 2^53 (2GB, 512MiB or 2e9)";
    whole(text, &BYTE_UNITS).ok_or_else(|| must_be.into())
}

/// A number as people write it: 0.01, 1e-5, 1%, 500/60000, 60k.
pub fn real(text: &str) -> Result<f64, String> {
    let refused = || "must be a number (0.01, 1e-5, 1% or 500/60000)".to_string();
    if let Some((above, below)) = text.split_once('/') {
        let (above, below) = (plain(above).ok_or_else(refused)?, plain(below).ok_or_else(refused)?);
        return Ok(above / below);
    }
    match text.strip_suffix('%') {
        Some(percent) => plain(percent).map(|x| x / 100.0),
        None => plain(text),
    }
    .ok_or_else(refused)
}

fn whole(text: &str, units: &[(&str, f64)]) -> Option<usize> {
    let text = text.replace('_', "").to_ascii_lowercase();
    if let Ok(number) = text.parse::<u64>() {
        return usize::try_from(number).ok().filter(|_| number <= MOST);
    }
    let (digits, unit) = units
        .iter()
        .find_map(|&(suffix, unit)| Some((text.strip_suffix(suffix)?, unit)))
        .unwrap_or((&text, 1.0));
    let number = digits.trim_end().parse::<f64>().ok()? * unit;
    (number.fract() == 0.0 && (0.0..=MOST as f64).contains(&number)).then_some(number as usize)
}

fn plain(text: &str) -> Option<f64> {
    text.trim().replace('_', "").parse().ok()
}

/// `x` in at most `digits` digits, without zeros at the end.
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

/// Whether two epsilons agree up to the tolerance of calibration to a common target.
#[cfg(feature = "train")]
pub fn same_privacy(epsilon: f64, other: f64) -> bool {
    (epsilon - other).abs() <= 0.01 * epsilon.max(other)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_read_as_people_write_them() {
        for (text, number) in [
            ("60000", 60_000),
            ("60_000", 60_000),
            ("60k", 60_000),
            ("6e4", 60_000),
            ("1.5M", 1_500_000),
            ("10b", 10_000_000_000),
            ("1e10", 10_000_000_000),
        ] {
            assert_eq!(count(text), Ok(number), "{text}");
        }
        for text in ["", "k", "1.5", "-1", "nan", "inf", "1e300", "60q", "6 k 0", "99999999999999999999"] {
            assert!(count(text).is_err(), "{text}");
        }
    }

    #[test]
    fn bytes_know_both_kinds_of_units() {
        let read = |text| bytes(text).unwrap();
        assert_eq!((read("2GB"), read("512MiB"), read("2e9")), (2_000_000_000, 536_870_912, 2_000_000_000));
        assert_eq!((read("1 KiB"), read("0"), read("1.5kb")), (1024, 0, 1500));
        assert!(bytes("2 pigeons").is_err() && bytes("-1GB").is_err());
    }

    /// Numbers above 2^53 are refused in every form, whole numbers of up to 64 bits included.
    #[test]
    fn no_number_above_2_to_the_53_is_read_whatever_its_form() {
        for most in ["9007199254740992", "9_007_199_254_740_992", "9007199254740992.0"] {
            assert_eq!((count(most), bytes(most)), (Ok(1 << 53), Ok(1 << 53)), "{most}");
        }
        for text in ["9007199254740993", "18446744073709551615", "9007199254740994.0", "9007199254741k"] {
            assert!(count(text).is_err() && bytes(text).is_err(), "{text}");
        }
    }

    #[test]
    fn shares_and_fractions_are_numbers() {
        let read = |text| real(text).unwrap();
        assert_eq!((read("1%"), read("500/60000"), read("1e-5")), (0.01, 500.0 / 60000.0, 1e-5));
        assert!(read("1/0").is_infinite() && read("nan").is_nan() && read("-2") == -2.0);
        for text in ["", "%", "/", "1/2/3", "x", "1/%"] {
            assert!(real(text).is_err(), "{text}");
        }
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
