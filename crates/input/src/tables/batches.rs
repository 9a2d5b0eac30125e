use std::fs::File;
use std::io::{BufReader, Read, Seek};
use std::path::Path;

use arrow_array::{RecordBatch, RecordBatchReader};
use arrow_ipc::reader::{FileReader, StreamReader};
use arrow_schema::{ArrowError, Schema, SchemaRef};
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

use super::cells::{column, readable};
use super::panics::catch_panic;
use super::role::Role;
use crate::InvalidParameter;

/// Some columns of a Parquet or Arrow file, in batches: memory does not grow with the number of batches.
pub struct Batches {
    reader: Box<dyn RecordBatchReader>,
    schema: SchemaRef,
    what: String,
    /// Whether the end of the file, or damaged data, was reached.
    is_over: bool,
}

/// The formats of files that hold columns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ColumnFormat {
    /// Parquet: compressed by Snappy, Zstandard, gzip or LZ4, or not. Encrypted files are refused.
    Parquet,
    /// Arrow IPC (Feather version 2), as a file or a stream. Compressed batches are refused.
    Arrow,
}

impl ColumnFormat {
    fn must_be(self) -> &'static str {
        match self {
            Self::Parquet => "a Parquet file that can be read",
            Self::Arrow => "an Arrow IPC file or stream without compression that can be read",
        }
    }

    /// A reader of the columns that `places` returns for the file's schema.
    fn reader(
        self,
        path: &Path,
        places: impl Fn(&Schema) -> Result<Vec<usize>, InvalidParameter>,
    ) -> Result<Box<dyn RecordBatchReader>, Unopened> {
        let file = || File::open(path).map_err(|error| Unopened::Unreadable(error.to_string()));
        Ok(match self {
            Self::Parquet => {
                let builder = ParquetRecordBatchReaderBuilder::try_new(file()?)?;
                let mask = ProjectionMask::roots(builder.parquet_schema(), places(builder.schema())?);
                Box::new(builder.with_projection(mask).with_batch_size(ROWS).build()?)
            }
            Self::Arrow => {
                let whole = ipc(file()?, None)?;
                ipc(file()?, Some(places(&whole.schema())?))?
            }
        })
    }
}

/// A reader of the columns at `projection` of an Arrow file or stream.
fn ipc(file: File, projection: Option<Vec<usize>>) -> Result<Box<dyn RecordBatchReader>, ArrowError> {
    let (mut file, mut start) = (BufReader::new(file), Vec::new());
    file.by_ref().take(FILE_MAGIC.len() as u64).read_to_end(&mut start)?;
    file.rewind()?;
    Ok(match start == FILE_MAGIC {
        true => Box::new(FileReader::try_new(file, projection)?),
        false => Box::new(StreamReader::try_new(file, projection)?),
    })
}

/// The bytes that an Arrow file starts with. A stream starts with its first message.
const FILE_MAGIC: &[u8] = b"ARROW1";

/// The reason for which a file was not opened.
enum Unopened {
    Unreadable(String),
    Column(InvalidParameter),
}

impl From<InvalidParameter> for Unopened {
    fn from(error: InvalidParameter) -> Self {
        Self::Column(error)
    }
}

impl From<ArrowError> for Unopened {
    fn from(error: ArrowError) -> Self {
        Self::Unreadable(error.to_string())
    }
}

impl From<parquet::errors::ParquetError> for Unopened {
    fn from(error: parquet::errors::ParquetError) -> Self {
        Self::Unreadable(error.to_string())
    }
}

impl Batches {
    /// Opens the file to read these columns; `what` names the file in an error.
    ///
    /// # Errors
    /// When it cannot be read or has another format; when a column is absent, occurs twice, or has a type
    /// that its role does not accept.
    pub fn open(
        what: &str,
        path: &Path,
        format: ColumnFormat,
        columns: &[(&str, Role)],
    ) -> Result<Self, InvalidParameter> {
        let places = |whole: &Schema| columns.iter().map(|(name, role)| column(whole, name, *role)).collect();
        Self::open_at(what, path, format, places)
    }

    /// Opens the file to read all columns in the order of the file, each as `role`.
    ///
    /// # Errors
    /// As [`Batches::open`]; several columns may have one name.
    pub fn open_all(
        what: &str,
        path: &Path,
        format: ColumnFormat,
        role: Role,
    ) -> Result<Self, InvalidParameter> {
        let places =
            |whole: &Schema| (0..whole.fields().len()).map(|place| readable(whole, place, role)).collect();
        Self::open_at(what, path, format, places)
    }

    fn open_at(
        what: &str,
        path: &Path,
        format: ColumnFormat,
        places: impl Fn(&Schema) -> Result<Vec<usize>, InvalidParameter>,
    ) -> Result<Self, InvalidParameter> {
        let opened = catch_panic(|| format.reader(path, places));
        let opened =
            opened.unwrap_or_else(|| Err(Unopened::Unreadable("its parts contradict each other".into())));
        let reader = opened.map_err(|error| match error {
            Unopened::Unreadable(error) => {
                let must_be = format!("{}: {}", format.must_be(), error.trim_end());
                InvalidParameter::new(what, path.display(), must_be)
            }
            Unopened::Column(InvalidParameter { parameter, got, must_be }) => {
                InvalidParameter::new(format!("{parameter} of {}", path.display()), got, must_be)
            }
        })?;
        let schema = reader.schema();
        Ok(Self { reader, schema, what: format!("{what} ({})", path.display()), is_over: false })
    }

    /// The columns that are read, in the order of the file.
    pub fn schema(&self) -> &Schema {
        &self.schema
    }
}

impl Iterator for Batches {
    type Item = Result<RecordBatch, InvalidParameter>;

    fn next(&mut self) -> Option<Self::Item> {
        let refused =
            |why: &str| InvalidParameter::new(&self.what, "damaged", format!("readable to its end: {why}"));
        if self.is_over {
            return None;
        }
        let found = catch_panic(|| self.reader.next().transpose());
        self.is_over = !matches!(found, Some(Ok(Some(_))));
        match found {
            Some(Ok(batch)) => batch.map(Ok),
            Some(Err(error)) => Some(Err(refused(&error.to_string()))),
            None => Some(Err(refused("its parts contradict each other"))),
        }
    }
}

/// Rows of a batch of Parquet: enough to amortise its overhead, few enough for a cache.
const ROWS: usize = 8192;
