//! The date in UTC, for statements.

use std::time::{SystemTime, UNIX_EPOCH};

/// The date of `time` in UTC, such as 2026-01-31; 1970-01-01 for times before 1970.
pub(crate) fn utc_day(time: SystemTime) -> String {
    let days = time.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs() / 86_400);
    // Years begin in March here, so that a leap day is the last day of a year; 719,468 days lie between the
    // first of March of year 0 and 1970, 146,097 in 400 years.
    let days = days + 719_468;
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    let year = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year + year / 4 - year / 100);
    let month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month + 2) / 5 + 1;
    let (month, next_year) = if month < 10 { (month + 3, 0) } else { (month - 9, 1) };
    format!("{:04}-{month:02}-{day:02}", 400 * era + year + next_year)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn days_are_those_of_the_calendar() {
        // From `date --utc --date=@SECONDS`.
        let cases = [
            (0, "1970-01-01"),
            (951_782_399, "2000-02-28"),
            (951_782_400, "2000-02-29"),
            (951_868_800, "2000-03-01"),
            (1_704_067_199, "2023-12-31"),
            (1_709_164_800, "2024-02-29"),
            (4_107_542_400, "2100-03-01"),
        ];
        for (seconds, day) in cases {
            assert_eq!(utc_day(UNIX_EPOCH + Duration::from_secs(seconds)), day);
        }
    }
}
