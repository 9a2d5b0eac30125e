//! Numbers as people write them.

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
}
