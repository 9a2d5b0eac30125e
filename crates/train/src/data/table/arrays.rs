//! NumPy's archives of arrays, cell by cell.

use std::path::Path;

use antinoise_input::InvalidParameter;
use antinoise_input::arrays::{Archive, ArrayTable};

use super::column::Column;
use super::row::RowSink;
use super::schema::Schema;
use crate::Error;
use crate::data::file::bad;

/// Reads the rows of an `.npz` archive, in order.
pub(super) fn array_rows<'a>(path: &Path, rows: &mut impl RowSink<'a>) -> Result<(), Error> {
    let asked = rows.columns();
    let table = ArrayTable::open(path, &asked).map_err(|error| unusable(path, error))?;
    let mut rooms = vec![String::new(); asked.len()];
    for row in 0..table.rows() {
        let texts = (0..asked.len())
            .zip(&mut rooms)
            .map(|(column, room)| {
                table.text("cell", (row, column), room).map_err(|error| {
                    let got = format!("{} in row {row}, column {:?}", error.got, asked[column].0);
                    bad(path, got, error.must_be)
                })
            })
            .collect::<Result<Vec<_>, _>>()?;
        rows.add(format_args!("row {row}"), |column| texts[column].as_bytes())?;
    }
    Ok(())
}

/// The schema with the columns of each array that it names.
pub(super) fn array_columns(path: &Path, schema: Schema) -> Result<Schema, Error> {
    let mut archive = Archive::open(path).map_err(|error| unusable(path, error))?;
    let mut columns = Vec::new();
    for Column { name, values } in schema.columns {
        let names = archive.columns(&name).map_err(|error| unusable(path, error))?;
        columns.extend(names.into_iter().map(|name| Column { name, values: values.clone() }));
    }
    let schema = Schema { columns, ..schema };
    schema.check()?;
    Ok(schema)
}

fn unusable(path: &Path, error: InvalidParameter) -> Error {
    match &*error.parameter {
        "archive" => bad(path, error.got, format!("an .npz archive {}", error.must_be)),
        array => bad(path, format!("unusable: {array} is {}", error.got), error.must_be),
    }
}
