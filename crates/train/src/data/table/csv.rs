//! CSV files, cell by cell.

use std::io::{BufReader, Read};
use std::path::Path;

use ::csv::{ByteRecord, ReaderBuilder};
use antinoise_input::tables::{CSV_END, csv_end, ends_lines_with_crlf};

use super::row::RowSink;
use crate::Error;
use crate::data::file::{bad, open};

/// The bytes that a file in UTF-16 starts with.
const UTF16_MARKS: [&[u8]; 2] = [&[0xff, 0xfe], &[0xfe, 0xff]];

/// The usual delimiters. A message names the one that a file seems to have.
const DELIMITERS: [char; 4] = [',', ';', '\t', '|'];

/// Reads the rows of a CSV file, plain or gzipped, whose first line holds names.
pub(super) fn csv_rows<'a>(path: &Path, delimiter: u8, rows: &mut impl RowSink<'a>) -> Result<(), Error> {
    if !path.is_file() {
        return Err(bad(path, "absent", "a CSV file, plain or gzipped, whose first line names the columns"));
    }
    let mut file = BufReader::new(open(path)?);
    let before = u64::from(ends_lines_with_crlf(&mut file).map_err(Error::io(path))?);
    let mut reader =
        ReaderBuilder::new().flexible(true).delimiter(delimiter).from_reader(file.chain(CSV_END));
    let header = reader.byte_headers().map_err(|error| unreadable(path, &error))?.clone();
    if UTF16_MARKS.iter().any(|mark| header.get(0).is_some_and(|cell| cell.starts_with(mark))) {
        return Err(bad(path, "in UTF-16", "text in UTF-8"));
    }
    if header.is_empty() || csv_end(header.len(), |i| header.get(i)).is_some() {
        return Err(bad(path, "empty", "a CSV file, plain or gzipped, whose first line names the columns"));
    }
    let places = places(path, rows.columns().into_iter().map(|(name, _)| name), &header)?;
    let mut record = ByteRecord::new();
    while reader.read_byte_record(&mut record).map_err(|error| unreadable(path, &error))? {
        let line = before + record.position().map_or(0, ::csv::Position::line);
        match csv_end(record.len(), |i| record.get(i)) {
            None => {}
            Some(true) => return Ok(()),
            Some(false) => {
                let got = format!("with a quote in line {line} that is not closed");
                return Err(bad(path, got, "with quotes around whole cells alone"));
            }
        }
        if record.len() != header.len() {
            let got = format!("{} cells in line {line}", record.len());
            return Err(bad(path, got, format!("{} in each line, as in the first", header.len())));
        }
        rows.add(format_args!("line {line}"), |i| &record[places[i]])?;
    }
    Ok(())
}

/// The index of each wanted column in a file.
fn places<'a>(
    path: &Path,
    wanted: impl Iterator<Item = &'a str>,
    header: &ByteRecord,
) -> Result<Vec<usize>, Error> {
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
                format!("with a column {wanted:?}{}", delimiter_of(&names)),
            )),
        }
    };
    wanted.map(find).collect()
}

/// A hint for an error about a missing column: the option for the file's delimiter if the first line was read
/// as a single name, else the question whether the first line holds names.
fn delimiter_of(names: &[String]) -> String {
    let is_it_names = String::from(" (is the first line the names of the columns?)");
    let [only] = names else { return is_it_names };
    let found = DELIMITERS.into_iter().find(|&delimiter| only.contains(delimiter));
    found.map_or(is_it_names, |found| {
        format!("; its first line has the delimiter {found:?}: give --delimiter {found:?}")
    })
}

/// An unreadable CSV file is bad input.
fn unreadable(path: &Path, error: &::csv::Error) -> Error {
    bad(
        path,
        format!("unreadable ({error})"),
        "a CSV file, plain or gzipped, whose first line names the columns",
    )
}
