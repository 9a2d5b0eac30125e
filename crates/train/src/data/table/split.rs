//! Splitting a table into training and test rows.

use std::path::Path;

use antinoise_input::in_open_unit;

use super::csv::csv_rows;
#[cfg(feature = "parquet")]
use super::parquet::parquet_rows;
use super::schema::Schema;
use crate::Error;
use crate::data::examples::{Dataset, Examples, ImageShape};
use crate::data::file::bad;

/// The rows of a table that are used for testing.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum TestPart<'a> {
    /// The rows of another file of the same kind, with the same columns.
    File(&'a Path),
    /// The last rows: this share of all, above 0 and below 1, rounded to whole rows, at least one.
    Last(f64),
}

/// The classification problem of a CSV file, plain or gzipped, whose first line holds names. Rows keep their
/// order, so that one pass over the data can follow a stream.
///
/// Features are scaled by the schema's public knowledge of a column, never by the data. A million rows of 20
/// columns load in seconds.
///
/// ```
/// use antinoise_train::data::{Column, Missing, Schema, TestPart, Values, csv};
/// let path = tempfile::NamedTempFile::new().unwrap().into_temp_path();
/// std::fs::write(&path, "hour,from,late\n0,JFK,no\n24,EWR,yes\n12,JFK,yes\n").unwrap();
/// let words = |list: &[&str]| list.iter().map(|word| word.to_string()).collect::<Vec<_>>();
/// let column = |name: &str, values| Column { name: name.into(), values };
/// let schema = Schema {
///     label: "late".into(),
///     classes: words(&["no", "yes"]),
///     missing: Missing::Refuse,
///     columns: vec![
///         column("hour", Values::Range(0.0, 24.0)),
///         column("from", Values::Categories(words(&["EWR", "JFK"]))),
///     ],
/// };
/// let table = csv(&path, &schema, TestPart::Last(0.3))?;
/// assert_eq!((table.train.len(), table.test.len()), (2, 1));
/// assert_eq!((table.train.features(0), table.train.features(1)), (&[-1.0, 0.0, 1.0][..], &[1.0, 1.0, 0.0][..]));
/// assert_eq!((table.test.features(0), table.test.labels()), (&[0.0, 0.0, 1.0][..], &[1][..]));
/// # Ok::<(), antinoise_train::Error>(())
/// ```
///
/// # Errors
/// If the schema is invalid; if a file is absent or not a CSV file, lacks a column or has it twice; if a row
/// has another length; if a cell is not a number, is missing, or has an unknown category or class (the error
/// names line and column); if a part has no rows.
pub fn csv(path: &Path, schema: &Schema, test: TestPart) -> Result<Dataset, Error> {
    dataset(path, schema, test, csv_rows)
}

/// As [`csv()`], for a Parquet file. Ranges need columns of numbers; categories and classes are text, whole
/// numbers or booleans.
///
/// # Errors
/// As [`csv()`], with the number of the row from 0; if a column has another type.
#[cfg(feature = "parquet")]
pub fn parquet(path: &Path, schema: &Schema, test: TestPart) -> Result<Dataset, Error> {
    dataset(path, schema, test, parquet_rows)
}

fn dataset(
    path: &Path,
    schema: &Schema,
    test: TestPart,
    rows: fn(&Path, &Schema) -> Result<Examples, Error>,
) -> Result<Dataset, Error> {
    schema.check()?;
    let all = rows(path, schema)?;
    let (train, test) = match test {
        TestPart::File(other) => (all, rows(other, schema)?),
        TestPart::Last(share) => {
            let count = (in_open_unit("test_share", share)? * all.len() as f64).round().max(1.0) as usize;
            if count >= all.len() {
                let must_be = "rows enough to train on and to test with";
                return Err(bad(path, format!("{} rows, of which {count} to test with", all.len()), must_be));
            }
            split(all, count)?
        }
    };
    let name = path.file_name().map_or_else(|| "table".into(), |name| name.to_string_lossy().into_owned());
    Ok(Dataset {
        name,
        shape: ImageShape::row(schema.features()),
        classes: schema.classes.len(),
        train,
        test,
    })
}

/// All examples except the last `count`, and the last `count`.
fn split(all: Examples, count: usize) -> Result<(Examples, Examples), Error> {
    let (each, first) = (all.features_each(), all.len() - count);
    let (mut features, mut labels) = all.into_parts();
    let (last_features, last_labels) = (features.split_off(first * each), labels.split_off(first));
    Ok((Examples::new(features, labels, each)?, Examples::new(last_features, last_labels, each)?))
}
