//! Freezing: the events of a period are bounded as they arrive, and frozen together.
//!
//! Which rows of a user are counted depends only on the user's own rows: the first `max_rows` of a period in
//! the order of the file, or a sample of that size drawn by a key of the release, and none in a period after
//! `max_periods` others. Other users' rows do not matter, so removing a user from the data leaves all other
//! contributions unchanged, and changes a period's vector by at most the user's own bounded rows.

use std::borrow::Cow;
use std::collections::HashMap;

use antinoise_input::tables::user_name;
use rusqlite::params;
use serde::Serialize;

use crate::layout::too_many;
use crate::ledger::Writer;
use crate::sample::{Place, Sample};
use crate::sealed::Part;
use crate::state::{GIVEN, bytes};
use crate::users::{May, Users};
use crate::{Error, Keep, Period, Release, Result, Unit};

/// Exact numbers of a period's rows. They are for the operator of the release, and are not private.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Tally {
    /// Rows given.
    pub rows: u64,
    /// Rows counted.
    pub counted: u64,
    /// Rows left out because the user already had `max_rows` rows in the period.
    pub beyond_max_rows: u64,
    /// Rows left out because the user had already been counted in `max_periods` periods.
    pub beyond_max_periods: u64,
    /// Rows left out because their key is unknown.
    pub unknown_keys: u64,
}

/// The treatment of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// Counted in the increments; if rows are sampled, a later row of the user may replace it.
    Counted,
    /// Left out: the user already had `max_rows` rows in the period.
    BeyondMaxRows,
    /// Left out: the user had already been counted in `max_periods` periods.
    BeyondMaxPeriods,
    /// Left out: the key is unknown.
    UnknownKey,
}

/// A period whose events are being added. Dropping it before [`Freezing::commit`] discards everything.
#[derive(Debug)]
pub struct Freezing<'r> {
    pub(crate) release: &'r mut Release,
    keys: HashMap<String, usize>,
    period: Period,
    pub(crate) step: usize,
    /// Points; for correlated buckets, rows until the commit.
    pub(crate) increments: Vec<i64>,
    /// Whether the counts were bounded and computed elsewhere.
    pub(crate) given: bool,
    /// Scratch: (cell, increment) pairs of the current row.
    points: Vec<(usize, i64)>,
    /// The number of rows of each user so far, and the users who are not counted any more.
    pub(crate) users: Users,
    /// The sample of rows, if rows are sampled.
    sample: Option<Sample>,
    tally: Tally,
}

impl Release {
    /// Starts freezing `period`, which must come after all frozen periods.
    ///
    /// # Errors
    /// If it does not, or all periods of the plan have been frozen.
    pub fn freeze(&mut self, period: &Period) -> Result<Freezing<'_>> {
        let (step, _) = self.state.progress()?;
        if self.settings.links.is_none() && step >= self.settings.periods {
            let must_be = format!(
                "one of the {} that the plan was made for, and all were frozen: its privacy covers no other",
                self.settings.periods
            );
            return Err(Error::invalid("period", period, must_be));
        }
        if let Some(last) = self.state.last_period()?
            && period.is_after(&last) != Some(true)
        {
            let must_be = format!("after {last}, which was frozen last: a period is frozen once");
            return Err(Error::invalid("period", period, must_be));
        }
        let keys = self.settings.keys.iter().cloned().zip(0..).collect();
        let increments = vec![0; self.design.layout.cells()];
        let (points, mut users, tally) = (Vec::new(), Users::default(), Tally::default());
        self.state.check_counted()?;
        if self.settings.unit == Unit::User && step >= self.settings.max_periods {
            self.state.spent_users(step, self.settings.max_periods, |user| users.spend(user))?;
        }
        let given = false;
        let sample = match self.settings.keep {
            Keep::First => None,
            Keep::Sample => Some(Sample::new(self.state.sampling_key()?, step, self.settings.max_rows)),
        };
        Ok(Freezing {
            release: self,
            keys,
            period: period.clone(),
            step,
            increments,
            given,
            points,
            users,
            sample,
            tally,
        })
    }
}

