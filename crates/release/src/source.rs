//! Events from CSV or JSON lines, one at a time: memory does not grow with them.

use std::io::{BufRead, BufReader, Read};

use antinoise_input::InvalidParameter;
use serde::Serialize;
use serde_json::Value;

use crate::freeze::{Fate, Freezing, Tally};
use crate::period::Place;
use crate::{Error, Result, Settings, Unit};

/// How events are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// Comma-separated, with a header.
    Csv,
    /// One JSON object a line.
    JsonLines,
}

/// Which columns, or fields, hold what.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Columns {
    /// When the event happened; see [`Period::place`](crate::Period::place).
    pub time: String,
    /// Whose it is; not read where the unit is the event.
    pub user: Option<String>,
    /// Its category.
    pub key: String,
    /// What is summed or sorted into buckets.
    pub value: Option<String>,
}

impl Columns {
    /// Those of them that a release with these settings reads.
    ///
    /// # Errors
    /// When the user or the value is not named where it is needed.
    pub fn of(self, settings: &Settings) -> Result<Self> {
        let (of_users, of_values) = (settings.unit == Unit::User, settings.needs_value());
        let absent = |name: &str, why: &str| {
            Err(Error::invalid(name, "absent", format!("the name of a column: {why}")))
        };
        if of_users && self.user.is_none() {
            return absent("user", "users are protected");
        }
        if of_values && self.value.is_none() {
            return absent("value", "the release has sums or histograms");
        }
        Ok(Self { user: self.user.filter(|_| of_users), value: self.value.filter(|_| of_values), ..self })
    }
}

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
/// use antinoise_release::{Handling, Late, Number, Release, Settings, Unit};
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
/// assert!(day.rows(Handling { late: Late::Leave, leave_unknown_keys: false }).add("ada", "nort", None::<Number>).is_err());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Rows<'f, 'r> {
    freezing: &'f mut Freezing<'r>,
    handling: Handling,
    found: Found,
}

/// A value as a table holds it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Number<'a> {
    /// As it is written.
    Text(&'a str),
    /// As it is.
    Real(f64),
}

