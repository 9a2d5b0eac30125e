//! Events from CSV or JSON lines, one at a time: memory does not grow with their number.

use std::io::{BufRead, BufReader, Read};

#[cfg(feature = "arrow")]
use antinoise_input::tables::Role;
use antinoise_input::tables::{CSV_END, Number, column_index, csv_end, ends_lines_with_crlf, user_of_number};
use serde_json::Value;

use crate::events::freeze::{Found, Freezing};
use crate::events::rows::Handling;
use crate::{Error, Result, Settings, Unit};

/// The format of events.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// Comma-separated, with a header.
    Csv,
    /// One JSON object per line.
    JsonLines,
}

/// The names of the columns (CSV) or fields (JSON).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Columns {
    /// The time of the event; see [`Period::place`](crate::Period::place).
    pub time: String,
    /// The user; not read if the unit is the event.
    pub user: Option<String>,
    /// The key: the category in which the row is counted; may be absent if the release has marginals and one
    /// key, of which all rows then are.
    pub key: Option<String>,
    /// The value that is summed or sorted into buckets.
    pub value: Option<String>,
    /// The columns of marginals, which [`Columns::of`] takes from the settings.
    pub categories: Vec<String>,
}

impl Columns {
    /// The columns that a release with these settings reads.
    ///
    /// # Errors
    /// If the column of users, of values or of keys is needed but not named.
    pub fn of(self, settings: &Settings) -> Result<Self> {
        let (of_users, of_values) = (settings.unit == Unit::User, settings.needs_value());
        let absent = |name: &str, why: &str| {
            Err(Error::invalid(name, "absent", format!("the name of a column: {why}")))
        };
        if of_users && self.user.is_none() {
            return absent("user", "users are protected");
        }
        if of_values && self.value.is_none() {
            return absent("value", "the release has queries about values");
        }
        if self.key.is_none() && settings.keys.len() > 1 {
            return absent("key", "the release has several keys");
        }
        let categories = settings.categories().into_iter().map(String::from).collect();
        let (user, value) = (self.user.filter(|_| of_users), self.value.filter(|_| of_values));
        Ok(Self { user, value, categories, ..self })
    }
}

/// The role of a category: names and numbers of all types.
#[cfg(feature = "arrow")]
pub(crate) const CATEGORY: Role = Role::User;

#[cfg(feature = "arrow")]
impl Columns {
    /// The columns that are read, with their roles.
    pub fn roles(&self) -> impl Iterator<Item = (&str, Role)> {
        let Self { time, user, key, value, categories } = self;
        let named = [
            Some((time, Role::Time)),
            key.as_ref().map(|name| (name, Role::Name)),
            user.as_ref().map(|name| (name, Role::User)),
            value.as_ref().map(|name| (name, Role::Value)),
        ];
        let categories = categories.iter().map(|name| (name, CATEGORY));
        named.into_iter().flatten().chain(categories).map(|(name, role)| (name.as_str(), role))
    }
}

/// The cells of a row.
struct Row<'a> {
    time: &'a str,
    user: &'a str,
    key: Option<&'a str>,
    value: Option<&'a str>,
    categories: &'a [&'a str],
}

impl Freezing<'_> {
    /// Adds the rows of `input` that lie in the period, in any order; calls `each` for every row.
    ///
    /// # Errors
    /// If a column is absent, or a row cannot be read, has an empty time or user, has a needed value
    /// that is not a number, is late, or has an unknown key (the error names the line); if there
    /// are rows, and all of them are later than this period.
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
                true => rows.add_with(row.user, row.key, row.value.map(Number::Text), row.categories),
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
    let mut input = BufReader::with_capacity(1 << 18, input);
    let unreadable = |error: std::io::Error| csv_refused(error.into());
    let before = u64::from(ends_lines_with_crlf(&mut input).map_err(unreadable)?);
    let mut reader =
        csv::ReaderBuilder::new().flexible(true).buffer_capacity(1 << 18).from_reader(input.chain(CSV_END));
    let header = reader.headers().map_err(csv_refused)?.clone();
    refuse_other_delimiter(&header)?;
    if ends(&header).is_some() {
        let must_be = "CSV whose first line names the columns";
        return Err(Error::invalid("events", "text without a complete first line", must_be));
    }
    let named = |name: &str| csv_column(&header, name);
    let time = named(&columns.time)?;
    let key = columns.key.as_deref().map(named).transpose()?;
    let places = columns.categories.iter().map(|name| named(name)).collect::<Result<Vec<_>>>()?;
    let user = columns.user.as_deref().map(named).transpose()?;
    let value = columns.value.as_deref().map(named).transpose()?;
    let mut record = csv::StringRecord::new();
    while reader.read_record(&mut record).map_err(csv_refused)? {
        let line = before + record.position().map_or(0, csv::Position::line);
        if is_end(&record, header.len(), line)? {
            break;
        }
        let cell = |place: usize| record.get(place).unwrap_or("");
        let (user, value) = (user.map_or("", cell), value.map(cell));
        let categories: Vec<&str> = places.iter().map(|place| cell(*place)).collect();
        add(line, Row { time: cell(time), user, key: key.map(cell), value, categories: &categories })?;
    }
    Ok(())
}

