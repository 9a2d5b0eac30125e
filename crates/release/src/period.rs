//! Periods: their names, their order, and the events that lie in them.

use std::cmp::Ordering;
use std::fmt;
use std::str::FromStr;

use antinoise_input::InvalidParameter;
use serde::{Serialize, Serializer};

/// A period's name: a whole number, or text whose order is the order of time, such as a prefix of ISO 8601
/// times.
///
/// ```
/// use antinoise_release::{Period, Place};
/// let day: Period = "2026-03-01".parse()?;
/// assert_eq!(day.place("2026-03-01T17:45:00")?, Place::Here);
/// assert_eq!(day.place("2026-02-28T23:59:59")?, Place::Late);
/// assert_eq!("17".parse::<Period>()?.place("18.5")?, Place::Later);
/// # Ok::<(), antinoise_input::InvalidParameter>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Period {
    /// The number t: contains the times from t to below t + 1.
    Number(i64),
    /// A text: contains the times that begin with it.
    Text(String),
}

/// The place of an event's time relative to a period.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// Before the period.
    Late,
    /// In the period.
    Here,
    /// After the period.
    Later,
}

/// The text of an event's time and, if the text is a number, the number.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Time<'a> {
    text: &'a str,
    pub(crate) number: Option<f64>,
}

impl<'a> Time<'a> {
    pub(crate) fn of(text: &'a str) -> Self {
        let text = text.trim();
        Self { text, number: text.parse().ok() }
    }
}

const LONGEST: usize = 64;

impl Period {
    /// The place of `time` relative to this period. Times of a numbered period are numbers; times that are
    /// text all lie in it, for data with one file per period.
    ///
    /// # Errors
    /// If the time is empty or NaN, a number for a period that is text, or a date for a number that may be a
    /// year.
    pub fn place(&self, time: &str) -> Result<Place, InvalidParameter> {
        self.place_of(&Time::of(time))
    }

    pub(crate) fn place_of(
        &self,
        &Time { text: time, number }: &Time<'_>,
    ) -> Result<Place, InvalidParameter> {
        let refused = |must_be: &str| InvalidParameter::new("time of an event", format!("{time:?}"), must_be);
        let order = match (self, number) {
            _ if time.is_empty() => return Err(refused("a number or text such as 2026-03-01")),
            (_, Some(number)) if !number.is_finite() => return Err(refused("finite")),
            (Self::Number(period), Some(number)) => (number.floor() + 0.0).total_cmp(&(*period as f64)),
            (Self::Number(period), None) if (1900..2200).contains(period) && begins_with_a_year(time) => {
                return Err(refused(
                    "a number where the period is one: name the periods of dates by text, such as 2026-03",
                ));
            }
            (Self::Number(_), None) => Ordering::Equal,
            (Self::Text(period), _) if time.starts_with(period.as_str()) => Ordering::Equal,
            (Self::Text(_), Some(_)) => return Err(refused("text that begins as the names of periods do")),
            (Self::Text(period), None) => time.cmp(period.as_str()),
        };
        Ok(match order {
            Ordering::Less => Place::Late,
            Ordering::Equal => Place::Here,
            Ordering::Greater => Place::Later,
        })
    }

    /// The days since 1970-01-01 of the first day of a period that is a date (2026-03-01) or a month
    /// (2026-03); `None` for other names.
    ///
    /// ```
    /// use antinoise_release::Period;
    /// let days = |name: &str| name.parse::<Period>().map(|period| period.day());
    /// assert_eq!((days("1970-01-02")?, days("1970-02")?, days("17")?), (Some(1), Some(31), None));
    /// # Ok::<(), antinoise_input::InvalidParameter>(())
    /// ```
    pub fn day(&self) -> Option<i64> {
        let Self::Text(text) = self else { return None };
        let (year, month, day) = match text.as_bytes() {
            [_, _, _, _, b'-', _, _] => (&text[..4], &text[5..], "1"),
            [_, _, _, _, b'-', _, _, b'-', _, _] => (&text[..4], &text[5..7], &text[8..]),
            _ => return None,
        };
        let number =
            |digits: &str| digits.bytes().all(|byte| byte.is_ascii_digit()).then(|| digits.parse().ok())?;
        let (year, month, day): (i64, i64, i64) = (number(year)?, number(month)?, number(day)?);
        if !(1..=12).contains(&month) || !(1..=31).contains(&day) {
            return None;
        }
        // Days before the month, in a year that begins in March, and whole years of 365.2425 days.
        let (years, months) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
        let leap = years.div_euclid(4) - years.div_euclid(100) + years.div_euclid(400);
        Some(years * 365 + leap + (153 * months + 2) / 5 + day - 1 - 719_468)
    }

    /// Number of periods between `earlier` and this one; `None` unless both are numbers, dates or months.
    ///
    /// ```
    /// use antinoise_release::Period;
    /// let period = |name: &str| name.parse::<Period>();
    /// assert_eq!(period("2026-03-02")?.skipped_since(&period("2026-02-27")?), Some(2));
    /// # Ok::<(), antinoise_input::InvalidParameter>(())
    /// ```
    pub fn skipped_since(&self, earlier: &Self) -> Option<u64> {
        if self.form() != earlier.form() {
            return None;
        }
        let place = |period: &Self| match period {
            Self::Number(number) => Some(*number),
            Self::Text(text) if text.len() == 7 => {
                period.day()?;
                Some(text[..4].parse::<i64>().ok()? * 12 + text[5..].parse::<i64>().ok()?)
            }
            Self::Text(_) => period.day(),
        };
        u64::try_from(place(self)? - place(earlier)? - 1).ok()
    }

