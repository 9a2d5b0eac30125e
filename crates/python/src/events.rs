//! Reads the rows of a period from Python: from an Arrow stream, from columns, or from rows.

use antinoise_input::InvalidParameter;
use antinoise_release::{Columns, EventTable, Found, Freezing, Handling, Number, Rows};
use pyo3::prelude::*;
use pyo3::types::{
    PyByteArray, PyBytes, PyDict, PyFrozenSet, PyIterator, PyMapping, PySet, PyString, PyTuple,
};

use crate::arrow::{Stream, refusing_panics};
use crate::errors::Result;
use crate::values::{kind, real, text};

/// Rows to process between two checks for Ctrl-C.
const PART: usize = 1 << 15;

/// Adds the rows of `events` that lie in the period.
pub fn read(
    events: &Bound<'_, PyAny>,
    columns: &Columns,
    handling: Handling,
    freezing: &mut Freezing<'_>,
) -> Result<Found> {
    let py = events.py();
    let mut rows = freezing.rows(handling);
    if events.hasattr("__arrow_c_stream__")? {
        return refusing_panics(|| {
            let stream = Stream::of(events)?;
            py.detach(|| read_stream(stream, columns, &mut rows))?;
            Ok(rows.end()?)
        });
    }
    let iterator = Cells::of(events, columns)?;
    let mut first = 0;
    loop {
        let part = iterator.part(first)?;
        if part.is_empty() {
            return Ok(rows.end()?);
        }
        first += part.len();
        py.check_signals()?;
        py.detach(|| part.iter().try_for_each(|row| row.add(&mut rows)))?;
    }
}

/// Reads a stream on the calling thread while other Python threads run.
fn read_stream(mut stream: Stream, columns: &Columns, rows: &mut Rows<'_, '_>) -> Result<()> {
    let mut table = EventTable::new(stream.schema(), columns)?;
    while let Some(batch) = stream.next()? {
        let mut read = table.batch(&batch)?;
        for first in (0..batch.num_rows()).step_by(PART) {
            Python::attach(|py| py.check_signals())?;
            read.read(first..batch.num_rows().min(first + PART), rows)?;
        }
    }
    Ok(())
}

/// One row, as extracted from Python objects.
struct Row {
    number: usize,
    time: String,
    user: String,
    key: Option<String>,
    value: Option<f64>,
    categories: Vec<String>,
}

impl Row {
    fn add(&self, rows: &mut Rows<'_, '_>) -> Result<()> {
        let categories: Vec<&str> = self.categories.iter().map(String::as_str).collect();
        let added = rows.lies_here(&self.time).and_then(|here| match here {
            true => {
                let value = self.value.map(Number::Real);
                rows.add_with(&self.user, self.key.as_deref(), value, &categories)
            }
            false => Ok(()),
        });
        Ok(added.map_err(|error| error.at(format_args!("row {}", self.number)))?)
    }
}

/// Iterates over rows of cells in the order time, key, user, value, categories; only those that the release
/// reads.
struct Cells<'a, 'py> {
    rows: Bound<'py, PyIterator>,
    columns: &'a Columns,
    /// Whether rows are dicts rather than tuples of cells.
    by_name: bool,
}

impl<'a, 'py> Cells<'a, 'py> {
    fn of(events: &Bound<'py, PyAny>, columns: &'a Columns) -> Result<Self> {
        let Ok(table) = events.cast::<PyMapping>() else {
            let rows = events.try_iter().map_err(|_| {
                let must_be = "a table with __arrow_c_stream__ (pandas, polars, pyarrow, DuckDB), a dict of columns or an iterable of dicts";
                InvalidParameter::new("events", kind(events), must_be)
            })?;
            return Ok(Self { rows, columns, by_name: true });
        };
        let named = names(columns).map(|name| column(table.as_any(), name)).collect::<Result<Vec<_>>>()?;
        let py = events.py();
        let strict = PyDict::new(py);
        strict.set_item("strict", true)?;
        let zip = py.import("builtins")?.getattr("zip")?;
        let rows = zip.call(PyTuple::new(py, named)?, Some(&strict))?.try_iter()?;
        Ok(Self { rows, columns, by_name: false })
    }

    /// The next rows; `first` is the number of the first of them.
    fn part(&self, first: usize) -> Result<Vec<Row>> {
        let mut part = Vec::new();
        for (row, number) in self.rows.clone().take(PART / 8).zip(first..) {
            part.push(self.row(&row?, number)?);
        }
        Ok(part)
    }

    fn row(&self, row: &Bound<'py, PyAny>, number: usize) -> Result<Row> {
        let mut cells = Vec::with_capacity(4);
        if self.by_name {
            for name in names(self.columns) {
                cells.push(cell(row, name)?);
            }
        } else {
            cells.extend(row.cast::<PyTuple>().map_err(PyErr::from)?.iter());
        }
        let mut cells = cells.iter();
        let mut next = |wanted: bool| if wanted { cells.next() } else { None };
        let (time, key) = (next(true), next(self.columns.key.is_some()));
        let (user, value) = (next(self.columns.user.is_some()), next(self.columns.value.is_some()));
        let read = |what, cell: Option<&Bound<'py, PyAny>>| {
            cell.map_or(Ok(String::new()), |cell| text(what, number, cell))
        };
        Ok(Row {
            number,
            time: read("time", time)?,
            user: read("user", user)?,
            key: key.map(|cell| text("key", number, cell)).transpose()?,
            value: value.map(|cell| real("value", number, cell)).transpose()?,
            categories: cells.map(|cell| category(number, cell)).collect::<Result<_>>()?,
        })
    }
}

/// A category as text: as a key is read, or a real number.
fn category(row: usize, cell: &Bound<'_, PyAny>) -> Result<String> {
    text("category", row, cell).or_else(|error| match real("category", row, cell) {
        Ok(number) => Ok(number.to_string()),
        Err(_) => Err(error),
    })
}

/// The names of the columns to read.
fn names(columns: &Columns) -> impl Iterator<Item = &str> {
    columns.roles().map(|(name, _)| name)
}

/// The cells of a column, in the order of the rows. Refuses unordered collections, and text, whose letters
/// would be taken for cells.
fn column<'py>(of: &Bound<'py, PyAny>, name: &str) -> Result<Bound<'py, PyAny>> {
    let cells = cell(of, name)?;
    let is_text = cells.is_instance_of::<PyString>()
        || cells.is_instance_of::<PyBytes>()
        || cells.is_instance_of::<PyByteArray>();
    let is_unordered = cells.is_instance_of::<PySet>()
        || cells.is_instance_of::<PyFrozenSet>()
        || cells.cast::<PyMapping>().is_ok();
    if is_text || is_unordered {
        let must_be = "a list, an array or another sequence with a cell for each row";
        return Err(InvalidParameter::new(format!("column {name:?}"), kind(&cells), must_be).into());
    }
    Ok(cells)
}

fn cell<'py>(of: &Bound<'py, PyAny>, name: &str) -> Result<Bound<'py, PyAny>> {
    of.get_item(name).map_err(|error| {
        let must_be = format!("there ({error})");
        InvalidParameter::new(format!("column {name:?}"), "absent", must_be).into()
    })
}