impl Rows<'_, '_> {
    /// Whether a row of this time is added; it is counted among those before or after the period if not.
    ///
    /// # Errors
    /// When the time cannot be placed, or is late and late rows are refused.
    pub fn lies_here(&mut self, time: &str) -> Result<bool> {
        let period = self.freezing.period();
        match (period.place(time)?, self.handling.late) {
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

    /// Adds a row that [lies here](Rows::lies_here).
    ///
    /// # Errors
    /// As [`Freezing::add`]; when the value is text that is no number, or the key is unknown and unknown keys are refused.
    pub fn add(&mut self, user: &str, key: &str, value: Option<Number<'_>>) -> Result<()> {
        let value = value.map(Number::read).transpose()?;
        let fate = self.freezing.add(user, key, value)?;
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

impl Number<'_> {
    fn read(self) -> std::result::Result<f64, InvalidParameter> {
        match self {
            Self::Real(number) => Ok(number),
            Self::Text(text) => text
                .trim()
                .parse()
                .map_err(|_| InvalidParameter::new("value of an event", format!("{text:?}"), "a number")),
        }
    }
}

/// A row's columns.
struct Row<'a> {
    time: &'a str,
    user: &'a str,
    key: &'a str,
    value: Option<&'a str>,
}

impl<'r> Freezing<'r> {
    /// Rows from elsewhere, to be added where they lie in the period.
    pub fn rows(&mut self, handling: Handling) -> Rows<'_, 'r> {
        Rows { freezing: self, handling, found: Found::default() }
    }

    /// Adds the rows of `input` that lie in the period, in any order; `each` is told of every row.
    ///
    /// # Errors
    /// When a row cannot be read, has an empty time or user, a value that is no number where one is needed, is late, or has an unknown key, each
    /// with its line; or when there are rows, and none of them is of this period or before.
    pub fn read(
        &mut self,
        input: impl Read,
        format: Format,
        columns: &Columns,
        handling: Handling,
        mut each: impl FnMut(),
    ) -> Result<Found> {
        let mut rows = self.rows(handling);
        let add = |line: u64, row: Row<'_>| {
            each();
            let added = rows.lies_here(row.time).and_then(|here| match here {
                true => rows.add(row.user, row.key, row.value.map(Number::Text)),
                false => Ok(()),
            });
            added.map_err(|error| error.at(format_args!("line {line}")))
        };
        match format {
            Format::Csv => read_csv(input, columns, add)?,
            Format::JsonLines => read_json(input, columns, add)?,
        }
        rows.end()
    }
}

fn read_csv(
    input: impl Read,
    columns: &Columns,
    mut add: impl FnMut(u64, Row<'_>) -> Result<()>,
) -> Result<()> {
    let mut reader = csv::ReaderBuilder::new().buffer_capacity(1 << 18).from_reader(input);
    let header = reader.headers().map_err(csv_refused)?.clone();
    let place = |name: &str| csv_column(&header, name);
    let (time, key) = (place(&columns.time)?, place(&columns.key)?);
    let user = columns.user.as_deref().map(place).transpose()?;
    let value = columns.value.as_deref().map(place).transpose()?;
    let mut record = csv::StringRecord::new();
    while reader.read_record(&mut record).map_err(csv_refused)? {
        let line = record.position().map_or(0, csv::Position::line);
        let cell = |place: usize| record.get(place).unwrap_or("");
        let (user, value) = (user.map_or("", cell), value.map(cell));
        add(line, Row { time: cell(time), user, key: cell(key), value })?;
    }
    Ok(())
}

/// Where the column `name` is, which is there once.
pub(crate) fn csv_column(header: &csv::StringRecord, name: &str) -> Result<usize> {
    let mut found = header.iter().enumerate().filter(|(_, column)| column.trim() == name);
    match (found.next(), found.next()) {
        (Some((place, _)), None) => Ok(place),
        (found, _) => {
            let got = if found.is_none() { "absent" } else { "there twice" };
            let columns: Vec<&str> = header.iter().collect();
            let must_be = format!("one of the columns {}", columns.join(", "));
            Err(Error::invalid(format!("column {name:?}"), got, must_be))
        }
    }
}

pub(crate) fn csv_refused(error: csv::Error) -> Error {
    Error::invalid("events", "text that cannot be read", error.to_string())
}

fn read_json(
    input: impl Read,
    columns: &Columns,
    mut add: impl FnMut(u64, Row<'_>) -> Result<()>,
) -> Result<()> {
    let mut reader = BufReader::with_capacity(1 << 18, input);
    let mut text = String::new();
    for line in 1.. {
        text.clear();
        let refused = |got: String| {
            Error::invalid(
                format!("events (line {line})"),
                got,
                "one JSON object with the columns that were named",
            )
        };
        if reader.read_line(&mut text).map_err(|error| refused(error.to_string()))? == 0 {
            break;
        }
        if text.trim().is_empty() {
            continue;
        }
        let object: Value = serde_json::from_str(&text).map_err(|error| refused(error.to_string()))?;
        let field = |name: &str| match object.get(name) {
            Some(Value::String(text)) => Ok(text.clone()),
            Some(Value::Number(number)) => Ok(number.to_string()),
            Some(other) => Err(refused(format!("with {name} {other}"))),
            None => Err(refused(format!("without {name}"))),
        };
        let (time, key) = (field(&columns.time)?, field(&columns.key)?);
        let user = columns.user.as_deref().map(field).transpose()?.unwrap_or_default();
        let value = columns.value.as_deref().map(field).transpose()?;
        add(line, Row { time: &time, user: &user, key: &key, value: value.as_deref() })?;
    }
    Ok(())
}
