//! Parquet files, cell by cell.

use std::path::Path;

use antinoise_input::tables::{Cells, Parquet, Role};

use super::column::Values;
use super::row::{Labels, RowReader, Rows, Wanted};
use crate::Error;

/// Reads the rows of a Parquet file, in order.
pub(super) fn parquet_rows(path: &Path, wanted: Wanted) -> Result<Rows, Error> {
    let columns = wanted.schema.columns.iter().map(|column| match column.values {
        Values::Range(..) => Role::Value,
        Values::Categories(_) | Values::Text(_) => Role::Name,
    });
    let label = (wanted.labels == Labels::Required).then_some(Role::Name);
    let roles = columns.chain(label).chain(wanted.user.map(|_| Role::User));
    let asked: Vec<(&str, Role)> = wanted.names().zip(roles).collect();
    let file = Parquet::open("data", path, &asked)?;
    let mut rows = RowReader::new(path, wanted);
    let (mut row, mut rooms) = (0u64, vec![String::new(); asked.len()]);
    for batch in file {
        let batch = batch?;
        let columns = asked
            .iter()
            .map(|(name, _)| {
                Cells::new(name, batch.column_by_name(name).expect("the columns that were asked for"))
            })
            .collect::<Result<Vec<_>, _>>()?;
        for i in 0..batch.num_rows() {
            let texts = columns
                .iter()
                .zip(&mut rooms)
                .zip(&asked)
                .map(|((cells, room), (name, role))| match role {
                    _ if cells.is_null(i) => Ok(""),
                    Role::User => cells.user(&format!("column {name:?} of row {row}"), i, room),
                    _ => cells.text("cell", i, room),
                })
                .collect::<Result<Vec<_>, _>>()?;
            rows.add(format_args!("row {row}"), |column| texts[column].as_bytes())?;
            row += 1;
        }
    }
    rows.end()
}
