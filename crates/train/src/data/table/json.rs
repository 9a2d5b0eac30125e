//! JSON lines, cell by cell.

use std::borrow::Cow;
use std::io::{BufRead, BufReader};
use std::path::Path;

use serde_json::{Map, Value};

use super::row::RowSink;
use crate::Error;
use crate::data::file::{bad, open};

const FORMAT: &str = "one JSON object in each line, whose keys are the names of columns";

/// Reads the objects of a file, plain or gzipped; empty lines are skipped.
pub(super) fn json_rows<'a>(path: &Path, rows: &mut impl RowSink<'a>) -> Result<(), Error> {
    if !path.is_file() {
        return Err(bad(path, "absent", format!("a file with {FORMAT}")));
    }
    let names: Vec<&str> = rows.columns().into_iter().map(|(name, _)| name).collect();
    for (at, line) in BufReader::new(open(path)?).split(b'\n').enumerate() {
        let line = line.map_err(Error::io(path))?;
        if line.iter().all(u8::is_ascii_whitespace) {
            continue;
        }
        let number = at + 1;
        let object: Map<String, Value> = serde_json::from_slice(&line)
            .map_err(|error| bad(path, format!("unreadable in line {number} ({error})"), FORMAT))?;
        let cells: Vec<Cow<str>> = names
            .iter()
            .map(|name| {
                cell(object.get(*name)).ok_or_else(|| {
                    let got = format!("a list or an object in line {number}, column {name:?}");
                    bad(path, got, "text, a number, true, false or null")
                })
            })
            .collect::<Result<_, _>>()?;
        rows.add(format_args!("line {number}"), |i| cells[i].as_bytes())?;
    }
    Ok(())
}

/// The text of a cell; `None` for a list or an object.
fn cell(value: Option<&Value>) -> Option<Cow<'_, str>> {
    match value {
        None | Some(Value::Null) => Some("".into()),
        Some(Value::String(text)) => Some(text.as_str().into()),
        Some(Value::Number(number)) => Some(number.to_string().into()),
        Some(Value::Bool(flag)) => Some(if *flag { "true" } else { "false" }.into()),
        Some(Value::Array(_) | Value::Object(_)) => None,
    }
}
