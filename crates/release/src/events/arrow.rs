//! Events in Arrow tables, batch by batch: memory does not grow with their number.

use std::ops::Range;

use antinoise_input::tables::{Cells, Role, column};
use arrow_array::RecordBatch;
use arrow_schema::Schema;

use crate::Result;
use crate::events::rows::Rows;
use crate::events::text::{CATEGORY, Columns};

/// The columns of events in an Arrow table.
///
/// Times are text, whole or real numbers, dates, or timestamps in UTC, at a fixed offset or without a zone; a
/// timestamp is read as 2026-03-01T17:45:00, in the local time of its own zone. Users and keys are text,
/// whole numbers or booleans; values are numbers. A user may also be a floating-point number, if it is whole
/// and below 2^53: other programs store a column of whole numbers with an empty cell in this way. Text may
/// have any of Arrow's encodings, dictionaries included. Rows are numbered from 0.
///
/// ```
/// use std::sync::Arc;
/// use antinoise_release::{Columns, EventTable, Handling, Late, Release, Settings, Unit};
/// use arrow_array::{ArrayRef, Date32Array, Int64Array, RecordBatch, StringArray};
///
/// let days: ArrayRef = Arc::new(Date32Array::from(vec![20_513, 20_513]));
/// let users: ArrayRef = Arc::new(Int64Array::from(vec![17, 18]));
/// let keys: ArrayRef = Arc::new(StringArray::from(vec!["north", "south"]));
/// let batch = RecordBatch::try_from_iter([("day", days), ("id", users), ("shop", keys)])?;
///
/// let folder = tempfile::tempdir()?;
/// let settings = Settings::new(["north", "south"].map(String::from).to_vec(), 30, Unit::User);
/// let mut release = Release::create(folder.path(), &settings)?;
/// let mut day = release.freeze(&"2026-03-01".parse()?)?;
/// let (time, user, key) = ("day".into(), Some("id".into()), Some("shop".into()));
/// let columns = Columns { time, user, key, ..Columns::default() };
/// let mut table = EventTable::new(batch.schema_ref(), &columns)?;
/// let mut rows = day.rows(Handling { late: Late::Refuse, leave_unknown_keys: false });
/// table.batch(&batch)?.read(0..2, &mut rows)?;
/// assert_eq!(rows.end()?.tally.counted, 2);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct EventTable {
    time: usize,
    user: Option<usize>,
    key: Option<usize>,
    value: Option<usize>,
    categories: Vec<usize>,
    /// Number of rows in earlier batches.
    read: u64,
}

impl EventTable {
    /// Finds the columns.
    ///
    /// # Errors
    /// If a column is absent, occurs twice, or has a type that is not supported.
    pub fn new(schema: &Schema, columns: &Columns) -> Result<Self> {
        let place = |name: &str, role| column(schema, name, role);
        Ok(Self {
            time: place(&columns.time, Role::Time)?,
            user: columns.user.as_deref().map(|name| place(name, Role::User)).transpose()?,
            key: columns.key.as_deref().map(|name| place(name, Role::Name)).transpose()?,
            value: columns.value.as_deref().map(|name| place(name, Role::Value)).transpose()?,
            categories: columns
                .categories
                .iter()
                .map(|name| place(name, CATEGORY))
                .collect::<std::result::Result<_, _>>()?,
            read: 0,
        })
    }

    /// The next batch, whose rows [`EventBatch::read`] adds.
    ///
    /// # Errors
    /// If the batch violates Arrow's rules.
    pub fn batch<'a>(&mut self, batch: &'a RecordBatch) -> Result<EventBatch<'a>> {
        let cells = |place: usize| Cells::new(batch.schema_ref().field(place).name(), batch.column(place));
        let (time, key) = (cells(self.time)?, self.key.map(cells).transpose()?);
        let categories = self.categories.iter().map(|place| cells(*place));
        let categories = categories.collect::<std::result::Result<Vec<_>, _>>()?;
        let of_categories = vec![String::new(); categories.len()];
        let (user, value) = (self.user.map(cells).transpose()?, self.value.map(cells).transpose()?);
        let first = self.read;
        self.read += batch.num_rows() as u64;
        let rooms = [const { String::new() }; 4];
        Ok(EventBatch { time, user, key, value, categories, first, rooms, of_categories })
    }
}

/// The rows of a batch.
pub struct EventBatch<'a> {
    time: Cells<'a>,
    user: Option<Cells<'a>>,
    key: Option<Cells<'a>>,
    value: Option<Cells<'a>>,
    categories: Vec<Cells<'a>>,
    /// The number of the batch's first row.
    first: u64,
    /// Buffers for cells that are not text.
    rooms: [String; 4],
    /// Buffers for cells of categories.
    of_categories: Vec<String>,
}

impl EventBatch<'_> {
    /// Adds these rows of the batch, counted from 0, to `rows`.
    ///
    /// # Errors
    /// If a row lacks a needed cell, and as [`Rows::add`]; the error names the row.
    ///
    /// # Panics
    /// If the batch has no such rows.
    pub fn read(&mut self, which: Range<usize>, rows: &mut Rows<'_, '_>) -> Result<()> {
        let Self { time, user, key, value, categories, first, rooms, of_categories } = self;
        let [of_time, of_user, of_key, of_value] = rooms;
        for row in which {
            let mut add = || {
                if !rows.lies_here(time.text("time of an event", row, of_time)?)? {
                    return Ok(());
                }
                let user =
                    user.as_ref().map_or(Ok(""), |user| user.user("user of an event", row, of_user))?;
                let value = value
                    .as_ref()
                    .map(|value| value.number("value of an event", row, of_value))
                    .transpose()?;
                let key = key.as_ref().map(|key| key.text("key of an event", row, of_key)).transpose()?;
                let texts = categories.iter().zip(&mut *of_categories);
                let texts = texts.map(|(cells, room)| cells.text("category of an event", row, room));
                let categories = texts.collect::<std::result::Result<Vec<&str>, _>>()?;
                rows.add_with(user, key, value, &categories)
            };
            add().map_err(|error| error.at(format_args!("row {}", *first + row as u64)))?;
        }
        Ok(())
    }
}
