//! Events from Parquet and Arrow files, in batches: memory does not grow with their number.

use std::collections::HashSet;
use std::path::Path;

use antinoise_input::tables::{Batches, ColumnFormat};

use crate::Result;
use crate::events::arrow::EventTable;
use crate::events::freeze::{Found, Freezing};
use crate::events::rows::Handling;
use crate::events::text::Columns;

impl Freezing<'_> {
    /// Adds the rows of the Parquet or Arrow file at `path` that lie in the period; calls `each` for every
    /// row. Arrow files and streams must not be compressed. For types of columns see [`EventTable`].
    ///
    /// # Errors
    /// As [`Freezing::read`], with the number of the row from 0; if the file cannot be read, lacks a column
    /// or has one of another type.
    pub fn read_columns(
        &mut self,
        path: &Path,
        format: ColumnFormat,
        columns: &Columns,
        handling: Handling,
        mut each: impl FnMut(),
    ) -> Result<Found> {
        // A column may have several roles, such as a value and a category, and is read once.
        let mut roles: Vec<_> = columns.roles().collect();
        let mut seen = HashSet::new();
        roles.retain(|(name, _)| seen.insert(*name));
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
