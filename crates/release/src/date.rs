//! Dates and times of the calendar at the beginning of text.

/// The days since 1970-01-01 of a date (2026-03-01), or of the first day of a month (2026-03); `None` for
/// other text, and for impossible dates.
pub(crate) fn day(text: &str) -> Option<i64> {
    let (year, month, day) = match text.as_bytes() {
        [_, _, _, _, b'-', _, _] => (&text[..4], &text[5..], "1"),
        [_, _, _, _, b'-', _, _, b'-', _, _] => (&text[..4], &text[5..7], &text[8..]),
        _ => return None,
    };
    let [year, month, day] = [number(year)?, number(month)?, number(day)?];
    let is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let length = match month {
        2 => 28 + i64::from(is_leap),
        4 | 6 | 9 | 11 => 30,
        1..=12 => 31,
        _ => return None,
    };
    if !(1..=length).contains(&day) {
        return None;
    }
    // Days before the month, in a year that begins in March, and whole years of 365.2425 days.
    let (years, months) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let leap = years.div_euclid(4) - years.div_euclid(100) + years.div_euclid(400);
    Some(years * 365 + leap + (153 * months + 2) / 5 + day - 1 - 719_468)
}

/// Whether text that begins like a date (a year, a hyphen, a digit) is incomplete or impossible as a month,
/// date or time.
pub(crate) fn is_broken(text: &str) -> bool {
    let is_date = begins_with_a_year(text) && text.as_bytes().get(5).is_none_or(u8::is_ascii_digit);
    let is_whole = match text.split_once(['T', ' ']) {
        Some((date, time)) => date.len() == 10 && day(date).is_some() && is_time(time),
        None => day(text).is_some(),
    };
    is_date && !is_whole
}

/// Whether text is an hour, with or without minutes and seconds: 17, 17:45 or 17:45:00.
fn is_time(text: &str) -> bool {
    let parts: Vec<&str> = text.split(':').collect();
    let is_below = |part: &str, end| part.len() == 2 && number(part).is_some_and(|number| number < end);
    parts.len() <= 3 && parts.iter().zip([24, 60, 60]).all(|(part, end)| is_below(part, end))
}

/// Whether text begins with a year and a hyphen.
pub(crate) fn begins_with_a_year(text: &str) -> bool {
    text.split_once('-').is_some_and(|(year, _)| year.len() == 4 && number(year).is_some())
}

/// The date at the beginning of text, such as 2026-03-01T17:45.
pub(crate) fn beginning(text: &str) -> Option<&str> {
    text.get(..10).filter(|date| day(date).is_some())
}

fn number(digits: &str) -> Option<i64> {
    digits.bytes().all(|byte| byte.is_ascii_digit()).then(|| digits.parse().ok())?
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Days are counted as by adding one day after the other.
    #[test]
    fn days_of_the_calendar_follow_each_other() {
        let at = |year: i64, month: i64, date: i64| day(&format!("{year:04}-{month:02}-{date:02}"));
        let mut expected = 0;
        for year in 1970..2404 {
            let is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
            let lengths = [31, if is_leap { 29 } else { 28 }, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
            for (month, length) in (1..).zip(lengths) {
                assert_eq!(day(&format!("{year:04}-{month:02}")), Some(expected));
                for date in 1..=length {
                    assert_eq!(at(year, month, date), Some(expected), "{year}-{month}-{date}");
                    expected += 1;
                }
                assert_eq!(at(year, month, length + 1), None, "{year}-{month}-{}", length + 1);
            }
        }
        for name in ["2026-13", "2026-00-01", "2026-03-32", "2026-3-01", "March", "2026-W0", "\u{e9}26-03"] {
            assert_eq!(day(name), None, "{name}");
        }
    }

    #[test]
    fn parts_of_dates_and_impossible_dates_are_broken() {
        for text in [
            "2026-",
            "2026-0",
            "2026-3",
            "2026-03-",
            "2026-03-0",
            "2026-3-1",
            "2026-13-01",
            "2026-02-30",
            "2025-02-29",
            "2026-03-01T",
            "2026-03-01T1",
            "2026-03-01T24",
            "2026-03-01 17:4",
            "2026-03T17",
            "2026-03-01a",
            "2026-03-01T17:45:00Z",
        ] {
            assert!(is_broken(text), "{text}");
        }
        for text in [
            "2026-03",
            "2026-03-01",
            "2024-02-29",
            "2026-03-01T17",
            "2026-03-01 17:45",
            "2026-03-01T17:45:59",
            "2026-W09",
            "2026-Q1",
            "2026/03/01",
            "week 9",
        ] {
            assert!(!is_broken(text), "{text}");
        }
    }
}
