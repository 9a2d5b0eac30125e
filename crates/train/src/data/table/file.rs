//! Files of tables, in the formats that are read.

use std::path::Path;

use antinoise_input::InvalidParameter;
#[cfg(feature = "parquet")]
use antinoise_input::tables::ColumnFormat;

use super::arrays::{array_columns, array_rows};
#[cfg(feature = "parquet")]
use super::batches::batch_rows;
use super::csv::csv_rows;
use super::json::json_rows;
use super::row::{Labels, RowReader, RowSink, Rows, Wanted};
use super::schema::Schema;
use super::split::{TestPart, split, tested};
use super::texts::{TextReader, TextRows};
use crate::Error;
use crate::data::examples::{Dataset, Examples, ImageShape};
use crate::data::users::refuse_shared;

/// A table in a file: CSV (plain or gzipped) whose first line holds the names of columns, JSON lines (one
/// object a line, plain or gzipped), NumPy's archives of arrays, Parquet or Arrow.
///
/// Features are scaled by the schema's public knowledge of a column, never by the data. A million rows of 20
/// columns load in seconds.
///
/// ```
/// use antinoise_train::data::{Column, Missing, Schema, TableFile, TestPart, Values};
/// let path = tempfile::NamedTempFile::new().unwrap().into_temp_path();
/// std::fs::write(&path, "hour;from;late\n0;JFK;no\n24;EWR;yes\n12;JFK;yes\n").unwrap();
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
/// let table = TableFile::csv(&path, b';').dataset(&schema, TestPart::Last(0.3))?;
/// assert_eq!((table.train.len(), table.test.len()), (2, 1));
/// assert_eq!((table.train.features(0), table.train.features(1)), (&[-1.0, 0.0, 1.0][..], &[1.0, 1.0, 0.0][..]));
/// assert_eq!((table.test.features(0), table.test.labels()), (&[0.0, 0.0, 1.0][..], &[1][..]));
/// # Ok::<(), antinoise_train::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TableFile<'a> {
    path: &'a Path,
    format: Format,
    user: Option<&'a str>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Format {
    Csv {
        delimiter: u8,
    },
    JsonLines,
    Arrays,
    #[cfg(feature = "parquet")]
    Columns(ColumnFormat),
}

impl<'a> TableFile<'a> {
    /// A CSV file whose cells are separated by `delimiter`, usually `b','`.
    pub fn csv(path: &'a Path, delimiter: u8) -> Self {
        Self { path, format: Format::Csv { delimiter }, user: None }
    }

    /// A file with one JSON object a line, whose keys are the names of columns. Texts, numbers and booleans
    /// are cells; null and an absent key are missing cells.
    pub fn json_lines(path: &'a Path) -> Self {
        Self { path, format: Format::JsonLines, user: None }
    }

    /// An `.npz` archive of NumPy: an array of one dimension is a column of its name, and one of two the
    /// columns `x[0]`, `x[1]`, ..., with which [`with_columns_of_arrays`](Self::with_columns_of_arrays)
    /// replaces its name in a schema. Ranges need numbers; categories and classes are text, whole numbers or
    /// truth values.
    pub fn npz(path: &'a Path) -> Self {
        Self { path, format: Format::Arrays, user: None }
    }

    /// A Parquet file. Ranges need columns of numbers; categories and classes are text, whole numbers or
    /// booleans.
    #[cfg(feature = "parquet")]
    pub fn parquet(path: &'a Path) -> Self {
        Self { path, format: Format::Columns(ColumnFormat::Parquet), user: None }
    }

    /// An Arrow IPC file (Feather version 2) or stream without compression, with the types of columns of
    /// [`parquet`](Self::parquet).
    #[cfg(feature = "parquet")]
    pub fn arrow(path: &'a Path) -> Self {
        Self { path, format: Format::Columns(ColumnFormat::Arrow), user: None }
    }

    /// The table with the user of each row in the column `user`, for data sets whose unit is the user.
    ///
    /// Names are compared as they are written, without spaces around them, and whole numbers by value: 7,
    /// 7.0 and 007 are one user; two spellings of a name are two.
    #[must_use]
    pub fn with_users(self, user: &'a str) -> Self {
        Self { user: Some(user), ..self }
    }

