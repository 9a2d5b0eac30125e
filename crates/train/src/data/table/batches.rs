//! Parquet and Arrow files, cell by cell.

use std::path::Path;

use antinoise_input::InvalidParameter;
use antinoise_input::tables::{Batches, Cells, ColumnFormat, Role};

use super::row::RowSink;
use crate::Error;
use crate::data::file::bad;

/// Reads the rows of a Parquet or Arrow file, in order.
pub(super) fn batch_rows<'a>(
    path: &Path,
    format: ColumnFormat,
    rows: &mut impl RowSink<'a>,
) -> Result<(), Error> {
    let asked = rows.columns();
    let file = Batches::open("data", path, format, &asked)?;
    let (mut row, mut rooms) = (0u64, vec![String::new(); asked.len()]);
    for batch in file {
        let batch = batch?;
        let columns = asked
            .iter()
            .map(|(name, _)| {
                let array = batch.column_by_name(name).expect("the file was opened with these columns");
                Cells::new(name, array).map_err(|error| {
                    bad(path, format!("with {} {}", error.parameter, error.got), error.must_be)
                })
            })
            .collect::<Result<Vec<_>, _>>()?;
        for i in 0..batch.num_rows() {
            let refused = |name: &str, error: InvalidParameter| {
                bad(path, format!("{} in row {row}, column {name:?}", error.got), error.must_be)
            };
            let texts = columns
                .iter()
                .zip(&mut rooms)
                .zip(&asked)
                .map(|((cells, room), (name, role))| {
                    let text = match role {
                        _ if cells.is_null(i) => return Ok(""),
                        Role::User => cells.user("user", i, room),
                        _ => cells.text("cell", i, room),
                    };
                    text.map_err(|error| refused(name, error))
                })
                .collect::<Result<Vec<_>, _>>()?;
            rows.add(format_args!("row {row}"), |column| texts[column].as_bytes())?;
            row += 1;
        }
    }
    Ok(())
}
