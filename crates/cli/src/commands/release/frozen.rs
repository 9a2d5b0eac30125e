//! Output of `antinoise release freeze`.

use std::fmt;

use antinoise_release::{Check, Found, Period, quantity};
use serde::Serialize;

use crate::failure::{Failure, Result};

/// Periods that were frozen, or the effect that freezing would have.
#[derive(Debug, Serialize)]
pub struct FrozenPeriods {
    #[serde(skip_serializing_if = "Option::is_none")]
    frozen: Option<Vec<Frozen>>,
    #[serde(flatten)]
    check: Option<Check>,
    /// Always false: the numbers are exact counts.
    private: bool,
    /// The reason why the next period of the list was not frozen.
    #[serde(skip)]
    failure: Option<Failure>,
}

/// Numbers of rows of a frozen period, by treatment.
#[derive(Debug, Serialize)]
pub struct Frozen {
    pub period: Period,
    /// Numbers of rows; `None` if counts were given.
    #[serde(flatten)]
    pub found: Option<Found>,
    /// Number of periods between the last frozen one and this one.
    pub skipped: u64,
    /// Warning about users whose names are nearly the same.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub warning: Option<String>,
}

impl FrozenPeriods {
    pub fn of(frozen: Vec<Frozen>) -> Self {
        Self { frozen: Some(frozen), check: None, private: false, failure: None }
    }

    pub fn checked(check: Check) -> Self {
        Self { frozen: None, check: Some(check), private: false, failure: None }
    }

    /// Periods that were frozen before a failure, which names them.
    pub fn until(frozen: Vec<Frozen>, failure: Failure) -> Self {
        let names: Vec<String> = frozen.iter().map(|frozen| frozen.period.to_string()).collect();
        let failure =
            failure.with(&format!("(these periods were frozen and stay frozen: {})", names.join(", ")));
        Self { failure: Some(failure), ..Self::of(frozen) }
    }

    /// The failure, once the output is printed.
    pub fn end(self) -> Result<()> {
        self.failure.map_or(Ok(()), Err)
    }
}

impl fmt::Display for FrozenPeriods {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(Check { counted, left_out, lost, late, later, problems, .. }) = &self.check {
            let counted = quantity(*counted, "row");
            write!(f, "would count {counted}, leave out {left_out} and lose {lost}")?;
            if late + later > 0 {
                write!(f, "; {late} of earlier periods and {later} of later ones would not be counted")?;
            }
            writeln!(f, "; nothing was changed")?;
            problems.iter().try_for_each(|problem| writeln!(f, "problem: {problem}"))?;
        }
        self.frozen.iter().flatten().try_for_each(|frozen| frozen.fmt(f))?;
        writeln!(f, "These numbers are exact: they are not for publication.")
    }
}

impl fmt::Display for Frozen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { period, found, skipped, .. } = self;
        match found {
            None => write!(f, "{period}: counts taken as they are")?,
            Some(Found { tally, late, lost, later, .. }) => {
                write!(f, "{period}: {} counted", quantity(tally.counted, "row"))?;
                for (count, what) in [
                    (tally.beyond_max_rows, "beyond --max-rows"),
                    (tally.beyond_max_periods, "of users beyond --max-periods"),
                    (tally.unknown_keys, "of unknown keys or categories"),
                    (*late, "of earlier periods"),
                    (*lost, "lost: they are of periods that were not frozen"),
                    (*later, "of later periods"),
                ] {
                    if count > 0 {
                        write!(f, ", {count} {what}")?;
                    }
                }
            }
        }
        writeln!(f)?;
        match skipped {
            0 => Ok(()),
            1 => writeln!(f, "1 period before {period} was not frozen"),
            _ => writeln!(f, "{skipped} periods before {period} were not frozen"),
        }
    }
}
