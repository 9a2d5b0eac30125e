//! The options of a table: `--data csv:`, `jsonl:`, `npz:`, `parquet:` and `arrow:`.

use std::path::PathBuf;

use antinoise_input::InvalidParameter;
use antinoise_study::{COMMA, TABLES, Table, TableKind, table_file};
use antinoise_train::data::{Column, Missing, Schema, Values};
use clap::{Args, ValueEnum};

use crate::failure::{Failure, Result};
use crate::numbers::real;

/// Public knowledge about a table.
#[derive(Debug, Clone, Args)]
pub struct TableOptions {
    /// For tables: the column of classes and the words for them (late=no,yes).
    #[arg(long, value_name = "COLUMN=CLASS,CLASS")]
    label: Option<String>,
    /// For tables: a column of numbers and its public range, by which it is scaled. Numbers outside are set
    /// to the nearer end. Of an array x of two dimensions (npz:PATH), x names all columns, and x[3] is one.
    /// May be repeated.
    #[arg(long, value_name = "COLUMN=LOW:HIGH")]
    range: Vec<String>,
    /// For tables: a column of words and a public list of them; * stands for all words not in the list. May
    /// be repeated.
    #[arg(long, value_name = "COLUMN=WORD,WORD")]
    category: Vec<String>,
    /// For tables: a column of texts and the number of features that their words are hashed to (note=1024).
    /// May be repeated.
    #[arg(long, value_name = "COLUMN=FEATURES")]
    text: Vec<String>,
    /// For tables: treatment of cells that are empty, NA, null, NaN or infinite [default: refuse].
    #[arg(long, value_enum)]
    missing: Option<MissingName>,
    /// For tables: a TOML file that replaces --label, --range, --category, --text and --missing.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["label", "range", "category", "text", "missing"])]
    schema: Option<PathBuf>,
    /// For tables: a file of the same format with the rows to test on.
    #[arg(long, value_name = "PATH", conflicts_with = "test_share")]
    test: Option<PathBuf>,
    /// For tables: the fraction of rows to test on [default: 0.2].
    #[arg(long, value_name = "SHARE", value_parser = real)]
    test_share: Option<f64>,
    /// For tables: which rows to test on: drawn at random, or the last ones [default: drawn].
    #[arg(long, value_enum, conflicts_with = "test")]
    test_rows: Option<TestRows>,
    /// For tables: seed of the random choice of test rows [default: 0].
    #[arg(long, value_name = "SEED", conflicts_with = "test")]
    test_seed: Option<u64>,
    /// For CSV: the character between cells, or tab [default: ,].
    #[arg(long, value_name = "CHAR", value_parser = delimiter)]
    delimiter: Option<u8>,
}

/// Which rows of a table are tested on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum TestRows {
    /// Drawn at random.
    Drawn,
    /// The last rows: in a table sorted by time, those of the latest times.
    Last,
}

/// One character of a CSV file, or the word tab.
pub fn delimiter(text: &str) -> std::result::Result<u8, String> {
    match text.as_bytes() {
        _ if text == "tab" || text == "\\t" => Ok(b'\t'),
        &[byte] if byte.is_ascii() && !byte.is_ascii_alphanumeric() && !b"\"\n\r".contains(&byte) => Ok(byte),
        _ => Err("must be one character, such as ; or |, or tab".into()),
    }
}

/// Refuses a delimiter for a file that is not CSV.
pub fn check_delimiter(kind: TableKind, delimiter: Option<u8>) -> Result<()> {
    match delimiter {
        Some(byte) if kind != TableKind::Csv => {
            let got = format!("{:?}", char::from(byte));
            Err(InvalidParameter::new("delimiter", got, "left out unless --data is csv:PATH").into())
        }
        _ => Ok(()),
    }
}

/// Treatment of missing cells.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum MissingName {
    /// Refuse the file.
    Refuse,
    /// Use the middle of the range, or no category.
    Zero,
}