    /// The schema, in which a column that names an array of two dimensions is replaced by one column with the
    /// same values for each column of the array. Of other formats, the schema as it is.
    ///
    /// # Errors
    /// If the archive cannot be read, or an array that the schema names has neither one nor two dimensions,
    /// no column, or more than 65536 columns.
    pub fn with_columns_of_arrays(self, schema: Schema) -> Result<Schema, Error> {
        match self.format {
            Format::Arrays => array_columns(self.path, schema),
            _ => Ok(schema),
        }
    }

    /// The encoded rows, in the file's order.
    ///
    /// # Errors
    /// If the schema is invalid; if the file is absent or of another format, lacks a column or has it twice;
    /// if a row has another length; if a cell is not a number, is missing, or has an unknown category or
    /// class (the error names the column and the line or, in archives, Parquet and Arrow files, the row,
    /// counted from 0); if there are no rows.
    pub fn examples(self, schema: &Schema, labels: Labels) -> Result<Examples, Error> {
        Ok(Self { user: None, ..self }.rows(schema, labels)?.examples)
    }

    fn rows(self, schema: &Schema, labels: Labels) -> Result<Rows, Error> {
        let wanted = Wanted { schema, labels, user: self.user };
        wanted.check()?;
        let mut rows = RowReader::new(self.path, wanted);
        self.read(&mut rows)?;
        rows.end()
    }

    /// Reads all rows into `rows`.
    fn read<'r>(self, rows: &mut impl RowSink<'r>) -> Result<(), Error> {
        match self.format {
            Format::Csv { delimiter } => csv_rows(self.path, delimiter, rows),
            Format::JsonLines => json_rows(self.path, rows),
            Format::Arrays => array_rows(self.path, rows),
            #[cfg(feature = "parquet")]
            Format::Columns(format) => batch_rows(self.path, format, rows),
        }
    }

    /// The texts of users in the column `column`.
    ///
    /// # Errors
    /// As [`examples`](Self::examples), and if the table is not one [`with_users`](Self::with_users).
    pub fn texts(self, column: &str) -> Result<TextRows, Error> {
        let Some(user) = self.user else {
            let must_be = "the column with the user of each text";
            return Err(InvalidParameter::new("user", "absent", must_be).into());
        };
        let mut rows = TextReader::new(self.path, user, column)?;
        self.read(&mut rows)?;
        rows.end()
    }

    /// The texts of the users to train on, and of those to test with.
    ///
    /// # Errors
    /// As [`texts`](Self::texts), and if a part has no users, or a user has rows in this file and in a file
    /// of test rows.
    pub fn text_parts(self, column: &str, test: TestPart) -> Result<(TextRows, TextRows), Error> {
        let all = self.texts(column)?;
        match test {
            TestPart::File(path) => {
                let test = TableFile { path, ..self }.texts(column)?;
                refuse_shared(path, Some(all.users()), Some(test.users()))?;
                Ok((all, test))
            }
            TestPart::Last(_) | TestPart::Drawn { .. } => {
                let is_tested = tested(self.path, all.len(), Some(all.users()), test)?;
                Ok((all.part(|row| !is_tested[row])?, all.part(|row| is_tested[row])?))
            }
        }
    }

    /// The file's name, without its folder.
    pub fn name(self) -> String {
        let name = self.path.file_name();
        name.map_or_else(|| "table".into(), |name| name.to_string_lossy().into_owned())
    }

    /// The classification problem of the file: rows to train on, in the file's order, with their users if the
    /// table has them, and rows to test with.
    ///
    /// # Errors
    /// As [`examples`](Self::examples), and if a part has no rows, a user's name is missing or a number that
    /// is not whole, or a user has rows in this file and in a file of test rows.
    pub fn dataset(self, schema: &Schema, test: TestPart) -> Result<Dataset, Error> {
        let all = self.rows(schema, Labels::Required)?;
        let (train, test) = match test {
            TestPart::File(path) => {
                let tested = TableFile { path, ..self }.rows(schema, Labels::Required)?;
                refuse_shared(path, all.users.as_ref(), tested.users.as_ref())?;
                (all, tested.examples)
            }
            TestPart::Last(_) | TestPart::Drawn { .. } => split(self.path, all, test)?,
        };
        Ok(Dataset {
            name: self.name(),
            shape: ImageShape::row(schema.features()),
            classes: schema.classes.len(),
            class_names: schema.classes.clone(),
            train: train.examples,
            users: train.users,
            test,
        })
    }
}
