//! Figures for Python: as an Arrow table, which data frames take over without a copy, or as lists.

use std::collections::HashSet;
use std::ffi::CStr;
use std::sync::Arc;

use antinoise_input::InvalidParameter;
use antinoise_release::{Answer, Figure, Period, Published};
use arrow_array::cast::AsArray;
use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::types::{Float64Type, Int64Type};
use arrow_array::{
    Array, ArrayRef, Float64Array, Int64Array, NullArray, RecordBatch, RecordBatchIterator, StringArray,
};
use arrow_schema::{DataType, Field, Schema};
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyDict, PyList};
use serde_json::Value;

use crate::errors::{Raised, Result};

/// The name of a capsule that holds an Arrow stream.
pub const STREAM: &CStr = c"arrow_array_stream";

/// A table: `pyarrow.table(t)`, `polars.DataFrame(t)`, `pandas.DataFrame.from_arrow(t)` and DuckDB read it
/// directly, and `t.to_dict()` is a dict of lists.
#[pyclass(frozen, module = "antinoise")]
pub struct Table {
    batch: RecordBatch,
}

impl Table {
    fn of(columns: Vec<(&str, ArrayRef)>) -> Result<Self> {
        let field = |(name, array): &(&str, ArrayRef)| Field::new(*name, array.data_type().clone(), true);
        let schema = Schema::new(columns.iter().map(field).collect::<Vec<_>>());
        let arrays = columns.into_iter().map(|(_, array)| array).collect();
        let batch = RecordBatch::try_new(Arc::new(schema), arrays).map_err(Raised::failed)?;
        Ok(Self { batch })
    }

    /// Published figures. Periods have the type of the period of `last`, which may belong to an earlier
    /// table; `whole` says whether every query publishes whole numbers.
    pub fn published(rows: &[Published], last: Option<&Published>, whole: bool) -> Result<Self> {
        let text = |cell: fn(&Published) -> &str| -> ArrayRef {
            Arc::new(rows.iter().map(|row| Some(cell(row))).collect::<StringArray>())
        };
        let figures = |cell: fn(&Published) -> Figure| -> ArrayRef {
            let whole_number = |row: &Published| match cell(row) {
                Figure::Whole(number) => Some(number),
                Figure::Real(_) => None,
            };
            match rows.iter().map(whole_number).collect::<Option<Vec<i64>>>().filter(|_| whole) {
                Some(numbers) => Arc::new(Int64Array::from(numbers)),
                None => Arc::new(rows.iter().map(|row| Some(cell(row).value())).collect::<Float64Array>()),
            }
        };
        let number = |row: &Published| match row.period {
            Period::Number(number) => Some(number),
            Period::Text(_) => None,
        };
        let periods: ArrayRef = match last.and_then(number) {
            Some(_) => Arc::new(rows.iter().map(number).collect::<Int64Array>()),
            None => Arc::new(rows.iter().map(|row| Some(row.period.to_string())).collect::<StringArray>()),
        };
        Self::of(vec![
            ("period", periods),
            ("key", text(|row| &row.key)),
            ("value", figures(|row| row.value)),
            ("lower", figures(|row| row.lower)),
            ("upper", figures(|row| row.upper)),
            ("query", text(|row| &row.query)),
            ("bucket", text(|row| &row.bucket)),
        ])
    }

    /// The result of a SELECT, whose columns must have different names.
    pub fn answer(answer: &Answer) -> Result<Self> {
        let mut names = HashSet::new();
        if let Some(name) = answer.columns.iter().find(|name| !names.insert(*name)) {
            let got = format!("a SELECT of two columns {name:?}");
            return Err(
                InvalidParameter::new("sql", got, "one whose columns have different names (AS)").into()
            );
        }
        let column = |(place, name): (usize, &'_ String)| {
            let cells: Vec<&Value> = answer.rows.iter().map(|row| &row[place]).collect();
            (name.clone(), array(&cells))
        };
        let columns: Vec<(String, ArrayRef)> = answer.columns.iter().enumerate().map(column).collect();
        Self::of(columns.iter().map(|(name, array)| (name.as_str(), Arc::clone(array))).collect())
    }
}

/// Cells as one Arrow array: text if some cells are text.
fn array(cells: &[&Value]) -> ArrayRef {
    let given = || cells.iter().filter(|cell| !cell.is_null());
    if given().next().is_none() {
        return Arc::new(NullArray::new(cells.len()));
    }
    if given().all(|cell| cell.is_i64()) {
        return Arc::new(cells.iter().map(|cell| cell.as_i64()).collect::<Int64Array>());
    }
    if given().all(|cell| cell.is_number()) {
        return Arc::new(cells.iter().map(|cell| cell.as_f64()).collect::<Float64Array>());
    }
    let text = |cell: &&Value| match cell {
        Value::Null => None,
        Value::String(text) => Some(text.clone()),
        other => Some(other.to_string()),
    };
    Arc::new(cells.iter().map(text).collect::<StringArray>())
}

#[pymethods]
impl Table {
    /// The names of the columns.
    #[getter]
    fn columns(&self) -> Vec<String> {
        self.batch.schema_ref().fields().iter().map(|field| field.name().clone()).collect()
    }

    /// A dict of lists, one for each column.
    fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let columns = PyDict::new(py);
        for (field, array) in self.batch.schema_ref().fields().iter().zip(self.batch.columns()) {
            let cells = match array.data_type() {
                DataType::Int64 => {
                    PyList::new(py, array.as_primitive::<Int64Type>().iter().collect::<Vec<_>>())?
                }
                DataType::Float64 => {
                    PyList::new(py, array.as_primitive::<Float64Type>().iter().collect::<Vec<_>>())?
                }
                DataType::Utf8 => PyList::new(py, array.as_string::<i32>().iter().collect::<Vec<_>>())?,
                _ => PyList::new(py, vec![None::<i64>; array.len()])?,
            };
            columns.set_item(field.name(), cells)?;
        }
        Ok(columns)
    }

    /// Exports the table as an Arrow stream; its schema is fixed, whatever is requested.
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        let _ = requested_schema;
        let batches = RecordBatchIterator::new([Ok(self.batch.clone())], self.batch.schema());
        PyCapsule::new_with_value(py, FFI_ArrowArrayStream::new(Box::new(batches)), STREAM)
    }

    fn __len__(&self) -> usize {
        self.batch.num_rows()
    }

    fn __repr__(&self) -> String {
        format!("Table({} rows: {})", self.batch.num_rows(), self.columns().join(", "))
    }
}
