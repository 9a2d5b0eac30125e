//! Adding rows of any source to a period.

use antinoise_input::tables::Number;

use crate::date;
use crate::events::freeze::{Fate, Found, Freezing};
use crate::period::{Period, Place, Time};
use crate::{Error, Result};

/// The treatment of rows that do not belong to the period.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Handling {
    /// Rows with a time before the period.
    pub late: Late,
    /// Whether rows with unknown keys are left out instead of refused.
    pub leave_unknown_keys: bool,
}

/// The treatment of a late row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Late {
    /// Refuse the whole file.
    Refuse,
    /// Leave the row out, and count it as late or lost.
    Leave,
    /// Count the row in this period, the next one to be published.
    Include,
}

/// The rows of a table, to be added one by one to a period if they lie in it.
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
///         rows.add(user, "north", None)?;
///     }
/// }
/// let found = rows.end()?;
/// assert_eq!((found.tally.counted, found.late), (1, 1));
/// assert!(day.rows(Handling { late: Late::Leave, leave_unknown_keys: false }).add("ada", "nort", None).is_err());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Rows<'f, 'r> {
    freezing: &'f mut Freezing<'r>,
    handling: Handling,
    found: Found,
    /// Whether times are numbers, set by the first row.
    are_numbers: Option<bool>,
}

impl Rows<'_, '_> {
    /// Whether a row of this time is to be added. If not, it is counted as late (before the period) or as
    /// later (after it).
    ///
    /// # Errors
    /// If the time cannot be placed, or is late and late rows are refused.
    pub fn lies_here(&mut self, time: &str) -> Result<bool> {
        let read = Time::of(time);
        self.check_kind(time, read.number.is_some())?;
        let place = self.freezing.period().place_of(&read)?;
        self.look(time, place, read.number.is_some());
        let period = self.freezing.period();
        match (place, self.handling.late) {
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
                let (before, is_included) = (self.freezing.period_before(), late == Late::Include);
                let is_later = |before: &Period| matches!(before.place_of(&read), Ok(Place::Later));
                let is_lost = !is_included && before.is_some_and(is_later);
                *(if is_lost { &mut self.found.lost } else { &mut self.found.late }) += 1;
                self.freezing.signs.late_included += u64::from(is_included);
                Ok(is_included)
            }
        }
    }

    /// Records what a time says about the period's name: that it has another form, or that dates are counted
    /// in a first period that is a number.
    fn look(&mut self, time: &str, place: Place, is_number: bool) {
        let Freezing { period, neighbours, signs, .. } = &mut *self.freezing;
        match (&*period, place) {
            (Period::Text(_), Place::Late | Place::Later) if !period.has_form_of(time) => {
                let (count, example) = &mut signs.of_other_form;
                if *count == 0 {
                    *example = time.into();
                }
                *count += 1;
            }
            (Period::Number(_), Place::Here) if !is_number && neighbours.first.is_none() => {
                let Some(date) = date::beginning(time.trim()) else { return };
                let [first, last] = signs.dates.get_or_insert_with(|| [date.into(), date.into()]);
                if date < first.as_str() {
                    *first = date.into();
                } else if date > last.as_str() {
                    *last = date.into();
                }
            }
            _ => {}
        }
    }

    /// Refuses a mixture of numbers and text as times: in a numbered period, every time that is text would
    /// lie in the period.
    fn check_kind(&mut self, time: &str, is_number: bool) -> Result<()> {
        if *self.are_numbers.get_or_insert(is_number) != is_number {
            let must_be = if is_number { "text, as those before it" } else { "a number, as those before it" };
            return Err(Error::invalid("time of an event", format!("{time:?}"), must_be));
        }
        Ok(())
    }

    /// Adds a row for which [`lies_here`](Rows::lies_here) is true.
    ///
    /// # Errors
    /// As [`Freezing::add`]; also if the value is invalid text, or the key is unknown and unknown keys
    /// are refused.
    pub fn add(&mut self, user: &str, key: &str, value: Option<Number<'_>>) -> Result<()> {
        self.add_with(user, Some(key), value, &[])
    }

    /// As [`Rows::add`], for a release with marginals: `categories` are the row's cells in the columns
    /// [`Settings::categories`](crate::Settings::categories). Without a `key`, the row is of the release's
    /// only one.
    ///
    /// # Errors
    /// As [`Rows::add`]; if a category is not declared and unknown keys are refused, if there are not as many
    /// categories as columns, or if no key is given and the release has several.
    pub fn add_with(
        &mut self,
        user: &str,
        key: Option<&str>,
        value: Option<Number<'_>>,
        categories: &[&str],
    ) -> Result<()> {
        let value = value.map(|value| value.read(|| "value of an event".into())).transpose()?;
        let place = self.freezing.key(key)?;
        let fate = self.freezing.add_row(user, place, value, categories)?;
        if fate != Fate::UnknownKey || self.handling.leave_unknown_keys {
            return Ok(());
        }
        if let (None, Some(key)) = (place, key) {
            let must_be = "one of the release's keys, unless rows of unknown keys are left out";
            return Err(Error::invalid("key of an event", format!("{key:?}"), must_be));
        }
        let (column, cell) = self.freezing.unknown_category(categories).unwrap_or_default();
        let must_be = "in a class of the marginals, unless rows of unknown keys are left out";
        Err(Error::invalid(format!("{column} of an event"), format!("{cell:?}"), must_be))
    }

    /// The numbers of all rows.
    ///
    /// # Errors
    /// If there were rows, and all of them are later than this period or differ in form from its name.
    pub fn end(mut self) -> Result<Found> {
        self.found.tally = self.freezing.tally();
        let (Found { tally, late, lost, later, .. }, signs) = (&self.found, &self.freezing.signs);
        let (elsewhere, (of_other_form, time)) = (late + lost + later, &signs.of_other_form);
        if elsewhere > 0 && *of_other_form >= elsewhere && tally.rows == signs.late_included {
            let must_be = format!("written as the times of events are, such as {time:?}");
            return Err(Error::invalid("period", self.freezing.period(), must_be));
        }
        if self.found.later > 0 && self.found.tally.rows == 0 && self.found.late + self.found.lost == 0 {
            let must_be = "one in which some of the events lie: all of them are later";
            return Err(Error::invalid("period", self.freezing.period(), must_be));
        }
        Ok(self.found)
    }
}

impl<'r> Freezing<'r> {
    /// Adds rows of another source, if they lie in the period.
    pub fn rows(&mut self, handling: Handling) -> Rows<'_, 'r> {
        Rows { freezing: self, handling, found: Found::default(), are_numbers: None }
    }
}
