//! Events from CSV or JSON lines, one at a time: memory does not grow with them.

use std::io::{BufRead, BufReader, Read};

use serde::Serialize;
use serde_json::Value;

use crate::freeze::{Fate, Freezing, Tally};
use crate::measure::{A_NUMBER, of_event};
use crate::period::Place;
use crate::{Error, Result};

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

/// A row's columns.
struct Row<'a> {
    time: &'a str,
    user: &'a str,
    key: &'a str,
    value: Option<&'a str>,
    /// Of the release's own columns.
    coordinates: Vec<&'a str>,
}

impl Freezing<'_> {
    /// Adds the rows of `input` that lie in the period, in any order; `each` is told of every row. The columns of k-means are read by the names that its
    /// queries give them.
    ///
    /// # Errors
    /// When a column is not there, a row cannot be read, has an empty time or user, a value or a coordinate that is no number where one is needed, is late, or has an unknown key, each
    /// with its line; or when there are rows, and none of them is of this period or before.
    pub fn read(
        &mut self,
        input: impl Read,
        format: Format,
        columns: &Columns,
        handling: Handling,
        mut each: impl FnMut(),
    ) -> Result<Found> {
        let mut found = Found::default();
        let points = self.columns().to_vec();
        let add = |line: u64, row: Row<'_>| {
            each();
            let added = self.add_row(&row, handling, &mut found);
            added.map_err(|error| match error {
                Error::Invalid(mut error) => {
                    error.parameter = format!("{} (line {line})", error.parameter);
                    Error::Invalid(error)
                }
                other => other,
            })
        };
        match format {
            Format::Csv => read_csv(input, columns, &points, add)?,
            Format::JsonLines => read_json(input, columns, &points, add)?,
        }
        found.tally = self.tally();
        if found.later > 0 && found.tally.rows == 0 && found.late == 0 {
            let must_be = "one in which some of the events lie: all of them are later";
            return Err(Error::invalid("period", self.period(), must_be));
        }
        Ok(found)
    }

    fn add_row(&mut self, row: &Row<'_>, handling: Handling, found: &mut Found) -> Result<()> {
        match (self.period().place(row.time)?, handling.late) {
            (Place::Here, _) => {}
            (Place::Later, _) => {
                found.later += 1;
                return Ok(());
            }
            (Place::Late, Late::Refuse) => {
                let must_be = format!("not before the period {}", self.period());
                return Err(Error::invalid("time of an event", row.time, must_be));
            }
            (Place::Late, late) => {
                found.late += 1;
                if late == Late::Leave {
                    return Ok(());
                }
            }
        }
        let value = row.value.map(|text| number(text, || "value of an event".into())).transpose()?;
        let named = row.coordinates.iter().zip(self.columns());
        let coordinates = named.map(|(text, column)| number(text, || of_event(column)));
        let coordinates = coordinates.collect::<Result<Vec<f64>>>()?;
        let fate = self.add_point(row.user, row.key, value, &coordinates)?;
        if fate == Fate::UnknownKey && !handling.leave_unknown_keys {
            let must_be = "one of the release's keys (--unknown leave leaves such rows out)";
            return Err(Error::invalid("key of an event", format!("{:?}", row.key), must_be));
        }
        Ok(())
    }
}

fn number(text: &str, named: impl Fn() -> String) -> Result<f64> {
    text.trim().parse().map_err(|_| Error::invalid(named(), format!("{text:?}"), A_NUMBER))
}

fn read_csv(
    input: impl Read,
    columns: &Columns,
    points: &[String],
    mut add: impl FnMut(u64, Row<'_>) -> Result<()>,
) -> Result<()> {
    let mut reader = csv::ReaderBuilder::new().buffer_capacity(1 << 18).from_reader(input);
    let header = reader.headers().map_err(csv_refused)?.clone();
    let place = |name: &str| csv_column(&header, name);
    let (time, key) = (place(&columns.time)?, place(&columns.key)?);
    let user = columns.user.as_deref().map(place).transpose()?;
    let value = columns.value.as_deref().map(place).transpose()?;
    let points = points.iter().map(|column| place(column)).collect::<Result<Vec<usize>>>()?;
    let mut record = csv::StringRecord::new();
    while reader.read_record(&mut record).map_err(csv_refused)? {
        let line = record.position().map_or(0, csv::Position::line);
        let cell = |place: usize| record.get(place).unwrap_or("");
        let (user, value) = (user.map_or("", cell), value.map(cell));
        let coordinates = points.iter().map(|place| cell(*place)).collect();
        add(line, Row { time: cell(time), user, key: cell(key), value, coordinates })?;
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
    points: &[String],
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
        let points = points.iter().map(|column| field(column)).collect::<Result<Vec<String>>>()?;
        let coordinates = points.iter().map(String::as_str).collect();
        add(line, Row { time: &time, user: &user, key: &key, value: value.as_deref(), coordinates })?;
    }
    Ok(())
}
