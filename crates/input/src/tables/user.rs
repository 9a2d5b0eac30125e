use std::borrow::Cow;

use crate::InvalidParameter;

/// The name of a user whose cell holds `text`: the decimal digits of a whole number in any notation, or any
/// other text without the spaces around it.
///
/// 7, 7.0, 7e0, +7 and 007 are one user. Whole numbers in digits alone may have any length. Numbers with a
/// point or an exponent may have been rounded: from 2^53 on they are refused, as are fractions, infinities
/// and NaN. In text, an exponent follows one digit, or one digit and a point, as programs write numbers: 00e1
/// and 12345e67 are hexadecimal names, but not for [`user_of_number`]. Missing names are refused: the rows of
/// all unknown users would be those of one user, and a person with rows under a name and rows without one
/// would be two.
///
/// `what` names the cell in the error.
///
/// ```
/// use antinoise_input::tables::user_name;
/// for seven in ["7", "7.0", "7e0", " 0.7e+1 ", "+007"] {
///     assert_eq!(user_name("user", seven)?, "7");
/// }
/// assert_eq!(user_name("user", "9007199254740993")?, "9007199254740993");
/// assert_eq!(user_name("user", " Ada 7.0 ")?, "Ada 7.0");
/// for refused in ["9007199254740992.0", "7.5", "", "NA", "None"] {
///     assert!(user_name("user", refused).is_err());
/// }
/// # Ok::<(), antinoise_input::InvalidParameter>(())
/// ```
///
/// # Errors
/// When it is missing, or a number that cannot name a user.
#[inline]
pub fn user_name<'a>(what: &str, text: &'a str) -> Result<Cow<'a, str>, InvalidParameter> {
    if is_its_own_name(text) { Ok(Cow::Borrowed(text)) } else { read(what, text, false) }
}

/// The name of a user that a format with numbers of its own, such as JSON, holds as the number `text`: as
/// [`user_name`], but every exponent is one.
///
/// ```
/// use antinoise_input::tables::{user_name, user_of_number};
/// assert_eq!(user_of_number("user", "12e5")?, "1200000");
/// assert_eq!(user_name("user", "12e5")?, "12e5");
/// # Ok::<(), antinoise_input::InvalidParameter>(())
/// ```
///
/// # Errors
/// As [`user_name`].
pub fn user_of_number<'a>(what: &str, text: &'a str) -> Result<Cow<'a, str>, InvalidParameter> {
    read(what, text, true)
}

/// Writes to `room` the text of a user that a format holds as the floating-point number `number`, for
/// [`user_name`]: with a point or an exponent, because it was not written with digits alone.
///
/// # Errors
/// When it may have been rounded: from `exact_below` on, its type does not hold every whole number. Double
/// precision is left to [`user_name`].
#[cfg(any(feature = "arrays", feature = "arrow"))]
pub(crate) fn write_real_user<'t>(
    what: &str,
    number: f64,
    exact_below: f64,
    room: &'t mut String,
) -> Result<&'t str, InvalidParameter> {
    if number.abs() >= exact_below {
        let must_be = format!(
            "below 2^{} in its type: larger numbers may have been rounded, so that several users share one",
            exact_below.log2()
        );
        return Err(InvalidParameter::new(what, number, must_be));
    }
    room.clear();
    let _ = std::fmt::Write::write_fmt(room, format_args!("{number:?}"));
    Ok(room)
}

/// Marks that programs write for a missing user, in addition to those of [`is_missing`].
const MISSING_USERS: [&str; 7] = ["None", "none", "n/a", "<NA>", "<na>", "#N/A", "Null"];

/// Whether a cell holds one of the usual marks of a missing value.
pub fn is_missing(cell: &str) -> bool {
    ["", "NA", "N/A", "NaN", "nan", "null", "NULL"].contains(&cell)
}

/// The rule of [`user_name`] for every text, and of [`user_of_number`] if it `is_number`. Not inlined: it
/// would lengthen the path of most rows.
#[inline(never)]
fn read<'a>(what: &str, text: &'a str, is_number: bool) -> Result<Cow<'a, str>, InvalidParameter> {
    let found = text.trim();
    let refused = |must_be: &str| {
        let got = if found.is_empty() { "empty".into() } else { format!("{text:?}") };
        Err(InvalidParameter::new(what, got, must_be))
    };
    if is_missing(found) || MISSING_USERS.contains(&found) {
        return refused("given: rows whose users are not known would count as those of one user");
    }
    let (is_negative, unsigned) = match found.as_bytes().first() {
        Some(b'-') => (true, &found[1..]),
        Some(b'+') => (false, &found[1..]),
        _ => (false, found),
    };
    if ["nan", "inf", "infinity"].iter().any(|word| unsigned.eq_ignore_ascii_case(word)) {
        return refused("a name or a whole number");
    }
    let Some(number) = Decimal::of(unsigned, is_number) else { return Ok(Cow::Borrowed(found)) };
    let Some(digits) = number.whole() else {
        return refused("a name or a whole number: a fraction is no user");
    };
    if !number.is_plain && !is_exact(&digits) {
        let must_be = "below 2^53 if it has a point or an exponent: larger numbers may have been rounded, so that several users share \
                       one. Write users as whole numbers or text";
        return refused(must_be);
    }
    let sign = if is_negative && digits != "0" { "-" } else { "" };
    Ok(if sign.is_empty() && digits == found {
        Cow::Borrowed(found)
    } else {
        Cow::Owned(format!("{sign}{digits}"))
    })
}

