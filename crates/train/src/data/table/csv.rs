//! CSV files, cell by cell.

use std::path::Path;

use ::csv::{ByteRecord, ReaderBuilder};

use super::row::RowReader;
use super::schema::Schema;
use crate::Error;
use crate::data::examples::Examples;
use crate::data::file::{bad, open};

/// Reads the rows of a CSV file, plain or gzipped, whose first line holds names.
pub(super) fn csv_rows(path: &Path, schema: &Schema) -> Result<Examples, Error> {
    if !path.is_file() {
        return Err(bad(path, "absent", "a CSV file, plain or gzipped, with a first line of names"));
    }
    let mut reader = ReaderBuilder::new().flexible(true).from_reader(open(path)?);
    let header = reader.byte_headers().map_err(|error| unreadable(path, &error))?.clone();
    let places = Places::new(path, schema, &header)?;
    let mut rows = RowReader::new(path, schema);
    let mut record = ByteRecord::new();
    while reader.read_byte_record(&mut record).map_err(|error| unreadable(path, &error))? {
        let line = record.position().map_or(0, ::csv::Position::line);
        if record.len() != header.len() {
            let got = format!("{} cells in line {line}", record.len());
            return Err(bad(path, got, format!("{} in each, as in the first", header.len())));
        }
        rows.add(format_args!("line {line}"), |i| &record[places.of[i]])?;
    }
    rows.end()
}

/// The index of each column of a schema in a file; the label comes last.
struct Places {
    of: Vec<usize>,
}

impl Places {
    fn new(path: &Path, schema: &Schema, header: &ByteRecord) -> Result<Self, Error> {
        let name =
            |cell: &'_ [u8]| String::from_utf8_lossy(cell).trim().trim_start_matches('\u{feff}').to_owned();
        let names: Vec<String> = header.iter().map(name).collect();
        let find = |wanted: &str| {
            let mut found = (0..names.len()).filter(|&i| names[i] == wanted);
            match (found.next(), found.next()) {
                (Some(at), None) => Ok(at),
                (Some(_), Some(_)) => {
                    Err(bad(path, format!("with two columns {wanted:?}"), "with one of each name"))
                }
                (None, _) => Err(bad(
                    path,
                    format!("of columns {}", names.join(", ")),
                    format!("with a column {wanted:?}"),
                )),
            }
        };
        let names = schema.columns.iter().map(|column| &column.name).chain([&schema.label]);
        Ok(Self { of: names.map(|name| find(name.as_str())).collect::<Result<_, _>>()? })
    }
}

/// An unreadable CSV file is bad input.
fn unreadable(path: &Path, error: &::csv::Error) -> Error {
    bad(path, format!("unreadable ({error})"), "a CSV file, plain or gzipped, with a first line of names")
}
