//! Events from Parquet and Arrow files, in batches: memory does not grow with their number.

use std::path::Path;

use antinoise_input::tables::{Batches, ColumnFormat};

use crate::Result;
use crate::events::arrow::EventTable;
use crate::events::freeze::{Found, Freezing};
use crate::events::rows::Handling;
use crate::events::text::Columns;

impl Freezing<'_> {
    /// Adds the rows of the Parquet file at `path` that lie in the period; calls `each` for every row. For
    /// types of columns see [`EventTable`].
    ///
    /// # Errors
    /// As [`Freezing::read`], with the number of the row from 0; if the file cannot be read, lacks a column
    /// or has one of another type.
    pub fn read_parquet(
        &mut self,
        path: &Path,
        columns: &Columns,
        handling: Handling,
        each: impl FnMut(),
    ) -> Result<Found> {
        self.read_batches(path, ColumnFormat::Parquet, columns, handling, each)
    }

    /// Adds the rows of the Arrow IPC file or stream at `path`, which must not be compressed, as
    /// [`Freezing::read_parquet`].
    ///
    /// # Errors
    /// As [`Freezing::read_parquet`].
    pub fn read_arrow(
        &mut self,
        path: &Path,
        columns: &Columns,
        handling: Handling,
        each: impl FnMut(),
    ) -> Result<Found> {
        self.read_batches(path, ColumnFormat::Arrow, columns, handling, each)
    }

    fn read_batches(
        &mut self,
        path: &Path,
        format: ColumnFormat,
        columns: &Columns,
        handling: Handling,
        mut each: impl FnMut(),
    ) -> Result<Found> {
        let roles: Vec<_> = columns.roles().collect();
        let file = Batches::open("events", path, format, &roles)?;
        let mut table = EventTable::new(file.schema(), columns)?;
        let mut rows = self.rows(handling);
        for batch in file {
            let batch = batch?;
            let mut events = table.batch(&batch)?;
            for row in 0..batch.num_rows() {
                each();
                events.read(row..row + 1, &mut rows)?;
            }
        }
        rows.end()
    }
}
