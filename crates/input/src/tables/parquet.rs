use std::fs::File;
use std::path::Path;

use arrow_array::RecordBatch;
use arrow_schema::{Schema, SchemaRef};
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{ParquetRecordBatchReader, ParquetRecordBatchReaderBuilder};

use super::cells::{Role, column};
use super::panics::catch_panic;
use crate::InvalidParameter;

/// Some columns of a Parquet file, in batches: memory does not grow with the number of rows.
///
/// Files may be compressed by Snappy, Zstandard, gzip or LZ4. Encrypted ones are refused.
#[derive(Debug)]
pub struct Parquet {
    reader: ParquetRecordBatchReader,
    schema: SchemaRef,
    what: String,
    /// Whether the end of the file, or damaged data, was reached.
    is_over: bool,
}

impl Parquet {
    /// Opens the file to read these columns; `what` names the file in an error.
    ///
    /// # Errors
    /// When it cannot be read or is not a Parquet file; when a column is absent, occurs twice, or has a type
    /// that its role does not accept.
    pub fn open(what: &str, path: &Path, columns: &[(&str, Role)]) -> Result<Self, InvalidParameter> {
        let must_be = "a Parquet file that can be read";
        let refused = |error: String| {
            InvalidParameter::new(what, path.display(), format!("{must_be}: {}", error.trim_end()))
        };
        let file = File::open(path).map_err(|error| refused(error.to_string()))?;
        let builder = catch_panic(|| ParquetRecordBatchReaderBuilder::try_new(file))
            .ok_or_else(|| refused("its last bytes contradict each other".into()))?
            .map_err(|error| refused(error.to_string()))?;
        let whole: &Schema = builder.schema();
        let places: Vec<usize> =
            columns.iter().map(|(name, role)| column(whole, name, *role)).collect::<Result<_, _>>()?;
        let mask = ProjectionMask::roots(builder.parquet_schema(), places);
        let reader = catch_panic(|| builder.with_projection(mask).with_batch_size(ROWS).build())
            .ok_or_else(|| refused("its last bytes contradict each other".into()))?
            .map_err(|error| refused(error.to_string()))?;
        let schema = arrow_array::RecordBatchReader::schema(&reader);
        Ok(Self { reader, schema, what: format!("{what} ({})", path.display()), is_over: false })
    }

    /// The columns that are read, in the order of the file.
    pub fn schema(&self) -> &Schema {
        &self.schema
    }
}

impl Iterator for Parquet {
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
            None => Some(Err(refused("its pages contradict each other"))),
        }
    }
}

/// Rows of a batch: enough to amortise its overhead, few enough for a cache.
const ROWS: usize = 8192;