    /// Whether a row may lie in both periods: the names are equal, one begins with the other, or only one is
    /// a number, which holds all times that are text.
    pub(crate) fn overlaps(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Number(this), Self::Number(other)) => this == other,
            (Self::Text(this), Self::Text(other)) => {
                this.starts_with(other.as_str()) || other.starts_with(this.as_str())
            }
            _ => true,
        }
    }

    /// The form of the name: "a number", or the text with each digit as 0 and each letter as a.
    pub(crate) fn form(&self) -> String {
        match self {
            Self::Number(_) => "a number".into(),
            Self::Text(text) => {
                let class = |c: char| match c {
                    _ if c.is_numeric() => '0',
                    _ if c.is_alphabetic() => 'a',
                    _ => c,
                };
                text.chars().map(class).collect()
            }
        }
    }

    /// Whether this period comes after `other`; `None` for a number and a text.
    pub(crate) fn is_after(&self, other: &Self) -> Option<bool> {
        match (self, other) {
            (Self::Number(this), Self::Number(other)) => Some(this > other),
            (Self::Text(this), Self::Text(other)) => Some(this > other && !this.starts_with(other.as_str())),
            _ => None,
        }
    }
}

fn begins_with_a_year(time: &str) -> bool {
    time.split_once('-')
        .is_some_and(|(year, _)| year.len() == 4 && year.bytes().all(|byte| byte.is_ascii_digit()))
}

impl FromStr for Period {
    type Err = InvalidParameter;

    fn from_str(text: &str) -> Result<Self, InvalidParameter> {
        if let Ok(number) = text.parse::<i64>() {
            let exact = number.unsigned_abs() <= 1 << 53;
            return if exact {
                Ok(Self::Number(number))
            } else {
                Err(InvalidParameter::new("period", number, "a number from -2^53 to 2^53"))
            };
        }
        let visible = !text.is_empty() && text.len() <= LONGEST && !text.chars().any(char::is_control);
        if visible && text.parse::<f64>().is_err() {
            return Ok(Self::Text(text.into()));
        }
        let must_be = "a whole number, or 1 to 64 bytes of text with which times begin, such as 2026-03-01";
        Err(InvalidParameter::new("period", format!("{text:?}"), must_be))
    }
}

impl fmt::Display for Period {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) => write!(f, "{number}"),
            Self::Text(text) => f.write_str(text),
        }
    }
}

impl Serialize for Period {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Number(number) => serializer.serialize_i64(*number),
            Self::Text(text) => serializer.serialize_str(text),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Days are counted as by adding one day after the other.
    #[test]
    fn days_of_the_calendar_follow_each_other() {
        let day =
            |year: i64, month: i64, day: i64| Period::Text(format!("{year:04}-{month:02}-{day:02}")).day();
        let mut expected = 0;
        for year in 1970..2404 {
            let is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
            let lengths = [31, if is_leap { 29 } else { 28 }, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
            for (month, length) in (1..).zip(lengths) {
                assert_eq!(Period::Text(format!("{year:04}-{month:02}")).day(), Some(expected));
                for at in 1..=length {
                    assert_eq!(day(year, month, at), Some(expected), "{year}-{month}-{at}");
                    expected += 1;
                }
            }
        }
        for name in ["2026-13", "2026-00-01", "2026-03-32", "2026-3-01", "March", "2026-W0", "\u{e9}26-03"] {
            assert_eq!(Period::Text(name.into()).day(), None, "{name}");
        }
    }

    #[test]
    fn periods_that_share_rows_overlap() {
        let overlap = |one: &str, other: &str| {
            let (one, other): (Period, Period) = (one.parse().unwrap(), other.parse().unwrap());
            assert_eq!(one.overlaps(&other), other.overlaps(&one));
            one.overlaps(&other)
        };
        for (one, other) in
            [("7", "7"), ("2026-03", "2026-03-01"), ("2026-03-01", "2026-03-01"), ("7", "2026-03")]
        {
            assert!(overlap(one, other), "{one} {other}");
        }
        for (one, other) in [("7", "8"), ("2026-03", "2026-04-01"), ("2026-03-01", "2026-03-02")] {
            assert!(!overlap(one, other), "{one} {other}");
        }
    }

    #[test]
    fn skipped_periods_are_counted() {
        let skipped = |earlier: &str, later: &str| {
            later.parse::<Period>().unwrap().skipped_since(&earlier.parse().unwrap())
        };
        assert_eq!(skipped("2026-02-28", "2026-03-01"), Some(0));
        assert_eq!(skipped("2024-02-28", "2024-03-01"), Some(1));
        assert_eq!((skipped("2025-12", "2026-01"), skipped("2025-11", "2026-02")), (Some(0), Some(2)));
        assert_eq!((skipped("7", "8"), skipped("-3", "2")), (Some(0), Some(4)));
        for (earlier, later) in
            [("7", "2026-03"), ("2026-03", "2026-03-04"), ("week 1", "week 2"), ("8", "7")]
        {
            assert_eq!(skipped(earlier, later), None, "{earlier} {later}");
        }
    }

    #[test]
    fn numbers_are_placed_by_value_and_years_are_not_taken_for_numbers() {
        let place = |period: i64, time: &str| Period::Number(period).place(time);
        for zero in ["0", "-0", "-0.0", "0.0", "0.9"] {
            assert_eq!(place(0, zero).unwrap(), Place::Here, "{zero}");
        }
        assert_eq!(place(0, "-0.1").unwrap(), Place::Late);
        assert_eq!(place(17, "2026-03-01").unwrap(), Place::Here);
        assert_eq!(place(2026, "2026.5").unwrap(), Place::Here);
        for date in ["2026-03-01", "2020-01", "1999-12-31T23:59"] {
            assert!(place(2026, date).is_err(), "{date}");
        }
    }
}