/// Whether the record ends the file, see [`csv_end`].
fn ends(record: &csv::StringRecord) -> Option<bool> {
    csv_end(record.len(), |i| record.get(i).map(str::as_bytes))
}

/// Whether the record of `line` is what follows the last one; refuses one of another width than the header's.
fn is_end(record: &csv::StringRecord, width: usize, line: u64) -> Result<bool> {
    let refused = |got: String, must_be: &str| Err(Error::invalid("events", got, must_be));
    match ends(record) {
        Some(true) => Ok(true),
        Some(false) => refused(
            format!("text with a quote in line {line} that is not closed"),
            "CSV with quotes around whole cells alone",
        ),
        None if record.len() != width => refused(
            format!("text of {} cells in line {line}, {width} in the first", record.len()),
            "CSV with one cell per column in each row",
        ),
        None => Ok(false),
    }
}

/// The index of the column `name`, which must occur exactly once.
pub(crate) fn csv_column(header: &csv::StringRecord, name: &str) -> Result<usize> {
    Ok(column_index(header.iter().map(str::trim), name)?)
}

pub(crate) fn csv_refused(error: csv::Error) -> Error {
    match error.kind() {
        csv::ErrorKind::Utf8 { pos, .. } => {
            let line = pos.as_ref().map_or(1, csv::Position::line);
            Error::invalid("events", format!("text in another encoding (line {line})"), "CSV in UTF-8")
        }
        _ => {
            let got = format!("text that cannot be read ({error})");
            Error::invalid("events", got, "CSV with one cell per column in each row")
        }
    }
}

/// Refuses a header of one name that holds another delimiter.
fn refuse_other_delimiter(header: &csv::StringRecord) -> Result<()> {
    let found = [';', '\t', '|'].into_iter().find(|&other| header.len() == 1 && header[0].contains(other));
    match found {
        Some(found) => {
            let got = format!("text with the delimiter {found:?}");
            Err(Error::invalid("events", got, "CSV with commas and a header"))
        }
        None => Ok(()),
    }
}

/// The number in the field `name` of a JSON object, as it is written.
fn written<'t>(object: &'t str, name: &str) -> Option<&'t str> {
    let bytes = object.as_bytes();
    let (mut depth, mut at, mut found) = (0, 0, None);
    while at < bytes.len() {
        match bytes[at] {
            b'{' | b'[' => depth += 1,
            b'}' | b']' => depth -= 1,
            b'"' => {
                let first = at;
                at += 1;
                while bytes.get(at).is_some_and(|byte| *byte != b'"') {
                    at += if bytes[at] == b'\\' { 2 } else { 1 };
                }
                let key: Option<String> = serde_json::from_str(object.get(first..=at)?).ok();
                let value = object[at + 1..].trim_start().strip_prefix(':');
                if let Some(value) = value.filter(|_| depth == 1 && key.as_deref() == Some(name)) {
                    let value = value.trim_start();
                    let end = value.find([',', '}', ' ', '\t', '\r', '\n']).unwrap_or(value.len());
                    found = Some(&value[..end]);
                }
            }
            _ => {}
        }
        at += 1;
    }
    found
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
        if reader.read_line(&mut text).map_err(|error| refused(format!("unreadable ({error})")))? == 0 {
            break;
        }
        if text.trim().is_empty() {
            continue;
        }
        let object: Value =
            serde_json::from_str(&text).map_err(|error| refused(format!("unreadable ({error})")))?;
        let field = |name: &str| match object.get(name) {
            Some(Value::String(text)) => Ok(text.clone()),
            Some(Value::Number(number)) => Ok(number.to_string()),
            Some(Value::Bool(truth)) => Ok(truth.to_string()),
            // As the empty cell of a CSV file.
            Some(Value::Null) => Ok(String::new()),
            Some(other) => Err(refused(format!("with {name} {other}"))),
            None => Err(refused(format!("without {name}"))),
        };
        let (time, key) = (field(&columns.time)?, columns.key.as_deref().map(field).transpose()?);
        let categories = columns.categories.iter().map(|name| field(name)).collect::<Result<Vec<_>>>()?;
        let categories: Vec<&str> = categories.iter().map(String::as_str).collect();
        let user = match columns.user.as_deref() {
            // As it is written: conversion to a double could change the number.
            Some(name) if object.get(name).is_some_and(Value::is_f64) => {
                let number = written(&text, name);
                let number = number.ok_or_else(|| {
                    refused(format!("with a number in {name} that cannot be read as it is written"))
                })?;
                user_of_number(&format!("user of an event (line {line})"), number)?.into_owned()
            }
            Some(name) => field(name)?,
            None => String::new(),
        };
        let value = columns.value.as_deref().map(field).transpose()?;
        let (key, value, categories) = (key.as_deref(), value.as_deref(), &categories[..]);
        add(line, Row { time: &time, user: &user, key, value, categories })?;
    }
    Ok(())
}
