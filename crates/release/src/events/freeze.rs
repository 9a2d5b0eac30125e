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

use crate::design::layout::too_many;
use crate::design::plan::Design;
use crate::events::categories::Categories;
use crate::events::neighbours::{Neighbours, latest};
use crate::events::sample::{Place, Sample};
use crate::events::users::{May, Users};
use crate::queries::measure::Measure;
use crate::store::database::{GIVEN, bytes};
use crate::store::participants::Writer;
use crate::store::sealed::Part;
use crate::{Error, Keep, Period, Release, Result, Unit};

/// Exact numbers of a period's rows. They are for the operator of the release, and are not private.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[non_exhaustive]
pub struct Tally {
    /// Number of rows given.
    pub rows: u64,
    /// Number of rows counted.
    pub counted: u64,
    /// Rows left out because the user already had `max_rows` rows in the period.
    pub beyond_max_rows: u64,
    /// Rows left out because the user had already been counted in `max_periods` periods.
    pub beyond_max_periods: u64,
    /// Rows left out because their key, or a category, is unknown.
    pub unknown_keys: u64,
}

/// The numbers of rows of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[non_exhaustive]
pub struct Found {
    /// The rows that were added.
    #[serde(flatten)]
    pub tally: Tally,
    /// Rows of a period that is already frozen, or with a time before the first period; left out or included
    /// as chosen.
    pub late: u64,
    /// Rows left out because they lie in skipped periods: before this one, and after the latest frozen period
    /// that precedes it.
    pub lost: u64,
    /// Rows with a time after the period, left out: they belong to later periods.
    pub later: u64,
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
    /// Left out: the key is unknown, or a category of the marginals.
    UnknownKey,
}

/// Signs, from the times of rows, that a period's name is wrong.
#[derive(Debug, Default)]
pub(crate) struct Signs {
    /// Rows before the period that are counted in it.
    pub(crate) late_included: u64,
    /// The number of rows outside the period whose times differ in form from its name, and one of the times.
    pub(crate) of_other_form: (u64, String),
    /// The first and the last date of rows in the first period, if its name is a number.
    pub(crate) dates: Option<[String; 2]>,
}

/// A period whose events are being added. Dropping it before [`Freezing::commit`] discards everything.
#[derive(Debug)]
pub struct Freezing<'r> {
    pub(crate) release: &'r mut Release,
    pub(crate) neighbours: Neighbours,
    keys: HashMap<String, usize>,
    categories: Categories,
    pub(crate) period: Period,
    pub(crate) step: usize,
    /// The period's vector in points; the cells of correlated buckets and marginals hold numbers of rows
    /// until the commit.
    pub(crate) increments: Vec<i64>,
    /// Whether the counts were bounded and computed elsewhere.
    pub(crate) given: bool,
    /// Signs, from the times of rows, that the period's name is wrong.
    pub(crate) signs: Signs,
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
    /// If `period` does not come after them, or all periods of the plan have been frozen.
    pub fn freeze(&mut self, period: &Period) -> Result<Freezing<'_>> {
        if let Some(last) = latest(&self.state.periods()?)
            && period.is_after(last) != Some(true)
        {
            let must_be = format!("after {last}, the latest frozen one: a period is frozen once");
            return Err(Error::invalid("period", period, must_be));
        }
        self.freeze_in_any_order(period)
    }

    /// As [`Release::freeze`], for any period whose rows are in no frozen period. [`Freezing::problems`] says
    /// whether its order and its name are as expected.
    ///
    /// ```
    /// use antinoise_release::{Release, Settings, Unit};
    /// let folder = tempfile::tempdir()?;
    /// let mut release = Release::create(folder.path(), &Settings::new(vec!["a".into()], 9, Unit::User))?;
    /// release.freeze(&"2062-03-01".parse()?)?.commit()?;
    /// let next = "2026-03-02".parse()?;
    /// assert!(release.freeze(&next).is_err());
    /// let day = release.freeze_in_any_order(&next)?;
    /// assert!(day.problems(&Default::default())[0].contains("before 2062-03-01"));
    /// day.commit()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// If it shares rows with a frozen period, or all periods of the plan have been frozen.
    pub fn freeze_in_any_order(&mut self, period: &Period) -> Result<Freezing<'_>> {
        let (step, _) = self.state.progress()?;
        let frozen = self.state.periods()?;
        self.refuse_taken(period, &frozen, frozen.len())?;
        let last_was_empty =
            step > 0 && self.settings.unit == Unit::User && self.state.counted_nobody(step - 1)?;
        let neighbours = Neighbours::new(period, &frozen, last_was_empty);
        let keys = self.settings.keys.iter().cloned().zip(0..).collect();
        let layout = &self.chain.first().layout;
        let categories = Categories::new(&self.settings, layout);
        let increments = vec![0; layout.cells()];
        let (points, mut users, tally) = (Vec::new(), Users::default(), Tally::default());
        self.state.check_counted()?;
        let most = self.settings.max_periods;
        let is_asked = self.chain.first().layout.part_if_any(&Measure::AtBound).is_some();
        let least = if is_asked { (most - 1).max(1) } else { most };
        if self.settings.unit == Unit::User && step >= least {
            self.state.frequent_users(step, least, |user, periods| match periods < most {
                true => users.leave_one(user),
                false => users.spend(user),
            })?;
        }
        let given = false;
        let sample = match self.settings.keep {
            Keep::First => None,
            Keep::Sample => Some(Sample::new(self.state.sampling_key()?, step, self.settings.max_rows)),
        };
        Ok(Freezing {
            release: self,
            neighbours,
            keys,
            categories,
            period: period.clone(),
            step,
            increments,
            given,
            signs: Signs::default(),
            points,
            users,
            sample,
            tally,
        })
    }
}

