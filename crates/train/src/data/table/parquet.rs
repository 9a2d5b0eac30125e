//! Parquet files, cell by cell.

use std::path::Path;

use antinoise_input::tables::{Cells, Parquet, Role};

use super::column::Values;
use super::row::{Labels, RowReader};
use super::schema::Schema;
use crate::Error;
use crate::data::examples::Examples;

/// Reads the rows of a Parquet file, in order.
pub(super) fn parquet_rows(path: &Path, schema: &Schema, labels: Labels) -> Result<Examples, Error> {
    let mut asked: Vec<(&str, Role)> = schema
        .columns
        .iter()
        .map(|column| match column.values {
            Values::Range(..) => (&*column.name, Role::Value),
            Values::Categories(_) | Values::Text(_) => (&*column.name, Role::Name),
        })
        .collect();
    if labels == Labels::Required {
        asked.push((&schema.label, Role::Name));
    }
    let file = Parquet::open("data", path, &asked)?;
    let mut rows = RowReader::new(path, schema, labels);
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
                .map(|(cells, room)| match cells.is_null(i) {
                    true => Ok(""),
                    false => cells.text("cell", i, room),
                })
                .collect::<Result<Vec<_>, _>>()?;
            rows.add(format_args!("row {row}"), |column| texts[column].as_bytes())?;
            row += 1;
        }
    }
    rows.end()
}
