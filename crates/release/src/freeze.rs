//! The events of a period, bounded as they come, and frozen together.
//!
//! Which rows of a user are counted depends on the user's own rows alone: the first `max_rows` of a period, in the order of the file, and none
//! in a period after `max_periods` others. Nobody else's rows can change that, so taking a user out of the data leaves all other
//! contributions as they are, and moves a period's vector by no more than the user's own bounded rows.

use std::collections::HashMap;

use rusqlite::params;
use serde::Serialize;

use crate::layout::too_many;
use crate::state::{GIVEN, bytes};
use crate::{Error, Period, Release, Result, Unit};

/// What became of the rows of a period. These are exact numbers about the data: they are for whoever runs the release, and no part of what is private.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Tally {
    /// Rows that were given.
    pub rows: u64,
    /// Rows that were counted.
    pub counted: u64,
    /// Left out: a user's rows beyond the most that are counted in a period.
    pub beyond_max_rows: u64,
    /// Left out: rows of users who were counted in as many periods as they may be.
    pub beyond_max_periods: u64,
    /// Left out: rows whose key is none of the release's.
    pub unknown_keys: u64,
}

/// What became of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// It is part of the increments.
    Counted,
    /// The user had as many rows as are counted in a period.
    BeyondMaxRows,
    /// The user was counted in as many periods as may be.
    BeyondMaxPeriods,
    /// Its key is none of the release's.
    UnknownKey,
}

/// A period whose events are being added; dropped before [`Freezing::commit`], nothing of it remains.
#[derive(Debug)]
pub struct Freezing<'r> {
    release: &'r mut Release,
    keys: HashMap<String, usize>,
    period: Period,
    step: usize,
    /// Points; of correlated buckets, rows until they are committed.
    pub(crate) increments: Vec<i64>,
    /// Whether they were bounded and counted elsewhere.
    pub(crate) given: bool,
    /// What the row that is being added adds.
    points: Vec<(usize, i64)>,
    /// The rows that each user has so far; `SPENT` for those who are not counted any more.
    users: HashMap<Box<str>, u32>,
    tally: Tally,
}

const SPENT: u32 = u32::MAX;

impl Release {
    /// Begins to freeze `period`, which comes after all that were frozen.
    ///
    /// # Errors
    /// When it does not, or all periods of the plan have been frozen.
    pub fn freeze(&mut self, period: &Period) -> Result<Freezing<'_>> {
        let (step, _) = self.state.progress()?;
        if step >= self.settings.periods {
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
        let (points, mut users, tally) = (Vec::new(), HashMap::new(), Tally::default());
        if step >= self.settings.max_periods {
            self.state.spent_users(self.settings.max_periods, |user| {
                users.insert(user.into(), SPENT);
            })?;
        }
        let given = false;
        Ok(Freezing {
            release: self,
            keys,
            period: period.clone(),
            step,
            increments,
            given,
            points,
            users,
            tally,
        })
    }
}

impl Freezing<'_> {
    /// The period.
    pub fn period(&self) -> &Period {
        &self.period
    }

    /// What became of the rows so far.
    pub fn tally(&self) -> Tally {
        self.tally
    }

    /// Adds a row: an event of `user` with `key`, and with `value` where the release has queries about values.
    ///
    /// # Errors
    /// When the user is empty (of a release for users), or the value is absent or NaN where it is needed; the row is then not counted, and the period
    /// may go on.
    pub fn add(&mut self, user: &str, key: &str, value: Option<f64>) -> Result<Fate> {
        self.tally.rows += 1;
        let Some(&key) = self.keys.get(key) else {
            self.tally.unknown_keys += 1;
            return Ok(Fate::UnknownKey);
        };
        // All that may refuse comes before anything is changed.
        let (design, points) = (&self.release.design, &mut self.points);
        points.clear();
        design.layout.row(design.spacing, key, value, |cell, added| points.push((cell, added)))?;
        if self.release.settings.unit == Unit::User
            && let Some(fate) = self.left_out(user)?
        {
            return Ok(fate);
        }
        for &(cell, added) in &self.points {
            // A row adds less than 2^31 points: 2^32 rows fit.
            self.increments[cell] = self.increments[cell].checked_add(added).ok_or_else(too_many)?;
        }
        self.tally.counted += 1;
        Ok(Fate::Counted)
    }

    /// Why a row of `user` is not counted; it is one of the user's rows from then on where it is.
    fn left_out(&mut self, user: &str) -> Result<Option<Fate>> {
        let max_rows = self.release.settings.max_rows as u32;
        let rows = match self.users.get_mut(user) {
            Some(rows) => rows,
            None => {
                if user.is_empty() {
                    return Err(Error::invalid("user of an event", "empty", "whose data the row is"));
                }
                self.users.entry(user.into()).or_insert(0)
            }
        };
        if *rows == SPENT {
            self.tally.beyond_max_periods += 1;
            return Ok(Some(Fate::BeyondMaxPeriods));
        }
        if *rows == max_rows {
            self.tally.beyond_max_rows += 1;
            return Ok(Some(Fate::BeyondMaxRows));
        }
        *rows += 1;
        Ok(None)
    }

    /// Freezes the period: its increments and its users are on the disk, together, when this returns.
    ///
    /// # Errors
    /// When they cannot be written; nothing is then changed.
    pub fn commit(mut self) -> Result<Tally> {
        let design = &self.release.design;
        design.layout.encode(design.spacing, &mut self.increments)?;
        let mut users: Vec<(Box<str>, u32)> =
            self.users.into_iter().filter(|(_, rows)| *rows != SPENT && *rows > 0).collect();
        // In the order of the table, which then grows in few places.
        users.sort_unstable();
        let given = self.given;
        let (step, period, increments) = (self.step as i64, &self.period, bytes(&self.increments));
        self.release.state.change(|change| {
            let sql = "INSERT INTO periods (step, period, frozen) VALUES (?, ?, ?)";
            change.execute(sql, params![step, period, increments])?;
            if given {
                change.execute("INSERT OR REPLACE INTO facts VALUES (?, 'yes')", [GIVEN])?;
            }
            let mut insert = change.prepare("INSERT INTO participations VALUES (?, ?, ?)")?;
            users.iter().try_for_each(|(user, rows)| insert.execute(params![user, step, rows]).map(|_| ()))
        })?;
        Ok(self.tally)
    }
}