impl Freezing<'_> {
    /// The period.
    pub fn period(&self) -> &Period {
        &self.period
    }

    /// The numbers of rows so far.
    pub fn tally(&self) -> Tally {
        self.tally
    }

    /// Adds a row: an event of `user` with `key`, and with `value` if the release has queries about values.
    /// Different spellings of a whole number are one user, see [`user_name`].
    ///
    /// # Errors
    /// If the user is empty or a number that is not whole (for a release that protects users), the value is
    /// absent or NaN but needed. The row is then not counted, and the period can continue.
    pub fn add(&mut self, user: &str, key: &str, value: Option<f64>) -> Result<Fate> {
        self.tally.rows += 1;
        let Some(&key) = self.keys.get(key) else {
            self.tally.unknown_keys += 1;
            return Ok(Fate::UnknownKey);
        };
        // All checks that may refuse the row come before any change.
        let (design, points) = (&self.release.design, &mut self.points);
        points.clear();
        design.layout.row(design.spacing, key, value, |cell, added| points.push((cell, added)))?;
        let user = match self.release.settings.unit {
            Unit::User => user_name(user)?,
            Unit::Event => Cow::Borrowed(""),
        };
        if self.release.settings.unit == Unit::User
            && let Some(fate) = self.left_out(&user)?
        {
            return Ok(fate);
        }
        if let Some(sample) = &mut self.sample {
            match sample.add(user.as_bytes(), self.users.rows(user.as_bytes()), &self.points) {
                Place::Free => {}
                Place::Instead(row) => {
                    // The replaced row is subtracted again: sums of integers do not depend on their order.
                    row.iter().for_each(|&(cell, added)| self.increments[cell] -= added);
                    self.tally.counted -= 1;
                    self.tally.beyond_max_rows += 1;
                }
                Place::None => {
                    self.tally.beyond_max_rows += 1;
                    return Ok(Fate::BeyondMaxRows);
                }
            }
        }
        for &(cell, added) in &self.points {
            // A row adds less than 2^31 points: 2^32 rows fit.
            self.increments[cell] = self.increments[cell].checked_add(added).ok_or_else(too_many)?;
        }
        self.tally.counted += 1;
        Ok(Fate::Counted)
    }

    /// Returns why a row of `user` is not counted, or `None` after counting it as one of the user's rows.
    fn left_out(&mut self, user: &str) -> Result<Option<Fate>> {
        if user.is_empty() {
            return Err(Error::invalid("user of an event", "empty", "whose data the row is"));
        }
        // All rows of a user enter the sample.
        let most = if self.sample.is_some() { u32::MAX - 1 } else { self.release.settings.max_rows as u32 };
        Ok(match self.users.add(user.as_bytes(), most) {
            May::Counted => None,
            May::BeyondRows => {
                self.tally.beyond_max_rows += 1;
                Some(Fate::BeyondMaxRows)
            }
            May::Spent => {
                self.tally.beyond_max_periods += 1;
                Some(Fate::BeyondMaxPeriods)
            }
        })
    }

    /// Freezes the period: its increments and its users are written to disk, atomically, when this returns.
    ///
    /// # Errors
    /// If they cannot be written; nothing is then changed.
    pub fn commit(mut self) -> Result<Tally> {
        let design = &self.release.design;
        design.layout.encode(design.spacing, &mut self.increments)?;
        // Refused here, so that everything frozen can be published, whatever other periods hold.
        let most = self.release.settings.most_points();
        if self.increments.iter().any(|points| points.unsigned_abs() > most) {
            return Err(too_many());
        }
        let (users, most) = (self.users.counted(), self.release.settings.max_rows as u32);
        let given = self.given;
        let (step, period, increments) = (self.step as i64, &self.period, bytes(&self.increments));
        let parts = [Part::Period(self.step), Part::Counted(self.step), Part::Facts];
        let changed = if given { &parts[..] } else { &parts[..2] };
        self.release.state.change(changed, |change| {
            let sql = "INSERT INTO periods (step, period, frozen) VALUES (?, ?, ?)";
            change.execute(sql, params![step, period, increments])?;
            if given {
                change.execute("INSERT OR REPLACE INTO facts VALUES (?, 'yes')", [GIVEN])?;
            }
            let mut ledger = Writer::new(step as usize);
            users.iter().try_for_each(|(user, rows)| ledger.add(change, user.bytes(), (*rows).min(most)))?;
            ledger.end(change)
        })?;
        Ok(self.tally)
    }
}
