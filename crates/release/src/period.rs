//! Periods: their names, their order, and the events that lie in them.

use std::cmp::Ordering;
use std::fmt;
use std::str::FromStr;

use antinoise_input::InvalidParameter;
use serde::{Serialize, Serializer};

use crate::date;

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
    /// The place of `time` relative to this period. A time that is a number is compared with the number of a
    /// period. A time that is text lies in every numbered period, for data with one file per period.
    ///
    /// # Errors
    /// If the time is empty, infinite or NaN; if it is a number and the period is text; if it is a date and
    /// the period is a number from 1900 to 2199, which may be a year.
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
            (Self::Number(period), None)
                if (1900..2200).contains(period) && date::begins_with_a_year(time) =>
            {
                return Err(refused(
                    "a number, since the period is a number. For dates, name periods by text, such as 2026-03",
                ));
            }
            (Self::Number(_), None) => Ordering::Equal,
            (Self::Text(period), _) if time.starts_with(period.as_str()) => Ordering::Equal,
            (Self::Text(_), Some(_)) => return Err(refused("text in the form of the period's name")),
            (Self::Text(period), None) => time.cmp(period.as_str()),
        };
        Ok(match order {
            Ordering::Less => Place::Late,
            Ordering::Equal => Place::Here,
            Ordering::Greater => Place::Later,
        })
    }

    /// The days since 1970-01-01 of the first day of a period that is a date (2026-03-01) or a month
    /// (2026-03); `None` for other names, and for dates that no calendar has.
    ///
    /// ```
    /// use antinoise_release::Period;
    /// let days = |name: &str| name.parse::<Period>().map(|period| period.day());
    /// assert_eq!((days("1970-01-02")?, days("1970-02")?, days("17")?), (Some(1), Some(31), None));
    /// # Ok::<(), antinoise_input::InvalidParameter>(())
    /// ```
    pub fn day(&self) -> Option<i64> {
        match self {
            Self::Number(_) => None,
            Self::Text(text) => date::day(text),
        }
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
            Self::Text(text) => text.chars().map(class).collect(),
        }
    }

    /// Whether a time begins in the form of a name that is text: a digit for each digit, a letter for each
    /// letter, all else the same.
    pub(crate) fn has_form_of(&self, time: &str) -> bool {
        let Self::Text(name) = self else { return true };
        let mut time = time.trim().chars();
        name.chars().all(|c| time.next().is_some_and(|other| class(c) == class(other)))
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

/// The class of a character in a form: 0 for digits, a for letters, and any other character itself.
fn class(c: char) -> char {
    match c {
        _ if c.is_numeric() => '0',
        _ if c.is_alphabetic() => 'a',
        _ => c,
    }
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
        if date::is_broken(text) {
            let must_be =
                "a month, a date or a time of the calendar, in full: 2026-03, 2026-03-01 or 2026-03-01T17";
            return Err(InvalidParameter::new("period", format!("{text:?}"), must_be));
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

    #[test]
    fn names_that_begin_as_dates_are_dates() {
        for name in ["2026-03-0", "2026-02-30", "2026-13-01", "2026-03-32", "2026-3-1", "2026-03-01T"] {
            let refused = name.parse::<Period>().unwrap_err().to_string();
            assert!(refused.contains("of the calendar, in full: 2026-03"), "{refused}");
        }
        for name in ["2026-03", "2024-02-29", "2026-03-01T17", "2026-W09", "week 9"] {
            assert_eq!(name.parse::<Period>().unwrap().to_string(), name);
        }
    }

    #[test]
    fn times_are_compared_in_form() {
        let is_of_form = |name: &str, time: &str| name.parse::<Period>().unwrap().has_form_of(time);
        for (name, time) in [
            ("2026-03-01", "2026-04-02T17:45"),
            ("week 1", "week 10"),
            ("7", "2026-03-01"),
            ("2026-03", " 2026-03"),
        ] {
            assert!(is_of_form(name, time), "{name} {time}");
        }
        for (name, time) in [
            ("2026-03-01", "03/01/2026"),
            ("2026-03-01", "2026-03"),
            ("01.03.2026", "2026-03-01"),
            ("week 10", "week 9"),
        ] {
            assert!(!is_of_form(name, time), "{name} {time}");
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