/// Whether `text` is a name without further processing, as its first and last bytes or its digits alone show.
/// This check is fast and true for most rows; other texts need the whole rule.
#[inline]
fn is_its_own_name(text: &str) -> bool {
    match text.as_bytes() {
        [b'1'..=b'9', rest @ ..] => rest.iter().all(u8::is_ascii_digit),
        // No number, infinity or NaN begins with these letters, and a space at the end would be one of these
        // bytes or not ASCII.
        [first, rest @ ..] => {
            let last = rest.last().unwrap_or(first);
            first.is_ascii_alphabetic() && !b"iInN".contains(first) && last.is_ascii_graphic()
        }
        [] => false,
    }
}

/// Whether the whole number with these digits is below 2^53, so that a double represents it without rounding.
fn is_exact(digits: &str) -> bool {
    digits.parse::<u64>().is_ok_and(|number| number < 1 << 53)
}

/// An unsigned number in decimal notation.
struct Decimal<'a> {
    before: &'a str,
    after: &'a str,
    exponent: i64,
    /// Whether the number is written in digits alone.
    is_plain: bool,
}

impl<'a> Decimal<'a> {
    /// The number that `text` is. If it is text and no number (`is_number`), an exponent is one only as
    /// programs write it.
    fn of(text: &'a str, is_number: bool) -> Option<Self> {
        let are_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
        let (mantissa, exponent) = text.split_once(['e', 'E']).map_or((text, None), |(m, e)| (m, Some(e)));
        let (before, after) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        if before.len() + after.len() == 0 || !are_digits(before) || !are_digits(after) {
            return None;
        }
        let is_plain = before.len() == text.len();
        let exponent = match exponent {
            None => 0,
            Some(written) => {
                let digits = written.strip_prefix(['+', '-']).unwrap_or(written);
                let as_programs_write = digits.len() <= 3 || digits.len() < written.len();
                let is_scientific = is_number || before.len() == 1 && as_programs_write;
                if digits.is_empty() || !are_digits(digits) || !is_scientific {
                    return None;
                }
                // Beyond any meaningful number.
                written.parse().unwrap_or(if written.starts_with('-') { i64::MIN / 2 } else { i64::MAX / 2 })
            }
        };
        Some(Self { before, after, exponent, is_plain })
    }

    /// The digits of a whole number; `None` for a fraction. For numbers that are refused because of their
    /// size, the digits may be wrong.
    fn whole(&self) -> Option<String> {
        const LONGEST: i64 = 40;
        let all = format!("{}{}", self.before, self.after);
        let digits = all.trim_start_matches('0');
        let significant = digits.trim_end_matches('0');
        if significant.is_empty() {
            return Some("0".into());
        }
        // The value is `significant` times 10 to the power of this.
        let power = self.exponent - self.after.len() as i64 + (digits.len() - significant.len()) as i64;
        let zeros = if self.is_plain { power } else { power.min(LONGEST) };
        (power >= 0).then(|| format!("{significant}{}", "0".repeat(zeros as usize)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All texts of at most four of these characters.
    #[test]
    fn what_the_first_byte_decides_is_what_the_rule_says() {
        let letters = ["0", "1", "9", "+", "-", ".", "e", "E", "n", "N", "a", "i", "f", "Z", " ", "\u{2003}"];
        let mut texts = vec![String::new()];
        let (mut from, mut decided) = (0, 0);
        for _ in 0..4 {
            let longest = texts[from..].to_vec();
            from = texts.len();
            texts.extend(longest.iter().flat_map(|text| letters.map(|letter| format!("{text}{letter}"))));
        }
        for text in &texts {
            if is_its_own_name(text) {
                decided += 1;
                assert_eq!(read("user", text, false).unwrap(), *text);
            }
        }
        assert_eq!(texts.len(), 1 + 16 + 256 + 4096 + 65_536);
        assert!(decided > 19_000, "{decided}");
    }
}
