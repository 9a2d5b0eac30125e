//! The events of a period, bounded as they come, and frozen together.
//!
//! Which rows of a user are counted depends on the user's own rows alone: the first `max_rows` of a period, in the order of the file, or a sample
//! of as many by a key of the release, and none in a period after `max_periods` others. Nobody else's rows can change that, so taking a user out of the data leaves all other
//! contributions as they are, and moves a period's vector by no more than the user's own bounded rows.

use std::borrow::Cow;
use std::collections::HashMap;

use antinoise_input::table::user_name;
use rusqlite::params;
use serde::Serialize;

use crate::layout::too_many;
use crate::ledger::Writer;
use crate::measure::Values;
use crate::sample::{Place, Sample};
use crate::sealed::Part;
use crate::state::{GIVEN, bytes};
use crate::users::{May, Users};
use crate::{Error, Keep, Period, Release, Result, Unit};

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
    /// It is part of the increments; where rows are sampled, until another of the user's takes its place.
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
    pub(crate) release: &'r mut Release,
    keys: HashMap<String, usize>,
    period: Period,
    pub(crate) step: usize,
    /// Points; of correlated buckets, rows until they are committed.
    pub(crate) increments: Vec<i64>,
    /// Whether they were bounded and counted elsewhere.
    pub(crate) given: bool,
    /// What the row that is being added adds.
    points: Vec<(usize, i64)>,
    /// The rows that each user has so far, and who is not counted any more.
    pub(crate) users: Users,
    /// Where a sample of a user's rows is counted.
    sample: Option<Sample>,
    tally: Tally,
}

impl Release {
    /// Begins to freeze `period`, which comes after all that were frozen.
    ///
    /// # Errors
    /// When it does not, or all periods of the plan have been frozen.
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

    /// What a row's coordinates are called: see [`Settings::columns`](crate::Settings::columns).
    pub fn columns(&self) -> &[String] {
        self.release.design.layout.columns()
    }

    /// What became of the rows so far.
    pub fn tally(&self) -> Tally {
        self.tally
    }

    /// Adds a row: an event of `user` with `key`, and with `value` where the release has queries about
    /// values. Users that are numbers are one user however they are
    /// written, see [`user_name`].
    ///
    /// # Errors
    /// When the user is empty or a number that is not whole (of a release for users), the value is absent or
    /// NaN where it is needed, or the release needs
    /// [coordinates](Self::add_point) too; the row is then not counted, and the period may go on.
    pub fn add(&mut self, user: &str, key: &str, value: Option<f64>) -> Result<Fate> {
        self.add_point(user, key, value, &[])
    }

    /// The same of a release with k-means: `coordinates` are the event's numbers in the columns of [`Settings::columns`](crate::Settings::columns), in their order.
    ///
    /// ```
    /// use antinoise_release::{Release, Settings, Unit};
    /// let folder = tempfile::tempdir()?;
    /// let queries = vec![("kmeans:2@x:0,1,8@y:0,1,8".parse()?, 1.0)];
    /// let settings = Settings { queries, ..Settings::new(vec!["all".into()], 30, Unit::User) };
    /// let mut release = Release::create(folder.path(), &settings)?;
    /// let mut day = release.freeze(&"2026-03-01".parse()?)?;
    /// day.add_point("ada", "all", None, &[0.2, 0.9])?;
    /// assert!(day.add_point("grace", "all", None, &[0.2]).is_err());
    /// day.commit()?;
    /// let names: Vec<String> = release.publish()?.into_iter().map(|row| row.bucket).collect();
    /// assert_eq!(names[..3], ["centre 1 at x", "centre 1 at y", "centre 1 rows"]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As [`Self::add`], and when there are not as many coordinates as columns or one is NaN.
    pub fn add_point(
        &mut self,
        user: &str,
        key: &str,
        value: Option<f64>,
        coordinates: &[f64],
    ) -> Result<Fate> {
        self.tally.rows += 1;
        let Some(&key) = self.keys.get(key) else {
            self.tally.unknown_keys += 1;
            return Ok(Fate::UnknownKey);
        };
        // All that may refuse comes before anything is changed.
        let (design, points) = (&self.release.design, &mut self.points);
        points.clear();
        let values = Values { value, coordinates };
        design.layout.row(design.spacing, key, &values, |cell, added| points.push((cell, added)))?;
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
                    // What was added is taken off again: sums of whole numbers do not depend on their order.
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

    /// Why a row of `user` is not counted; it is one of the user's rows from then on where it is.
    fn left_out(&mut self, user: &str) -> Result<Option<Fate>> {
        if user.is_empty() {
            return Err(Error::invalid("user of an event", "empty", "whose data the row is"));
        }
        // All rows of a user come into the sample.
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

    /// Freezes the period: its increments and its users are on the disk, together, when this returns.
    ///
    /// # Errors
    /// When they cannot be written; nothing is then changed.
    pub fn commit(mut self) -> Result<Tally> {
        let design = &self.release.design;
        design.layout.encode(design.spacing, &mut self.increments)?;
        // What is frozen can be published, whatever comes in other periods.
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