impl TableOptions {
    /// Name of the first option that is given.
    pub fn given(&self) -> Option<&'static str> {
        self.all_given().into_iter().find_map(|(name, given)| given.then_some(name))
    }

    /// Each option, and whether it is given.
    fn all_given(&self) -> [(&'static str, bool); 11] {
        [
            ("label", self.label.is_some()),
            ("range", !self.range.is_empty()),
            ("category", !self.category.is_empty()),
            ("text", !self.text.is_empty()),
            ("missing", self.missing.is_some()),
            ("schema", self.schema.is_some()),
            ("test", self.test.is_some()),
            ("test_share", self.test_share.is_some()),
            ("test_rows", self.test_rows.is_some()),
            ("test_seed", self.test_seed.is_some()),
            ("delimiter", self.delimiter.is_some()),
        ]
    }

    /// The table's schema and test rows by these options; `None` if `data` names no table.
    pub fn table(&self, data: &str) -> Result<Option<Table>> {
        let Some((kind, path)) = table_file(data) else {
            return match self.given() {
                None => Ok(None),
                // A file's name without its kind.
                Some(_) if data.contains('.') && !data.contains(':') => {
                    let must_be = format!("{TABLES}, for the options of a table");
                    Err(InvalidParameter::new("data", data, must_be).into())
                }
                Some(name) => {
                    let must_be = format!("left out unless --data is {TABLES}");
                    Err(InvalidParameter::new(name, "given", must_be).into())
                }
            };
        };
        check_delimiter(kind, self.delimiter)?;
        let test_seed = match (self.test_rows, self.test_seed) {
            (Some(TestRows::Last), Some(seed)) => {
                let must_be = "left out with --test-rows last, which draws nothing";
                return Err(InvalidParameter::new("test_seed", seed, must_be).into());
            }
            (Some(TestRows::Last), None) => None,
            (Some(TestRows::Drawn) | None, seed) => Some(seed.unwrap_or(0)),
        };
        // Options are asked for only where there are data.
        let asked = |name: &str, must_be: &str| match path.exists() {
            true => InvalidParameter::new(name, "absent", must_be),
            false => InvalidParameter::new("data", data, "a file that exists"),
        };
        Ok(Some(Table {
            test: self.test.clone(),
            test_share: self.test_share.unwrap_or(0.2),
            test_seed,
            delimiter: self.delimiter.unwrap_or(COMMA),
            user: None,
            schema: kind.file(path, self.delimiter)?.with_columns_of_arrays(self.schema(asked)?)?,
        }))
    }

    /// The settings of a table of texts in a file of this kind: a file of test texts, or the share of users
    /// to test on and its seed; and the delimiter. Options about a label are refused.
    pub fn of_texts(&self, kind: TableKind) -> Result<(Option<PathBuf>, f64, u64, u8)> {
        check_delimiter(kind, self.delimiter)?;
        let is_allowed = |name| ["test", "test_share", "test_seed", "delimiter"].contains(&name);
        let drawn = self.test_rows == Some(TestRows::Drawn);
        let given = self
            .all_given()
            .into_iter()
            .find(|&(name, given)| given && !is_allowed(name) && !(drawn && name == "test_rows"));
        if let Some((name, _)) = given {
            return Err(InvalidParameter::new(name, "given", "left out with --characters").into());
        }
        let (share, seed) = (self.test_share.unwrap_or(0.2), self.test_seed.unwrap_or(0));
        Ok((self.test.clone(), share, seed, self.delimiter.unwrap_or(COMMA)))
    }

    /// The schema; `asked` is the error for an option that is absent.
    fn schema(&self, asked: impl Fn(&str, &str) -> InvalidParameter) -> Result<Schema> {
        if let Some(path) = &self.schema {
            let refused = |error: &dyn std::fmt::Display| {
                Failure::input(format!("schema: {}: {error}", path.display()))
            };
            let text = std::fs::read_to_string(path).map_err(|error| refused(&error))?;
            return Schema::from_toml(&text).map_err(|error| refused(&error));
        }
        let Some(label) = &self.label else {
            let must_be = "COLUMN=CLASS,CLASS, or a --schema: which column is learned, and its classes";
            return Err(asked("label", must_be).into());
        };
        let (label, classes) = words("label", label)?;
        let ranges = self.range.iter().map(|text| range(text));
        let categories = self.category.iter().map(|text| category(text));
        let texts = self.text.iter().map(|column| text(column));
        let columns = ranges.chain(categories).chain(texts).collect::<Result<Vec<_>>>()?;
        if columns.is_empty() {
            let must_be = "given, or --category or --text: what the label is learned from";
            return Err(asked("range", must_be).into());
        }
        let missing = match self.missing {
            Some(MissingName::Zero) => Missing::Zero,
            Some(MissingName::Refuse) | None => Missing::Refuse,
        };
        let schema = Schema { label, classes, missing, columns };
        schema.check().map_err(with_option)?;
        Ok(schema)
    }
}

/// The error of a schema, with the option that it concerns unless its name begins with it.
fn with_option(mut error: InvalidParameter) -> InvalidParameter {
    let option = [
        ("classes of ", "--label"),
        ("categories of ", "--category"),
        ("features of ", "--text"),
        ("column ", "--label, --range, --category, --text"),
    ]
    .into_iter()
    .find_map(|(of, option)| error.parameter.contains(of).then_some(option));
    if let Some(option) = option.filter(|_| !error.parameter.starts_with("range")) {
        error.parameter += &format!(" ({option})");
    }
    error
}

fn range(text: &str) -> Result<Column> {
    let refused = || InvalidParameter::new("range", format!("{text:?}"), "COLUMN=LOW:HIGH");
    let (name, bounds) = text.rsplit_once('=').ok_or_else(refused)?;
    let (low, high) = bounds.split_once(':').ok_or_else(refused)?;
    let bound = |text: &str| {
        let must_be =
            "COLUMN=LOW:HIGH with two numbers: make numbers of dates and times first (days since a date)";
        real(text.trim()).map_err(|_| InvalidParameter::new("range", format!("{:?}", text.trim()), must_be))
    };
    Ok(Column { name: name.trim().into(), values: Values::Range(bound(low)?, bound(high)?) })
}

fn category(text: &str) -> Result<Column> {
    let (name, words) = words("category", text)?;
    Ok(Column { name, values: Values::Categories(words) })
}

fn text(text: &str) -> Result<Column> {
    let refused =
        || InvalidParameter::new("text", format!("{text:?}"), "COLUMN=FEATURES, a number such as 1024");
    let (name, features) = text.rsplit_once('=').ok_or_else(refused)?;
    let features = features.trim().parse().map_err(|_| refused())?;
    Ok(Column { name: name.trim().into(), values: Values::Text(features) })
}

/// A column and its words.
fn words(option: &str, text: &str) -> Result<(String, Vec<String>)> {
    let must_be = "COLUMN=WORD,WORD";
    let (name, words) =
        text.split_once('=').ok_or_else(|| InvalidParameter::new(option, format!("{text:?}"), must_be))?;
    Ok((name.trim().into(), words.split(',').map(|word| word.trim().to_owned()).collect()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_delimiter_is_one_character_that_is_no_cell() {
        assert_eq!(["tab", "\\t", ";", "|", ","].map(delimiter), [b'\t', b'\t', b';', b'|', b','].map(Ok));
        for text in ["", ";;", "a", "1", "\"", "\n", "é"] {
            assert!(delimiter(text).is_err(), "{text:?}");
        }
    }
}
