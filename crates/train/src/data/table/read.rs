//! CSV files, cell by cell.

use std::path::Path;

use csv::{ByteRecord, ReaderBuilder};

use super::column::{Refused, one_of};
use super::schema::{Missing, Schema};
use crate::Error;
use crate::data::examples::Examples;
use crate::data::file::{bad, open};

/// The rows of a CSV file with a first line of names, plain or gzipped, in their order.
pub(super) fn rows(path: &Path, schema: &Schema) -> Result<Examples, Error> {
    let mut reader = ReaderBuilder::new().flexible(true).from_reader(open(path)?);
    let header = reader.byte_headers().map_err(|error| unreadable(path, &error))?.clone();
    let table = Table::new(path, schema, &header)?;
    let each = schema.features();
    let (mut features, mut labels) = (Vec::new(), Vec::new());
    let mut record = ByteRecord::new();
    while reader.read_byte_record(&mut record).map_err(|error| unreadable(path, &error))? {
        let start = features.len();
        features.resize(start + each, 0.0);
        labels.push(table.row(&record, &mut features[start..])?);
    }
    if labels.is_empty() {
        return Err(bad(path, "without rows", "a first line of names and a line for each example"));
    }
    Ok(Examples::new(features, labels, each)?)
}

/// Where the columns of a schema are in a file.
struct Table<'a> {
    path: &'a Path,
    schema: &'a Schema,
    width: usize,
    label: usize,
    columns: Vec<usize>,
}

impl<'a> Table<'a> {
    fn new(path: &'a Path, schema: &'a Schema, header: &ByteRecord) -> Result<Self, Error> {
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
        let columns = schema.columns.iter().map(|column| find(&column.name)).collect::<Result<_, _>>()?;
        Ok(Self { path, schema, width: names.len(), label: find(&schema.label)?, columns })
    }

    /// Writes a row's features; its label.
    fn row(&self, record: &ByteRecord, mut features: &mut [f32]) -> Result<u32, Error> {
        let line = record.position().map_or(0, csv::Position::line);
        if record.len() != self.width {
            let got = format!("{} cells in line {line}", record.len());
            return Err(bad(self.path, got, format!("{} in each, as in the first", self.width)));
        }
        let refused = |column: &str, cell: &str, must_be: String| {
            bad(self.path, format!("{cell:?} in line {line}, column {column:?}"), must_be)
        };
        let text = |at: usize, column: &str| {
            let cell = std::str::from_utf8(&record[at]).map(str::trim);
            cell.map_err(|_| refused(column, &String::from_utf8_lossy(&record[at]), "text in UTF-8".into()))
        };
        for (column, &at) in self.schema.columns.iter().zip(&self.columns) {
            let (own, rest) = features.split_at_mut(column.width());
            features = rest;
            let cell = text(at, &column.name)?;
            match column.fill(cell, own) {
                Ok(()) => {}
                Err(Refused::Missing) if self.schema.missing == Missing::Zero => {}
                Err(Refused::Missing) => {
                    let must_be =
                        "there, as a finite number or a word (or told to count as 0: missing = zero)";
                    return Err(refused(&column.name, cell, must_be.into()));
                }
                Err(Refused::MustBe(what)) => return Err(refused(&column.name, cell, what)),
            }
        }
        let cell = text(self.label, &self.schema.label)?;
        let class = self.schema.classes.iter().position(|class| class == cell);
        let class = class.ok_or_else(|| refused(&self.schema.label, cell, one_of(&self.schema.classes)))?;
        Ok(class as u32)
    }
}

/// What is no CSV file is bad input; anything else is the machine's fault.
fn unreadable(path: &Path, error: &csv::Error) -> Error {
    bad(path, format!("unreadable ({error})"), "a CSV file, plain or gzipped, with a first line of names")
}