impl Freezing<'_> {
    /// Takes counts that were bounded and computed elsewhere.
    pub(crate) fn give(mut self, increments: Vec<i64>) -> Self {
        (self.increments, self.given) = (increments, true);
        self
    }

    /// The period that is being frozen.
    pub fn period(&self) -> &Period {
        &self.period
    }

    /// The latest frozen period before this one.
    pub(crate) fn period_before(&self) -> Option<&Period> {
        self.neighbours.before.as_ref()
    }

    /// Number of skipped periods: those before this one, and after the latest frozen period that precedes
    /// it; 0 if names are neither numbers nor dates nor months.
    pub fn skipped(&self) -> u64 {
        self.period_before().and_then(|before| self.period.skipped_since(before)).unwrap_or(0)
    }

    /// The numbers of rows so far.
    pub fn tally(&self) -> Tally {
        self.tally
    }

    /// Adds a row: an event of `user` with `key`, and with `value` if the release has queries about values.
    /// Different spellings of a whole number are one user, see [`user_name`].
    ///
    /// # Errors
    /// If the user is empty or a number that is not whole (for a release that protects users), or a needed
    /// value is absent or NaN. The row is then not counted, and the period can continue.
    pub fn add(&mut self, user: &str, key: &str, value: Option<f64>) -> Result<Fate> {
        self.add_with(user, key, value, &[])
    }

    /// As [`Freezing::add`], for a release with marginals: `categories` are the row's cells in the columns
    /// [`Settings::categories`](crate::Settings::categories). A row with a category that is not declared is
    /// left out of all figures, as one with an unknown key.
    ///
    /// ```
    /// use antinoise_release::{Fate, Release, Settings, Unit};
    /// let folder = tempfile::tempdir()?;
    /// let queries = vec![("marginals:city=a|b;age@18,65;ways=1,2".parse()?, 1.0)];
    /// let settings = Settings { queries, ..Settings::new(vec!["all".into()], 30, Unit::User) };
    /// let mut release = Release::create(folder.path(), &settings)?;
    /// let mut day = release.freeze(&"2026-03-01".parse()?)?;
    /// assert_eq!(day.add_with("ada", "all", None, &["a", "36"])?, Fate::Counted);
    /// assert_eq!(day.add_with("grace", "all", None, &["c", "36"])?, Fate::UnknownKey);
    /// day.commit()?;
    /// let figures = release.publish()?;
    /// assert_eq!(figures.len(), 2 + 3 + 2 * 3);
    /// assert_eq!(figures[5].bucket, "city=a;age below 18");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As [`Freezing::add`]; if there are not as many categories as columns.
    pub fn add_with(
        &mut self,
        user: &str,
        key: &str,
        value: Option<f64>,
        categories: &[&str],
    ) -> Result<Fate> {
        let key = self.keys.get(key).copied();
        self.add_row(user, key, value, categories)
    }

    /// Adds a row of the key with this index, if it is known.
    pub(crate) fn add_row(
        &mut self,
        user: &str,
        key: Option<usize>,
        value: Option<f64>,
        categories: &[&str],
    ) -> Result<Fate> {
        self.tally.rows += 1;
        let wanted = &self.categories.columns;
        if categories.len() != wanted.len() {
            let must_be = format!("one for each column of the marginals: {}", wanted.join(", "));
            return Err(Error::invalid("categories of an event", categories.len(), must_be));
        }
        // All checks that may refuse the row come before any change.
        let (design, points) = (self.release.chain.first(), &mut self.points);
        points.clear();
        let key = key.filter(|key| self.categories.row(*key, categories, points).is_ok());
        let Some(key) = key else {
            self.tally.unknown_keys += 1;
            return Ok(Fate::UnknownKey);
        };
        design.layout.row(design.spacing, key, value, |cell, added| points.push((cell, added)))?;
        let user = match self.release.settings.unit {
            Unit::User => user_name("user of an event", user)?,
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

    /// The index of a key; that of the only key if `key` is absent and rows are sorted by marginals.
    pub(crate) fn key(&self, key: Option<&str>) -> Result<Option<usize>> {
        match key {
            Some(key) => Ok(self.keys.get(key).copied()),
            None if self.keys.len() == 1 && !self.categories.columns.is_empty() => Ok(Some(0)),
            None => {
                let must_be = "given, unless the release has marginals and one key";
                Err(Error::invalid("key of an event", "absent", must_be))
            }
        }
    }

    /// The column and the cell of a row that is in no class of the marginals, if any.
    pub(crate) fn unknown_category<'c>(&mut self, categories: &[&'c str]) -> Option<(String, &'c str)> {
        let column = self.categories.row(0, categories, &mut Vec::new()).err()?;
        Some((self.categories.columns[column].clone(), categories[column]))
    }

    /// Returns why a row of `user` is not counted, or `None` after counting it as one of the user's rows.
    fn left_out(&mut self, user: &str) -> Result<Option<Fate>> {
        // For a sample, all rows of a user are recorded here: the sample itself keeps at most `max_rows`.
        let most = if self.sample.is_some() { u32::MAX - 2 } else { self.release.settings.max_rows as u32 };
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

    /// Adds the users at their bound of periods, or beyond their bound of rows, to the cells that count them.
    fn add_users(&mut self) -> Result<()> {
        let (Design { layout, spacing, .. }, settings) = (self.release.chain.first(), &self.release.settings);
        let users = &self.users;
        let at_bound = if settings.max_periods == 1 { users.names().count() } else { users.at_bound() };
        for (measure, count) in
            [(Measure::AtBound, at_bound), (Measure::OverRows, users.over_rows(settings.max_rows as u32))]
        {
            let Some(part) = layout.part_if_any(&measure) else { continue };
            let points = part.points(*spacing).checked_mul(count as i64);
            let cell = &mut self.increments[part.cell(0, 0)];
            *cell = points.and_then(|points| cell.checked_add(points)).ok_or_else(too_many)?;
        }
        Ok(())
    }

    /// Freezes the period: its increments and its users are written to disk, atomically, when this returns.
    ///
    /// # Errors
    /// If they cannot be written; nothing is then changed.
    pub fn commit(mut self) -> Result<Tally> {
        if !self.given {
            self.add_users()?;
        }
        let design = self.release.chain.first();
        design.layout.encode(design.spacing, &mut self.increments)?;
        // Larger cells are refused here, so that every frozen period can be published, whatever the other
        // periods hold.
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
