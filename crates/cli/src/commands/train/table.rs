//! The schema of a table for `--data csv:` and `parquet:`: its options, and the part that a run's folder
//! stores.

use std::path::{Path, PathBuf};

use antinoise_input::InvalidParameter;
use antinoise_train::data::{self, Column, Dataset, Missing, Schema, TestPart, Values};
use clap::{Args, ValueEnum};
use serde::{Deserialize, Serialize};

use crate::failure::{Failure, Result};
use crate::numbers::real;

/// Public knowledge about a table.
#[derive(Debug, Clone, Args)]
pub struct TableOptions {
    /// For tables: the column of classes and the words for them (late=no,yes).
    #[arg(long, value_name = "COLUMN=CLASS,CLASS")]
    label: Option<String>,
    /// For tables: a column of numbers and its public range, by which it is scaled. Numbers outside are set
    /// to the nearer end. May be repeated.
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
    /// For tables: a TOML file with the label, ranges, categories, texts and missing, instead of these
    /// options.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["label", "range", "category", "text", "missing"])]
    schema: Option<PathBuf>,
    /// For tables: a file of the same format with the rows to test on.
    #[arg(long, value_name = "PATH", conflicts_with = "test_share")]
    test: Option<PathBuf>,
    /// For tables: the fraction of rows to test on, taken from the end [default: 0.2].
    #[arg(long, value_name = "SHARE", value_parser = real)]
    test_share: Option<f64>,
}

/// Treatment of missing cells.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum MissingName {
    /// Refuse the file.
    Refuse,
    /// Use the middle of the range, or no category.
    Zero,
}

/// Table options that a run's folder stores.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Table {
    test: Option<PathBuf>,
    test_share: f64,
    schema: Schema,
}

impl TableOptions {
    /// Name of the first option that is given.
    pub fn given(&self) -> Option<&'static str> {
        let given = [
            ("label", self.label.is_some()),
            ("range", !self.range.is_empty()),
            ("category", !self.category.is_empty()),
            ("text", !self.text.is_empty()),
            ("missing", self.missing.is_some()),
            ("schema", self.schema.is_some()),
            ("test", self.test.is_some()),
            ("test_share", self.test_share.is_some()),
        ];
        given.into_iter().find_map(|(name, given)| given.then_some(name))
    }

    /// The table's schema and test rows by these options; `None` if `data` names no table.
    pub fn table(&self, data: &str) -> Result<Option<Table>> {
        if table_file(data).is_none() {
            return match self.given() {
                None => Ok(None),
                Some(name) => {
                    let must_be = "left out unless --data is csv:PATH or parquet:PATH";
                    Err(InvalidParameter::new(name, "given", must_be).into())
                }
            };
        }
        let test_share = self.test_share.unwrap_or(0.2);
        Ok(Some(Table { test: self.test.clone(), test_share, schema: self.schema()? }))
    }

    fn schema(&self) -> Result<Schema> {
        if let Some(path) = &self.schema {
            let refused = |error: &dyn std::fmt::Display| {
                Failure::input(format!("schema: {}: {error}", path.display()))
            };
            let text = std::fs::read_to_string(path).map_err(|error| refused(&error))?;
            return Schema::from_toml(&text).map_err(|error| refused(&error));
        }
        let Some(label) = &self.label else {
            let must_be = "COLUMN=CLASS,CLASS, or a --schema: which column is learned, and its classes";
            return Err(InvalidParameter::new("label", "absent", must_be).into());
        };
        let (label, classes) = words("label", label)?;
        let ranges = self.range.iter().map(|text| range(text));
        let categories = self.category.iter().map(|text| category(text));
        let texts = self.text.iter().map(|column| text(column));
        let columns = ranges.chain(categories).chain(texts).collect::<Result<Vec<_>>>()?;
        if columns.is_empty() {
            let must_be = "given, or --category or --text: what the label is learned from";
            return Err(InvalidParameter::new("range", "absent", must_be).into());
        }
        let missing = match self.missing {
            Some(MissingName::Zero) => Missing::Zero,
            Some(MissingName::Refuse) | None => Missing::Refuse,
        };
        let schema = Schema { label, classes, missing, columns };
        schema.check()?;
        Ok(schema)
    }
}

fn range(text: &str) -> Result<Column> {
    let refused = || InvalidParameter::new("range", format!("{text:?}"), "COLUMN=LOW:HIGH");
    let (name, bounds) = text.rsplit_once('=').ok_or_else(refused)?;
    let (low, high) = bounds.split_once(':').ok_or_else(refused)?;
    let bound = |text: &str| real(text.trim()).map_err(|_| refused());
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

/// File format of a table.
#[derive(Debug, Clone, Copy)]
pub enum TableFormat {
    Csv,
    Parquet,
}

/// The file of a table, if `data` names one.
pub fn table_file(data: &str) -> Option<(TableFormat, &Path)> {
    let file = |(format, path)| (format, Path::new(path));
    let parquet = || Some((TableFormat::Parquet, data.strip_prefix("parquet:")?));
    data.strip_prefix("csv:").map(|path| (TableFormat::Csv, path)).or_else(parquet).map(file)
}

impl Table {
    /// Reads the table at `path`.
    pub fn load(&self, format: TableFormat, path: &Path) -> Result<Dataset> {
        let test = match &self.test {
            Some(other) => TestPart::File(other),
            None => TestPart::Last(self.test_share),
        };
        match format {
            TableFormat::Csv => Ok(data::csv(path, &self.schema, test)?),
            TableFormat::Parquet => parquet(path, &self.schema, test),
        }
    }
}

#[cfg(feature = "parquet")]
fn parquet(path: &Path, schema: &Schema, test: TestPart) -> Result<Dataset> {
    Ok(data::parquet(path, schema, test)?)
}

#[cfg(not(feature = "parquet"))]
fn parquet(path: &Path, _: &Schema, _: TestPart) -> Result<Dataset> {
    let must_be = "csv:PATH: this program was built without the feature parquet";
    Err(InvalidParameter::new("data", format!("parquet:{}", path.display()), must_be).into())
}
