//! Signs of a mistake, named before a period is frozen for good.

use serde::Serialize;

use crate::events::freeze::{Found, Freezing, Signs, Tally};
use crate::events::neighbours::Neighbours;
use crate::words::quantity;

/// The effect that freezing a file would have. The numbers are exact, and not private.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Check {
    /// Rows that would be counted.
    pub counted: u64,
    /// Rows of the period beyond the bounds of their users, or with unknown keys.
    pub left_out: u64,
    /// Rows of periods that were not frozen, which no later period counts.
    pub lost: u64,
    /// Rows of periods that were frozen, or before the first one, which would not be counted.
    pub late: u64,
    /// Rows of later periods.
    pub later: u64,
    /// Reasons to look again before freezing: see [`Freezing::problems`].
    pub problems: Vec<String>,
}

impl Freezing<'_> {
    /// Signs that the period is mistyped or the file is another period's, as sentences; empty if there are
    /// none. `found`: the numbers of all rows. A frozen period cannot be changed, so that these should be
    /// confirmed before [`Freezing::commit`].
    pub fn problems(&self, found: &Found) -> Vec<String> {
        let (period, Neighbours { after, before, .. }) = (&self.period, &self.neighbours);
        let rows = |count| quantity(count, "row");
        let mut problems: Vec<String> = self.neighbours.problem(period).into_iter().collect();
        let late = self.signs.late_included;
        if after.is_some() && late > 0 {
            problems.push(format!("{} before {period} would be counted in it, out of order", rows(late)));
        }
        problems.extend(self.absence(found));
        let before = before.as_ref().map_or(String::new(), ToString::to_string);
        if found.lost > 0 {
            let lost = rows(found.lost);
            problems.push(format!(
                "{lost} between {before} and {period}, of periods that were not frozen, would be lost"
            ));
        }
        let skipped = self.skipped();
        if self.given && skipped > 0 {
            let skipped = quantity(skipped, "period");
            problems.push(format!("{skipped} between {before} and {period} would be skipped"));
        }
        problems.extend(self.mistaken_dates());
        problems
    }

    /// The problem that no row is counted in the period, or that rows before the first period would be lost.
    fn absence(&self, found: &Found) -> Option<String> {
        let (period, Neighbours { first, last_was_empty, .. }) = (&self.period, &self.neighbours);
        let (earlier, late) = (found.late + found.lost, self.signs.late_included);
        if earlier > 0 && found.tally.rows == late {
            return Some(match found.later {
                0 if earlier == 1 => format!("{period} is after the only row"),
                0 => format!("{period} is after all {earlier} rows"),
                later => format!("no row lies in {period}: {earlier} before it, {later} after it"),
            });
        }
        if found.tally.rows == found.tally.unknown_keys && !self.given && !last_was_empty {
            return Some(format!("no row is counted in {period}"));
        }
        let are_left = first.is_none() && found.late > late && self.signs.of_other_form.0 == 0;
        are_left.then(|| {
            let left = quantity(found.late - late, "row");
            format!("{left} before {period}, the first period, would be lost")
        })
    }

    /// The problems that rows' times do not fit the period's name.
    fn mistaken_dates(&self) -> Vec<String> {
        let (period, Signs { of_other_form: (count, time), dates, .. }) = (&self.period, &self.signs);
        let mut problems = Vec::new();
        if *count > 0 {
            let rows = quantity(*count, "row");
            problems.push(format!("times of {rows} differ in form from {period}, such as {time:?}"));
        }
        if let Some([first, last]) = dates
            && first != last
        {
            problems.push(format!(
                "rows of several days, {first} to {last}, would be counted in {period}: name such periods by \
                 date, such as {first}"
            ));
        }
        problems
    }

    /// The effect that committing the period would have; `found`: the numbers of all rows. Nothing is
    /// changed.
    pub fn check(&self, found: &Found) -> Check {
        let Tally { counted, beyond_max_rows, beyond_max_periods, unknown_keys, .. } = found.tally;
        Check {
            counted,
            left_out: beyond_max_rows + beyond_max_periods + unknown_keys,
            lost: found.lost,
            late: found.late.saturating_sub(self.signs.late_included),
            later: found.later,
            problems: self.problems(found),
        }
    }
}
