//! Matrices in Arrow files: tables of numbers.

use std::path::Path;

use super::array::Array;
use super::values::{MAX_VALUES, by_rows};
use crate::InvalidParameter;
use crate::tables::{Batches, Cells, ColumnFormat, Role};

impl Array {
    /// Reads the table in the Arrow IPC file or stream at `path` as a matrix with the table's rows and
    /// columns, in their order; `name` is its name in errors.
    ///
    /// # Errors
    /// When the file is not such a table, a column has another type than numbers, a cell is null, or there
    /// are more than 2^28 of them.
    pub fn from_arrow(name: &str, path: &Path) -> Result<Self, InvalidParameter> {
        let batches = Batches::open_all(name, path, ColumnFormat::Arrow, Role::Value)?;
        let mut columns = vec![Vec::new(); batches.schema().fields().len()];
        let (mut rows, mut room) = (0, String::new());
        for batch in batches {
            let batch = batch?;
            let values = (rows + batch.num_rows()) as u64 * columns.len() as u64;
            if values > MAX_VALUES {
                let must_be = format!("a table of at most {MAX_VALUES} numbers");
                return Err(InvalidParameter::new(name, format!("one of {values} or more"), must_be));
            }
            for (j, column) in columns.iter_mut().enumerate() {
                let cells = Cells::new(&format!("{j} of {name}"), batch.column(j))?;
                for i in 0..batch.num_rows() {
                    let what = || format!("{name}[{}, {j}]", rows + i);
                    if cells.is_null(i) {
                        return Err(InvalidParameter::new(what(), "null", "a number"));
                    }
                    column.push(cells.number("", i, &mut room)?.read(what)?);
                }
            }
            rows += batch.num_rows();
        }
        let shape = vec![rows, columns.len()];
        let values = by_rows(&shape, &columns.concat());
        Ok(Self { shape, values })
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::sync::Arc;

    use arrow_array::{
        ArrayRef, BooleanArray, Float32Array, Float64Array, Int8Array, RecordBatch, UInt64Array,
    };
    use arrow_ipc::writer::{FileWriter, StreamWriter};
    use arrow_schema::{DataType, Field, Schema};

    use super::*;

    fn table(columns: &[(&str, ArrayRef)]) -> RecordBatch {
        let field = |(name, array): &(&str, ArrayRef)| Field::new(*name, array.data_type().clone(), true);
        let schema = Schema::new(columns.iter().map(field).collect::<Vec<_>>());
        RecordBatch::try_new(Arc::new(schema), columns.iter().map(|(_, array)| array.clone()).collect())
            .unwrap()
    }

    fn read(batches: &[RecordBatch], is_stream: bool) -> Result<Array, InvalidParameter> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("c.arrow");
        let file = File::create(&path).unwrap();
        if is_stream {
            let mut writer = StreamWriter::try_new(file, &batches[0].schema()).unwrap();
            batches.iter().for_each(|batch| writer.write(batch).unwrap());
            writer.finish().unwrap();
        } else {
            let mut writer = FileWriter::try_new(file, &batches[0].schema()).unwrap();
            batches.iter().for_each(|batch| writer.write(batch).unwrap());
            writer.finish().unwrap();
        }
        Array::from_arrow("C", &path)
    }

    #[test]
    fn a_table_of_numbers_of_any_type_is_a_matrix() {
        // Columns may share a name, and their order is that of the file.
        let batch = table(&[
            ("t", Arc::new(Float64Array::from(vec![0.1, -0.0]))),
            ("a", Arc::new(Float32Array::from(vec![0.5, f32::INFINITY]))),
            ("t", Arc::new(Int8Array::from(vec![-7, 7]))),
            ("b", Arc::new(UInt64Array::from(vec![1 << 60, 0]))),
        ]);
        let rows = [0.1, 0.5, -7.0, 2f64.powi(60), -0.0, f64::INFINITY, 7.0, 0.0];
        for is_stream in [false, true] {
            let twice = read(&[batch.clone(), batch.clone()], is_stream).unwrap();
            assert_eq!((twice.shape, twice.values), (vec![4, 4], [rows, rows].concat()));
            assert_eq!(read(&[batch.slice(0, 0)], is_stream).unwrap().shape, [0, 4]);
        }
    }

    #[test]
    fn cells_that_are_not_numbers_are_refused_by_place() {
        let refused = |batches: &[RecordBatch]| read(batches, false).unwrap_err().to_string();
        let whole = table(&[("0", Arc::new(Float64Array::from(vec![1.0, 2.0])))]);
        let holed = table(&[("0", Arc::new(Float64Array::from(vec![Some(1.0), None])))]);
        assert_eq!(refused(&[whole, holed]), "C[3, 0] is null but must be a number");
        let truth = table(&[("yes", Arc::new(BooleanArray::from(vec![true])))]);
        let error = refused(&[truth]);
        assert!(error.starts_with("column \"yes\" of ") && error.contains("of type Boolean"), "{error}");
        let empty =
            RecordBatch::new_empty(Arc::new(Schema::new(vec![Field::new("0", DataType::Utf8, true)])));
        assert!(refused(&[empty]).contains("of type Utf8"));
    }
}
