//! Rows on their way into a period, from whatever they are read.

use antinoise_input::table::Number;
use serde::Serialize;

use crate::freeze::{Fate, Freezing, Tally};
use crate::measure::of_event;
use crate::period::{Place, Time};
use crate::{Error, Result};

/// What is done with rows that do not belong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Handling {
    /// Rows of the time before the period.
    pub late: Late,
    /// Whether rows of unknown keys are left out, and not refused.
    pub leave_unknown_keys: bool,
}

/// What is done with a late row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Late {
    /// The whole file is refused.
    Refuse,
    /// It is left out, and counted among those.
    Leave,
    /// It is counted in this period, the next one that is published.
    Include,
}

/// What became of the rows of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Found {
    /// What became of the rows that were added.
    #[serde(flatten)]
    pub tally: Tally,
    /// Rows of before the period, left out or included as asked.
    pub late: u64,
    /// Rows of after it, left out: they wait for their own period.
    pub later: u64,
}

/// The rows of a table on their way into a period, one after the other: those that lie in it are added.
///
/// ```
/// use antinoise_release::{Handling, Late, Release, Settings, Unit};
/// let folder = tempfile::tempdir()?;
/// let settings = Settings::new(vec!["north".into()], 30, Unit::User);
/// let mut release = Release::create(folder.path(), &settings)?;
/// let mut day = release.freeze(&"2026-03-01".parse()?)?;
/// let mut rows = day.rows(Handling { late: Late::Leave, leave_unknown_keys: false });
/// for (time, user) in [("2026-03-01T17:45", "ada"), ("2026-02-28T23:59", "grace")] {
///     if rows.lies_here(time)? {
///         rows.add(user, "north", None, &[])?;
///     }
/// }
/// let found = rows.end()?;
/// assert_eq!((found.tally.counted, found.late), (1, 1));
/// assert!(day.rows(Handling { late: Late::Leave, leave_unknown_keys: false }).add("ada", "nort", None, &[]).is_err());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Rows<'f, 'r> {
    freezing: &'f mut Freezing<'r>,
    handling: Handling,
    found: Found,
    /// Whether times are numbers, once there was one.
    are_numbers: Option<bool>,
    /// Those of the row that is being added.
    coordinates: Vec<f64>,
}

impl Rows<'_, '_> {
    /// What coordinates a row has: see [`Settings::columns`](crate::Settings::columns).
    pub fn columns(&self) -> &[String] {
        self.freezing.columns()
    }

    /// Whether a row of this time is added; it is counted among those before or after the period if not.
    ///
    /// # Errors
    /// When the time cannot be placed, or is late and late rows are refused.
    pub fn lies_here(&mut self, time: &str) -> Result<bool> {
        let read = Time::of(time);
        self.check_kind(time, read.number.is_some())?;
        let period = self.freezing.period();
        match (period.place_of(&read)?, self.handling.late) {
            (Place::Here, _) => Ok(true),
            (Place::Later, _) => {
                self.found.later += 1;
                Ok(false)
            }
            (Place::Late, Late::Refuse) => {
                let must_be = format!("not before the period {period}");
                Err(Error::invalid("time of an event", time, must_be))
            }
            (Place::Late, late) => {
                self.found.late += 1;
                Ok(late == Late::Include)
            }
        }
    }

    /// Refuses times of which some are numbers and others are not: of a period that is a number, the latter would lie in every one.
    fn check_kind(&mut self, time: &str, is_number: bool) -> Result<()> {
        if *self.are_numbers.get_or_insert(is_number) != is_number {
            let must_be = if is_number { "text, as those before it" } else { "a number, as those before it" };
            return Err(Error::invalid("time of an event", format!("{time:?}"), must_be));
        }
        Ok(())
    }

    /// Adds a row that [lies here](Rows::lies_here).
    ///
    /// # Errors
    /// As [`Freezing::add_point`], whose coordinates these are; when a number is text that is none, or the key is unknown and unknown keys are
    /// refused.
    pub fn add(
        &mut self,
        user: &str,
        key: &str,
        value: Option<Number<'_>>,
        coordinates: &[Number<'_>],
    ) -> Result<()> {
        let value = value.map(|value| value.read(|| "value of an event".into())).transpose()?;
        self.coordinates.clear();
        for (i, number) in coordinates.iter().enumerate() {
            let named = || {
                self.freezing.columns().get(i).map_or("coordinate of an event".into(), |name| of_event(name))
            };
            self.coordinates.push(number.read(named)?);
        }
        let fate = self.freezing.add_point(user, key, value, &self.coordinates)?;
        if fate == Fate::UnknownKey && !self.handling.leave_unknown_keys {
            let must_be = "one of the release's keys, unless rows of unknown keys are left out";
            return Err(Error::invalid("key of an event", format!("{key:?}"), must_be));
        }
        Ok(())
    }

    /// What became of them all.
    ///
    /// # Errors
    /// When there were rows, and none of them is of this period or before.
    pub fn end(mut self) -> Result<Found> {
        self.found.tally = self.freezing.tally();
        if self.found.later > 0 && self.found.tally.rows == 0 && self.found.late == 0 {
            let must_be = "one in which some of the events lie: all of them are later";
            return Err(Error::invalid("period", self.freezing.period(), must_be));
        }
        Ok(self.found)
    }
}

impl<'r> Freezing<'r> {
    /// Rows from elsewhere, to be added where they lie in the period.
    pub fn rows(&mut self, handling: Handling) -> Rows<'_, 'r> {
        Rows { freezing: self, handling, found: Found::default(), are_numbers: None, coordinates: Vec::new() }
    }
}
