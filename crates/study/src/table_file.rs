//! Files of tables, and how a study reads them.

use std::path::{Path, PathBuf};

#[cfg(not(feature = "parquet"))]
use antinoise_input::InvalidParameter;
use antinoise_train::data::{Dataset, Schema, TableFile, TestPart};
use serde::{Deserialize, Serialize};

use crate::error::Result;

/// The default delimiter of a CSV file.
pub const COMMA: u8 = b',';

/// The kinds of files that hold tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TableKind {
    /// CSV, perhaps compressed.
    Csv,
    /// One JSON object a line, perhaps compressed.
    JsonLines,
    /// Arrays of NumPy.
    Arrays,
    /// Parquet, with the feature `parquet`.
    Parquet,
    /// Arrow IPC, with the feature `parquet`.
    Arrow,
}

/// The names of tables, in messages.
pub const TABLES: &str = "csv:PATH, jsonl:PATH, npz:PATH, parquet:PATH or arrow:PATH";

impl TableKind {
    /// The table in the file at `path`.
    ///
    /// # Errors
    /// If this program cannot read such files.
    pub fn file(self, path: &Path, delimiter: Option<u8>) -> Result<TableFile<'_>> {
        match self {
            Self::Csv => Ok(TableFile::csv(path, delimiter.unwrap_or(COMMA))),
            Self::JsonLines => Ok(TableFile::json_lines(path)),
            Self::Arrays => Ok(TableFile::npz(path)),
            #[cfg(feature = "parquet")]
            Self::Parquet => Ok(TableFile::parquet(path)),
            #[cfg(feature = "parquet")]
            Self::Arrow => Ok(TableFile::arrow(path)),
            #[cfg(not(feature = "parquet"))]
            Self::Parquet | Self::Arrow => {
                let must_be =
                    "csv:PATH, jsonl:PATH or npz:PATH: this program was built without the feature parquet";
                Err(InvalidParameter::new("data", path.display(), must_be).into())
            }
        }
    }
}

/// The file of a table, if `data` names one.
pub fn table_file(data: &str) -> Option<(TableKind, &Path)> {
    let kinds = [
        ("csv:", TableKind::Csv),
        ("jsonl:", TableKind::JsonLines),
        ("npz:", TableKind::Arrays),
        ("parquet:", TableKind::Parquet),
        ("arrow:", TableKind::Arrow),
    ];
    kinds.into_iter().find_map(|(prefix, kind)| Some((kind, Path::new(data.strip_prefix(prefix)?))))
}

/// Schema, test rows and format of a table, as the folder of a study stores them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Table {
    /// A file of the same format with the test rows; `None`: rows of the same file.
    pub test: Option<PathBuf>,
    /// The share of test rows of the same file.
    pub test_share: f64,
    /// The seed of test rows that are drawn at random; `None` if the last rows are tested.
    pub test_seed: Option<u64>,
    /// The character between the cells of a CSV file.
    pub delimiter: u8,
    /// The column of users, if these are protected.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    /// The public knowledge of the columns.
    pub schema: Schema,
}

impl Table {
    /// Reads the table at `path`.
    pub(crate) fn load(&self, kind: TableKind, path: &Path) -> Result<Dataset> {
        let test = match (&self.test, self.test_seed) {
            (Some(other), _) => TestPart::File(other),
            (None, Some(seed)) => TestPart::Drawn { share: self.test_share, seed },
            (None, None) => TestPart::Last(self.test_share),
        };
        let file = kind.file(path, Some(self.delimiter))?;
        let file = match &self.user {
            Some(user) => file.with_users(user),
            None => file,
        };
        Ok(file.dataset(&self.schema, test)?)
    }
}
