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
